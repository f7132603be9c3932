"""Searching a folder without git: regular files only, links never followed, whatever cannot be read is told."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

_SKIPPED_FOLDERS = frozenset(
    {".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".terraform"}
)
"""Nobody's manifests: what version control, package managers and tools put there themselves."""
_BLOCK = 1 << 20
_ANY_DEPTH = 1 << 20


class Problem(Exception):
    """A place that could not be looked at; `reason` is what the system says."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason


def walk(root: Path, wanted: Callable[[str], bool], depth: int = _ANY_DEPTH) -> Iterator[Path | Problem]:
    """Yield the files and links below `root` whose names are `wanted`, and links to folders; sorted in each folder.

    Folders more than `depth` levels below the root are not entered.
    """
    problems: list[OSError] = []
    top = os.fspath(root).rstrip(os.sep)
    for folder, folders, names in os.walk(root, onerror=problems.append):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        if folder[len(top) :].count(os.sep) >= depth:
            folders.clear()
        for name in sorted(names):
            if wanted(name):
                yield Path(folder, name)
        for name in folders:
            if os.path.islink(os.path.join(folder, name)):  # noqa: PTH114, PTH118 - this is the hot loop
                yield Path(folder, name)
        while problems:
            problem = problems.pop()
            yield Problem(Path(problem.filename), problem.strerror or str(problem))
    for problem in problems:
        yield Problem(Path(problem.filename), problem.strerror or str(problem))


def leads_out(link: Path, root: Path) -> bool:
    """Whether the target of `link` exists and is not below `root`, where the search would meet it anyway."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # gone, or a loop of links
        return False
    return not target.is_relative_to(root.resolve())


def holds(path: Path, terms: Sequence[bytes]) -> bool:
    """Whether the regular file `path` holds one of `terms`; anything else that stands there holds nothing.

    Raises Problem for a file that cannot be read. One that has gone in the meantime holds nothing.
    """
    overlap = max(map(len, terms)) - 1
    try:
        # O_NONBLOCK: opening a named pipe must not wait for somebody to write into it.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    except OSError as error:
        if not path.is_file():
            return False  # a socket, a device without a driver
        raise Problem(path, error.strerror or str(error)) from error
    with os.fdopen(handle, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return False
        tail = b""
        try:
            while block := file.read(_BLOCK):
                data = tail + block
                if any(term in data for term in terms):
                    return True
                tail = data[-overlap:] if overlap else b""
        except OSError as error:
            raise Problem(path, error.strerror or str(error)) from error
    return False


def surely_holds(path: Path, terms: Sequence[bytes]) -> bool:
    """Whether the file `path` holds one of `terms`, as far as it can be read."""
    try:
        return holds(path, terms)
    except Problem:
        return False
