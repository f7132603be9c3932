"""Reading and writing the user's files: decoded without touching a byte, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from gpu2dra_migrate.errors import FileError


class Unreadable(FileError):
    """The bytes of a file cannot be had or are no text; `code` is a key of `gpu2dra.CODES`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message


def read_text(path: Path, max_size: int) -> str:
    """Return the text of `path` with its line ends and byte order mark as they are.

    Raises Unreadable for a file that is missing, may not be read, is larger than `max_size` bytes, or is not UTF-8.
    """
    try:
        with path.open("rb") as file:
            data = file.read(max_size + 1)
    except OSError as error:
        raise Unreadable("DRA510", f"{error.strerror or error}; check the path and its permissions.") from error
    if len(data) > max_size:
        raise Unreadable("DRA503", f"Larger than {max_size:,} bytes; raise --max-size or exclude it in .gpu2dra.yaml.")
    return decode(data)


def decode(data: bytes) -> str:
    """Return `data` as text; raise Unreadable when it is not UTF-8 or holds NUL bytes."""
    if b"\0" in data:
        raise Unreadable("DRA502", "Holds NUL bytes, so it is binary or UTF-16; Kubernetes reads UTF-8.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Unreadable("DRA502", f"Not UTF-8: byte 0x{data[error.start]:02x} in line {line}; save it as UTF-8.") from error


def write_text(path: Path, text: str) -> None:
    """Replace the content of `path` by `text` in one step, keeping its mode bits; a link's target is written.

    Raises OSError, and then `path` is as it was.
    """
    target = path.resolve()
    try:
        mode = target.stat().st_mode & 0o7777
    except FileNotFoundError:
        mode = 0o666 & ~_umask()
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".tmp", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode("utf-8"))
        temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
