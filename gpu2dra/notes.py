"""What to know beside the conversion of a pod: findings that change nothing in it (R6, R10, R12)."""

from __future__ import annotations

from collections.abc import Iterator

from gpu2dra.allocation import Allocation
from gpu2dra.codes import finding
from gpu2dra.demand import Demand, Reading, claim_entries, is_placeholder
from gpu2dra.model import Finding
from gpu2dra.pointers import pointer
from gpu2dra.skips import Pod, preempting

_QUEUE = "kueue.x-k8s.io/queue-name"


def notes(pod: Pod, allocation: Allocation, reading: Reading) -> Iterator[Finding]:
    """Yield the notes for a pod that gets the claims of `allocation`."""
    yield from _several_claims(pod, allocation)
    yield from _priority(pod)
    for demand in reading.demands:
        if demand.legacy:
            yield from _container(demand)
    for metadata, base in ((pod.workload, ""), (pod.metadata, pod.base)):
        labels = metadata.get("labels")
        if isinstance(labels, dict) and _QUEUE in labels:
            where = pointer(base, "metadata", "labels", _QUEUE)
            yield finding("DRA110", where, "Kueue counts claims only with deviceClassMappings for their DeviceClass.")
            break


def _several_claims(pod: Pod, allocation: Allocation) -> Iterator[Finding]:
    others = [entry for entry in claim_entries(pod.spec) if "resourceClaimTemplateName" in entry]
    count = len(allocation.claims) + len(others)
    if allocation.claims and count > 1:
        text = f"The pod gets {count} claims from templates; before Kubernetes 1.37 such a pod may stay pending."
        yield finding("DRA107", pod.spec_path, text)


def _priority(pod: Pod) -> Iterator[Finding]:
    if field := preempting(pod):
        text = f"{field} {pod.spec[field]}: a converted pod cannot preempt others to get its devices."
        yield finding("DRA104", pointer(pod.spec_path, field), text)


def _container(demand: Demand) -> Iterator[Finding]:
    for legacy in demand.legacy:
        if is_placeholder(legacy.amount):
            where = pointer(demand.path, "resources", "limits", legacy.resource.name)
            text = f"The count of the claim is {legacy.amount}; filled with 0 it is 1 to the server."
            yield finding("DRA112", where, text)
    environment = demand.container.get("env")
    for index, variable in enumerate(environment if isinstance(environment, list) else ()):
        if isinstance(variable, dict) and variable.get("name") == "NVIDIA_VISIBLE_DEVICES":
            where = pointer(demand.path, "env", index)
            yield finding("DRA109", where, "NVIDIA_VISIBLE_DEVICES is set to `void` for devices of a claim.")
