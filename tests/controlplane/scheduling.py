"""What the scheduler made of a pod: where it runs, why it does not, which devices each of its containers reaches."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.client import Client, Object, wait_for

_CLAIMS = "resource.k8s.io/v1"
# Longer than the second that a pod waits before the scheduler looks at it for the second time.
_SETTLE = 1.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a pod was bound, to which node; else the scheduler's last message."""

    scheduled: bool
    node: str
    message: str


@dataclass(frozen=True, slots=True, order=True)
class Device:
    """An allocated device, by the three names that make it unique in a cluster."""

    driver: str
    pool: str
    name: str


def outcomes(client: Client, pods: Sequence[Object], settle: float = _SETTLE, deadline: float = 60.0) -> list[Outcome]:
    """Wait until the scheduler has decided on each of these pods of one namespace, and return what it decided.

    A pod that does not fit counts as undecided until the condition PodScheduled has said so for `settle` seconds,
    since a claim or a freed device may have been on its way to the scheduler's cache. TimeoutError when the scheduler
    never says anything about one of them, as for a pod whose claim was not generated.
    """
    if not pods:
        return []
    names = [pod["metadata"]["name"] for pod in pods]
    namespace = pods[0]["metadata"]["namespace"]
    decided: dict[str, Outcome] = {}
    refused_since: dict[str, float] = {}

    def look() -> bool:
        now = time.monotonic()
        for seen in client.list("v1", "Pod", namespace):
            name, node, condition = seen["metadata"]["name"], seen["spec"].get("nodeName"), _scheduled_condition(seen)
            if node:
                decided[name] = Outcome(scheduled=True, node=node, message="")
            elif condition.get("reason") != "Unschedulable":
                refused_since.pop(name, None)
            elif now - refused_since.setdefault(name, now) >= settle:
                decided[name] = Outcome(scheduled=False, node="", message=condition["message"])
        return decided.keys() >= set(names)

    try:
        wait_for("the scheduler decides on each pod", look, deadline)
    except TimeoutError as error:
        error.add_note(f"undecided: {sorted(set(names) - decided.keys())}")
        raise
    return [decided[name] for name in names]


def wait_for_scheduled(client: Client, pod: Object, deadline: float = 30.0) -> Object:
    """Return a pod once it is bound to a node; TimeoutError, with the scheduler's reason, when it stays unbound."""
    seen = pod

    def look() -> bool:
        nonlocal seen
        seen = client.read(pod)
        return bool(seen["spec"].get("nodeName"))

    try:
        wait_for(f"pod {pod['metadata']['name']} is scheduled", look, deadline)
    except TimeoutError as error:
        error.add_note(f"its condition: {_scheduled_condition(seen)}")
        raise
    return seen


def wait_for_unschedulable(client: Client, pod: Object, deadline: float = 30.0) -> str:
    """Return why a pod does not fit anywhere; AssertionError when it was bound to a node."""
    found = outcomes(client, [pod], deadline=deadline)[0]
    assert not found.scheduled, f"pod {pod['metadata']['name']} was bound to {found.node}"
    return found.message


def wait_for_message(client: Client, pod: Object, part: str, deadline: float = 30.0) -> str:
    """Return what the scheduler says about a pod once that holds `part`; errors in its plugins say so here too."""

    def look() -> str | None:
        message = str(_scheduled_condition(client.read(pod)).get("message", ""))
        return message if part in message else None

    return wait_for(f"the scheduler says {part!r} about pod {pod['metadata']['name']}", look, deadline)


def devices_by_container(client: Client, pod: Object) -> dict[str, list[Device]]:
    """Return for each container, init containers included, the devices that it would find, from the claims' status.

    Claims of the pod count, and the one that the scheduler itself makes for extended resources. A device that a
    container reaches twice stands in its list twice.
    """
    seen = client.read(pod)
    namespace = seen["metadata"]["namespace"]
    claims = {entry: client.get(_CLAIMS, "ResourceClaim", name, namespace) for entry, name in claim_names(seen).items()}
    found = {container["name"]: sorted(_reached(container, claims)) for container in containers(seen)}
    native = seen.get("status", {}).get("extendedResourceClaimStatus")
    if native:
        claim = client.get(_CLAIMS, "ResourceClaim", native["resourceClaimName"], namespace)
        for mapping in native["requestMappings"]:
            found[mapping["containerName"]] += sorted(_allocated(claim, mapping["requestName"]))
    return found


def claim_names(pod: Object) -> dict[str, str]:
    """Return the name of the ResourceClaim behind each of a pod's claims; those not yet generated are left out."""
    names = {
        entry["name"]: entry["resourceClaimName"]
        for entry in pod["spec"].get("resourceClaims", [])
        if "resourceClaimName" in entry
    }
    for status in pod.get("status", {}).get("resourceClaimStatuses", []):
        if status.get("resourceClaimName"):
            names[status["name"]] = status["resourceClaimName"]
    return names


def containers(pod: Object) -> list[Any]:
    """Return init containers and containers, in this order."""
    spec = pod["spec"]
    return [*spec.get("initContainers", []), *spec["containers"]]


def free_devices(client: Client, namespace: str, pods: Iterable[Object] = ()) -> None:
    """Delete these pods, or all of a namespace, and wait until their generated claims are gone too.

    Then the scheduler has their devices back, and the next pod meets the nodes as if they were new.
    """
    chosen = list(pods)
    for pod in chosen:
        client.delete(pod)
    if not chosen:
        client.delete_all("v1", "Pod", namespace)
    gone = {pod["metadata"]["name"] for pod in chosen}

    def remaining() -> list[str]:
        claims = client.list(_CLAIMS, "ResourceClaim", namespace)
        owners = [(claim, owner) for claim in claims for owner in claim["metadata"].get("ownerReferences", [])]
        return [claim["metadata"]["name"] for claim, owner in owners if not chosen or owner["name"] in gone]

    wait_for(f"the generated claims of namespace {namespace} are gone", lambda: not remaining())


def _scheduled_condition(pod: Object) -> dict[str, Any]:
    conditions = pod.get("status", {}).get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), {})


def _reached(container: Object, claims: dict[str, Object]) -> Iterator[Device]:
    for entry in container.get("resources", {}).get("claims", []):
        if entry["name"] in claims:
            yield from _allocated(claims[entry["name"]], entry.get("request"))


def _allocated(claim: Object, request: str | None) -> Iterator[Device]:
    results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
    for result in results:
        # With firstAvailable the result names request and alternative: `gpu/small`.
        if request is None or result["request"].partition("/")[0] == request:
            yield Device(result["driver"], result["pool"], result["device"])
