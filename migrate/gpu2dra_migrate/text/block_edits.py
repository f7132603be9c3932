"""Splices for opened block mappings and sequences: whole lines come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpu2dra_migrate.text.emit import Layout, block_entry, block_item
from gpu2dra_migrate.text.layout import dash_offset
from gpu2dra_migrate.text.nodes import Mapping, Node, Scalar, Sequence, last_text
from gpu2dra_migrate.text.overlay import MapEdit, SeqEdit, data_of
from gpu2dra_migrate.text.source import Splice

if TYPE_CHECKING:
    from gpu2dra_migrate.text.edits import Editor

Lines = list[str]


class _Rows:
    """The entries of one block collection as rows: where each starts (key or dash) and ends."""

    def __init__(self, editor: Editor, starts: list[int], nodes: list[tuple[Node, ...]], kept: set[int]) -> None:
        self.source = editor.source
        self.put = editor.put
        self.starts = starts
        self.nodes = nodes
        self.kept = kept
        self.column = starts[0] - self.source.line_start(starts[0])
        self.inline = not self.source.blank_before(starts[0])
        for start, entry in zip(starts[1:], nodes[1:], strict=True):
            if not self.source.blank_before(start):
                raise self.source.refuse(entry[0], "an entry that does not start its line")

    def top(self, index: int) -> int:
        return self.source.line_start(self.starts[index])

    def bottom(self, index: int) -> int:
        return self.source.next_line(self.nodes[index][-1].end)

    def safe(self, layout: Layout) -> Layout:
        """Return `layout` without literal scalars if deeper comments follow a row that goes: they would join them."""
        removed = (index for index in range(len(self.starts)) if index not in self.kept)
        bottoms = map(self.bottom, removed)
        if any(self.source.skip_comments(bottom, self.column) != bottom for bottom in bottoms):
            return replace(layout, literals=False)
        return layout

    def write(self, placed: list[tuple[int, Lines]]) -> None:
        """Put the splices; `placed` holds new lines with the position of the kept row before them (-1: none)."""
        source = self.source
        removed = [index for index in range(len(self.starts)) if index not in self.kept]
        first_new = [line for after, lines in placed if after < 0 for line in lines]
        for after, lines in placed:
            if after >= 0:
                at = source.skip_comments(self.bottom(after), self.column)
                self.put(Splice(at, at, source.as_lines(lines, at)))
        if removed and removed[0] == 0:
            slide = next((index for index in range(len(self.starts)) if index in self.kept), len(self.starts))
            if self.inline and not first_new and slide < len(self.starts):
                self._slide_up(slide)
                removed = removed[slide:]
            else:
                self._replace_first(first_new)
                removed = removed[1:]
        elif first_new:
            self._insert_first(first_new)
        for index in removed:
            comments = self._comments(self.nodes[index][0].start, index)
            top, bottom = self.top(index), self.bottom(index)
            if self._follows_text(index):  # deeper comments below would become lines of that text
                source.needs_break |= bottom == len(source.text)
                end = source.skip_comments(bottom, self.column)
                while bottom < end:
                    comments.append(self._comment(bottom))
                    bottom = source.next_line(bottom)
            self.put(Splice(top, bottom, source.as_lines(comments, top)))

    def _replace_first(self, lines: Lines) -> None:
        """Remove row 0 and put `lines` where it stood."""
        source, start, top, bottom = self.source, self.starts[0], self.top(0), self.bottom(0)
        comments = self._comments(start, 0)
        if self.inline:
            self._above(comments)
            text = source.as_lines(lines, top)[self.column :] if lines else ""
            self.put(Splice(start, bottom, text))
        else:
            self.put(Splice(top, bottom, source.as_lines(comments + lines, top)))

    def _slide_up(self, index: int) -> None:
        """Let row `index` stand behind the dash in the place of row 0; comments between go above the dash."""
        comments: Lines = []
        for position in range(index):
            comments += self._comments(self.starts[position], position)
            gap = self.bottom(position)
            while gap < self.top(position + 1):
                if self.source.is_comment(gap):
                    comments.append(self._comment(gap))
                gap = self.source.next_line(gap)
        self._above(comments)
        self.put(Splice(self.starts[0], self.starts[index], ""))

    def _insert_first(self, lines: Lines) -> None:
        source, top = self.source, self.top(0)
        if self.inline:
            start = self.starts[0]
            text = source.as_lines(lines, top)[self.column :] + " " * self.column
            self.put(Splice(start, start, text))
            return
        while top > source.first:
            above = source.line_start(top - 1)
            if not (source.is_comment(above) and source.indent(above) == self.column):
                break
            top = above
        self.put(Splice(top, top, source.as_lines(lines, top)))

    def _above(self, comments: Lines) -> None:
        if comments:
            top = self.top(0)
            indent = " " * self.source.indent(top)
            self.put(Splice(top, top, self.source.as_lines([indent + line.lstrip() for line in comments], top)))

    def _comments(self, start: int, index: int) -> Lines:
        """Return the comment lines inside a row that goes, so that they stay: nobody asked for their removal."""
        source, end = self.source, self.nodes[index][-1].end
        line, found = source.next_line(start), []
        spans: list[tuple[int, int]] | None = None
        while line < end:
            if source.is_comment(line):
                spans = _texts(self.nodes[index][-1]) if spans is None else spans
                if not any(begin < line < stop for begin, stop in spans):
                    found.append(self._comment(line))
            line = source.next_line(line)
        return found

    def _follows_text(self, index: int) -> bool:
        """Tell whether the last kept row before row `index` ends in a block scalar."""
        before = [position for position in self.kept if position < index]
        return bool(before) and last_text(self.nodes[max(before)][-1]) is not None

    def _comment(self, line: int) -> str:
        return " " * self.column + self.source.text[line : self.source.next_line(line)].strip()


def _texts(node: Node) -> list[tuple[int, int]]:
    """Return the spans of the scalars below `node`: a line inside one that begins with # is no comment."""
    spans, todo = [], [node]
    while todo:
        node = todo.pop()
        if isinstance(node, Scalar):
            spans.append((node.start, node.end))
        elif isinstance(node, Mapping | Sequence):
            todo.extend(node.children)
    return spans


