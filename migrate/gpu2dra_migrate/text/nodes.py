"""YAML nodes with their place in the text, composed from the events of libyaml.

libyaml's own marks are right where a node starts. Where it ends they are not: the end mark of a block mapping or
sequence lies after the comments and blank lines that follow it, that of a block scalar after its trailing blank
lines. Nodes here end where their last leaf ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

from ruamel.yaml.cyaml import CParser
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.text.marks import block_scalar_end, syntax_error

BOM = "\ufeff"
MAX_DEPTH = 200
"""Nesting that a stream may have. Published CRDs stay below 70; deeper ones would exhaust Python's stack."""
MAX_NODES = 2_000_000
"""Nodes that a document may have with all aliases followed, so that a few lines cannot fill the memory."""


class Scalar:
    """A leaf. `start` counts from its anchor or tag, `style` is '' (plain), "'", '"', '|' or '>'."""

    __slots__ = ("anchor", "column", "end", "line", "plain", "start", "style", "tag", "value")

    def __init__(  # noqa: PLR0913, PLR0917 - positional: thousands are made for one file
        self,
        value: str,
        style: str,
        plain: bool,
        start: int,
        end: int,
        line: int,
        column: int,
        anchor: str | None,
        tag: str | None,
    ) -> None:
        self.value = value
        self.style = style
        self.plain = plain
        self.start = start
        self.end = end
        self.line = line
        self.column = column
        self.anchor = anchor
        self.tag = tag


class Alias:
    """`*anchor`; `target` is the node that the name stood for at this place."""

    __slots__ = ("anchor", "column", "end", "line", "start", "target")

    def __init__(self, target: Node, start: int, end: int, line: int, column: int) -> None:
        self.target = target
        self.start = start
        self.end = end
        self.line = line
        self.column = column
        self.anchor: str | None = None


class _Collection:
    __slots__ = ("anchor", "children", "column", "end", "flow", "line", "start", "tag")

    def __init__(
        self, flow: bool, start: int, end: int, line: int, column: int, anchor: str | None, tag: str | None
    ) -> None:
        self.children: list[Node] = []
        self.flow = flow
        self.start = start
        self.end = end
        self.line = line
        self.column = column
        self.anchor = anchor
        self.tag = tag


