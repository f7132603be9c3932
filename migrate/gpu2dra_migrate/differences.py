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
    """Yield the lines of the diff of a file and of the files made beside it, with their line ends."""
    for path, text in result.created.items():
        yield from _diff("", text, "/dev/null", _name("b", path))
    if result.before is not None and result.after is not None:
        yield from _diff(result.before, result.after, _name("a", result.path), _name("b", result.path))


def _diff(before: str, after: str, old: str, new: str) -> Iterator[str]:
    for line in unified_diff(lines_of(before), lines_of(after), old, new):
        yield line if line.endswith("\n") else f"{line}\n{_NO_LINE_END}"


def lines_of(text: str) -> list[str]:
    r"""Split at \n only, as diff and patch do; a carriage return stays part of its line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + lines[-1:] * bool(lines[-1])


def _name(side: str, path: Path) -> str:
    """Return the name of a file in the head of a diff: from here where it is below, quoted as git does where needed.

    A name with blanks ends in a tab, so that nobody takes what follows for a date.
    """
    text = os.fspath(path)
    if path.is_absolute():
        here = os.path.relpath(path)
        text = text.lstrip("/") if here.startswith("..") else here
    text = f"{side}/{text}"
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f"{text}\t" if " " in text else text
    parts = (
        f"\\{_ESCAPES[character]}" if character in _ESCAPES
        else character if character.isprintable()
        else "".join(f"\\{byte:03o}" for byte in os.fsencode(character))
        for character in text
    )  # fmt: skip
    return f'"{"".join(parts)}"'
