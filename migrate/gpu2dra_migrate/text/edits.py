"""JSON Patch operations carried out on the text of a file: only what has to change changes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from dataclasses import dataclass, field, replace
from typing import ParamSpec, TypeVar

from gpu2dra.model import Object, Operation
from gpu2dra_migrate.errors import LAYOUT, CannotEdit
from gpu2dra_migrate.text import source as splicing
from gpu2dra_migrate.text.aliases import settle_aliases
from gpu2dra_migrate.text.block_edits import edit_block_mapping, edit_block_sequence
from gpu2dra_migrate.text.emit import FlowStyle, Layout, NotPlain, Verbatim, block_value, flow_value, scalar
from gpu2dra_migrate.text.flow_edits import edit_flow_mapping, edit_flow_sequence
from gpu2dra_migrate.text.layout import dash_offset, layout_of, refined
from gpu2dra_migrate.text.literal_edits import literal_splice
from gpu2dra_migrate.text.new_documents import insertion
from gpu2dra_migrate.text.nodes import (
    Alias,
    Document,
    Mapping,
    Node,
    Raw,
    Scalar,
    Sequence,
    compose,
    last_text,
    place_of,
)
from gpu2dra_migrate.text.overlay import MapEdit, New, SeqEdit, Value, data_of, lay_over
from gpu2dra_migrate.text.patch import tokens_of
from gpu2dra_migrate.text.source import Source, Splice
from gpu2dra_migrate.text.values import key_names

_P = ParamSpec("_P")
_T = TypeVar("_T")

_LONE_RETURN = re.compile(r"\r(?!\n)")


@dataclass(frozen=True, slots=True)
class DocumentEdit:
    """What to do with document `index` of a stream: `operations` on it, and new documents to put `before` it."""

    index: int
    operations: Items[Operation] = ()
    before: Items[Object] = field(default=())


def edit(text: str, edits: Iterable[DocumentEdit], documents: list[Document] | None = None) -> str:
    """Return `text` with the edits carried out; `documents` is `compose(text)` if the caller has it.

    Raise CannotEdit for a layout that cannot be edited without harm, BadOperation for an operation that does not fit,
    YamlSyntaxError for a text that is no YAML.
    """
    return splicing.apply(text, splices_of(text, edits, documents))


def splices_of(text: str, edits: Iterable[DocumentEdit], documents: list[Document] | None = None) -> list[Splice]:
    """Return the splices, in order and apart from one another, that carry out the edits (see `edit`)."""
    documents = compose(text) if documents is None else documents
    source = Source(text)
    splices: list[Splice] = []
    for change in edits:
        document = documents[change.index]
        _only_line_feeds(text, document)
        layout = layout_of(source, document)
        if not text.endswith("\n"):
            layout = replace(layout, literals=False)
        if change.operations:
            Editor(source, splices.append).edit_document(document, change.operations, layout)
        if change.before:
            splices.append(insertion(source, documents, change.index, change.before, layout))
    splices.extend(_closing(source, documents, splices))
    return splicing.arrange(text, splices, needs_break=source.needs_break)


def _only_line_feeds(text: str, document: Document) -> None:
    """Raise CannotEdit where carriage returns alone break the lines, as on a Mac of the nineties: YAML allows it."""
    if "\r" in text and _LONE_RETURN.search(text, document.start, document.end):
        line, column = locate(document, "")
        message = "lines end in a carriage return alone; save the file with line feeds"
        raise CannotEdit(LAYOUT, message, line, column)


def _closing(source: Source, documents: list[Document], splices: list[Splice]) -> list[Splice]:
    """Keep the value of a block scalar at the very end, without a line break, when lines are put in behind it."""
    text = source.text
    node = last_text(documents[-1].root) if documents and not text.endswith("\n") else None
    if node is None or node.end < len(text) or not any(splice.start == len(text) for splice in splices):
        return []
    start = source.content_start(node)
    header = text[start : text.find("\n", start)].partition(" ")[0]
    if "-" in header or any(splice.start <= start < splice.end for splice in splices):
        return []
    at = start + (header.index("+") if "+" in header else 1)
    return [Splice(at, at + ("+" in header), "-")]


class Editor:
    """Turns what is opened of one document into splices; `put` takes them in any order."""

    def __init__(self, source: Source, put: Callable[[Splice], None]) -> None:
        self.source = source
        self.put = put

    def edit_document(self, document: Document, operations: Iterable[Operation], layout: Layout) -> None:
        """Put the splices for `operations` on `document`."""
        entry = lay_over(document, operations)
        if document.aliases:
            settle_aliases(entry, document)
        value = entry.value
        root = document.root
        if isinstance(value, MapEdit | SeqEdit) and not self._changes_form(value, False):
            self._descend(value, layout, FlowStyle())
        elif isinstance(value, New | MapEdit | SeqEdit):
            if root is None:
                raise ValueError("there is nothing in the document to edit")
            if isinstance(root, Mapping | Sequence) and root.flow:
                self.edit_flow_value(root, New(data_of(value)), FlowStyle(), None)
            else:
                start = self.source.properties_end(root) if not isinstance(value, New) else root.start
                start = self.source.content_start(root) if start != root.start else start
                lines = self.safely(root, block_value, data_of(value), layout, 0)
                self.put(Splice(start, root.end, self.source.eol(start).join(lines)))

    def edit_value(self, key: Node, node: Node, value: Value, layout: Layout) -> None:
        """Put the splices for the value of a block mapping's entry."""
        if isinstance(value, MapEdit | SeqEdit) and not self._changes_form(value, True):
            self._descend(value, layout, FlowStyle())
        elif isinstance(value, MapEdit | SeqEdit | New):
            column = key.start - self.source.line_start(key.start)
            self._replace(self.source.colon(key), node, value, layout, column, False)

    def edit_item(self, sequence: Sequence, index: int, value: Value, layout: Layout) -> None:
        """Put the splices for an item of a block sequence."""
        node = sequence.children[index]
        if isinstance(value, MapEdit | SeqEdit) and not self._changes_form(value, True):
            self._descend(value, layout, FlowStyle())
        elif isinstance(value, MapEdit | SeqEdit | New):
            dash = dash_offset(self.source, sequence, index)
            self._replace(dash + 1, node, value, layout, dash - self.source.line_start(dash), True)

    def edit_flow_value(self, node: Node, value: Value, style: FlowStyle, key: Node | None) -> None:
        """Put the splices for a value inside a flow collection; `key` is its key in a mapping."""
        if isinstance(value, MapEdit | SeqEdit) and (value.node.children or isinstance(value, MapEdit | SeqEdit)):
            self._descend(value, Layout(), style)
        elif isinstance(value, New):
            text = self._scalar_like(node, value.data, flow=True, quoted=style.quoted)
            text = text or self.flow_text(node, value.data, style, self.source.margin(node.start))
            if node.end > node.start or key is None:
                self.put(Splice(node.start, node.end, text))
                return
            try:
                at, head = self.source.colon(key), " "
            except CannotEdit:
                at, head = key.end, ": "
            self.put(Splice(at, at, head + text))

    def flow_text(self, node: Node, value: object, style: FlowStyle, margin: str) -> str:
        """Write a value for a flow collection whose lines begin with `margin`."""
        text = self.safely(node, flow_value, value, style, margin)
        return text.replace("\n", self.source.eol(node.start)) if "\n" in text else text

    def safely(self, node: Node, write: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call a writer; raise CannotEdit at `node` for a placeholder that cannot stand there unquoted."""
        try:
            return write(*args, **kwargs)
        except NotPlain as error:
            raise self.source.refuse(node, str(error)) from None

    def _descend(self, value: MapEdit | SeqEdit, layout: Layout, style: FlowStyle) -> None:
        if isinstance(value, MapEdit):
            if value.node.flow:
                edit_flow_mapping(self, value, style)
            else:
                edit_block_mapping(self, value, refined(self.source, layout, value.node))
        elif value.node.flow:
            edit_flow_sequence(self, value, style)
        else:
            edit_block_sequence(self, value, refined(self.source, layout, value.node))

    @staticmethod
    def _changes_form(value: MapEdit | SeqEdit, in_block: bool) -> bool:
        """Tell whether a block collection ends empty (`{}`), or an empty one fills up amid block style."""
        entries = value.entries if isinstance(value, MapEdit) else value.items
        if not value.node.flow:
            return not entries
        return in_block and not value.node.children and bool(entries)

    def _replace(self, head: int, node: Node, value: Value, layout: Layout, column: int, item: bool) -> None:
        """Replace the value behind `head`, a colon or dash that belongs to an entry at `column`."""
        source, data = self.source, data_of(value)
        if literal := literal_splice(source, node, data):
            self.put(literal)
            return
        owned = not isinstance(node, Alias) and (node.anchor is not None or node.tag is not None)
        keep = owned and not isinstance(value, New)
        after_head = source.properties_end(node) if keep else head
        nested = bool(data) and isinstance(data, dict | list)
        start, end = source.content_start(node), node.end
        on_head_line = "\n" not in source.text[head:start] or start == end
        if on_head_line and not keep:
            start = node.start
        beside_dash = item and on_head_line and not keep
        if item:
            inner = start - source.line_start(start) if beside_dash and start < end else column + layout.dash
        else:
            inner = column + (layout.offset if isinstance(data, list) else layout.step)
        layout = replace(layout, literals=False)  # a comment may follow, which would become part of a literal scalar
        text = "" if nested else self._scalar_like(node, data, flow=False, quoted=False)
        lines = [text] if text else self.safely(node, block_value, data, layout, inner)
        if not nested or beside_dash:
            lines[0] = lines[0].lstrip(" ")
        if on_head_line and (beside_dash or not nested):
            gap = source.text[after_head:start] if start < end and "\n" not in source.text[after_head:start] else " "
            joined = source.eol(head).join(lines)
            self.put(Splice(after_head, end if start < end else after_head, (gap or " ") + joined))
        elif on_head_line:
            self.put(Splice(after_head, max(end, after_head), ""))
            at = source.next_line(max(end, after_head))
            self.put(Splice(at, at, source.as_lines(lines, at)))
        else:
            if owned and not keep:
                self.put(Splice(after_head, source.properties_end(node), ""))
            if not nested:
                self.put(Splice(after_head, after_head, f" {lines.pop(0)}"))
            top = source.line_start(start)
            self.put(Splice(top, source.next_line(end), source.as_lines(lines, top)))

    @staticmethod
    def _scalar_like(node: Node, data: object, *, flow: bool, quoted: bool) -> str:
        """Write a string in the quotes of the scalar that it replaces; return nothing where these do not fit."""
        if not isinstance(node, Scalar) or not isinstance(data, str) or isinstance(data, Verbatim) or quoted:
            return ""
        if node.style == '"':
            return scalar(data, flow=flow, quoted=True)
        if node.style == "'" and data.isprintable():
            return "'" + data.replace("'", "''") + "'"
        return ""


def locate(document: Document, pointer: str) -> tuple[int, int]:
    """Return line and column (1-based) of the key or item that a JSON pointer names, or of its nearest ancestor.

    What an alias or a merge key brings in is found at the alias's key, or at the `<<`.
    """
    node: Raw | None = document.root
    place = node
    for token in tokens_of(pointer):
        if isinstance(node, Mapping):
            names = key_names(node)
            if token not in names:
                place = node.raw[2 * names.index(None)] if None in names else place
                break
            last = len(names) - 1 - names[::-1].index(token)
            place, node = node.raw[2 * last : 2 * last + 2]
        elif isinstance(node, Sequence) and token.isdigit() and int(token) < len(node.raw):
            place = node = node.raw[int(token)]
        else:
            break
    return place_of(place) if place is not None else (1, 1)
