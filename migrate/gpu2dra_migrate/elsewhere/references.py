"""Where releases name ResourceClaimTemplates: in values, in patches of what is rendered, in texts of values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpu2dra.model import Object, Operation
from gpu2dra.pointers import pointer, replace
from gpu2dra_migrate.elsewhere.releases import mapping, text


def claim_references(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield pointer and name of each ResourceClaimTemplate that the values of a HelmRelease name."""
    if obj.get("kind") == "HelmRelease":
        values = mapping(obj.get("spec")).get("values")
        for place, found in _strings(values, "/spec/values"):
            if place.endswith("/resourceClaimTemplateName"):
                yield place, found


def renamed_references(obj: Object, renames: Mapping[tuple[str, str], str]) -> Iterator[Operation]:
    """Yield the operations that follow renamed templates, in values as in the text of a patch or of values."""
    names = {old: new for (namespace, old), new in renames.items() if namespace == pods_namespace(obj)}
    for place, found in _strings(obj.get("spec"), "/spec") if names else ():
        new_text = found
        for old, new in names.items():  # a name ends in a digest, so it is no part of another one
            new_text = new_text.replace(old, new)
        if new_text != found:
            yield replace(place, new_text)


def _strings(value: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield pointer and text of each string in `value`, which stands at `place`; what aliases repeat comes once."""
    waiting, seen = [(place, value)], set[int]()
    while waiting:
        where, found = waiting.pop()
        if isinstance(found, str):
            yield where, found
        elif isinstance(found, dict | list) and id(found) not in seen:
            seen.add(id(found))
            members = found.items() if isinstance(found, dict) else enumerate(found)
            waiting += [(pointer(where, step), inner) for step, inner in members]


def pods_namespace(obj: Object) -> str:
    """Return the namespace of the pods of an object: a release may send them to another than its own."""
    released = obj.get("kind") in ("HelmRelease", "HelmChart")
    target = text(mapping(obj.get("spec")).get("targetNamespace")) if released else ""
    return target or text(mapping(obj.get("metadata")).get("namespace"))
