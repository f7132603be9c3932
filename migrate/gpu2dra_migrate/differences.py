"""Unified diffs of what a run changes, such that `git apply` and `patch -p1` take them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from difflib import unified_diff
from typing import TYPE_CHECKING

from gpu2dra_migrate.worker import FileResult

if TYPE_CHECKING:
    from pathlib import Path

_NO_LINE_END = "\\ No newline at end of file\n"
_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}


def diff_of(result: FileResult) -> Iterator[str]:
    """Yield the lines of the diff of a file and of the files made beside it, with their line ends.

    A file that moves is told in the way of git, as `git apply` takes it.
    """
    for path, text in result.created.items():
        yield from _diff("", text, "/dev/null", _name("b", path))
    if result.moved:
        yield from _rename(result.path, result.moved)
    if result.after is not None:
        before = "/dev/null" if result.before is None else _name("a", result.path)
        if result.moved:
            yield _git_head(result.path, result.path)
            yield "new file mode 100644\n"
        yield from _diff(result.before or "", result.after, before, _name("b", result.path))


def _rename(old: Path, new: Path) -> Iterator[str]:
    yield _git_head(old, new)
    yield "similarity index 100%\n"
    yield f"rename from {_quoted(_from_here(old))}\n"
    yield f"rename to {_quoted(_from_here(new))}\n"


def _git_head(old: Path, new: Path) -> str:
    return f"diff --git {_quoted('a/' + _from_here(old))} {_quoted('b/' + _from_here(new))}\n"


def _diff(before: str, after: str, old: str, new: str) -> Iterator[str]:
    for line in unified_diff(lines_of(before), lines_of(after), old, new):
        yield line if line.endswith("\n") else f"{line}\n{_NO_LINE_END}"


def lines_of(text: str) -> list[str]:
    r"""Split at \n only, as diff and patch do; a carriage return stays part of its line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _name(side: str, path: Path) -> str:
    """Return the name of a file in the head of a diff.

    A name with blanks ends in a tab, so that nobody takes what follows for a date.
    """
    text = _quoted(f"{side}/{_from_here(path)}")
    return f"{text}\t" if " " in text and not text.startswith('"') else text


def _from_here(path: Path) -> str:
    """Return a path as seen from here where it is below."""
    text = os.fspath(path)
    if path.is_absolute():
        here = os.path.relpath(path)
        return text.lstrip("/") if here.startswith("..") else here
    return text


def _quoted(text: str) -> str:
    """Return a name quoted as git does where needed."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return text
    parts = (
        f"\\{_ESCAPES[character]}" if character in _ESCAPES
        else character if character.isprintable()
        else "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
        for character in text
    )  # fmt: skip
    return f'"{"".join(parts)}"'
