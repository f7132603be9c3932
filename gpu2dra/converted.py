"""The record that an admitted pod carries of its own conversion, and what follows when a limit comes back (R13)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpu2dra.model import Object, Operation
from gpu2dra.names import canonical_json
from gpu2dra.pointers import add, pointer, replace

ANNOTATION = "gpu2dra.dev/converted"
"""Canonical JSON: `containers`, what was taken off each; `templates`, the spec behind each name (to put one back)."""
LABEL = "gpu2dra.dev/converted"
ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all keys and values of an object's annotations together (TotalAnnotationSizeLimitB of apimachinery)."""


@dataclass(slots=True)
class Record:
    """`containers`: amount per resource name per container. `templates`: template spec per template name."""

    containers: dict[str, dict[str, int | str]] = field(default_factory=dict)
    templates: dict[str, Object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """What stands in the annotation."""
        return canonical_json({"containers": self.containers, "templates": self.templates})

    def serves(self, container: str, resource: str) -> int | str | None:
        """Return the amount that our claim already gives `container`, or None."""
        return self.containers.get(container, {}).get(resource)


def read_record(metadata: Mapping[str, Any], spec: Object) -> Record:
    """Return the record of a pod with this metadata and PodSpec; an absent or spoilt annotation is an empty record.

    Containers that do not use a claim from one of its templates are left out: an annotation that was copied to
    another pod serves nobody, and a limit taken off for its sake would leave the container without a GPU.
    """
    annotations = metadata.get("annotations")
    text = annotations.get(ANNOTATION) if isinstance(annotations, dict) else None
    if not isinstance(text, str):
        return Record()
    try:
        data = json.loads(text)
        canonical_json(data).encode()  # JSON can spell half a character, which nothing can write again
    except (ValueError, RecursionError):
        return Record()
    if not isinstance(data, dict):
        return Record()
    containers, templates = data.get("containers"), data.get("templates")
    if not isinstance(containers, dict) or not isinstance(templates, dict):
        return Record()
    ours = {name: made for name, made in templates.items() if isinstance(made, dict)}
    users = _users(spec, ours)
    return Record(
        {
            name: {key: amount for key, amount in amounts.items() if isinstance(amount, int)}
            for name, amounts in containers.items()
            if isinstance(amounts, dict) and name in users
        },
        ours,
    )


def _users(spec: Object, templates: Collection[str]) -> set[str]:
    """Return the names of the containers that use a claim from one of `templates`."""
    entries = {
        name
        for entry in _objects(spec.get("resourceClaims"))
        if isinstance(made := entry.get("resourceClaimTemplateName"), str) and made in templates
        and isinstance(name := entry.get("name"), str)
    }  # fmt: skip
    users: set[str] = set()
    for container in (*_objects(spec.get("initContainers")), *_objects(spec.get("containers"))):
        resources, name = container.get("resources"), container.get("name")
        claims = _objects(resources.get("claims")) if isinstance(resources, dict) else []
        if isinstance(name, str) and any(
            isinstance(used := claim.get("name"), str) and used in entries for claim in claims
        ):
            users.add(name)
    return users


def _objects(items: object) -> list[Object]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def fits(metadata: Mapping[str, Any], text: str) -> bool:
    """Whether the annotations of an object with this metadata have room for the `text` of a record."""
    present = metadata.get("annotations")
    annotations = {**(present if isinstance(present, dict) else {}), ANNOTATION: text}
    pairs = ((key, value) for key, value in annotations.items() if isinstance(value, str))
    return sum(_size(key) + _size(value) for key, value in pairs) <= ANNOTATIONS_LIMIT


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def write_record(metadata: object, base: str, text: str) -> list[Operation]:
    """Return the operations that put the `text` of a record, and the label, on the metadata of the object at `base`."""
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
