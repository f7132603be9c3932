"""Anchors and aliases after a change: every alias keeps meaning what it meant, or what the operations made of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu2dra_migrate.errors import ALIAS, MERGE_KEY
from gpu2dra_migrate.text.nodes import Alias, Document, Mapping, Raw, Sequence
from gpu2dra_migrate.text.overlay import Entry, MapEdit, New, SeqEdit, data_of, opened, refuse, size_of
from gpu2dra_migrate.text.patch import same
from gpu2dra_migrate.text.values import to_data

MAX_KEPT_COPY = 12
"""Scalars that an alias may stand for when no operation names it, but its anchor does not keep its value."""


def settle_aliases(root: Entry, document: Document) -> None:
    """Give every alias that would no longer mean what it must mean a value of its own; put back the others.

    Raise CannotEdit where that would be no small change: a long block, a merge key, an alias that is a key.
    """
    opened = {id(entry.value.node): entry for entry in _entries(root) if isinstance(entry.value, MapEdit | SeqEdit)}
    alive = set(map(id, _alive(root)))

    def holds(alias: Alias, wanted: Any) -> bool:
        target = alias.target
        if id(target) not in alive:
            return False
        return same(data_of(opened[id(target)].value) if id(target) in opened else to_data(target), wanted)

    lost = {id(alias) for alias in document.aliases if id(alias) in alive and not holds(alias, to_data(alias.target))}
    for entry in list(_entries(root)):
        value = entry.value
        if isinstance(value, New) and value.alias is not None and holds(value.alias, value.data):
            entry.value = value.alias
    if lost:
        _replace_lost(root, lost)


def _replace_lost(entry: Entry, lost: set[int]) -> None:
    """Open what leads to the lost aliases below `entry`, and put copies in their place."""
    value = entry.value
    if isinstance(value, Alias) and id(value) in lost:
        entry.value = _copy_of(value)
    if isinstance(value, Mapping | Sequence) and _holds_lost(value, lost):
        value = opened(entry)
    if isinstance(value, SeqEdit):
        for item in value.items:
            _replace_lost(item, lost)
    elif isinstance(value, MapEdit):
        for name, item in value.entries.items():
            if item.index >= 0 and id(value.node.raw[2 * item.index]) in lost:
                raise refuse(value.node, ALIAS, "the change would alter an alias that is used as a key")
            if not isinstance(name, int):
                _replace_lost(item, lost)
            elif isinstance(item.value, Mapping | Sequence | Alias) and _holds_lost(item.value, lost):
                raise refuse(item.value, MERGE_KEY, "the change would alter what this merge key brings in")


def _copy_of(alias: Alias) -> New:
    data = to_data(alias)
    if size_of(data) > MAX_KEPT_COPY:
        raise refuse(alias, ALIAS, "the change would alter what this alias stands for")
    return New(data, alias)


def _holds_lost(node: Raw, lost: set[int]) -> bool:
    return any(id(inner) in lost for inner in _below(node))


def _entries(root: Entry) -> Iterator[Entry]:
    todo = [root]
    while todo:
        entry = todo.pop()
        yield entry
        if isinstance(entry.value, MapEdit):
            todo.extend(entry.value.entries.values())
        elif isinstance(entry.value, SeqEdit):
            todo.extend(entry.value.items)


def _alive(root: Entry) -> Iterator[Raw]:
    """Yield the nodes of the text that remain, keys included."""
    for entry in _entries(root):
        value = entry.value
        if isinstance(value, MapEdit):
            yield value.node
            for index in value.kept():
                yield from _below(value.node.raw[2 * index])
        elif isinstance(value, SeqEdit):
            yield value.node
        elif not isinstance(value, New):
            yield from _below(value)


def _below(node: Raw) -> Iterator[Raw]:
    todo: list[Raw] = [node]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Mapping | Sequence):
            todo.extend(node.raw)
