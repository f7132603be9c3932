"""Many pods at once, each on a node of its own: which the scheduler binds, and which devices their containers find."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from controlplane import gpus, scheduling, supply
from controlplane.client import APPLY_PATCH, Client, Object
from controlplane.pods import RESOURCES

_CLAIMS = "resource.k8s.io/v1"
_ENTRY = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim that names the entry in spec.resourceClaims which it was made for."""
_CHUNK = 50
_LABEL = "trial"
"""Pods are looked at by fifties, by a label: a list of all of them each time would be most of the work."""
_WORKERS = 6
_POLL = 0.25
_PATIENCE = 60.0
"""Seconds without any decision after which what is undecided stays so."""
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
        return gpus.Machine(self.name, lambda name: supply.devices(name, self.node)).objects()


@dataclass(slots=True)
class Verdict:
    """What became of the pod of a placement; `devices` by container and resource name."""

    placement: Placement
    chunk: str
    bound: bool = False
    message: str = ""
    devices: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    allocated: dict[str, set[str]] = field(default_factory=lambda: {resource: set() for resource in RESOURCES})
    asked: int = 0
    """How many devices all of its claims ask for, as the server has stored them; those of other drivers aside."""
    others: dict[str, int] = field(default_factory=dict)
    """How many devices of other drivers each container finds."""
    flapped: bool = False
    """Whether the server lost track of claims of the pod, and had to be told again."""
    _recorded: frozenset[str] = frozenset()

    @property
    def pod(self) -> Object:
        """The pod as it is created."""
        pod = self.placement.pod
        labels = {**pod["metadata"].get("labels", {}), _LABEL: self.chunk}
        return {**pod, "metadata": {**pod["metadata"], "labels": labels}}

    @property
    def settled(self) -> bool:
        """Whether nothing more has to happen."""
        return self.bound or (not self.placement.fits and bool(self.message))

    def look(self, seen: Object) -> bool:
        """Take in a newer state of the pod; return whether the server has lost track of claims that it had recorded."""
        self.bound = bool(seen["spec"].get("nodeName"))
        self.message = _refusal(seen)
        recorded = frozenset(scheduling.claim_names(seen))
        lost = not self._recorded <= recorded
        self._recorded = recorded
        return lost

    @property
    def unexpected(self) -> str:
        """Why this is not what was expected; empty when it is."""
        if self.bound == self.placement.fits:
            return ""
        found = "was bound" if self.bound else f"was not bound ({self.message or 'never tried'})"
        return f"{self.placement.name} {found} where {dict(self.placement.node)} are free"


def pinned(pod: Object, name: str, namespace: str) -> Object:
    """Return a copy of a pod by another name that can run on the node of that name only, as a DaemonSet's pods do."""
    metadata = {**pod["metadata"], "name": name, "namespace": namespace}
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "affinity": affinity}}


