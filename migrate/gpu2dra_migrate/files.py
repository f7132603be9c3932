"""Reading and writing the user's files: decoded without touching a byte, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from gpu2dra_migrate.errors import FileError

LARGEST = 4 * 1024 * 1024
"""Bytes of a file that is looked into although no run is about it."""


class Unreadable(FileError):
    """The bytes of a file cannot be had or are no text; `code` is a key of `gpu2dra.CODES`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def read_text(path: Path, max_size: int) -> str:
    """Return the text of `path` with its line ends and byte order mark as they are.

    Raises Unreadable for a file that is missing, may not be read, is none (a named pipe), is larger than `max_size`
    bytes, or is not UTF-8.
    """
    try:
        # O_NONBLOCK: opening a named pipe must not wait for somebody to write into it.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as file:  # noqa: PTH123 - a handle, or flags
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("DRA510", "This is no regular file; name a file, or a folder to search.")
            data = b"" if status.st_size > max_size else file.readall()
    except OSError as error:
        raise Unreadable(
            "DRA510", f"Could not be read ({error.strerror or error}); check the path and its permissions."
        ) from error
    if max(status.st_size, len(data)) > max_size:
        raise Unreadable(
            "DRA503",
            f"{status.st_size:,} bytes, more than {max_size:,}; raise --max-size or exclude it in .gpu2dra.yaml.",
        )
    return decode(data)


def text_of(path: Path) -> str:
    """Return the text of a file, empty where it cannot be had."""
    try:
        return read_text(path, LARGEST)
    except Unreadable:
        return ""


def absolute(path: Path) -> Path:
    """Return `path` from the root without `..`, its links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - links stay links


def decode(data: bytes) -> str:
    """Return `data` as text; raise Unreadable when it is not UTF-8 or holds NUL bytes."""
    if b"\0" in data:
        raise Unreadable(
            "DRA502", "Holds NUL bytes, so it is binary or UTF-16; Kubernetes reads UTF-8: save it as such."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise Unreadable("DRA502", f"Not UTF-8: byte 0x{byte:02x} in line {line}; save it as UTF-8.") from error


def write_text(path: Path, text: str) -> None:
    """Replace the content of `path` by `text` in one step; mode bits and (for root) the owner stay, links stay links.

    Raises OSError, and then `path` is as it was. A file that its user may not write is not written, although a new
    one could take its place.
    """
    target = os.path.realpath(path)
    try:
        status: os.stat_result | None = os.stat(target)  # noqa: PTH116 - strings here: hot
    except FileNotFoundError:
        status = None
    if status and not os.access(target, os.W_OK):
        raise PermissionError(13, "Permission denied", target)
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:60]}.{os.urandom(6).hex()}.tmp")  # noqa: PTH118 - as above
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with contextlib.ExitStack() as undo:
        handle = os.open(temporary, flags, 0o666)
        undo.callback(_unlink, temporary)
        with open(handle, "wb") as file:  # noqa: PTH123 - a handle, or flags
            file.write(text.encode("utf-8"))
            if status:
                _take_over(file.fileno(), status)
        os.replace(temporary, target)  # noqa: PTH105 - as above
        undo.pop_all()


def write_all(texts: Mapping[Path, str], moves: Mapping[Path, Path] = {}) -> None:
    """Move files, then write some; raise OSError when one cannot be, and then, or when interrupted, all are as before.

    New files come first: taking them back needs no space on a disk that is full.
    """
    with contextlib.ExitStack() as undo:
        for old, new in moves.items():
            old.rename(new)
            undo.callback(os.replace, new, old)
        for path in sorted(texts, key=lambda path: path.exists()):
            undo.callback(_put_back, path, path.read_bytes() if path.exists() else None)
            write_text(path, texts[path])
        undo.pop_all()


def _put_back(path: Path, data: bytes | None) -> None:
    if data is None:
        path.unlink(missing_ok=True)
    elif path.read_bytes() != data:
        write_text(path, data.decode("utf-8"))


def _take_over(handle: int, status: os.stat_result) -> None:
    """Give the new file owner and mode of the old one; the owner as far as the system lets us."""
    own = os.fstat(handle)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, status.st_uid, status.st_gid)
    os.fchmod(handle, stat.S_IMODE(status.st_mode))


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)  # noqa: PTH108 - as above
