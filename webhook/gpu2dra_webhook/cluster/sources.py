"""What is cached of each kind: the fields that are needed, and nothing else of what may be thousands of objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from gpu2dra.converted import LABEL as CONVERTED_LABEL
from gpu2dra.quantity import AmountError, parse_quantity
from gpu2dra.resources import QUOTA_PREFIXES, legacy_resource
from gpu2dra.templates import MANAGED_BY
from gpu2dra_webhook.cluster.discovery import Discovery
from gpu2dra_webhook.cluster.objects import Pod, PodObject, Template, TemplateObject, pod, template, waiting_groups
from gpu2dra_webhook.cluster.reflector import NOT_KNOWN, Known, Source
from gpu2dra_webhook.ports import NO_LABELS, NO_QUOTA, DeviceClassState, QuotaState

_CLASS_KEY = ".deviceclass.resource.k8s.io/devices"
# Bytes of a page decide what a list takes for a moment: a node or a slice is tens of kilobytes, the rest is small.
_LARGE_OBJECTS = 100


@dataclass(frozen=True, slots=True)
class Namespace:
    """Labels, and whether it is being deleted."""

    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    terminating: bool = False


def _namespace(item: Known) -> Namespace:
    return Namespace(item.metadata.labels or NO_LABELS, item.metadata.deletionTimestamp is not None)


class _Limit(msgspec.Struct):
    type: str = ""
    default: dict[str, Any] | None = None
    defaultRequest: dict[str, Any] | None = None  # noqa: N815 - the API's own spelling, as below
    min: dict[str, Any] | None = None
    max: dict[str, Any] | None = None


class _LimitRangeSpec(msgspec.Struct):
    limits: list[_Limit] | None = None


class _LimitRange(Known):
    spec: _LimitRangeSpec = msgspec.field(default_factory=_LimitRangeSpec)


def _limit_range(item: _LimitRange) -> tuple[str, ...] | None:
    """Return the legacy names that a LimitRange puts on containers or pods (R12); None for one that has none."""
    limits = [limit for limit in item.spec.limits or () if limit.type in {"Container", "Pod"}]
    maps = [part for limit in limits for part in (limit.default, limit.defaultRequest, limit.min, limit.max) if part]
    return tuple(sorted({name for part in maps for name in part if legacy_resource(name)})) or None


class _QuotaSpec(msgspec.Struct):
    hard: dict[str, Any] | None = None
    scopes: list[str] | None = None
    scopeSelector: dict[str, Any] | None = None  # noqa: N815


class _Quota(Known):
    spec: _QuotaSpec = msgspec.field(default_factory=_QuotaSpec)


def _quota(item: _Quota) -> QuotaState | None:
    """Return what a ResourceQuota counts of GPUs (R12); None for one that counts none."""
    hard = item.spec.hard or {}
    names = {key.removeprefix(prefix) for key in hard for prefix in QUOTA_PREFIXES if key.startswith(prefix)}
    legacy = tuple(sorted(name for name in names if legacy_resource(name)))
    classes = frozenset(key.removesuffix(_CLASS_KEY) for key in hard if key.endswith(_CLASS_KEY))
    scoped = bool(legacy) and bool(item.spec.scopes or item.spec.scopeSelector)
    state = QuotaState(legacy, classes, scoped)
    return None if state == NO_QUOTA else state


class _NodeStatus(msgspec.Struct):
    allocatable: dict[str, Any] | None = None


class _Node(Known):
    status: _NodeStatus = msgspec.field(default_factory=_NodeStatus)


def _legacy_node(item: _Node) -> bool | None:
    """Return True for a node that hands out GPUs by a legacy name; others are left out."""
    for name, amount in (item.status.allocatable or {}).items():
        if legacy_resource(name) and _positive(amount):
            return True
    return None


def _positive(amount: object) -> bool:
    try:
        return parse_quantity(amount) > 0
    except AmountError:
        return False


class _SliceSpec(msgspec.Struct):
    driver: str = ""
    nodeName: str | None = None  # noqa: N815


class _Slice(Known):
    spec: _SliceSpec = msgspec.field(default_factory=_SliceSpec)


class _ClassSpec(msgspec.Struct):
    extendedResourceName: str | None = None  # noqa: N815


class _DeviceClass(Known):
    spec: _ClassSpec = msgspec.field(default_factory=_ClassSpec)


def _device_class(item: _DeviceClass) -> DeviceClassState:
    return DeviceClassState(item.metadata.name, item.spec.extendedResourceName or "")


def core(name: str, shape: type[Known], read: Callable[[Any], Any], page: int = 500) -> Source[Any]:
    """Return the source of a kind of the core group."""
    return Source(name, lambda: f"/api/v1/{name}", shape, read, page=page)


NAMESPACES: Source[Namespace] = core("namespaces", Known, _namespace)
LIMIT_RANGES: Source[tuple[str, ...]] = core("limitranges", _LimitRange, _limit_range)
QUOTAS: Source[QuotaState] = core("resourcequotas", _Quota, _quota)
NODES: Source[bool] = core("nodes", _Node, _legacy_node, page=_LARGE_OBJECTS)


def device_classes(discovery: Discovery) -> Source[DeviceClassState]:
    """Return the source of DeviceClasses."""
    return Source("deviceclasses", _served(discovery, "deviceclasses"), _DeviceClass, _device_class)


def slices(discovery: Discovery, drivers: tuple[str, ...]) -> Source[str]:
    """Return the source of ResourceSlices of these drivers: the node of each, empty for devices of several nodes."""

    def read(item: _Slice) -> str | None:
        return (item.spec.nodeName or "") if item.spec.driver in drivers else None

    query = {"fieldSelector": f"spec.driver={drivers[0]}"} if len(drivers) == 1 else {}  # selectors know no "or"
    return Source("resourceslices", _served(discovery, "resourceslices"), _Slice, read, query, _LARGE_OBJECTS)


def templates(discovery: Discovery) -> Source[Template]:
    """Return the source of templates that the webhook manages."""
    ((key, value),) = MANAGED_BY.items()
    where = _served(discovery, "resourceclaimtemplates")
    return Source("resourceclaimtemplates", where, TemplateObject, template, {"labelSelector": f"{key}={value}"})


CONVERTED_PODS: Source[Pod] = Source(
    "pods",
    lambda: "/api/v1/pods",
    PodObject,
    pod,
    {"labelSelector": f"{CONVERTED_LABEL}=true"},
    groups_of=waiting_groups,
)


def _served(discovery: Discovery, plural: str) -> Callable[[], str | None]:
    def where() -> str | None:
        if discovery.version:
            return f"/apis/{discovery.version}/{plural}"
        return None if discovery.known else NOT_KNOWN

    return where
