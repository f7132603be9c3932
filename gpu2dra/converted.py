"""The record that an admitted pod carries of its own conversion, and what follows when a limit comes back (R13)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu2dra.model import Object, Operation
from gpu2dra.names import canonical_json
from gpu2dra.pointers import add, pointer, replace

ANNOTATION = "gpu2dra.dev/converted"
"""Canonical JSON: `containers`, what was taken off each; `templates`, the spec behind each name (to put one back)."""
LABEL = "gpu2dra.dev/converted"


@dataclass(slots=True)
class Record:
    """`containers`: amount per resource name per container. `templates`: template spec per template name."""

    containers: dict[str, dict[str, int | str]] = field(default_factory=dict)
    templates: dict[str, Object] = field(default_factory=dict)

    def serves(self, container: str, resource: str) -> int | str | None:
        """Return the amount that our claim already gives `container`, or None."""
        return self.containers.get(container, {}).get(resource)


def read_record(metadata: Mapping[str, Any]) -> Record:
    """Return the record in a pod's metadata; an absent or spoilt annotation is an empty record."""
    annotations = metadata.get("annotations")
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return Record()
    try:
        data = json.loads(text)
    except ValueError:
        return Record()
    if not isinstance(data, dict):
        return Record()
    containers, templates = data.get("containers"), data.get("templates")
    return Record(
        {
            str(name): {str(key): amount for key, amount in amounts.items() if isinstance(amount, int)}
            for name, amounts in (containers.items() if isinstance(containers, dict) else ())
            if isinstance(amounts, dict)
        },
        {
            str(name): spec
            for name, spec in (templates.items() if isinstance(templates, dict) else ())
            if isinstance(spec, dict)
        },
    )


def write_record(metadata: object, base: str, record: Record) -> list[Operation]:
    """Return the operations that put `record` and the label on the metadata of the object at pointer `base`."""
    text = canonical_json({"containers": record.containers, "templates": record.templates})
    metadata = metadata if isinstance(metadata, dict) else None
    if metadata is None:
        return [add(pointer(base, "metadata"), {"annotations": {ANNOTATION: text}, "labels": {LABEL: "true"}})]
    return [
        *_put(metadata.get("annotations"), pointer(base, "metadata", "annotations"), ANNOTATION, text),
        *_put(metadata.get("labels"), pointer(base, "metadata", "labels"), LABEL, "true"),
    ]


def _put(present: object, path: str, key: str, value: str) -> list[Operation]:
    if not isinstance(present, dict):
        return [add(path, {key: value})]
    if present.get(key) == value:
        return []
    return [(replace if key in present else add)(pointer(path, key), value)]
