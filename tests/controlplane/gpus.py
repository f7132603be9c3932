"""Nodes, ResourceSlices and DeviceClasses as they stand in a cluster with NVIDIA's DRA driver or device plugin.

Attribute and capacity names are those that the driver publishes, with the values that NVML reports for these products.
One node has one pool, named after it; the driver names devices by minor number. Only what every release of the driver
since v25.3 publishes is there, unless a test adds to it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controlplane.client import Object

DRIVER = "gpu.nvidia.com"
HOSTNAME = "kubernetes.io/hostname"
_DRIVER_VERSION = "580.126.20"
_CUDA_VERSION = "13.0.0"


@dataclass(frozen=True, slots=True)
class Product:
    """A GPU as NVML describes it: memory in MiB, and the brand and architecture in the words of the driver."""

    name: str
    memory: int
    architecture: str
    capability: str
    brand: str = "Nvidia"


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile of a product: number, memory slices, memory in MiB (below the size in the name), engines."""

    name: str
    number: int
    slices: int
    memory: int
    multiprocessors: int
    copy_engines: int = 1
    decoders: int = 1
    jpeg_engines: int = 1
    ofa_engines: int = 0


H100 = Product("NVIDIA H100 80GB HBM3", 81559, "Hopper", "9.0.0")
A100 = Product("NVIDIA A100-SXM4-40GB", 40960, "Ampere", "8.0.0")
# A vGPU guest: one device per node, memory as large as the name says.
A10_4Q = Product("NVIDIA A10-4Q", 4096, "Ampere", "8.6.0", "NvidiaVWS")  # AKS Standard_NV6ads_A10_v5, a sixth
A10_8Q = Product("NVIDIA A10-8Q", 8192, "Ampere", "8.6.0", "NvidiaVWS")  # AKS Standard_NV12ads_A10_v5, a third
A10_12Q = Product("NVIDIA A10-12Q", 12288, "Ampere", "8.6.0", "NvidiaVWS")  # AKS Standard_NV18ads_A10_v5, a half
_RTX = "NVIDIA RTX Pro 6000 Blackwell DC-"
G4_EIGHTH = Product(f"{_RTX}12Q", 12288, "Blackwell", "12.0.0", "NvidiaVWS")  # GKE g4-standard-6
G4_QUARTER = Product(f"{_RTX}24Q", 24576, "Blackwell", "12.0.0", "NvidiaVWS")  # GKE g4-standard-12
G4_HALF = Product(f"{_RTX}48Q", 49152, "Blackwell", "12.0.0", "NvidiaVWS")  # GKE g4-standard-24

H100_MIG = {
    profile.name: profile
    for profile in (
        MigProfile("1g.10gb", 19, 1, 9856, 16),
        MigProfile("1g.10gb+me", 20, 1, 9856, 16, ofa_engines=1),
        MigProfile("1g.20gb", 15, 2, 20096, 26),
        MigProfile("2g.20gb", 14, 2, 20096, 32, copy_engines=2, decoders=2, jpeg_engines=2),
        MigProfile("3g.40gb", 9, 4, 40320, 60, copy_engines=3, decoders=3, jpeg_engines=3),
        MigProfile("7g.80gb", 0, 8, 81049, 132, copy_engines=8, decoders=7, jpeg_engines=7, ofa_engines=1),
    )
}
A100_MIG = {
    profile.name: profile
    for profile in (
        MigProfile("1g.5gb", 19, 1, 4864, 14, decoders=0, jpeg_engines=0),
        MigProfile("1g.5gb+me", 20, 1, 4864, 14, ofa_engines=1),
        MigProfile("2g.10gb", 14, 2, 9856, 28, copy_engines=2, jpeg_engines=0),
        MigProfile("3g.20gb", 9, 4, 19968, 42, copy_engines=3, decoders=2, jpeg_engines=0),
    )
}


def node(
    name: str,
    resources: Mapping[str, int | str] | None = None,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[Mapping[str, str]] = (),
) -> Object:
    """Return a Ready node with room for many pods; `resources` is what a device plugin has it report on top."""
    room = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "250"}
    room |= {resource: str(amount) for resource, amount in (resources or {}).items()}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name, "kubernetes.io/os": "linux", **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def gpu(index: int, product: Product, node_name: str) -> Object:
    """Return the device of a whole GPU (or of the one vGPU of a guest)."""
    attributes = {"type": _text("gpu"), "uuid": _text(_uuid("GPU", node_name, index)), **_common(index, product)}
    return {"name": f"gpu-{index}", "attributes": attributes, "capacity": {"memory": _mebibytes(product.memory)}}


