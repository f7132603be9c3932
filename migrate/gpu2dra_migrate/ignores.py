"""Inline comments that silence findings: `# gpu2dra: ignore[DRA001] reason`."""

from __future__ import annotations

import re
from collections.abc import Mapping

_COMMENT = re.compile(r"#\s*gpu2dra:\s*ignore(?![\w-])(?:\[(?P<codes>[A-Z0-9,\s]*)\])?")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_ALL = "*"


def ignores(text: str) -> Mapping[int, frozenset[str]]:
    """Return the codes that are ignored per 1-based line; `*` stands for all of them.

    A comment behind something speaks of its own line, a comment that stands alone of the next line that is no comment.
    """
    if "gpu2dra:" not in text:
        return {}
    result: dict[int, frozenset[str]] = {}
    waiting: frozenset[str] = frozenset()
    for number, line in enumerate(_LINE_BREAK.split(text.removeprefix("\ufeff")), start=1):
        stripped = line.strip()
        match = _COMMENT.search(line)
        codes = _codes(match["codes"]) if match else frozenset()
        if stripped.startswith("#"):
            waiting |= codes
        elif stripped:
            if found := codes | waiting:
                result[number] = found
            waiting = frozenset()
    return result


def _codes(listed: str | None) -> frozenset[str]:
    if listed is None:
        return frozenset({_ALL})
    return frozenset(code.strip() for code in listed.split(",") if code.strip())


def is_ignored(code: str, line: int, lines: Mapping[int, frozenset[str]]) -> bool:
    """Whether a finding of `code` in `line` is silenced."""
    return bool(lines.get(line, frozenset()) & {code, _ALL})
