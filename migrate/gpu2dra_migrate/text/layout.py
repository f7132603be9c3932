"""How the neighbours are written: indentation steps, places of dashes, spacing and quotes of flow collections."""

from __future__ import annotations

import re
from dataclasses import replace

from ruamel.yaml.events import ScalarEvent

from gpu2dra_migrate.text.emit import FlowStyle, Layout
from gpu2dra_migrate.text.nodes import Document, Mapping, Raw, Scalar, Sequence, place_of
from gpu2dra_migrate.text.source import Source

_COMMA = re.compile(r"(?:\s|#[^\n]*)*,")
_BLANKS = re.compile(r"[ \t]*")


def layout_of(source: Source, document: Document) -> Layout:
    """Return the layout of the first nested block mapping and of the first block list below a key of the document."""
    layout, step_found, list_found = Layout(), False, False
    todo: list[Raw] = [document.root] if document.root is not None else []
    while todo and not (step_found and list_found):
        node = todo.pop()
        if not isinstance(node, Mapping | Sequence) or node.flow:
            continue
        inner = [child for child in node.raw if type(child) is not ScalarEvent]
        if isinstance(node, Mapping):
            inner = [value for value in node.raw[1::2] if isinstance(value, Mapping | Sequence) and not value.flow]
            if not step_found and any(isinstance(value, Mapping) for value in inner):
                layout, step_found = replace(layout, step=refined(source, layout, node).step), True
            if not list_found and any(isinstance(value, Sequence) for value in inner):
                shown = refined(source, layout, node)
                layout, list_found = replace(layout, offset=shown.offset, dash=shown.dash), True
        todo.extend(reversed(inner))
    return layout


def refined(source: Source, layout: Layout, node: Mapping | Sequence) -> Layout:
    """Return `layout` as the entries of `node` show it, the last one of each sort counting."""
    if node.flow or not node.raw:
        return layout
    step, offset, dash = layout.step, layout.offset, layout.dash
    lists: list[Sequence] = []
    if isinstance(node, Sequence):
        lists.append(node)
    else:
        column = place_of(node.raw[0])[1]
        for value in node.raw[1::2]:
            if type(value) is ScalarEvent:  # most of them
                continue
            if isinstance(value, Mapping) and not value.flow:
                step = place_of(value.raw[0])[1] - column or step
            elif isinstance(value, Sequence) and not value.flow:
                offset = dash_column(source, value) + 1 - column
                lists.append(value)
    for item in lists:
        first = item.children[0]
        at = dash_offset(source, item, 0)
        if first.start > at + 1 and "\n" not in source.text[at : first.start]:
            dash = first.start - at
    if (step, offset, dash) == (layout.step, layout.offset, layout.dash):
        return layout
    return replace(layout, step=step, offset=offset, dash=dash)


def dash_offset(source: Source, sequence: Sequence, index: int) -> int:
    """Return the offset of the dash of an item of a block sequence."""
    if index == 0:
        return source.content_start(sequence)
    item = sequence.children[index]
    column = dash_column(source, sequence)
    line = source.line_start(item.start)
    floor = sequence.children[index - 1].end
    while line > floor:
        at = line + column
        if source.text[at : at + 1] == "-" and source.blank_before(at):
            return at
        line = source.line_start(line - 1)
    raise source.refuse(item, "the dash of this item was not found")


def dash_column(source: Source, sequence: Sequence) -> int:
    """Return the column of the dashes of a block sequence."""
    if sequence.anchor is None and sequence.tag is None:
        return sequence.column
    start = source.content_start(sequence)
    return start - source.line_start(start)


def comma_after(source: Source, offset: int, limit: int) -> int:
    """Return the offset of the comma after a flow entry that ends at `offset`, or -1."""
    match = _COMMA.match(source.text, offset, limit)
    return match.end() - 1 if match else -1


def entry_end(source: Source, node: Mapping | Sequence, index: int) -> int:
    """Return where entry `index` of a flow collection ends; an empty value ends behind its key or colon."""
    if isinstance(node, Sequence):
        return node.children[index].end
    key, value = node.children[2 * index], node.children[2 * index + 1]
    if value.end > value.start:
        return value.end
    offset = _BLANKS.match(source.text, key.end).end()  # type: ignore[union-attr]  # matches the empty string too
    return offset + 1 if source.text[offset : offset + 1] == ":" else key.end


def flow_style(source: Source, node: Mapping | Sequence, outer: FlowStyle) -> FlowStyle:
    """Return how a flow collection is written; what it does not show comes from the one around it."""
    quoted, colon, comma = outer.quoted, outer.colon, outer.comma
    children = node.children
    if isinstance(node, Mapping) and children:
        key, value = children[0], children[1]
        quoted = isinstance(key, Scalar) and key.style == '"'
        if value.end > value.start:
            between = source.text[source.colon(key) : value.start]
            colon = between if not between.strip(" ") else colon
    like = children[0] if isinstance(node, Sequence) and children else None
    items = flow_style(source, like, outer) if isinstance(like, Mapping) and like.flow else None
    if items and items.quoted:
        quoted, colon, comma = items.quoted, items.colon, items.comma
    width = 2 if isinstance(node, Mapping) else 1
    if len(children) > width:
        at = comma_after(source, entry_end(source, node, 0), node.end)
        between = source.text[at + 1 : children[width].start]
        comma = between if not between.strip(" ") else comma
    step = items.step if items else ""
    if not items and quoted and children and source.blank_before(children[0].start):
        inner = source.margin(children[0].start)
        outer_margin = source.margin(node.end - 1)
        step = inner.removeprefix(outer_margin) if inner.startswith(outer_margin) else ""
    return FlowStyle(quoted, colon, comma, step)
