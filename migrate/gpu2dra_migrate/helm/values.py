"""The switch in a chart's values: `dra` at the end of values.yaml, and in a schema that would refuse it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gpu2dra.devices import GPU_CLASS
from gpu2dra.model import Object
from gpu2dra.pointers import add, pointer, segments
from gpu2dra_migrate.errors import ProofFailed
from gpu2dra_migrate.helm.helper import TARGETS
from gpu2dra_migrate.text.edits import DocumentEdit, edit
from gpu2dra_migrate.text.emit import scalar
from gpu2dra_migrate.text.layout import layout_of
from gpu2dra_migrate.text.nodes import Mapping, compose
from gpu2dra_migrate.text.proof import prove
from gpu2dra_migrate.text.source import Source, Splice
from gpu2dra_migrate.text.values import to_data

KEY = "dra"
MODES = ("auto", "true", "false")
_COMMENTS = {
    KEY: "Dynamic Resource Allocation: what workloads ask of nvidia.com/gpu and MIG profiles becomes ResourceClaims.",
    "enabled": "auto (where the server is Kubernetes 1.34 or later), true or false",
    "deviceClassName": "the DeviceClass that stands for nvidia.com/gpu",
    "target": 'the oldest Kubernetes to work with: "1.34+", "1.33" or "1.32"',
}
_SCHEMA: Object = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "enabled": {"enum": ["auto", "true", "false", True, False]},
        "deviceClassName": {"type": "string"},
        "target": {"enum": sorted(TARGETS)},
    },
}


def switch(mode: str, target: str) -> Object:
    """Return the value of `dra` for a mode (one of MODES) and a target (a key of TARGETS)."""
    enabled: object = mode if mode == "auto" else mode == "true"
    return {"enabled": enabled, "deviceClassName": GPU_CLASS, "target": target}


def with_switch(text: str, value: Object) -> str:
    """Return a values.yaml with `dra` at its end and a comment on each of its keys; unchanged if it has one.

    Raises FileError for a text that cannot be edited: broken YAML, or no mapping.
    """
    documents = compose(text)
    data = to_data(documents[0]) if documents else None
    if isinstance(data, dict) and KEY in data:
        return text
    if data is None:  # empty, or comments alone
        return text + _block(text, value, 2)
    change = DocumentEdit(0, [add(pointer("", KEY), value)])
    if isinstance(root := documents[0].root, Mapping) and not root.flow:
        # Behind all comments: those at the end speak of keys that stand above.
        block = _block(text, value, layout_of(Source(text), documents[0]).step)
        with suppress(ProofFailed):
            prove(text, text + block, [change], documents, [Splice(len(text), len(text), block)])
            return text + block
    new = edit(text, [change], documents)
    prove(text, new, [change], documents)
    return new


def _block(text: str, value: Object, step: int) -> str:
    """Return the lines to put at the end of `text`, in its line breaks, with a comment above each key."""
    lines = [f"# {_COMMENTS[KEY]}", f"{KEY}:"]
    for key, item in value.items():
        lines += [f"{' ' * step}# {_COMMENTS[key]}", f"{' ' * step}{key}: {scalar(item, flow=False)}"]
    eol = Source(text).eol(max(len(text) - 1, 0))
    if text.strip() and not text.endswith(("\n\n", "\n\r\n")):
        lines.insert(0, "")
    if text.endswith("\n") or not text:
        return "".join(line + eol for line in lines)
    return eol + eol.join(lines)


# A schema

_CLOSING = ("additionalProperties", "unevaluatedProperties")


def with_schema(text: str, way: Sequence[str] = ()) -> str:
    """Return a values.schema.json that allows `dra`, in the values of the subchart that `way` leads to.

    Unchanged where it is allowed already. Raises FileError for a text that cannot be edited.
    """
    documents = compose(text)
    data = to_data(documents[0]) if documents else None
    place = "" if isinstance(data, dict) else None
    for name in way:
        place = _resolved(data, place)
        found = _at(data, place)
        inner = found.get("properties") if isinstance(found, dict) else None
        place = (
            pointer(place, "properties", name)
            if place is not None and isinstance(inner, dict) and name in inner
            else None
        )
    place = _resolved(data, place)
    schema = _at(data, place)
    if (
        place is None
        or not isinstance(schema, dict)
        or not any(schema.get(word, True) is not True for word in _CLOSING)
    ):
        return text
    properties = schema.get("properties")
    if isinstance(properties, dict) and KEY in properties:
        return text
    known = isinstance(properties, dict)
    where = pointer(place, "properties", KEY) if known else pointer(place, "properties")
    change = DocumentEdit(0, [add(where, _SCHEMA if known else {KEY: _SCHEMA})])
    new = edit(text, [change], documents)
    prove(text, new, [change], documents)
    json.loads(new)
    return new


def _resolved(data: Any, place: str | None) -> str | None:
    """Return the pointer that a local `$ref` at `place` leads to, else `place`."""
    found = _at(data, place)
    reference = found.get("$ref") if isinstance(found, dict) else None
    if isinstance(reference, str) and reference.startswith("#/") and not re.search("[%]", reference):
        return reference[1:]
    return place


def _at(data: Any, place: str | None) -> Any:
    for name in segments(place) if place is not None else ():
        data = data.get(name) if isinstance(data, dict) else None
    return data if place is not None else None
