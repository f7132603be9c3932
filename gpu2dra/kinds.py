"""Where each kind keeps its PodSpecs, since when its schema can hold claims, and what else reads the limit (R11)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from gpu2dra.model import Object


class OperatorRule(StrEnum):
    """Which controller reads the GPU limit out of its own object; `gpu2dra.operators` holds the edits."""

    KUBERAY = "kuberay"
    TRAINER = "trainer"


@dataclass(frozen=True, slots=True)
class Kind:
    """One row of the table: a kind whose published schema holds claims, in these versions of its group.

    Patterns are JSON Pointers in which `*` stands for every list item and every map value. `templates` lead to
    PodTemplateSpecs (the empty pattern: the object itself is shaped like one), `specs` to PodSpecs without a template
    around them, `objects` to whole objects inside this one. `recreate`: pods of an existing object keep the old spec.
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


_K8S = "Kubernetes 1.34"
_T = "/spec/template"
_RAY = ("/headGroupSpec/template", "/workerGroupSpecs/*/template")
_ROWS: tuple[Kind, ...] = (
    Kind("", "Pod", ("v1",), _K8S, ("",), recreate=True),
    Kind("", "PodTemplate", ("v1",), _K8S, ("/template",)),
    Kind("", "ReplicationController", ("v1",), _K8S, (_T,)),
    Kind("", "List", ("v1",), _K8S, objects=("/items/*",)),
    Kind("apps", "ReplicaSet", ("v1",), _K8S, (_T,)),
    Kind("apps", "Deployment", ("v1",), _K8S, (_T,)),
    Kind("apps", "StatefulSet", ("v1",), _K8S, (_T,)),
    Kind("apps", "DaemonSet", ("v1",), _K8S, (_T,)),
    Kind("batch", "Job", ("v1",), _K8S, (_T,), recreate=True),
    Kind("batch", "CronJob", ("v1",), _K8S, ("/spec/jobTemplate/spec/template",)),
    Kind("jobset.x-k8s.io", "JobSet", ("v1alpha2",), "", ("/spec/replicatedJobs/*/template/spec/template",), recreate=True),
    Kind(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        ("v1",),
        "",
        ("/spec/leaderWorkerTemplate/leaderTemplate", "/spec/leaderWorkerTemplate/workerTemplate"),
    ),
    Kind("kubeflow.org", "PyTorchJob", ("v1",), "", ("/spec/pytorchReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "TFJob", ("v1",), "", ("/spec/tfReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "MPIJob", ("v1", "v2beta1"), "", ("/spec/mpiReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "PaddleJob", ("v1",), "", ("/spec/paddleReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "XGBoostJob", ("v1",), "", ("/spec/xgbReplicaSpecs/*/template",), recreate=True),
    Kind("kubeflow.org", "JAXJob", ("v1",), "", ("/spec/jaxReplicaSpecs/*/template",), recreate=True),
    Kind("ray.io", "RayCluster", ("v1",), "", tuple("/spec" + p for p in _RAY), operator=OperatorRule.KUBERAY),
    Kind(
        "ray.io",
        "RayJob",
        ("v1",),
        "",
        (*("/spec/rayClusterSpec" + p for p in _RAY), "/spec/submitterPodTemplate"),
        operator=OperatorRule.KUBERAY,
        recreate=True,
    ),
    Kind("ray.io", "RayService", ("v1",), "", tuple("/spec/rayClusterConfig" + p for p in _RAY), operator=OperatorRule.KUBERAY),
    Kind("batch.volcano.sh", "Job", ("v1alpha1",), "", ("/spec/tasks/*/template",), recreate=True),
    Kind("workload.codeflare.dev", "AppWrapper", ("v1beta2",), "", objects=("/spec/components/*/template",)),
    Kind(
        "trainer.kubeflow.org",
        "TrainingRuntime",
        ("v1alpha1",),
        "",
        ("/spec/template/spec/replicatedJobs/*/template/spec/template",),
        operator=OperatorRule.TRAINER,
    ),
    Kind(
        "trainer.kubeflow.org",
        "ClusterTrainingRuntime",
        ("v1alpha1",),
        "",
        ("/spec/template/spec/replicatedJobs/*/template/spec/template",),
        operator=OperatorRule.TRAINER,
    ),
    Kind("serving.kserve.io", "ServingRuntime", ("v1alpha1",), "", specs=("/spec",)),
    Kind("serving.kserve.io", "ClusterServingRuntime", ("v1alpha1",), "", specs=("/spec",)),
)

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


def matches(obj: Any, pattern: str) -> Iterator[tuple[str, Any]]:
    """Yield `(JSON Pointer, value)` for each place in `obj` that `pattern` hits, in document order.

    Nothing is yielded where the pattern leads through something absent or of another type.
    """
    yield from _matches(obj, pattern.split("/")[1:], "")


def _matches(value: Any, tokens: list[str], pointer: str) -> Iterator[tuple[str, Any]]:
    if not tokens:
        yield pointer, value
        return
    head, rest = tokens[0], tokens[1:]
    if head == "*" and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _matches(item, rest, f"{pointer}/{index}")
    elif head == "*" and isinstance(value, dict):
        for key, item in value.items():
            yield from _matches(item, rest, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, dict) and head in value:
        yield from _matches(value[head], rest, f"{pointer}/{head}")