class Mapping(_Collection):
    """A mapping; `children` holds keys and values in turn. `column` is that of the anchor or tag, if there is one."""

    __slots__ = ()

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield keys with their values, in the order of the text."""
        return zip(self.children[::2], self.children[1::2], strict=True)


class Sequence(_Collection):
    """A sequence; `children` holds its items. A block one starts at its first dash (or its anchor or tag)."""

    __slots__ = ()


Node: TypeAlias = Scalar | Mapping | Sequence | Alias


class Document:
    """One document of the stream.

    `marker` is the offset of its `---` (-1: none), `start` that of the first directive, marker or content, `close`
    that of its `...` (-1: none), `end` where the next document or the end of the text begins. `root` is None when
    the document holds nothing. `aliases` lists the aliases in order, `repeating` the mappings that seem to hold a
    key twice.
    """

    __slots__ = ("aliases", "close", "directives", "end", "marker", "repeating", "root", "start")

    def __init__(self, start: int, marker: int, directives: tuple[str, ...]) -> None:
        self.start = start
        self.marker = marker
        self.directives = directives
        self.close = -1
        self.end = -1
        self.root: Node | None = None
        self.aliases: list[Alias] = []
        self.repeating: list[Mapping] = []

    @property
    def explicit_start(self) -> bool:
        """Whether the document begins with `---`."""
        return self.marker >= 0


def compose(text: str) -> list[Document]:
    """Return the documents of `text` (newlines untranslated, maybe with a BOM) with offsets into it, in characters.

    Raise YamlSyntaxError for what libyaml refuses, for unknown anchors, for an anchor that contains itself and for
    streams that nest deeper than MAX_DEPTH or grow above MAX_NODES through their aliases. An anchor name may be used
    again; an alias means the latest (YAML 1.2.2, section 7.1).
    """
    shift = 1 if text.startswith(BOM) else 0
    try:
        documents = _compose(text[shift:])
    except (YAMLError, UnicodeError) as error:
        raise syntax_error(error, text[shift:]) from None
    if shift:
        _shift(documents)
    for document, following in pairwise(documents):
        document.end = following.start
    if documents:
        documents[-1].end = len(text)
    return documents


def _compose(text: str) -> list[Document]:  # noqa: C901 - one loop, since calls would cost more than the work
    documents: list[Document] = []
    get = CParser(text).get_event
    stack: list[Mapping | Sequence] = []
    anchors: dict[str, Node] = {}
    weights: dict[int, int] = {}
    heights: dict[int, int] = {}
    peaks: list[int] = [0]
    count = 0
    document = Document(0, -1, ())
    top: list[Node] = []
    append = top.append
    while (event := get()) is not None:
        kind = type(event)
        mark = event.start_mark
        if kind is ScalarEvent:
            count += 1
            start, end, style = mark.index, event.end_mark.index, event.style
            if style in {"|", ">"}:
                end = block_scalar_end(text, start, end)
            anchor = event.anchor
            node = Scalar(event.value, style, event.implicit[0], start, end, mark.line, mark.column, anchor, event.tag)
            if anchor is not None:
                anchors[anchor] = node
            append(node)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            anchor = event.anchor
            collection = (Mapping if kind is MappingStartEvent else Sequence)(
                event.flow_style, mark.index, -1, mark.line, mark.column, anchor, event.tag
            )
            if anchor is not None:
                anchors[anchor] = collection
                weights[id(collection)] = -count
            count += 1
            append(collection)
            stack.append(collection)
            peaks.append(len(stack))
            if len(stack) > MAX_DEPTH:
                raise YamlSyntaxError(mark.line + 1, mark.column + 1, f"nested deeper than {MAX_DEPTH} levels")
            append = collection.children.append
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            closed = stack.pop()
            children = closed.children
            closed.end = event.end_mark.index if closed.flow else children[-1].end
            peak = peaks.pop()
            peaks[-1] = max(peaks[-1], peak)
            if closed.anchor is not None:
                weights[id(closed)] += count
                heights[id(closed)] = peak - len(stack)
            if kind is MappingEndEvent and len({getattr(key, "value", None) for key in children[::2]}) * 2 != len(
                children
            ):
                document.repeating.append(closed)  # type: ignore[arg-type]  # the end event says that it is a Mapping
            append = stack[-1].children.append if stack else top.append
        elif kind is AliasEvent:
            target = anchors.get(event.anchor)
            if target is None:
                raise YamlSyntaxError(mark.line + 1, mark.column + 1, f"unknown anchor {event.anchor!r}")
            if target.end < 0:
                raise YamlSyntaxError(mark.line + 1, mark.column + 1, f"anchor {event.anchor!r} contains itself")
            count += weights.get(id(target), 1)
            peaks[-1] = max(peaks[-1], len(stack) + heights.get(id(target), 0))
            if count > MAX_NODES or peaks[-1] > MAX_DEPTH:
                raise YamlSyntaxError(mark.line + 1, mark.column + 1, "the aliases grow beyond all measure")
            alias = Alias(target, mark.index, event.end_mark.index, mark.line, mark.column)
            document.aliases.append(alias)
            append(alias)
        elif kind is DocumentStartEvent:
            marker = event.end_mark.index - 3 if event.explicit else -1
            directives = tuple(["%YAML"] * bool(event.version) + ["%TAG"] * bool(event.tags))
            document = Document(mark.index, marker, directives)
            documents.append(document)
            anchors.clear()
            count = peaks[0] = 0
        elif kind is DocumentEndEvent:
            document.close = mark.index if event.explicit else -1
            root = top.pop()
            if not (type(root) is Scalar and root.plain and root.start == root.end and root.anchor is None):
                document.root = root
    return documents


def last_text(node: Node | None) -> Scalar | None:
    """Return the block scalar that the text of `node` ends in, or None if it ends in something else."""
    while isinstance(node, Mapping | Sequence) and node.children and not node.flow:
        node = node.children[-1]
    return node if isinstance(node, Scalar) and node.style in {"|", ">"} else None


def _shift(documents: list[Document]) -> None:
    """Move all offsets behind the BOM that the parser has not seen."""
    for document in documents:
        document.start += 1
        document.marker += document.marker >= 0
        document.close += document.close >= 0
        nodes: list[Node] = [document.root] if document.root is not None else []
        while nodes:
            node = nodes.pop()
            node.start += 1
            node.end += 1
            if isinstance(node, Mapping | Sequence):
                nodes.extend(node.children)
