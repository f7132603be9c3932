"""Many pods at once, each on a node of its own: which the scheduler binds, and which devices their containers find."""

from __future__ import annotations

import dataclasses
import time
import zlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from controlplane import gpus, scheduling
from controlplane.client import Client, Object
from controlplane.pods import RESOURCES

NETWORK = "nic.example.com"
"""Driver and class of the claims that some pods hold anyway; every node reaches its devices."""
_NETWORK_POOLS = 4
_POOL_SIZE = 128
_CLAIMS = "resource.k8s.io/v1"
_CHUNK = "trial"
_CHUNKS = 16
"""Parts in which the pods are looked at, by a label: a list of all of them each time would be most of the work."""
_WORKERS = 6
_POLL = 0.25
_PATIENCE = 15.0
"""Seconds without any decision after which what is undecided stays so. A pod is tried again at least every two."""
CAUSES = {
    "Insufficient nvidia.com/": "too few of an extended resource",
    "cannot allocate all claims": "the claims cannot be allocated",
    "timed out trying to allocate devices": "the claims were not allocated in the time that the scheduler has",
}
"""What the scheduler says of a pod that does not fit, and what it means."""
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Placement:
    """A pod and the node that it is made for, with the devices that the node has, by resource name."""

    pod: Object
    node: Mapping[str, int]
    plugin: bool
    """Whether a device plugin hands the devices out; else they are published in a ResourceSlice."""
    fits: bool
    """What is expected."""

    @property
    def name(self) -> str:
        """The name of both."""
        return str(self.pod["metadata"]["name"])

    def objects(self) -> list[Object]:
        """Return the node, and its slice."""
        if self.plugin:
            return gpus.Machine(self.name, resources=self.node).objects()
        return gpus.Machine(self.name, lambda name: devices(name, self.node)).objects()


