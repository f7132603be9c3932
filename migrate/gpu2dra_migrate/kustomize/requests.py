"""What a patch says about legacy requests, as data: where, and what is left of it without them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu2dra.pointers import pointer, segments
from gpu2dra.quantity import AmountError, parse_quantity
from gpu2dra.resources import legacy_resource

_SECTIONS = ("limits", "requests")


def is_json6902(documents: list[Any]) -> bool:
    """Whether a patch is a list of JSON Patch operations."""
    return len(documents) == 1 and isinstance(documents[0], list)


def request_pointers(
    documents: list[Any], *, zeros: bool = False, removals: bool = True
) -> Iterator[tuple[int, str, str]]:
    """Yield document, JSON Pointer and resource name of each legacy request that a patch sets, changes or removes.

    An amount of 0 asks for nothing (rule R2) and counts with `zeros` only, what takes one away with `removals`. In a
    list of operations the pointer is that of an operation whose path names the resource, or of a key inside its value.
    """
    if is_json6902(documents):
        found = (
            (0, *each)
            for index, operation in enumerate(documents[0])
            if isinstance(operation, dict)
            for each in _in_operation(operation, pointer("", index))
        )
    else:
        found = ((number, *each) for number, document in enumerate(documents) for each in _in_value(document, "", ()))
    for number, where, name, amount in found:
        if (zeros or not is_zero(amount)) and (removals or amount is not None):
            yield number, where, name


def _in_operation(operation: dict[str, Any], base: str) -> Iterator[tuple[str, str, Any]]:
    path = operation.get("path")
    names = segments(path) if isinstance(path, str) else []
    if len(names) > 1 and names[-2] in _SECTIONS and legacy_resource(names[-1]):
        yield base, names[-1], operation.get("value")
        return
    yield from _in_value(operation.get("value"), pointer(base, "value"), tuple(names))


def _in_value(value: Any, base: str, above: tuple[str, ...]) -> Iterator[tuple[str, str, Any]]:
    if isinstance(value, dict):
        section = bool(above) and above[-1] in _SECTIONS
        for key, inner in value.items():
            if section and legacy_resource(key):
                yield pointer(base, key), str(key), inner
            else:
                yield from _in_value(inner, pointer(base, key), (*above, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _in_value(inner, pointer(base, index), (*above, str(index)))


def is_zero(value: Any) -> bool:
    """Whether an amount is 0; null, which takes a key away, is not."""
    try:
        return value is not None and parse_quantity(value) == 0
    except AmountError:
        return False


def without_requests(document: Any, pointers: list[str]) -> Any:
    """Return a copy of `document` without what `pointers` name, and without the maps that this leaves empty.

    Operations whose value that leaves empty go as well.
    """
    gone = {tuple(segments(each)) for each in pointers}
    return _without(document, (), gone)[0]


def _without(value: Any, at: tuple[str, ...], gone: set[tuple[str, ...]]) -> tuple[Any, bool]:
    """Return the value without what is gone, and whether nothing of it is left that it had."""
    if isinstance(value, dict):
        kept = {}
        for key, inner in value.items():
            place = (*at, str(key))
            if place in gone:
                continue
            new, emptied = _without(inner, place, gone)
            if not emptied:
                kept[key] = new
            elif key == "value" and len(at) == 1:  # an operation that would add nothing
                return {}, True
        return kept, bool(value) and not kept
    if isinstance(value, list):
        items = []
        for index, inner in enumerate(value):
            place = (*at, str(index))
            if place in gone:
                continue
            new, emptied = _without(inner, place, gone)
            if not emptied:
                items.append(new)
        return items, bool(value) and not items and bool(at)
    return value, False


def says_something(document: Any) -> bool:
    """Whether a strategic-merge patch still changes anything: more than names stand in it."""
    if not isinstance(document, dict):
        return bool(document)
    inner = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata")}
    metadata = document.get("metadata")
    known = {"name", "namespace"}
    return _says(inner) or (isinstance(metadata, dict) and bool(metadata.keys() - known))


def bare_items(value: Any) -> Iterator[str]:
    """Yield the names of list items that say nothing but their name.

    They may stay, since kustomize puts what a patch names before what it does not name.
    """
    if isinstance(value, dict):
        for inner in value.values():
            yield from bare_items(inner)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict) and item.keys() == {"name"} and isinstance(item["name"], str):
                yield item["name"]
            else:
                yield from bare_items(item)


def _says(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key != "name" and _says(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(_says(item) for item in value)
    return True