def each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function for every item, several at a time; return the results in order."""
    with ThreadPoolExecutor(_WORKERS) as pool:
        return list(pool.map(function, items))


def run(client: Client, namespace: str, placements: Iterable[Placement]) -> list[Verdict]:
    """Create the nodes, then the pods, and return what the scheduler makes of them. Everything stays."""
    verdicts = [Verdict(placement, str(number // _CHUNK)) for number, placement in enumerate(placements)]
    each(client.create, [obj for verdict in verdicts for obj in verdict.placement.objects()])
    each(client.create, [verdict.pod for verdict in verdicts])
    for start in range(0, len(verdicts), _CHUNK):
        _watch(client, namespace, verdicts[start : start + _CHUNK])
    return verdicts


def _watch(client: Client, namespace: str, verdicts: Iterable[Verdict]) -> None:
    """Fill in these verdicts once they are as expected, or no longer change."""
    named = {verdict.placement.name: verdict for verdict in verdicts}
    (chunk,) = {verdict.chunk for verdict in named.values()}
    changed, before = time.monotonic(), 0
    while True:
        # From the server's cache: what it lacks comes with the next look.
        pods = client.list("v1", "Pod", namespace, labelSelector=f"{_LABEL}={chunk}", resourceVersion="0")
        lost = [pod for pod in pods if named[pod["metadata"]["name"]].look(pod)]
        if lost:
            _record_claims(client, namespace, lost)
        for pod in lost:
            named[pod["metadata"]["name"]].flapped = True
        decided = sum(verdict.bound + bool(verdict.message) + verdict.flapped for verdict in named.values())
        if decided != before:
            changed, before = time.monotonic(), decided
        open_ones = [verdict for verdict in named.values() if not verdict.settled]
        if not open_ones or time.monotonic() - changed > _PATIENCE:
            break
        time.sleep(_POLL)
    claims = _claims_by_pod(client, namespace)
    for pod in pods:
        verdict = named[pod["metadata"]["name"]]
        if not verdict.placement.plugin:
            _read_claims(pod, claims.get(pod["metadata"]["uid"], {}), verdict)


def _claims_by_pod(client: Client, namespace: str) -> dict[str, dict[str, Object]]:
    """Return the claims generated for pods, by the pod's uid and the name of its entry; by "" the scheduler's own."""
    found: dict[str, dict[str, Object]] = {}
    for claim in client.list(_CLAIMS, "ResourceClaim", namespace):
        entry = claim["metadata"].get("annotations", {}).get(_ENTRY, "")
        for owner in claim["metadata"].get("ownerReferences", []):
            found.setdefault(owner["uid"], {})[entry] = claim
    return found


def _record_claims(client: Client, namespace: str, pods: Iterable[Object]) -> None:
    """Write all claims of pods into their status, in a name of our own, so that the controller cannot take them off.

    Up to 1.36 it may write a part of them into the pod's status, then only the others, and so on for ever, in any pod
    with several claims of templates (kubernetes#138407). The scheduler then never sees them together.
    """
    claims = _claims_by_pod(client, namespace)
    for pod in pods:
        made = claims.get(pod["metadata"]["uid"], {})
        statuses = [{"name": entry, "resourceClaimName": claim["metadata"]["name"]} for entry, claim in made.items()]
        metadata = {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}
        told = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": {"resourceClaimStatuses": statuses}}
        path = f"{client.path_of(told)}/status"
        client.call("PATCH", path, told, APPLY_PATCH, fieldManager="gpu2dra-test", force=True).checked()


def _refusal(pod: Object) -> str:
    """Return why the scheduler did not bind a pod, if it tried; 1.37 calls it an error of its own when time was up."""
    for condition in pod.get("status", {}).get("conditions", []):
        if condition["type"] == "PodScheduled" and condition.get("reason") in ("Unschedulable", "SchedulerError"):
            return str(condition["message"])
    return ""


def reason(verdict: Verdict) -> str:
    """Return why a pod was not bound: one of CAUSES, or else the scheduler's message."""
    return next((cause for words, cause in CAUSES.items() if words in verdict.message), verdict.message)


def _read_claims(pod: Object, claims: Mapping[str, Object], verdict: Verdict) -> None:
    """Fill in what the pod's claims ask for, and which devices the containers find, from the status of the claims."""
    native = pod.get("status", {}).get("extendedResourceClaimStatus")
    for claim in claims.values():
        verdict.asked += _asked(claim)
        for _, driver, device in _results(claim):
            if driver == gpus.DRIVER:
                verdict.allocated[supply.resource_of(device)].add(device)
    for container in scheduling.containers(pod):
        name = container["name"]
        uses = [
            (claims.get(claim["name"], {}), claim.get("request"))
            for claim in container.get("resources", {}).get("claims", [])
        ]
        mappings = native["requestMappings"] if native else []
        uses += [(claims[""], item["requestName"]) for item in mappings if item["containerName"] == name]
        verdict.devices[name] = {resource: [] for resource in RESOURCES}
        verdict.others[name] = 0
        for claim, wanted in uses:
            for request, driver, device in _results(claim):
                if wanted not in (None, request):
                    continue
                if driver == gpus.DRIVER:
                    verdict.devices[name][supply.resource_of(device)].append(device)
                else:
                    verdict.others[name] += 1


def _asked(claim: Object) -> int:
    requests = claim.get("spec", {}).get("devices", {}).get("requests", [])
    exact = [request["exactly"] for request in requests]
    return sum(int(request["count"]) for request in exact if request["deviceClassName"] != supply.NETWORK)


def _results(claim: Object) -> list[tuple[str, str, str]]:
    allocation = claim.get("status", {}).get("allocation", {})
    results = allocation.get("devices", {}).get("results", [])
    return [(result["request"], result["driver"], result["device"]) for result in results]
