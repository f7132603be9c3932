"""What differs between two versions of an object, and how a patch says it."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from gpu2dra.model import Operation
from gpu2dra.pointers import add, pointer, remove, replace, value_at
from gpu2dra_migrate.text.patch import copied, same

WHOLE = ("resourceClaims", "claims", "tolerations")
"""Lists that a patch sets as a whole: strategic merge in kustomize replaces them."""
Step = str | tuple[int, str]
"""A key; or an item of a list, by its position and its name (empty: it has none)."""


@dataclass(frozen=True, slots=True)
class Change:
    """`value` at `way`; with `gone` there must be nothing."""

    way: tuple[Step, ...]
    value: Any = None
    gone: bool = False

    @property
    def pointer(self) -> str:
        """The place as a JSON Pointer into the object."""
        return pointer("", *(step if isinstance(step, str) else step[0] for step in self.way))

    @property
    def named(self) -> bool:
        """Whether every list on the way is one of items with names."""
        return all(isinstance(step, str) or step[1] for step in self.way)


def changes(have: Any, wanted: Any, way: tuple[Step, ...] = ()) -> Iterator[Change]:
    """Yield what must change in `have` so that it is `wanted`."""
    if same(have, wanted):
        return
    whole = bool(way) and way[-1] in WHOLE
    if isinstance(have, dict) and isinstance(wanted, dict) and not whole:
        for key in (*wanted, *(key for key in have if key not in wanted)):
            if key not in wanted:
                yield Change((*way, key), gone=True)
            elif key not in have:
                yield Change((*way, key), wanted[key])
            else:
                yield from changes(have[key], wanted[key], (*way, key))
    elif isinstance(have, list) and isinstance(wanted, list) and not whole and _aligned(have, wanted):
        for index, (old, new) in enumerate(zip(have, wanted, strict=True)):
            name = old.get("name") if isinstance(old, dict) else None
            yield from changes(old, new, (*way, (index, name if isinstance(name, str) else "")))
    else:
        yield Change(way, wanted)


def _aligned(have: list[Any], wanted: list[Any]) -> bool:
    """Whether the items of two lists belong together one by one."""
    return len(have) == len(wanted) and all(
        isinstance(old, dict) and isinstance(new, dict) and old.get("name") == new.get("name")
        for old, new in zip(have, wanted, strict=True)
    )


def merged(document: Any, wanted: list[Change]) -> Any | None:
    """Return a copy of a strategic-merge patch that says `wanted` as well; None where it cannot."""
    result = copied(document)
    for change in wanted:
        node = result
        for step, following in zip(change.way[:-1], change.way[1:], strict=True):
            inner = _step_in(node, step, [] if isinstance(following, tuple) else {})
            if inner is None:
                return None
            node = inner
        last = change.way[-1]
        if not isinstance(node, dict) or not isinstance(last, str):
            return None
        node[last] = None if change.gone else copied(change.value)
    return result


def _step_in(node: Any, step: Step, new: Any) -> Any | None:
    """Return what stands at `step`, made where it is absent; None where something else stands there."""
    if isinstance(step, str):
        if not isinstance(node, dict):
            return None
        if node.get(step) is None:
            node[step] = new
        return node[step] if isinstance(node[step], type(new)) else None
    index, name = step
    if not isinstance(node, list):
        return None
    if not name:
        return node[index] if index < len(node) else None
    for item in node:
        if isinstance(item, dict) and item.get("name") == name:
            return item
    node.append({"name": name})
    return node[-1]


def as_operations(have: Any, wanted: list[Change]) -> list[Operation]:
    """Return JSON Patch operations that carry out `wanted` on an object that is now `have`."""
    operations: list[Operation] = []
    for change in wanted:
        present = value_at(have, change.pointer)
        if change.gone:
            operations.append(remove(change.pointer))
        elif (
            isinstance(present, list) and present and isinstance(change.value, list) and _begins(change.value, present)
        ):
            operations += [add(f"{change.pointer}/-", item) for item in change.value[len(present) :]]
        else:
            operations.append((add if present is None else replace)(change.pointer, change.value))
    return operations


def _begins(whole: list[Any], start: list[Any]) -> bool:
    return len(whole) > len(start) and same(whole[: len(start)], start)


def edits_between(old: Any, new: Any, base: str = "") -> list[Operation]:
    """Return operations that turn `old` into `new`, small ones where they are alike."""
    if same(old, new):
        return []
    if isinstance(old, dict) and isinstance(new, dict):
        operations = [remove(pointer(base, key)) for key in old if key not in new]
        for key, value in new.items():
            operations += (
                edits_between(old[key], value, pointer(base, key)) if key in old else [add(pointer(base, key), value)]
            )
        return operations
    if isinstance(old, list) and isinstance(new, list) and old and new:
        return _list_edits(old, new, base)
    return [replace(base, new)]


def _list_edits(old: list[Any], new: list[Any], base: str) -> list[Operation]:
    """Return the operations on a list, from its end, so that positions stay true; what changes in place is edited."""
    names = [[_label(item) for item in items] for items in (old, new)]
    blocks = difflib.SequenceMatcher(None, names[0], names[1], autojunk=False).get_opcodes()
    operations: list[Operation] = []
    for tag, start, end, first, last in reversed(blocks):
        if tag == "equal" or (tag == "replace" and end - start == last - first):
            for index in range(end - start - 1, -1, -1):
                operations += edits_between(old[start + index], new[first + index], pointer(base, start + index))
            continue
        operations += [remove(pointer(base, index)) for index in range(end - 1, start - 1, -1)]
        operations += [add(pointer(base, start + index), new[first + index]) for index in range(last - first)]
    return operations


def _label(item: Any) -> str:
    """Return what an item is known by: its name, the path of an operation, else all of it."""
    if isinstance(item, dict):
        for keys in (("name",), ("op", "path"), ("kind",), ("path",)):
            if all(isinstance(item.get(key), str) for key in keys):
                return " ".join(item[key] for key in keys)
    return json.dumps(item, sort_keys=True, default=str)
