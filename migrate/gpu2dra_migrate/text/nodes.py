"""YAML nodes with their place in the text, composed from the events of libyaml.

libyaml's own marks are right where a node starts. Where it ends they are not: the end mark of a block mapping or
sequence lies after the comments and blank lines that follow it, that of a block scalar after its trailing blank
lines. Nodes here end where their last leaf ends.

Most leaves are looked at for their value only. So a collection keeps them as the events that the parser gave, which
`gpu2dra_migrate.text.values` reads as they are, and makes nodes of them when somebody asks where they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

from ruamel.yaml.cyaml import CParser
from ruamel.yaml.error import YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
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


class _Placed:
    """What all nodes have: the event that begins one, and the text that the parser saw with the length of its BOM."""

    __slots__ = ("_end", "_origin", "event")

    def __init__(self, event: Any, origin: tuple[str, int]) -> None:
        self.event = event
        self._origin = origin
        self._end = -1

    @property
    def start(self) -> int:
        """Where it starts, with its anchor and tag, in characters."""
        start: int = self.event.start_mark.index + self._origin[1]
        return start

    @property
    def line(self) -> int:
        """The line of `start`, counted from 0."""
        line: int = self.event.start_mark.line
        return line

    @property
    def column(self) -> int:
        """The column of `start`, counted from 0."""
        column: int = self.event.start_mark.column
        return column

    @property
    def anchor(self) -> str | None:
        """The name behind `&`."""
        anchor: str | None = self.event.anchor
        return anchor

    @property
    def tag(self) -> str | None:
        """The tag, written out."""
        tag: str | None = self.event.ctag
        return tag


class Scalar(_Placed):
    """A leaf."""

    __slots__ = ()

    event: ScalarEvent

    @property
    def value(self) -> str:
        """Its text, without quotes and indentation."""
        value: str = self.event.value
        return value

    @property
    def style(self) -> str:
        """How it is written: '' (plain), "'", '"', '|' or '>'."""
        style: str = self.event.style
        return style

    @property
    def plain(self) -> bool:
        """Whether it has neither quotes nor a tag."""
        return bool(self.event.implicit[0])

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        if self._end < 0:
            (text, shift), event = self._origin, self.event
            end = event.end_mark.index
            block = event.style in {"|", ">"}
            self._end = (block_scalar_end(text, event.start_mark.index, end) if block else end) + shift
        return self._end


class Alias(_Placed):
    """`*anchor`; `target` is the node that the name stood for at this place."""

    __slots__ = ("target",)

    def __init__(self, target: Node, event: AliasEvent, origin: tuple[str, int]) -> None:
        super().__init__(event, origin)
        self.target = target

    @property
    def anchor(self) -> None:
        """An alias has no anchor of its own."""

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        end: int = self.event.end_mark.index + self._origin[1]
        return end


class _Collection(_Placed):
    __slots__ = ("_nodes", "flow", "raw")

    def __init__(self, event: MappingStartEvent | SequenceStartEvent, origin: tuple[str, int]) -> None:
        self.event = event
        self.raw: list[Raw] = []
        self.flow: bool = event.flow_style
        self._origin = origin
        self._end = -1
        self._nodes: list[Node] | None = None

    @property
    def children(self) -> list[Node]:
        """What it holds, as nodes that know their place; the same nodes each time."""
        if self._nodes is None:
            origin = self._origin
            self._nodes = [Scalar(item, origin) if isinstance(item, ScalarEvent) else item for item in self.raw]
        return self._nodes

    @property
    def end(self) -> int:
        """The offset behind the closing bracket, or behind the last leaf of a block collection."""
        if self._end < 0:
            self._end = self.children[-1].end
        return self._end

    def close(self, event: MappingEndEvent | SequenceEndEvent) -> None:
        """Take the end of a flow collection from the event of its bracket."""
        self._end = event.end_mark.index + self._origin[1]


class Mapping(_Collection):
    """A mapping; `raw` holds keys and values in turn. `column` is that of the anchor or tag, if there is one."""

    __slots__ = ()

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Yield keys with their values, in the order of the text."""
        return zip(self.children[::2], self.children[1::2], strict=True)


class Sequence(_Collection):
    """A sequence; `raw` holds its items. A block one starts at its first dash (or its anchor or tag)."""

    __slots__ = ()


Node: TypeAlias = Scalar | Mapping | Sequence | Alias
Raw: TypeAlias = ScalarEvent | Node
"""A node, or a leaf that nobody has asked about: an event that holds its `value`, `ctag` and `implicit`."""


