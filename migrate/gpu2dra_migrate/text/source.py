"""The text of a file seen as lines, and the splices that change it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from gpu2dra_migrate.errors import LAYOUT, CannotEdit, ProofFailed
from gpu2dra_migrate.text.nodes import BOM, Alias, Mapping, Node, Scalar, place_of

_BLANK_REST = re.compile(r"[ \t]*(?:#[^\n]*)?(?=\r?\n|\r?\Z)")
_COMMENT_LINE = re.compile(r"[ \t]*#")
_PROPERTY = re.compile(r"(?:!<[^>\s]*>|[&!][^\s,\[\]{}]*)")
_BETWEEN = re.compile(r"(?:\s|#[^\n]*)*")


class Splice(NamedTuple):
    """Put `text` in the place of the characters from `start` up to `end`."""

    start: int
    end: int
    text: str


class Source:
    """Offsets of lines, line breaks and node parts in one text."""

    __slots__ = ("first", "needs_break", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.first = 1 if text.startswith(BOM) else 0
        self.needs_break = False

    def line_start(self, offset: int) -> int:
        """Return where the line around `offset` starts, behind a BOM."""
        return max(self.text.rfind("\n", 0, offset) + 1, self.first)

    def next_line(self, offset: int) -> int:
        """Return where the line after the one around `offset` starts; the end of the text on the last line."""
        return self.text.find("\n", offset) + 1 or len(self.text)

    def blank_before(self, offset: int) -> bool:
        """Tell whether only blanks stand before `offset` on its line."""
        return not self.text[self.line_start(offset) : offset].strip(" \t")

    def blank_after(self, offset: int) -> bool:
        """Tell whether only blanks or a comment stand from `offset` to the end of its line."""
        return _BLANK_REST.match(self.text, offset) is not None

    def is_comment(self, offset: int) -> bool:
        """Tell whether the line that starts at `offset` holds only a comment."""
        return _COMMENT_LINE.match(self.text, offset) is not None

    def indent(self, offset: int) -> int:
        """Return how many blanks the line that starts at `offset` begins with."""
        line = self.text[offset : self.next_line(offset)]
        return len(line) - len(line.lstrip(" \t"))

    def margin(self, offset: int) -> str:
        """Return the blanks that the line around `offset` begins with."""
        line = self.line_start(offset)
        return self.text[line : line + self.indent(line)]

    def before(self, node: Node) -> str:
        """Return what stands before `node` in its line."""
        return self.text[self.line_start(node.start) : node.start]

    def eol(self, offset: int) -> str:
        """Return the line break of the line around `offset`, or of the line before when it has none."""
        at = self.text.find("\n", offset)
        if at < 0:
            at = self.text.rfind("\n", 0, offset)
        return "\r\n" if at > 0 and self.text[at - 1] == "\r" else "\n"

    def skip_comments(self, offset: int, deeper_than: int) -> int:
        """Return where the comment lines end that start at `offset` and are indented deeper than `deeper_than`."""
        while offset < len(self.text) and self.is_comment(offset) and self.indent(offset) > deeper_than:
            offset = self.next_line(offset)
        return offset

    def as_lines(self, lines: Iterable[str], at: int) -> str:
        """Join `lines` for an insertion at `at`, the start of a line or the end of the text (see `arrange`)."""
        eol = self.eol(max(at - 1, 0))
        return "".join(line + eol for line in lines)

    def properties_end(self, node: Node) -> int:
        """Return where the anchor and the tag of `node` end; its start when it has none."""
        end = node.start
        if isinstance(node, Alias) or (node.anchor is None and node.tag is None):
            return end
        offset = end
        while match := _PROPERTY.match(self.text, offset):
            end = match.end()
            between = _BETWEEN.match(self.text, end)
            offset = between.end() if between else end
            if isinstance(node, Scalar) and offset >= node.end:
                break
        return end

    def content_start(self, node: Node) -> int:
        """Return where `node` starts behind its anchor and tag."""
        if isinstance(node, Alias) or (node.anchor is None and node.tag is None):
            return node.start
        if isinstance(node, Mapping) and not node.flow:
            return node.children[0].start
        between = _BETWEEN.match(self.text, self.properties_end(node))
        return min(between.end(), node.end) if between else node.end

    def colon(self, key: Node) -> int:
        """Return the offset behind the colon after `key`; raise CannotEdit for a key in the form `? key`."""
        offset = key.end
        while self.text[offset : offset + 1] in (" ", "\t", "\r", "\n"):
            offset += 1
        if self.text[offset : offset + 1] != ":":
            raise self.refuse(key, "a key that is written with '?' or has no colon")
        return offset + 1

    def refuse(self, node: Node, message: str, code: str = LAYOUT) -> CannotEdit:
        """Return the error to raise for a place that cannot be edited."""
        return CannotEdit(code, message, *place_of(node))


def arrange(text: str, splices: Iterable[Splice], *, needs_break: bool = False) -> list[Splice]:
    """Return the splices in order, those that touch joined. Raise ProofFailed if two of them overlap.

    Insertions at the place where a deletion starts come before it. In a text without a last line break, lines that
    are put in at its end get one before them, and the text stays without one at its end, unless `needs_break` says
    that what then comes last would be another value without it.
    """
    open_end = bool(text) and not text.endswith("\n")
    arranged: list[Splice] = []
    for splice in sorted(splices, key=lambda item: (item.start, item.end)):
        start, end, new = splice
        last = arranged[-1] if arranged else Splice(-1, -1, "")
        if start < last.end:
            raise ProofFailed("bytes", f"two edits meet at offset {start}")
        if open_end and start == len(text) and new.endswith("\n"):
            before = last.text[-1:] if last.end == start else ""
            before = before or text[(last.start if last.end == start else start) - 1]
            new = new if before == "\n" else ("\r\n" if new.endswith("\r\n") else "\n") + new
        if start == last.end:
            arranged[-1] = Splice(last.start, end, last.text + new)
        else:
            arranged.append(Splice(start, end, new))
    if open_end and arranged and arranged[-1].end == len(text):
        _strip_end(text, arranged, needs_break=needs_break)
    return [splice for splice in arranged if text[splice.start : splice.end] != splice.text]


def _strip_end(text: str, arranged: list[Splice], *, needs_break: bool) -> None:
    """Take the line breaks off the end that the last of the splices leaves; `needs_break` keeps those of the text."""
    start, end, new = arranged.pop()
    new = new.rstrip("\r\n")
    while not new and not needs_break:
        floor = arranged[-1].end if arranged else 0
        while start > floor and text[start - 1] in "\r\n":
            start -= 1
        if start > floor or not arranged:
            break
        start, new = arranged[-1].start, arranged.pop().text.rstrip("\r\n")
    arranged.append(Splice(start, end, new))


def apply(text: str, splices: Iterable[Splice]) -> str:
    """Return `text` with arranged splices applied."""
    parts: list[str] = []
    position = 0
    for start, end, new in splices:
        parts += (text[position:start], new)
        position = end
    parts.append(text[position:])
    return "".join(parts)
