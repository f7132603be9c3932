"""JSON Pointers (RFC 6901) and the JSON Patch operations (RFC 6902) that a plan is made of."""

from __future__ import annotations

from typing import Any

from gpu2dra.model import Operation


def pointer(base: str, *segments: str | int) -> str:
    """Return `base` extended by `segments`, with `~` and `/` in names escaped."""
    for segment in segments:
        text = str(segment)
        if "~" in text or "/" in text:
            text = text.replace("~", "~0").replace("/", "~1")
        base = f"{base}/{text}"
    return base


def segments(path: str) -> list[str]:
    """Return the unescaped names of a pointer; the empty pointer has none."""
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def value_at(data: Any, path: str) -> Any:
    """Return what stands at the pointer `path` in `data`, None where nothing does."""
    for name in segments(path):
        if isinstance(data, dict):
            data = data.get(name)
        elif isinstance(data, list) and name.isdecimal() and int(name) < len(data):
            data = data[int(name)]
        else:
            return None
    return data


def add(path: str, value: Any) -> Operation:
    """Return an operation that adds a member or inserts an item."""
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> Operation:
    """Return an operation that removes what is at `path`."""
    return {"op": "remove", "path": path}


def replace(path: str, value: Any) -> Operation:
    """Return an operation that replaces the value at `path`."""
    return {"op": "replace", "path": path, "value": value}


def append(base: str, field: str, present: object, values: list[Any]) -> list[Operation]:
    """Return the operations that add `values` to the list `field` of the object at `base`, made if it is absent.

    `present` is the field's value now: a list is added to, anything else (absent, null, empty) is written anew.
    """
    if not values:
        return []
    if isinstance(present, list) and present:
        return [add(pointer(base, field, "-"), value) for value in values]
    return [add(pointer(base, field), values)]
