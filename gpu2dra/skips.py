"""Reasons to leave a pod alone although it asks for GPUs: rule R10, one row per reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from gpu2dra.codes import finding
from gpu2dra.model import Finding, Object
from gpu2dra.pointers import pointer
from gpu2dra.policy import BUILT_IN, Policy, Preemption

CONVERT_ANNOTATION = "gpu2dra.dev/convert"
"""`"false"` on a workload or its pod template keeps it on the extended resource."""

SYSTEM_NAMESPACES = frozenset(
    {
        "kube-system", "kube-public", "kube-node-lease", "gpu2dra-system",
        "gpu-operator", "nvidia-gpu-operator", "gpu-operator-resources", "nvidia-device-plugin",
        "nvidia-dra-driver-gpu", "dra-driver-nvidia-gpu",
    }
)  # fmt: skip
"""The cluster's own namespaces, ours, and those that the GPU operators and DRA drivers are installed to."""

FOREIGN_ANNOTATIONS: dict[str, str] = {
    "gpu-fraction": "run:ai", "gpu-memory": "run:ai", "gpu-fraction-num-devices": "run:ai",
    "nvidia.com/use-gputype": "HAMi", "nvidia.com/nouse-gputype": "HAMi",
    "nvidia.com/use-gpuuuid": "HAMi", "nvidia.com/nouse-gpuuuid": "HAMi", "nvidia.com/vgpu-mode": "HAMi",
    "hami.io/gpu-scheduler-policy": "HAMi", "hami.io/node-scheduler-policy": "HAMi",
}  # fmt: skip
"""Annotations by which another system cuts or chooses the GPU of a pod; a claim would not see them."""
SHARE_SELECTORS: dict[str, Callable[[str], bool]] = {
    "cloud.google.com/gke-gpu-sharing-strategy": lambda value: True,
    "cloud.google.com/gke-max-shared-clients-per-gpu": lambda value: True,
    "cloud.google.com/gke-gpu-partition-size": lambda value: True,
    "nvidia.com/gpu.sharing-strategy": lambda value: value not in ("none", ""),
    "nvidia.com/gpu.product": lambda value: value.endswith("-SHARED") or "-MIG-" in value,
    "nvidia.com/mig.strategy": lambda value: value == "single",
}
"""Node labels that turn one `nvidia.com/gpu` into a share or a slice (GKE GPU sharing, gpu-feature-discovery)."""


@dataclass(frozen=True, slots=True)
class Pod:
    """A PodSpec at `spec_path`, its template's metadata, and the metadata of the object around it.

    `base` is the pointer of the template; a bare PodSpec has no metadata and `base` is its own pointer. `schedulers`
    are those known to allocate claims, `priorities` the value per PriorityClass name.
    """

    workload: Object
    metadata: Object
    base: str
    spec: Object
    spec_path: str
    namespace: str
    schedulers: frozenset[str]
    policy: Policy = BUILT_IN
    priorities: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


class Skip(NamedTuple):
    """One reason: `where` yields `(pointer, text)` of what speaks against a conversion."""

    code: str
    where: Callable[[Pod], Iterator[tuple[str, str]]]


def skip_reason(pod: Pod) -> Finding | None:
    """Return the first reason of rule R10 to leave this pod alone, or None."""
    for row in _SKIPS:
        for path, text in row.where(pod):
            return finding(row.code, path, text)
    return None


def preempting(pod: Pod) -> str:
    """Return the field by which the pod may evict others, which it cannot do for claims; empty when there is none.

    A PriorityClass of unknown value counts: they exist to raise a priority more often than to lower it.
    """
    priority, name = pod.spec.get("priority"), pod.spec.get("priorityClassName")
    known = pod.priorities.get(name, 1) if isinstance(name, str) and name else 0
    value = priority if isinstance(priority, int) else known
    if value <= 0 or pod.spec.get("preemptionPolicy") == "Never":
        return ""
    return "priorityClassName" if name else "priority"


def _annotations(pod: Pod) -> Iterator[tuple[str, str, Any]]:
    for metadata, base in ((pod.metadata, pod.base), (pod.workload, "")):
        annotations = metadata.get("annotations")
        for key, value in annotations.items() if isinstance(annotations, dict) else ():
            yield pointer(base, "metadata", "annotations", key), str(key), value


