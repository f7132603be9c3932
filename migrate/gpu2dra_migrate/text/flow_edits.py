"""Splices for opened flow mappings and sequences, JSON among them: entries come and go with exactly one comma."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu2dra_migrate.text.emit import FlowStyle, flow_key
from gpu2dra_migrate.text.layout import comma_after, entry_end, flow_style
from gpu2dra_migrate.text.nodes import Mapping, Sequence
from gpu2dra_migrate.text.overlay import MapEdit, SeqEdit, data_of
from gpu2dra_migrate.text.source import Splice

if TYPE_CHECKING:
    from gpu2dra_migrate.text.edits import Editor


class _Cells:
    """The entries of one flow collection: where each starts and ends, and the comma behind it (-1: none)."""

    def __init__(self, editor: Editor, node: Mapping | Sequence, kept: set[int]) -> None:
        self.source = editor.source
        self.put = editor.put
        self.open = self.source.content_start(node) + 1
        self.close = node.end - 1
        self.kept = kept
        width = 2 if isinstance(node, Mapping) else 1
        self.starts = [child.start for child in node.children[::width]]
        self.count = len(self.starts)
        self.ends = [entry_end(self.source, node, index) for index in range(self.count)]
        self.commas = [comma_after(self.source, end, node.end) for end in self.ends]
        self.trailing = self.count > 0 and self.commas[-1] >= 0

    def behind(self, index: int) -> int:
        """Return the offset behind an entry and its comma."""
        return self.commas[index] + 1 if self.commas[index] >= 0 else self.ends[index]

    def own_line(self, index: int) -> bool:
        """Tell whether an entry has its lines for itself."""
        behind = self.behind(index)
        if not (self.source.blank_before(self.starts[index]) and self.source.blank_after(behind)):
            return False
        return self.source.next_line(behind) <= self.close

    def write(self, placed: list[tuple[int, list[str]]], style: FlowStyle) -> None:
        """Put the splices; `placed` holds new entries with the position of the kept one that they follow (-1: none)."""
        if not self.kept and not placed:
            self.put(Splice(self.open, self.close, ""))
            return
        last_kept = max(self.kept, default=-1)
        self._remove()
        for after, texts in placed:
            if after >= 0:
                self._insert_after(after, texts, style, last=after == last_kept)
            else:
                self._insert_first(texts, style, alone=not self.kept)
        final_is_new = any(after == last_kept for after, _ in placed)
        if last_kept >= 0 and not self.trailing and last_kept < self.count - 1 and not final_is_new:
            comma = self.commas[last_kept]
            self.put(Splice(comma, comma + 1, ""))

    def _remove(self) -> None:
        index = 0
        while index < self.count:
            if index in self.kept:
                index += 1
            elif self.own_line(index):
                start = self.source.line_start(self.starts[index])
                self.put(Splice(start, self.source.next_line(self.behind(index)), ""))
                index += 1
            else:
                first = index
                while index + 1 < self.count and index + 1 not in self.kept and not self.own_line(index + 1):
                    index += 1
                self._remove_inline(first, index)
                index += 1

    def _remove_inline(self, first: int, last: int) -> None:
        start, end = self.starts[first], self.behind(last)
        following = last + 1 < self.count and "\n" not in self.source.text[end : self.starts[last + 1]]
        if following:
            end = self.starts[last + 1]
        elif first and first - 1 in self.kept and not self._comment_before(first):
            start = self.behind(first - 1)
        self.put(Splice(start, end, ""))

    def _comment_before(self, index: int) -> bool:
        """Tell whether a comment stands between entry `index` and the one before: the line break must stay then."""
        return "#" in self.source.text[self.behind(index - 1) : self.starts[index]]

    def _insert_after(self, after: int, texts: list[str], style: FlowStyle, last: bool) -> None:
        source = self.source
        comma = self.commas[after]
        behind = self.behind(after)
        closing = "," if (not last or self.trailing) else ""
        if comma < 0:
            self.put(Splice(self.ends[after], self.ends[after], ","))
        if not source.blank_before(self.starts[after]):
            joined = f",{style.comma}".join(texts)
            self.put(Splice(behind, behind, f"{style.comma}{joined}{closing}"))
            return
        indent = source.margin(self.starts[after])
        eol = source.eol(behind)
        joined = f",{eol}{indent}".join(texts) + closing
        following = after + 1
        joins = following < self.count and following not in self.kept and not self.own_line(following)
        if source.blank_after(behind) and not (joins and not self._comment_before(following)):
            at = source.next_line(behind)
            self.put(Splice(at, at, f"{indent}{joined}{eol}"))
        else:
            self.put(Splice(behind, behind, f"{eol}{indent}{joined}"))

    def _insert_first(self, texts: list[str], style: FlowStyle, alone: bool) -> None:
        if not self.count:
            at = self.open if not self.source.text[self.open : self.close].strip() else self.close
            self.put(Splice(at, at if at == self.close else self.close, f",{style.comma}".join(texts)))
            return
        start = self.starts[0]
        closing = "," if (not alone or self.trailing) else ""
        if self.source.blank_before(start):
            line = self.source.line_start(start)
            indent, eol = self.source.margin(start), self.source.eol(start)
            joined = f",{eol}{indent}".join(texts) + closing
            if 0 in self.kept or self.own_line(0):
                self.put(Splice(line, line, f"{indent}{joined}{eol}"))
                return
            self.put(Splice(start, start, joined))
            return
        joined = f",{style.comma}".join(texts) + closing
        following = next((self.starts[index] for index in sorted(self.kept)), start)
        gap = style.comma if not alone and "\n" not in self.source.text[start:following] else ""
        self.put(Splice(start, start, joined + gap))


def edit_flow_mapping(editor: Editor, edit: MapEdit, outer: FlowStyle) -> None:
    """Put the splices for an opened flow mapping and for what is opened below it."""
    node, kept = edit.node, edit.kept()
    style = flow_style(editor.source, node, outer)
    for index, entry in sorted(kept.items()):
        editor.edit_flow_value(node.children[2 * index + 1], entry.value, style, node.children[2 * index])
    added = edit.added()
    if not added and len(kept) * 2 == len(node.children):
        return
    margin = _margin(editor, node)
    texts = [
        editor.safely(node, flow_key, key, style) + editor.flow_text(node, value, style, margin) for key, value in added
    ]
    _Cells(editor, node, set(kept)).write([(max(kept) if 0 in kept else -1, texts)] if texts else [], style)


def edit_flow_sequence(editor: Editor, edit: SeqEdit, outer: FlowStyle) -> None:
    """Put the splices for an opened flow sequence and for what is opened below it."""
    node, kept = edit.node, edit.kept()
    style = flow_style(editor.source, node, outer)
    for index, entry in sorted(kept.items()):
        editor.edit_flow_value(node.children[index], entry.value, style, None)
    if len(kept) == len(edit.items) == len(node.children):
        return
    margin = _margin(editor, node)
    placed: list[tuple[int, list[str]]] = []
    after = -1
    for entry in edit.items:
        if entry.index >= 0:
            after = entry.index
            continue
        text = editor.flow_text(node, data_of(entry.value), style, margin)
        if placed and placed[-1][0] == after:
            placed[-1][1].append(text)
        else:
            placed.append((after, [text]))
    _Cells(editor, node, set(kept)).write(placed, style)


def _margin(editor: Editor, node: Mapping | Sequence) -> str:
    """Return the blanks with which lines of entries of `node` begin."""
    return editor.source.margin(node.children[0].start if node.children else node.start)
