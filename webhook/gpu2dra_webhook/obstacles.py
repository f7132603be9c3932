"""What in a cluster or a namespace stands against converted pods: one question each, asked of caches only (R9, R12)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from gpu2dra.devices import Device
from gpu2dra_webhook.decisions import Reason
from gpu2dra_webhook.ports import NamespaceState, View
from gpu2dra_webhook.settings import Settings

Devices: TypeAlias = Mapping[str, Device]
"""What the legacy names of a pod become."""
Found: TypeAlias = tuple[Reason, str]
_Question: TypeAlias = Callable[[Devices, View, NamespaceState, Settings], Found | None]


def obstacle(devices: Devices, view: View, namespace: NamespaceState, settings: Settings) -> Found | None:
    """Return the first thing that stands against converting a pod that asks for `devices`, and a sentence about it."""
    return next((found for question in _QUESTIONS if (found := question(devices, view, namespace, settings))), None)


def _no_dra(devices: Devices, view: View, namespace: NamespaceState, settings: Settings) -> Found | None:
    if view.api_version():
        return None
    return Reason.NO_DRA, "the API server does not serve DRA (resource.k8s.io, from Kubernetes 1.32 on)"


def _device_class(devices: Devices, view: View, namespace: NamespaceState, settings: Settings) -> Found | None:
    missing = sorted({device.device_class for device in devices.values() if not view.device_class(device.device_class)})
    if not missing:
        return None
    return Reason.DEVICE_CLASS_MISSING, f"there is no DeviceClass {', '.join(missing)}; install the DRA driver"


def _mixed_nodes(devices: Devices, view: View, namespace: NamespaceState, settings: Settings) -> Found | None:
    nodes = () if settings.allow_mixed_nodes else view.mixed_nodes()
    if not nodes:
        return None
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    return Reason.MIXED_NODES, f"node {nodes[0]}{more}: device plugin and DRA driver both hand out its GPUs"


def _limit_range(devices: Devices, view: View, namespace: NamespaceState, settings: Settings) -> Found | None:
    names = [name for name in namespace.limit_range if name in devices]
    if not names:
        return None
    return Reason.LIMIT_RANGE, f"a LimitRange of the namespace names {names[0]} and would refuse the converted pod"


def _quota(devices: Devices, view: View, namespace: NamespaceState, settings: Settings) -> Found | None:
    # A quota must go on counting: by the key of the class, or by the name that the class carries. A device with
    # selectors is one kind of its class (a MIG profile), and the key counts all kinds together.
    quota = namespace.quota
    counted = [name for name in quota.legacy_names if name in devices]
    if settings.quota == "convert" or not counted:
        return None
    if quota.scoped:
        return Reason.SCOPED_QUOTA, f"a scoped ResourceQuota counts {counted[0]}; claims cannot be counted by scope"
    for name in counted:
        device = devices[name]
        known = view.device_class(device.device_class)
        by_key = device.device_class in quota.class_keys and not device.selectors
        by_name = known is not None and known.extended_resource_name == name
        if not (by_key or by_name):
            key = f"{device.device_class}.deviceclass.resource.k8s.io/devices"
            fix = "which claims of one class cannot be counted by" if device.selectors else f"add {key}"
            return Reason.QUOTA, f"a ResourceQuota counts {name}; {fix}"
    return None


_QUESTIONS: tuple[_Question, ...] = (_no_dra, _device_class, _mixed_nodes, _limit_range, _quota)


def notices(devices: Devices, view: View, settings: Settings) -> Iterator[str]:
    """Yield what is worth being told once of a cluster that takes converted pods."""
    if not view.has_slices():
        drivers = " or ".join(settings.drivers)
        yield f"no ResourceSlice of {drivers} yet: converted pods are pending until a node offers devices"
    for name, device in devices.items():
        known = view.device_class(device.device_class)
        if known and known.extended_resource_name == name:
            yield f"DeviceClass {known.name} carries {name}: from Kubernetes 1.36 on its pods run unconverted, too"
