"""Devices for the trials: what a node publishes for the resources of the drawn Pods, and a network that all reach."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from controlplane import gpus
from controlplane.client import Object
from controlplane.pods import RESOURCES

NETWORK = "nic.example.com"
"""Driver and class of the claims that some pods hold anyway; every node reaches its devices."""
_NETWORK_POOLS = 4
_POOL_SIZE = 128
_API = "resource.k8s.io/v1"


def devices(node: str, counts: Mapping[str, int]) -> list[Object]:
    """Return devices of a node: whole GPUs, and one GPU cut for each MIG slice."""
    found = [gpus.gpu(index, gpus.A100, node) for index in range(counts.get("nvidia.com/gpu", 0))]
    for resource, profile in RESOURCES.items():
        if profile:
            cut = profiles()[profile]
            found += [gpus.mig(len(found) + index, gpus.A100, node, cut, 0) for index in range(counts.get(resource, 0))]
    return found


def profiles() -> dict[str, gpus.MigProfile]:
    """Return the MIG profiles of the product whose devices the nodes have."""
    larger = dataclasses.replace(gpus.A100_MIG["3g.20gb"], name="3g.20gb+me", number=21)
    return {**gpus.A100_MIG, larger.name: larger}


def network() -> list[Object]:
    """Return a class of another driver, and enough devices of it that all nodes reach."""
    expression = f"device.driver == '{NETWORK}'"
    made: list[Object] = [
        {
            "apiVersion": _API,
            "kind": "DeviceClass",
            "metadata": {"name": NETWORK},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
    ]
    for number in range(_NETWORK_POOLS):
        pool = {"name": f"fabric-{number}", "generation": 1, "resourceSliceCount": 1}
        ports = [{"name": f"port-{index}"} for index in range(_POOL_SIZE)]
        spec = {"driver": NETWORK, "allNodes": True, "pool": pool, "devices": ports}
        name = f"fabric-{number}"
        made.append({"apiVersion": _API, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    return made


def network_template(name: str, count: int = 1) -> Object:
    """Return a template, not ours, of claims for network devices."""
    request = {"name": "port", "exactly": {"deviceClassName": NETWORK, "count": count}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"apiVersion": _API, "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def resource_of(device: str) -> str:
    """Return the resource that a device of `devices` counts for, by its name."""
    for resource, profile in RESOURCES.items():
        shown = profile.replace(".", "").replace("+", "-")
        if profile and f"-mig-{shown}-{profiles()[profile].number}-" in device:
            return resource
    return "nvidia.com/gpu"