@dataclass(slots=True)
class Verdict:
    """What became of the pod of a placement; `devices` by container and resource name."""

    placement: Placement
    bound: bool = False
    message: str = ""
    devices: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    allocated: dict[str, set[str]] = field(default_factory=lambda: {resource: set() for resource in RESOURCES})
    asked: int = 0
    """How many devices all of its claims ask for, as the server has stored them; those of other drivers aside."""
    others: dict[str, int] = field(default_factory=dict)
    """How many devices of other drivers each container finds."""

    @property
    def unexpected(self) -> str:
        """Why this is not what was expected; empty when it is."""
        if self.bound == self.placement.fits:
            return ""
        found = "was bound" if self.bound else f"was not bound ({self.message or 'never tried'})"
        return f"{self.placement.name} {found} where {dict(self.placement.node)} are free"


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
            "apiVersion": _CLAIMS,
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
        made.append({"apiVersion": _CLAIMS, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    return made


def network_template(name: str, count: int = 1) -> Object:
    """Return a template, not ours, of claims for network devices."""
    request = {"name": "port", "exactly": {"deviceClassName": NETWORK, "count": count}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return {"apiVersion": _CLAIMS, "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def pinned(pod: Object, name: str, namespace: str) -> Object:
    """Return a copy of a pod by another name that can run on the node of that name only, as a DaemonSet's pods do."""
    labels = {**pod["metadata"].get("labels", {}), _CHUNK: str(zlib.crc32(name.encode()) % _CHUNKS)}
    metadata = {**pod["metadata"], "name": name, "namespace": namespace, "labels": labels}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "affinity": affinity}}


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function for every item, several at a time; return the results in order."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(function, items))


def run(client: Client, namespace: str, placements: Iterable[Placement]) -> list[Verdict]:
    """Create the nodes, then the pods, and return what the scheduler makes of them. Everything stays."""
    chosen = list(placements)
    each(client.create, [obj for placement in chosen for obj in placement.objects()])
    each(client.create, [placement.pod for placement in chosen])
    verdicts = {placement.name: Verdict(placement) for placement in chosen}
    for number in range(_CHUNKS):
        _watch(client, namespace, str(number), verdicts)
    return list(verdicts.values())


def _watch(client: Client, namespace: str, chunk: str, verdicts: Mapping[str, Verdict]) -> None:
    """Fill in the verdicts on a part of the pods once they are as expected, or no longer change."""
    changed, before = time.monotonic(), 0
    while True:
        # From the server's cache: what it lacks comes with the next look.
        pods = client.list("v1", "Pod", namespace, labelSelector=f"{_CHUNK}={chunk}", resourceVersion="0")
        for pod in pods:
            verdict = verdicts[pod["metadata"]["name"]]
            verdict.bound = bool(pod["spec"].get("nodeName"))
            verdict.message = verdict.message or _refusal(pod)
        mine = [verdicts[pod["metadata"]["name"]] for pod in pods]
        decided = sum(verdict.bound + bool(verdict.message) for verdict in mine)
        if decided != before:
            changed, before = time.monotonic(), decided
        settled = all(verdict.bound or (verdict.message and not verdict.placement.fits) for verdict in mine)
        if settled or time.monotonic() - changed > _PATIENCE:
            break
        time.sleep(_POLL)
    claims = {claim["metadata"]["name"]: claim for claim in client.list(_CLAIMS, "ResourceClaim", namespace)}
    for pod in pods:
        verdict = verdicts[pod["metadata"]["name"]]
        if not verdict.placement.plugin:
            _read_claims(pod, claims, verdict)


def _refusal(pod: Object) -> str:
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return str(condition["message"])
    return ""


def reason(verdict: Verdict) -> str:
    """Return why a pod was not bound: one of CAUSES, or else the scheduler's message."""
    return next((cause for words, cause in CAUSES.items() if words in verdict.message), verdict.message)


def _read_claims(pod: Object, claims: Mapping[str, Object], verdict: Verdict) -> None:
    """Fill in what the pod's claims ask for, and which devices the containers find, from the status of the claims."""
    generated = {entry: claims[name] for entry, name in scheduling.claim_names(pod).items()}
    native = pod.get("status", {}).get("extendedResourceClaimStatus")
    extended = claims[native["resourceClaimName"]] if native else {}
    for claim in (*generated.values(), extended):
        verdict.asked += _asked(claim)
        for _, driver, device in _results(claim):
            if driver == gpus.DRIVER:
                verdict.allocated[resource_of(device)].add(device)
    for container in scheduling.containers(pod):
        name = container["name"]
        uses = [
            (generated.get(claim["name"], {}), claim.get("request"))
            for claim in container.get("resources", {}).get("claims", [])
        ]
        mappings = native["requestMappings"] if native else []
        uses += [(extended, item["requestName"]) for item in mappings if item["containerName"] == name]
        verdict.devices[name] = {resource: [] for resource in RESOURCES}
        verdict.others[name] = 0
        for claim, wanted in uses:
            for request, driver, device in _results(claim):
                if wanted not in (None, request):
                    continue
                if driver == gpus.DRIVER:
                    verdict.devices[name][resource_of(device)].append(device)
                else:
                    verdict.others[name] += 1


def _asked(claim: Object) -> int:
    requests = claim.get("spec", {}).get("devices", {}).get("requests", [])
    exact = [request["exactly"] for request in requests]
    return sum(int(request["count"]) for request in exact if request["deviceClassName"] != NETWORK)


def _results(claim: Object) -> list[tuple[str, str, str]]:
    allocation = claim.get("status", {}).get("allocation", {})
    results = allocation.get("devices", {}).get("results", [])
    return [(result["request"], result["driver"], result["device"]) for result in results]


def resource_of(device: str) -> str:
    """Return the resource that a device of `devices` counts for, by its name."""
    for resource, profile in RESOURCES.items():
        shown = profile.replace(".", "").replace("+", "-")
        if profile and f"-mig-{shown}-{profiles()[profile].number}-" in device:
            return resource
    return "nvidia.com/gpu"