def edit_block_mapping(editor: Editor, edit: MapEdit, layout: Layout) -> None:
    """Put the splices for an opened block mapping and for what is opened below it."""
    node, kept = edit.node, edit.kept()
    raw = node.raw
    for index, entry in kept.items():
        if entry.value is not raw[2 * index + 1]:
            editor.edit_value(node.children[2 * index], node.children[2 * index + 1], entry.value, layout)
    added = edit.added()
    if not added and len(kept) * 2 == len(raw):
        return
    keys = node.children[::2]
    for key in keys:
        if editor.source.before(key).strip(" -") in {"?", ":"}:
            raise editor.source.refuse(key, "a key that is written with '?'")
    rows = _Rows(editor, [key.start for key in keys], list(node.pairs()), set(kept))
    layout = rows.safe(layout)
    lines = [line for key, value in added for line in editor.safely(node, block_entry, key, value, layout, rows.column)]
    rows.write([(max(kept) if 0 in kept else -1, lines)] if lines else [])


def edit_block_sequence(editor: Editor, edit: SeqEdit, layout: Layout) -> None:
    """Put the splices for an opened block sequence and for what is opened below it."""
    node, kept = edit.node, edit.kept()
    for index, entry in kept.items():
        if entry.value is not node.raw[index]:
            editor.edit_item(node, index, entry.value, layout)
    if len(kept) == len(edit.items) == len(node.raw):
        return
    starts = [dash_offset(editor.source, node, index) for index in range(len(node.children))]
    rows = _Rows(editor, starts, [(item,) for item in node.children], set(kept))
    layout = rows.safe(layout)
    placed: list[tuple[int, Lines]] = []
    after = -1
    for entry in edit.items:
        if entry.index >= 0:
            after = entry.index
            continue
        lines = editor.safely(node, block_item, data_of(entry.value), layout, rows.column)
        if placed and placed[-1][0] == after:
            placed[-1][1].extend(lines)
        else:
            placed.append((after, lines))
    rows.write(placed)
