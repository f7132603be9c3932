"""The smallest objects of a kind that its CRD takes and that ask for GPUs, built from the CRD's own schema."""

from __future__ import annotations

from typing import Any

from controlplane.client import Object
from gpu2dra.kinds import Kind
from gpu2dra.pointers import segments

_IMAGE = "registry.example/app:1"
_ENTRY_OF_MAP = "Worker"


def pod_spec(schema: Object) -> Object:
    """Return a PodSpec whose containers ask for GPUs and MIG slices; one of them starts first where the schema can."""
    init = [_container("prepare", {"nvidia.com/gpu": 1})]
    apps = [
        _container("main", {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 1}),
        _container("helper", {"nvidia.com/gpu": 1}),
    ]
    return (
        {"initContainers": init, "containers": apps}
        if "initContainers" in _properties(schema)
        else {"containers": apps}
    )


def _container(name: str, limits: dict[str, int]) -> Object:
    return {"name": name, "image": _IMAGE, "resources": {"limits": limits}}


def objects(kind: Kind, api_version: str, schema: Object) -> dict[str, Object]:
    """Return an object for each place where the kind keeps a PodSpec, by the pattern of the place."""
    found = {}
    for pattern in (*kind.templates, *kind.specs, *kind.objects):
        obj = _built(schema, segments(pattern), pattern, kind)
        obj |= {"apiVersion": api_version, "kind": kind.kind, "metadata": {"name": "minimal"}}
        found[pattern] = obj
    return found


def _built(schema: Object, steps: list[str], pattern: str, kind: Kind) -> Any:
    """Return a value that leads to the place, with everything that the schema requires on the way."""
    if not steps:
        return _leaf(schema, pattern, kind)
    if steps[0] != "*":
        inner = _properties(schema)[steps[0]]
        return {**required(schema), steps[0]: _built(inner, steps[1:], pattern, kind)}
    if schema.get("type") == "array":
        return [_built(schema["items"], steps[1:], pattern, kind)]
    return {_ENTRY_OF_MAP: _built(schema["additionalProperties"], steps[1:], pattern, kind)}


def _leaf(schema: Object, pattern: str, kind: Kind) -> Object:
    if pattern in kind.objects:
        labels = {"app": "minimal"}
        template = {"metadata": {"labels": labels}, "spec": pod_spec({})}
        spec = {"selector": {"matchLabels": labels}, "template": template}
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "wrapped"}, "spec": spec}
    if pattern in kind.specs:
        return {**required(schema), **pod_spec(schema)}
    return {**required(schema), "spec": pod_spec(_properties(schema)["spec"])}


def required(schema: Object) -> Object:
    """Return the least object that a schema takes."""
    properties = _properties(schema)
    return {name: _least(properties.get(name, {})) for name in schema.get("required", [])}


def _least(schema: Object) -> Any:
    if "default" in schema:
        return schema["default"]
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("type") == "object":
        return required(schema)
    if schema.get("type") == "array":
        return [_least(schema["items"])] * int(schema.get("minItems", 0))
    scalars = {"string": "a", "integer": schema.get("minimum", 1), "number": 1, "boolean": False}
    return scalars.get(str(schema.get("type")), "a")


def _properties(schema: Object) -> dict[str, Any]:
    properties = schema.get("properties", {})
    return dict(properties)