class Document:
    """One document of the stream.

    `marker` is the offset of its `---` (-1: none), `start` that of the first directive, marker or content, `close`
    that of its `...` (-1: none), `end` where the next document or the end of the text begins. `root` is None when
    the document holds nothing. `aliases` lists the aliases in order, `repeating` the mappings that seem to hold a
    key twice, as soon as somebody has read its data.
    """

    __slots__ = ("aliases", "close", "directives", "end", "marker", "repeating", "root", "start")

    def __init__(self, event: DocumentStartEvent, shift: int) -> None:
        self.start: int = event.start_mark.index + shift
        self.marker: int = event.end_mark.index - 3 + shift if event.explicit else -1
        self.directives = (*["%YAML"] * bool(event.version), *["%TAG"] * bool(event.tags))
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
        documents = _compose((text[shift:], shift))
    except (YAMLError, UnicodeError) as error:
        raise syntax_error(error, text[shift:]) from None
    for document, following in pairwise(documents):
        document.end = following.start
    if documents:
        documents[-1].end = len(text)
    for document in documents:
        if document.aliases and document.root is not None:
            _check_growth(document.root)
    return documents


def _compose(origin: tuple[str, int]) -> list[Document]:  # noqa: C901 - one loop, since calls would cost more than the work
    documents: list[Document] = []
    get = CParser(origin[0]).get_event
    stack: list[Mapping | Sequence] = []
    anchors: dict[str, Node] = {}
    top: list[Raw] = []
    append = top.append
    while (event := get()) is not None:
        kind = type(event)
        if kind is ScalarEvent:
            if event.anchor is not None:
                scalar = Scalar(event, origin)
                anchors[event.anchor] = scalar
                append(scalar)
            else:
                append(event)
        elif kind is MappingStartEvent or kind is SequenceStartEvent:
            collection = Mapping(event, origin) if kind is MappingStartEvent else Sequence(event, origin)
            if event.anchor is not None:
                anchors[event.anchor] = collection
            append(collection)
            stack.append(collection)
            if len(stack) > MAX_DEPTH:
                raise _error(event, f"nested deeper than {MAX_DEPTH} levels")
            append = collection.raw.append
        elif kind is MappingEndEvent or kind is SequenceEndEvent:
            closed = stack.pop()
            if closed.flow:
                closed.close(event)
            append = stack[-1].raw.append if stack else top.append
        elif kind is AliasEvent:
            alias = Alias(_target(event, anchors, stack), event, origin)
            documents[-1].aliases.append(alias)
            append(alias)
        elif kind is DocumentStartEvent:
            documents.append(Document(event, origin[1]))
            anchors.clear()
        elif kind is DocumentEndEvent:
            _end(documents[-1], event, top.pop(), origin)
    return documents


def _target(event: AliasEvent, anchors: dict[str, Node], stack: list[Mapping | Sequence]) -> Node:
    target = anchors.get(event.anchor)
    if target is None:
        raise _error(event, f"unknown anchor {event.anchor!r}")
    if any(target is collection for collection in stack):
        raise _error(event, f"anchor {event.anchor!r} contains itself")
    return target


def _end(document: Document, event: DocumentEndEvent, root: Raw, origin: tuple[str, int]) -> None:
    document.close = event.start_mark.index + origin[1] if event.explicit else -1
    if isinstance(root, ScalarEvent):
        root = Scalar(root, origin)
    if not (isinstance(root, Scalar) and root.plain and root.start == root.end and root.anchor is None):
        document.root = root


def _error(event: Event, problem: str) -> YamlSyntaxError:
    return YamlSyntaxError(event.start_mark.line + 1, event.start_mark.column + 1, problem)


def _check_growth(root: Node) -> None:
    """Raise YamlSyntaxError at the alias with which a document becomes too deep or too large, all aliases followed."""
    count = 0
    sizes: dict[int, tuple[int, int]] = {}

    def height_of(node: Raw, depth: int) -> int:
        """Count what `node` holds, and return how many levels of collections it has."""
        nonlocal count
        if isinstance(node, Alias):
            size, height = sizes.get(id(node.target), (1, 0))
            count += size
            if count > MAX_NODES or depth + height > MAX_DEPTH:
                raise YamlSyntaxError(node.line + 1, node.column + 1, "the aliases grow beyond all measure")
            return height
        before, height = count, 0
        count += 1
        if isinstance(node, Mapping | Sequence):
            for item in node.raw:
                height = max(height, height_of(item, depth + 1))
            height += 1
            if node.anchor is not None:
                sizes[id(node)] = (count - before, height)
        return height

    height_of(root, 0)


def place_of(node: Raw) -> tuple[int, int]:
    """Return line and column of a node for people, counted from 1."""
    mark = node.start_mark if isinstance(node, ScalarEvent) else node.event.start_mark
    return mark.line + 1, mark.column + 1


def last_text(node: Node | None) -> Scalar | None:
    """Return the block scalar that the text of `node` ends in, or None if it ends in something else."""
    while isinstance(node, Mapping | Sequence) and node.raw and not node.flow:
        node = node.children[-1]
    return node if isinstance(node, Scalar) and node.style in {"|", ">"} else None
