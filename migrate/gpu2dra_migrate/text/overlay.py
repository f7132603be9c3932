"""What a list of operations leaves of a document: a tree laid over its nodes, opened only where something changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from gpu2dra.model import Operation
from gpu2dra_migrate.errors import ALIAS, DUPLICATE_KEY, MERGE_KEY, CannotEdit
from gpu2dra_migrate.text.nodes import Alias, Document, Mapping, Raw, Sequence, place_of
from gpu2dra_migrate.text.patch import BadOperation, list_index, patch_one, tokens_of
from gpu2dra_migrate.text.values import key_names, merged, to_data

MAX_OWN_COPY = 80
"""Scalars that an alias may stand for when an operation goes through it and it has to become a copy of its own."""


class New:
    """A value that is not in the text yet; `alias` is the alias that it was copied from, if there was one."""

    __slots__ = ("alias", "data")

    def __init__(self, data: Any, alias: Alias | None = None) -> None:
        self.data = data
        self.alias = alias


class MapEdit:
    """An opened mapping: `entries` by key; merge keys are under their position, an int."""

    __slots__ = ("entries", "merged", "node", "positions")

    def __init__(self, node: Mapping) -> None:
        self.node = node
        self.entries: dict[str | int, Entry] = {}
        self.positions: dict[str, int] = {}
        self.merged: dict[str, int] = {}
        for index, (name, value) in enumerate(zip(key_names(node), node.raw[1::2], strict=True)):
            if name is None:
                self.merged |= dict.fromkeys(merged(value), index)
                self.entries[index] = Entry(index, value)
                continue
            if name in self.positions:
                raise refuse(node.raw[2 * index], DUPLICATE_KEY, f"the key {name!r} stands twice in one mapping")
            self.positions[name] = index
            self.entries[name] = Entry(index, value)

    def child(self, name: str, pointer: str) -> Entry:
        """Return the entry under `name`; raise if there is none, or if a merge key has a say in it."""
        self._refuse_merged(name)
        if name not in self.entries:
            raise BadOperation(f"{pointer}: there is no {name!r}")
        return self.entries[name]

    def change(self, name: str, operation: Operation) -> None:
        """Carry out one operation on the entry under `name`."""
        kind, new = _value_of(operation)
        if kind == "remove":
            self._refuse_merged(name, remove=True)
            self.child(name, operation["path"])
            del self.entries[name]
        elif kind == "add" and name not in self.entries:
            self._refuse_merged(name)
            self.entries[name] = Entry(self.positions.get(name, -1), new)
        else:
            self.child(name, operation["path"]).value = new

    def _refuse_merged(self, name: str, *, remove: bool = False) -> None:
        """Raise CannotEdit if the value under `name` comes from `<<`, or would after a removal."""
        if name in self.merged and (remove or self.positions.get(name, -1) < self.merged[name]):
            key = self.node.raw[2 * self.merged[name]]
            raise refuse(key, MERGE_KEY, f"the value of {name!r} comes from a merge key")

    def added(self) -> list[tuple[str, Any]]:
        """Return the new entries as key and data, in the order in which they came."""
        return [
            (name, data_of(entry.value))
            for name, entry in self.entries.items()
            if entry.index < 0 and isinstance(name, str)
        ]

    def kept(self) -> dict[int, Entry]:
        """Return the entries that were there before, by their position."""
        return {entry.index: entry for entry in self.entries.values() if entry.index >= 0}


class SeqEdit:
    """An opened sequence."""

    __slots__ = ("items", "node")

    def __init__(self, node: Sequence) -> None:
        self.node = node
        self.items = [Entry(index, item) for index, item in enumerate(node.raw)]

    def child(self, token: str, pointer: str) -> Entry:
        """Return the item that `token` names; raise BadOperation if there is none."""
        return self.items[list_index(token, len(self.items), pointer)]

    def change(self, token: str, operation: Operation) -> None:
        """Carry out one operation on the item that `token` names."""
        kind, new = _value_of(operation)
        index = list_index(token, len(self.items), operation["path"], insert=kind == "add")
        if kind == "remove":
            del self.items[index]
        elif kind == "add":
            self.items.insert(index, Entry(-1, new))
        else:
            self.items[index].value = new

    def kept(self) -> dict[int, Entry]:
        """Return the items that were there before, by their position."""
        return {entry.index: entry for entry in self.items if entry.index >= 0}


Value: TypeAlias = Raw | MapEdit | SeqEdit | New


class Entry:
    """A place for a value: `index` is its position in the text, -1 for a new one."""

    __slots__ = ("index", "value")

    def __init__(self, index: int, value: Value) -> None:
        self.index = index
        self.value = value


def lay_over(document: Document, operations: Iterable[Operation]) -> Entry:
    """Return the root of the document after `operations`; aliases that these go through have become copies.

    Raise CannotEdit for paths through merge keys, for mappings with a key twice and for aliases that stand for too
    much; raise BadOperation for an operation that does not fit the document.
    """
    root = Entry(0, document.root if document.root is not None else New(None))
    for operation in operations:
        _apply(root, operation)
    return root


def data_of(value: Value) -> Any:
    """Return the plain data of a value as it will be."""
    if isinstance(value, New):
        return value.data
    if isinstance(value, SeqEdit):
        return [data_of(entry.value) for entry in value.items]
    if isinstance(value, MapEdit):
        data = {}
        by_position = sorted(value.entries.items(), key=lambda pair: pair[1].index if pair[1].index >= 0 else 1 << 40)
        for name, entry in by_position:
            if isinstance(name, int):
                data.update({key: item for key, item in to_data(value.node).items() if value.merged.get(key) == name})
            else:
                data[name] = data_of(entry.value)
        return data
    return to_data(value)


def opened(entry: Entry) -> Value:
    """Open the collection at `entry` for changes, and return what stands there; an alias becomes a copy of its own."""
    value = entry.value
    if isinstance(value, Alias):
        data = to_data(value)
        if size_of(data) > MAX_OWN_COPY:
            raise refuse(value, ALIAS, "the change goes through an alias that stands for too much to copy")
        entry.value = New(data, value)
    elif isinstance(value, Mapping):
        entry.value = MapEdit(value)
    elif isinstance(value, Sequence):
        entry.value = SeqEdit(value)
    return entry.value


def _apply(root: Entry, operation: Operation) -> None:
    tokens = tokens_of(operation["path"])
    if not tokens:
        root.value = New(patch_one(None, [], operation))
        return
    entry = root
    for depth, token in enumerate(tokens):
        value = opened(entry)
        if isinstance(value, New):
            value.data = patch_one(value.data, tokens[depth:], operation)
            return
        if not isinstance(value, MapEdit | SeqEdit):
            raise BadOperation(f"{operation['path']}: there is no {token!r}")
        if depth == len(tokens) - 1:
            value.change(token, operation)
        else:
            entry = value.child(token, operation["path"])


def size_of(data: Any) -> int:
    """Return how many scalars `data` holds, an empty collection counting as one."""
    if isinstance(data, dict):
        data = list(data.values())
    return (sum(map(size_of, data)) or 1) if isinstance(data, list) else 1


def _value_of(operation: Operation) -> tuple[str, New]:
    """Return the kind of an operation and its value, copied; raise BadOperation for an unknown kind."""
    kind = operation["op"]
    return kind, New(patch_one(None, [], operation))


def refuse(node: Raw, code: str, message: str) -> CannotEdit:
    """Return the error to raise for a node that an operation cannot change."""
    return CannotEdit(code, message, *place_of(node))