def mig(index: int, product: Product, node_name: str, profile: MigProfile, start: int) -> Object:
    """Return the device of a MIG slice that the administrator made on a GPU, from a memory slice on."""
    identity = _uuid("MIG", node_name, f"{index}/{profile.name}/{start}")
    attributes = {
        "type": _text("mig"),
        "uuid": _text(identity),
        "parentUUID": _text(_uuid("GPU", node_name, index)),
        "profile": _text(profile.name),
        **_common(index, product),
    }
    engines = {
        "multiprocessors": profile.multiprocessors,
        "copyEngines": profile.copy_engines,
        "decoders": profile.decoders,
        "encoders": 0,
        "jpegEngines": profile.jpeg_engines,
        "ofaEngines": profile.ofa_engines,
        **{f"memorySlice{position}": 1 for position in range(start, start + profile.slices)},
    }
    capacity = {"memory": _mebibytes(profile.memory)} | {key: {"value": str(value)} for key, value in engines.items()}
    shown = profile.name.replace(".", "").replace("+", "-")
    name = f"gpu-{index}-mig-{shown}-{profile.number}-{start}"
    return {"name": name, "attributes": attributes, "capacity": capacity}


def resource_slice(node_name: str, devices: list[Object], api_version: str = "resource.k8s.io/v1") -> Object:
    """Return the one ResourceSlice of a node's pool."""
    if api_version == "resource.k8s.io/v1beta1":
        devices = [
            {"name": device["name"], "basic": {k: v for k, v in device.items() if k != "name"}} for device in devices
        ]
    return {
        "apiVersion": api_version,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node_name}-{DRIVER}"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node_name,
            "pool": {"name": node_name, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def device_class(name: str, kind: str, extended_resource_name: str | None = None) -> Object:
    """Return a class as NVIDIA's chart makes it, for devices of a kind (gpu, mig)."""
    expression = f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"
    spec: Object = {"selectors": [{"cel": {"expression": expression}}]}
    if extended_resource_name:
        spec["extendedResourceName"] = extended_resource_name
    return {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": name}, "spec": spec}


def device_classes(*, extended: bool = False) -> list[Object]:
    """Return the two classes that claims for GPUs name.

    The chart of driver v25.12 and later puts `extendedResourceName: nvidia.com/gpu` on the first; servers without the
    feature drop that field, and on 1.36 and later it makes the scheduler serve legacy pods too. Hence on request only.
    """
    return [
        device_class("gpu.nvidia.com", "gpu", "nvidia.com/gpu" if extended else None),
        device_class("mig.nvidia.com", "mig"),
    ]


@dataclass(frozen=True, slots=True)
class Machine:
    """A node and what its driver publishes; a machine with no devices is one for the device plugin."""

    name: str
    devices: Callable[[str], list[Object]] = field(default=lambda name: [])
    resources: Mapping[str, int | str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()

    def objects(self) -> list[Object]:
        """Return what to create, the slice last."""
        devices = self.devices(self.name)
        made = [node(self.name, self.resources, self.labels, self.taints)]
        return [*made, resource_slice(self.name, devices)] if devices else made


def whole(product: Product, count: int = 1) -> Callable[[str], list[Object]]:
    """Return the devices of a node with whole GPUs: `whole(H100, 8)`, or of a vGPU guest: `whole(A10_4Q)`."""
    return lambda name: [gpu(index, product, name) for index in range(count)]


def sliced(product: Product, profiles: Iterable[MigProfile]) -> Callable[[str], list[Object]]:
    """Return the devices of a node with one GPU in MIG mode: such a GPU is published as its slices only."""

    def devices(name: str) -> list[Object]:
        made, start = [], 0
        for profile in profiles:
            made.append(mig(0, product, name, profile, start))
            start += profile.slices
        return made

    return devices


def plugin(name: str, count: int, resource: str = "nvidia.com/gpu", **more: Any) -> Machine:
    """Return a node whose GPUs the device plugin hands out."""
    return Machine(name, resources={resource: count}, **more)


def _v1beta1(device: Object) -> Object:
    basic = {key: value for key, value in device.items() if key != "name"}
    return {"name": device["name"], "basic": basic}


def _common(index: int, product: Product) -> Object:
    return {
        "productName": _text(product.name),
        "brand": _text(product.brand),
        "architecture": _text(product.architecture),
        "cudaComputeCapability": {"version": product.capability},
        "driverVersion": {"version": _DRIVER_VERSION},
        "cudaDriverVersion": {"version": _CUDA_VERSION},
        "resource.kubernetes.io/pcieRoot": _text(f"pci0000:{0x17 + 0x10 * index:02x}"),
    }


def _text(value: str) -> Object:
    return {"string": value}


def _mebibytes(amount: int) -> Object:
    return {"value": f"{amount}Mi"}


def _uuid(kind: str, node_name: str, part: int | str) -> str:
    return f"{kind}-{uuid.uuid5(uuid.NAMESPACE_DNS, f'{part}.{node_name}')}"
