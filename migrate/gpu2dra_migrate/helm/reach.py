"""Which devices each container reaches, whoever made the claims and whatever their names are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from gpu2dra.kinds import pod_specs
from gpu2dra.resources import legacy_resource
from gpu2dra.templates import canonical_spec

Place: TypeAlias = tuple[str, str, str, str]
"""Kind, name and pointer of a workload's PodSpec, and the name of one of its containers."""
Devices: TypeAlias = Counter[tuple[str, ...]]
"""Number of devices by DeviceClass and CEL expressions."""


def reach(objects: Iterable[Any]) -> dict[Place, Devices]:
    """Return the devices of each container that has a claim from a template among `objects`."""
    found = [obj for obj in objects if isinstance(obj, dict)]
    templates = {_name(obj): _requests(obj) for obj in found if obj.get("kind") == "ResourceClaimTemplate"}
    result: dict[Place, Devices] = {}
    for obj in found:
        for path, spec in pod_specs(obj):
            sources = {e.get("name"): templates.get(str(e.get("resourceClaimTemplateName")), {}) for e in _claims(spec)}
            for container in _containers(spec):
                devices: Devices = Counter()
                for claim in _items(_mapping(container.get("resources")).get("claims")):
                    requests = sources.get(claim.get("name"), {})
                    chosen = [claim["request"]] if claim.get("request") else list(requests)
                    for device, count in (requests[name] for name in chosen if name in requests):
                        devices[device] += count
                if devices:
                    result[str(obj.get("kind")), _name(obj), path, str(container.get("name"))] = devices
    return result


def limits_left(objects: Iterable[Any]) -> list[Place]:
    """Return the containers that have both a claim and a limit for a GPU."""
    return [
        (str(obj.get("kind")), _name(obj), path, str(container.get("name")))
        for obj in objects if isinstance(obj, dict)
        for path, spec in pod_specs(obj)
        for container in _containers(spec)
        if _items(_mapping(container.get("resources")).get("claims"))
        and any(map(legacy_resource, _mapping(_mapping(container.get("resources")).get("limits"))))
    ]  # fmt: skip


def _requests(template: Mapping[str, Any]) -> dict[str, tuple[tuple[str, ...], int]]:
    """Return device and count by request name; a list of alternatives is none that a legacy request becomes."""
    spec = canonical_spec(_mapping(template.get("spec")))
    requests = _items(_mapping(_mapping(spec.get("spec")).get("devices")).get("requests"))
    return {
        str(each.get("name")): _device(each["exactly"]) for each in requests if isinstance(each.get("exactly"), dict)
    }


def _device(exactly: Mapping[str, Any]) -> tuple[tuple[str, ...], int]:
    expressions = (_mapping(each.get("cel")).get("expression") for each in _items(exactly.get("selectors")))
    return (str(exactly.get("deviceClassName")), *map(str, expressions)), int(exactly.get("count", 1))


def _containers(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [*_items(spec.get("initContainers")), *_items(spec.get("containers"))]


def _claims(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    return _items(spec.get("resourceClaims"))


def _items(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _name(obj: Mapping[str, Any]) -> str:
    return str(_mapping(obj.get("metadata")).get("name"))
