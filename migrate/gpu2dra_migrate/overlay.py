"""What a list of operations leaves of a document: a tree laid over its nodes, opened only where something changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from gpu2dra.model import Operation
from gpu2dra_migrate.errors import ALIAS, DUPLICATE_KEY, LAYOUT, MERGE_KEY, CannotEdit
from gpu2dra_migrate.patch import BadOperation, copied, list_index, patch_one, same, tokens_of
from gpu2dra_migrate.yaml_nodes import Alias, Document, Mapping, Node, Scalar, Sequence
from gpu2dra_migrate.yaml_values import is_merge, key_string, to_data

MAX_OWN_COPY = 80
"""Scalars that an alias may stand for when an operation goes through it and it has to become a copy of its own."""
MAX_KEPT_COPY = 12
"""The same for an alias that no operation names, but whose anchor does not keep its value."""


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
        merges: list[tuple[int, Node]] = []
        for index, (key, value) in enumerate(node.pairs()):
            if is_merge(key):
                merges.append((index, value))
                self.entries[index] = Entry(index, value)
                continue
            name = key_string(key)
            if name in self.positions:
                raise _refuse(key, DUPLICATE_KEY, f"the key {name!r} stands twice in one mapping")
            self.positions[name] = index
            self.entries[name] = Entry(index, value)
        self.merged: dict[str, int] = {name: index for index, value in merges for name in _merged_names(value, node)}

    def get(self, name: str, pointer: str, remove: bool = False) -> Entry:
        """Return the entry under `name`; raise if there is none, or if a merge key has a say in it."""
        self.refuse_merged(name, remove)
        if name not in self.entries:
            raise BadOperation(f"{pointer}: there is no {name!r}")
        return self.entries[name]

    def refuse_merged(self, name: str, remove: bool) -> None:
        """Raise CannotEdit if the value under `name` comes from `<<`, or would after a removal."""
        if name in self.merged and (remove or self.positions.get(name, -1) < self.merged[name]):
            key = self.node.children[2 * self.merged[name]]
            raise _refuse(key, MERGE_KEY, f"the value of {name!r} comes from a merge key")

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
        self.items = [Entry(index, item) for index, item in enumerate(node.children)]

    def kept(self) -> dict[int, Entry]:
        """Return the items that were there before, by their position."""
        return {entry.index: entry for entry in self.items if entry.index >= 0}


Value: TypeAlias = Node | MapEdit | SeqEdit | New


class Entry:
    """A place for a value: `index` is its position in the text, -1 for a new one."""

    __slots__ = ("index", "value")

    def __init__(self, index: int, value: Value) -> None:
        self.index = index
        self.value = value


def lay_over(document: Document, operations: Iterable[Operation]) -> Entry:
    """Return the root of the document after `operations`.

    Aliases that operations go through, and aliases whose anchor no longer has the value that they must keep, become
    values of their own. Raise CannotEdit where that would be no small change, for paths through merge keys and for
    mappings with a key twice; raise BadOperation for an operation that does not fit the document.
    """
    root = Entry(0, document.root if document.root is not None else New(None))
    for operation in operations:
        _apply(root, operation)
    if document.aliases:
        _settle_aliases(root, document)
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


def _apply(root: Entry, operation: Operation) -> None:
    pointer, kind = operation["path"], operation["op"]
    tokens = tokens_of(pointer)
    entry = root
    for depth, token in enumerate(tokens):
        value = _opened(entry)
        if isinstance(value, New):
            value.data = patch_one(value.data, tokens[depth:], operation)
            return
        if depth == len(tokens) - 1:
            break
        if isinstance(value, MapEdit):
            entry = value.get(token, pointer)
        elif isinstance(value, SeqEdit):
            entry = value.items[list_index(token, len(value.items), False, pointer)]
        else:
            raise BadOperation(f"{pointer}: there is no {token!r}")
    if not tokens:
        root.value = New(patch_one(None, [], operation))
        return
    last = tokens[-1]
    new = None if kind == "remove" else New(copied(operation["value"]))
    if isinstance(value, SeqEdit):
        index = list_index(last, len(value.items), kind == "add", pointer)
        if new is None:
            del value.items[index]
        elif kind == "add":
            value.items.insert(index, Entry(-1, new))
        else:
            value.items[index].value = new
    elif isinstance(value, MapEdit):
        if new is None:
            value.get(last, pointer, remove=True)
            del value.entries[last]
        elif kind == "add" and last not in value.entries:
            value.refuse_merged(last, remove=False)
            value.entries[last] = Entry(value.positions.get(last, -1), new)
        else:
            value.get(last, pointer).value = new
    else:
        raise BadOperation(f"{pointer}: there is no {last!r}")


def _opened(entry: Entry) -> Value:
    value = entry.value
    if isinstance(value, Alias):
        data = to_data(value)
        if _size(data) > MAX_OWN_COPY:
            raise _refuse(value, ALIAS, "the change goes through an alias that stands for too much to copy")
        entry.value = New(data, value)
    elif isinstance(value, Mapping):
        entry.value = MapEdit(value)
    elif isinstance(value, Sequence):
        entry.value = SeqEdit(value)
    return entry.value


def _settle_aliases(root: Entry, document: Document) -> None:
    """Give every alias that would no longer mean what it must mean a value of its own; put back the others."""
    opened = {id(entry.value.node): entry for entry in _entries(root) if isinstance(entry.value, MapEdit | SeqEdit)}
    alive = set(map(id, _alive(root)))

    def holds(alias: Alias, wanted: Any) -> bool:
        target = alias.target
        if id(target) not in alive:
            return False
        return id(target) not in opened or same(data_of(opened[id(target)].value), wanted)

    lost = {id(alias) for alias in document.aliases if id(alias) in alive and not holds(alias, to_data(alias.target))}
    for entry in list(_entries(root)):
        value = entry.value
        if isinstance(value, New) and value.alias is not None and holds(value.alias, value.data):
            entry.value = value.alias
    if lost:
        _replace_lost(root, lost)


def _replace_lost(entry: Entry, lost: set[int]) -> None:
    value = entry.value
    if isinstance(value, Alias) and id(value) in lost:
        data = to_data(value)
        if _size(data) > MAX_KEPT_COPY:
            raise _refuse(value, ALIAS, "the change would alter what this alias stands for")
        entry.value = New(data, value)
        return
    if isinstance(value, Mapping | Sequence) and any(id(node) in lost for node in _below(value)):
        value = _opened(entry)
    if isinstance(value, SeqEdit):
        for item in value.items:
            _replace_lost(item, lost)
    elif isinstance(value, MapEdit):
        for name, item in value.entries.items():
            if item.index >= 0 and id(value.node.children[2 * item.index]) in lost:
                raise _refuse(value.node, ALIAS, "the change would alter an alias that is used as a key")
            if isinstance(name, int) and isinstance(item.value, Mapping | Sequence | Alias):
                if any(id(node) in lost for node in _below(item.value)):
                    raise _refuse(item.value, MERGE_KEY, "the change would alter what this merge key brings in")
            else:
                _replace_lost(item, lost)


def _entries(root: Entry) -> Iterator[Entry]:
    todo = [root]
    while todo:
        entry = todo.pop()
        yield entry
        if isinstance(entry.value, MapEdit):
            todo.extend(entry.value.entries.values())
        elif isinstance(entry.value, SeqEdit):
            todo.extend(entry.value.items)


def _alive(root: Entry) -> Iterator[Node]:
    """Yield the nodes of the text that remain, keys included."""
    for entry in _entries(root):
        value = entry.value
        if isinstance(value, MapEdit):
            yield value.node
            for index in value.kept():
                yield from _below(value.node.children[2 * index])
        elif isinstance(value, SeqEdit):
            yield value.node
        elif not isinstance(value, New):
            yield from _below(value)


def _below(node: Node) -> Iterator[Node]:
    todo: list[Node] = [node]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Mapping | Sequence):
            todo.extend(node.children)


def _merged_names(value: Node, mapping: Mapping) -> Iterable[str]:
    probe = Mapping(True, mapping.start, mapping.end, mapping.line, mapping.column, None, None)
    probe.children = [Scalar("<<", "", True, value.start, value.start, value.line, value.column, None, None), value]
    names: Iterable[str] = to_data(probe)
    return names


def _size(data: Any) -> int:
    if isinstance(data, dict):
        return sum(map(_size, data.values())) or 1
    return (sum(map(_size, data)) or 1) if isinstance(data, list) else 1


def _refuse(node: Node, code: str, message: str) -> CannotEdit:
    return CannotEdit(code if code else LAYOUT, message, node.line + 1, node.column + 1)