def _opted_out(pod: Pod) -> Iterator[tuple[str, str]]:
    for path, key, value in _annotations(pod):
        if key == CONVERT_ANNOTATION and str(value).lower() == "false":
            yield path, f'Left alone: {CONVERT_ANNOTATION} is "false".'


def _static(pod: Pod) -> Iterator[tuple[str, str]]:
    for path, key, value in _annotations(pod):
        if key == "kubernetes.io/config.mirror" or (key == "kubernetes.io/config.source" and value == "file"):
            yield path, "Left alone: mirror and static pods may not use claims."


def _system_namespace(pod: Pod) -> Iterator[tuple[str, str]]:
    if pod.namespace in SYSTEM_NAMESPACES:
        yield (
            "/metadata/namespace",
            f"Left alone: namespace {pod.namespace} belongs to the cluster or to a GPU operator.",
        )


def _windows(pod: Pod) -> Iterator[tuple[str, str]]:
    system = pod.spec.get("os")
    if isinstance(system, dict) and system.get("name") == "windows":
        yield pointer(pod.spec_path, "os", "name"), "Left alone: DRA does not support Windows."
    selector = pod.spec.get("nodeSelector")
    for label in ("kubernetes.io/os", "beta.kubernetes.io/os"):
        if isinstance(selector, dict) and selector.get(label) == "windows":
            yield pointer(pod.spec_path, "nodeSelector", label), "Left alone: DRA does not support Windows."


def _node_name(pod: Pod) -> Iterator[tuple[str, str]]:
    if name := pod.spec.get("nodeName"):
        yield (
            pointer(pod.spec_path, "nodeName"),
            f'Left alone: nodeName "{name}" bypasses the scheduler, which allocates claims; use a nodeSelector.',
        )


def _scheduler(pod: Pod) -> Iterator[tuple[str, str]]:
    name = pod.spec.get("schedulerName") or "default-scheduler"
    if not isinstance(name, str) or name not in pod.schedulers:
        yield (
            pointer(pod.spec_path, "schedulerName"),
            f'Left alone: scheduler "{name}" is not known to allocate claims; find out whether it supports DRA.',
        )


def _preemption(pod: Pod) -> Iterator[tuple[str, str]]:
    if pod.policy.preemption is Preemption.SKIP and (where := preempting(pod)):
        text = f"Left alone, as the policy says: {where} {pod.spec[where]} may evict others; claims cannot."
        yield pointer(pod.spec_path, where), text


def _foreign(pod: Pod) -> Iterator[tuple[str, str]]:
    for path, key, value in _annotations(pod):
        if system := FOREIGN_ANNOTATIONS.get(key):
            yield (
                path,
                f"{system} cuts or chooses the GPU of this pod ({key}: {value}); choose the device that replaces it.",
            )


def _share(pod: Pod) -> Iterator[tuple[str, str]]:
    for path, label, values in _node_labels(pod):
        test = SHARE_SELECTORS.get(label)
        for value in values if test else ():
            if test and test(str(value)):
                yield (
                    path,
                    f"Nodes with {label}: {value} hand out shares or slices, so the amount does not count whole GPUs.",
                )


def _node_labels(pod: Pod) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield what nodeSelector and required node affinity ask for, as `(pointer, label, values)`."""
    selector = pod.spec.get("nodeSelector")
    for label, value in selector.items() if isinstance(selector, dict) else ():
        yield pointer(pod.spec_path, "nodeSelector", label), str(label), [value]
    node: Any = pod.spec
    keys = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
    for key in keys:
        node = node.get(key) if isinstance(node, dict) else None
    base = pointer(pod.spec_path, *keys)
    for number, term in enumerate(node if isinstance(node, list) else ()):
        expressions = term.get("matchExpressions") if isinstance(term, dict) else None
        for index, expression in enumerate(expressions if isinstance(expressions, list) else ()):
            if isinstance(expression, dict) and expression.get("operator") in ("In", "Exists"):
                values = expression.get("values")
                path = pointer(base, number, "matchExpressions", index)
                yield path, str(expression.get("key")), values if isinstance(values, list) and values else [""]


_SKIPS: tuple[Skip, ...] = (
    Skip("DRA201", _opted_out),
    Skip("DRA202", _static),
    Skip("DRA205", _system_namespace),
    Skip("DRA204", _windows),
    Skip("DRA203", _node_name),
    Skip("DRA206", _scheduler),
    Skip("DRA209", _preemption),
    Skip("DRA305", _foreign),
    Skip("DRA306", _share),
)
