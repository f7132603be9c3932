"""What a document without apiVersion and kind is, read off the fields that only this sort of document has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def shape_of(obj: Any) -> str:
    """Return what sort of document `obj` is: a name of `SHAPES`, at the least `document`."""
    return next(name for name, looks_like in SHAPES if looks_like(obj))


def _lists(*names: str) -> Callable[[Any], bool]:
    return lambda obj: isinstance(obj, dict) and any(isinstance(obj.get(name), list) for name in names)


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda obj: isinstance(obj, dict) and all(name in obj for name in names)


def _is_json_patch(obj: Any) -> bool:
    return (
        isinstance(obj, list)
        and bool(obj)
        and all(isinstance(operation, dict) and "op" in operation and "path" in operation for operation in obj)
    )


def _is_workflow(obj: Any) -> bool:
    # YAML 1.1 reads the key `on` as true.
    return isinstance(obj, dict) and isinstance(obj.get("jobs"), dict) and ("on" in obj or True in obj)


def _is_helmfile(obj: Any) -> bool:
    releases = obj.get("releases") if isinstance(obj, dict) else None
    return isinstance(releases, list) and any(isinstance(each, dict) and "chart" in each for each in releases)


SHAPES: tuple[tuple[str, Callable[[Any], bool]], ...] = (
    ("JSON Patch", _is_json_patch),
    ("Kustomization", _lists("resources", "patches", "patchesStrategicMerge", "patchesJson6902", "replacements")),
    ("device plugin configuration", _has("version", "sharing")),
    ("helm-unittest suite", _lists("tests")),
    ("Prometheus rules", _lists("groups")),
    ("Grafana Dashboard", _lists("panels")),
    ("scheduler configuration", _has("actions", "tiers")),
    ("workflow", _is_workflow),
    ("helmfile", _is_helmfile),
    ("Helm values", lambda obj: isinstance(obj, dict)),
    ("document", lambda _: True),
)
"""The first that fits. A map that is nothing else counts as values of a chart: that is what most of them are."""
