"""Where each kind keeps its PodSpecs, since when its schema can hold claims, and what else reads the limit (R11).

A row needs a published schema with all three of: `resourceClaims` with `resourceClaimTemplateName` at pod level,
`claims` at container level, and `request` inside `claims`. Schemas made before Kubernetes 1.31 lack `request` and
drop it silently, and a container without it reaches every device of the claim, so those do not count.

How each `since` was found: the CRD of every release tag of the project was read, newest to oldest; `since` is the
oldest one that holds all three. Where the CRD preserves unknown fields, the version of k8s.io/api that the
controller decodes with decides. tests/unit/test_kinds.py holds the rows to published CRDs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from gpu2dra.model import Object
from gpu2dra.pointers import pointer, segments


class OperatorRule(StrEnum):
    """Which controller reads the GPU limit in its own object; `gpu2dra.operators` says what follows from it."""

    KUBERAY = "kuberay"
    TRAINER = "trainer"
    MPI_V1 = "mpi-v1"
    KSERVE = "kserve"


class Kind(NamedTuple):
    """One row of the table: a kind whose published schema holds claims in these `versions` of its group.

    Patterns are JSON Pointers in which `*` stands for every list item and every map value. `templates` lead to
    PodTemplateSpecs (the empty pattern: the object itself is shaped like one), `specs` to PodSpecs without a template
    around them, `objects` to whole objects inside this one. `since` names the first release whose schema holds claims.
    `recreate`: the pods of an object that exists keep the old spec. `namespaced`: false for a cluster-scoped kind: its
    pods run in the namespaces of those that name it, and there its ResourceClaimTemplate must be.
    """

    group: str
    kind: str
    versions: tuple[str, ...]
    since: str
    templates: tuple[str, ...] = ()
    specs: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    operator: OperatorRule | None = None
    recreate: bool = False
    namespaced: bool = True


_TEMPLATE = ("/spec/template",)
_V1 = ("v1",)


def _under(base: str, *patterns: str) -> tuple[str, ...]:
    return tuple(base + pattern for pattern in patterns)


# The fields are GA in Kubernetes 1.34 and beta since 1.32.
_K8S = "Kubernetes 1.34"
_BUILT_IN: tuple[Kind, ...] = (
    Kind("", "Pod", _V1, _K8S, ("",), recreate=True),
    Kind("", "PodTemplate", _V1, _K8S, ("/template",)),
    Kind("", "ReplicationController", _V1, _K8S, _TEMPLATE, recreate=True),
    Kind("", "List", _V1, _K8S, objects=("/items/*",)),
    Kind("apps", "ReplicaSet", _V1, _K8S, _TEMPLATE, recreate=True),
    Kind("apps", "Deployment", _V1, _K8S, _TEMPLATE),
    Kind("apps", "StatefulSet", _V1, _K8S, _TEMPLATE),
    Kind("apps", "DaemonSet", _V1, _K8S, _TEMPLATE),
    Kind("batch", "Job", _V1, _K8S, _TEMPLATE, recreate=True),
    Kind("batch", "CronJob", _V1, _K8S, ("/spec/jobTemplate/spec/template",)),
)  # fmt: skip

# JobSet and LeaderWorkerSet read no GPU limit (LeaderWorkerSet reads google.com/tpu only).
_LWS = _under("/leaderWorkerTemplate", "/leaderTemplate", "/workerTemplate")
_SIGS: tuple[Kind, ...] = (
    Kind(
        "jobset.x-k8s.io", "JobSet", ("v1alpha2",), "JobSet 0.7.0",
        ("/spec/replicatedJobs/*/template/spec/template",), recreate=True,
    ),
    Kind("leaderworkerset.x-k8s.io", "LeaderWorkerSet", _V1, "LeaderWorkerSet 0.4.0", _under("/spec", *_LWS)),
    Kind(
        "disaggregatedset.x-k8s.io", "DisaggregatedSet", _V1, "LeaderWorkerSet 0.9.0",
        _under("/spec/roles/*/spec", *_LWS),
    ),
)  # fmt: skip

# training-operator v1 hands nprocPerNode `auto` and `gpu` to torchrun as they are, and torchrun counts the devices in
# the container: it reads no limit there. Only MPIJob v1 does. mpi-operator (v2beta1) takes slotsPerWorker as written.
# A PodGroup's minResources, where gang scheduling is on, no longer holds the GPUs in any of them.
_TRAINING = "Kubeflow Training Operator 1.9.0"
_KUBEFLOW: tuple[Kind, ...] = (
    Kind("kubeflow.org", "PyTorchJob", _V1, _TRAINING, ("/spec/pytorchReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "TFJob", _V1, _TRAINING, ("/spec/tfReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "PaddleJob", _V1, _TRAINING, ("/spec/paddleReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "XGBoostJob", _V1, _TRAINING, ("/spec/xgbReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "JAXJob", _V1, _TRAINING, ("/spec/jaxReplicaSpecs/*/template",), recreate=True),
    Kind(
        "kubeflow.org", "MPIJob", ("v1", "v2beta1"), f"{_TRAINING} (v1), MPI Operator 0.6.0 (v2beta1)",
        ("/spec/mpiReplicaSpecs/*/template",), operator=OperatorRule.MPI_V1, recreate=True,
    ),
    *(
        Kind(
            "trainer.kubeflow.org", kind, ("v1alpha1",), "Kubeflow Trainer 2.0.0",
            ("/spec/template/spec/replicatedJobs/*/template/spec/template",), operator=OperatorRule.TRAINER,
            namespaced=namespaced,
        )
        for kind, namespaced in (("TrainingRuntime", True), ("ClusterTrainingRuntime", False))
    ),
)  # fmt: skip

# Changing the template of a RayCluster leaves its pods alone (spec.upgradeStrategy says otherwise where it is set); a
# RayService builds a new cluster.
_GROUPS = ("/headGroupSpec/template", "/workerGroupSpecs/*/template")
_RAY_VERSIONS = ("v1", "v1alpha1")
_RAY_JOB = (*_under("/rayClusterSpec", *_GROUPS), "/submitterPodTemplate")
_RAY = "KubeRay 1.3.1"
_KUBERAY: tuple[Kind, ...] = (
    Kind(
        "ray.io", "RayCluster", _RAY_VERSIONS, _RAY, _under("/spec", *_GROUPS),
        operator=OperatorRule.KUBERAY, recreate=True,
    ),
    Kind(
        "ray.io", "RayJob", _RAY_VERSIONS, _RAY, _under("/spec", *_RAY_JOB),
        operator=OperatorRule.KUBERAY, recreate=True,
    ),
    Kind(
        "ray.io", "RayService", _RAY_VERSIONS, _RAY, _under("/spec/rayClusterConfig", *_GROUPS),
        operator=OperatorRule.KUBERAY,
    ),
    Kind(
        "ray.io", "RayCronJob", _V1, "KubeRay 1.6.0", _under("/spec/jobTemplate", *_RAY_JOB),
        operator=OperatorRule.KUBERAY,
    ),
)  # fmt: skip

# Volcano's controllers sum limits up for a PodGroup's minResources and read nothing else. Its schema holds claims since
# 1.11.0 (CronJob 1.13.0), but its scheduler, which runs its jobs unless they name another, allocates them since 1.12.0
# behind an argument and by default since 1.15.0.
# AppWrapper handles the wrapped objects undecoded, from its first release on; its Autopilot node affinities go only to
# pods with the extended resource. OpenKruise preserves unknown fields; its controllers decode with k8s.io/api 0.32
# since 1.9.0, with 0.30 before. OpenKruise and Argo Rollouts read no limit.
_VOLCANO = "Volcano 1.15.0 (1.12.0 if its scheduler has predicate.DynamicResourceAllocationEnable)"
_KRUISE = "OpenKruise 1.9.0"
_KRUISE_VERSIONS = ("v1alpha1", "v1beta1")
_OTHERS: tuple[Kind, ...] = (
    Kind("batch.volcano.sh", "Job", ("v1alpha1",), _VOLCANO, ("/spec/tasks/*/template",), recreate=True),
    Kind("batch.volcano.sh", "CronJob", ("v1alpha1",), _VOLCANO, ("/spec/jobTemplate/spec/tasks/*/template",)),
    Kind("flow.volcano.sh", "JobTemplate", ("v1alpha1",), _VOLCANO, ("/spec/tasks/*/template",)),
    Kind(
        "workload.codeflare.dev", "AppWrapper", ("v1beta2",), "AppWrapper 0.1.0",
        objects=("/spec/components/*/template",), recreate=True,
    ),
    Kind("argoproj.io", "Rollout", ("v1alpha1",), "Argo Rollouts 1.9.0", _TEMPLATE),
    Kind("apps.kruise.io", "CloneSet", _KRUISE_VERSIONS, _KRUISE, _TEMPLATE),
    Kind("apps.kruise.io", "StatefulSet", _KRUISE_VERSIONS, _KRUISE, _TEMPLATE),
    Kind("apps.kruise.io", "DaemonSet", _KRUISE_VERSIONS, _KRUISE, _TEMPLATE),
    Kind("apps.kruise.io", "BroadcastJob", _KRUISE_VERSIONS, _KRUISE, _TEMPLATE, recreate=True),
)  # fmt: skip

# KServe's InferenceService and runtimes end up in a Deployment (Standard mode) or in a Knative Service, which refuses
# claims. ServingRuntimes got pod-level claims after 0.20.0 (kserve#5828; the newest release when this was written has
# the container's half only, and the API server refuses such a Deployment). LLMInferenceService makes Deployments or
# LeaderWorkerSets and reads no limit; its parallelism is written out.
_PREDICTOR = ("/predictor", "/predictor/workerSpec")
_RUNTIME = "KServe 0.21 with its InferenceServices in Standard mode (Knative refuses claims)"
_KSERVE: tuple[Kind, ...] = (
    Kind(
        "serving.kserve.io", "InferenceService", ("v1beta1",), "KServe 0.15.0",
        specs=(
            *_under("/spec", *_PREDICTOR, "/transformer", "/explainer"),
            *_under("/spec/canary/*", *_PREDICTOR),
        ),
        operator=OperatorRule.KSERVE,
    ),
    *(
        Kind(
            "serving.kserve.io", kind, ("v1alpha1",), _RUNTIME, specs=("/spec", "/spec/workerSpec"),
            operator=OperatorRule.KSERVE, namespaced=namespaced,
        )
        for kind, namespaced in (("ServingRuntime", True), ("ClusterServingRuntime", False))
    ),
    Kind(
        "serving.kserve.io", "LLMInferenceService", ("v1alpha1", "v1alpha2"),
        "KServe 0.16.0 (v1alpha1), 0.17.0 (v1alpha2)",
        specs=("/spec/template", "/spec/worker", "/spec/prefill/template", "/spec/prefill/worker"),
    ),
)  # fmt: skip

_ROWS = (*_BUILT_IN, *_SIGS, *_KUBEFLOW, *_KUBERAY, *_OTHERS, *_KSERVE)

KINDS: Mapping[tuple[str, str], Kind] = MappingProxyType({(row.group, row.kind): row for row in _ROWS})
"""The table, by group (empty for core) and kind."""


def kind_of(obj: Object) -> Kind | None:
    """Return the row of `obj`, by its apiVersion and kind; None when there is none or it does not name the version."""
    api_version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    group, _, version = api_version.rpartition("/")
    row = KINDS.get((group, kind))
    return row if row is not None and version in row.versions else None


def pod_specs(obj: Object) -> Iterator[tuple[str, Object]]:
    """Yield `(JSON Pointer, PodSpec)` for each PodSpec in an object of a kind of the table; none of another object."""
    row = kind_of(obj)
    for pattern in (*(f"{template}/spec" for template in row.templates), *row.specs) if row else ():
        yield from ((path, spec) for path, spec in matches(obj, pattern) if isinstance(spec, dict))


def claim_templates(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield `(JSON Pointer, name)` for each ResourceClaimTemplate that PodSpecs of an object name."""
    for base, spec in pod_specs(obj):
        for path, name in matches(spec, "/resourceClaims/*/resourceClaimTemplateName"):
            if isinstance(name, str):
                yield base + path, name


def matches(obj: Any, pattern: str) -> Iterator[tuple[str, Any]]:
    """Yield `(JSON Pointer, value)` for each place in `obj` that `pattern` hits, in the object's own order.

    Nothing is yielded where the pattern leads through something absent or of another type.
    """
    yield from _matches(obj, segments(pattern), "")


def _matches(value: Any, names: list[str], path: str) -> Iterator[tuple[str, Any]]:
    if not names:
        yield path, value
        return
    for key, member in _members(value, names[0]):
        yield from _matches(member, names[1:], pointer(path, key))


def _members(value: Any, name: str) -> Iterable[tuple[str | int, Any]]:
    if isinstance(value, dict):
        return value.items() if name == "*" else [(name, value[name])] if name in value else []
    return enumerate(value) if name == "*" and isinstance(value, list) else []
