"""Reasons to leave a pod alone (R10)."""

from __future__ import annotations

from typing import Any

import pytest

from gpu2dra.skips import SYSTEM_NAMESPACES, Pod, skip_reason


def reason(
    spec: Any = None,
    *,
    own: Any = None,
    outer: Any = None,
    namespace: str = "ml",
    schedulers: tuple[str, ...] = ("default-scheduler",),
) -> tuple[str, str] | None:
    """Return code and path of the reason for a pod template at /spec/template."""
    pod = Pod(
        outer or {}, own or {}, "/spec/template", spec or {}, "/spec/template/spec", namespace, frozenset(schedulers)
    )
    found = skip_reason(pod)
    return (found.code, found.path) if found else None


SPEC = "/spec/template/spec"
OWN = "/spec/template/metadata/annotations"
TERMS = f"{SPEC}/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"


def affinity(*expressions: Any, required: bool = True) -> dict[str, Any]:
    """Return a PodSpec with node affinity."""
    when = (
        "requiredDuringSchedulingIgnoredDuringExecution"
        if required
        else "preferredDuringSchedulingIgnoredDuringExecution"
    )
    return {
        "affinity": {
            "nodeAffinity": {
                when: {
                    "nodeSelectorTerms": [
                        {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                        {"matchExpressions": list(expressions)},
                    ]
                }
            }
        }
    }


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"os": {"name": "windows"}}, "DRA204", "/os/name"),
        ({"nodeSelector": {"kubernetes.io/os": "windows"}}, "DRA204", "/nodeSelector/kubernetes.io~1os"),
        ({"nodeSelector": {"beta.kubernetes.io/os": "windows"}}, "DRA204", "/nodeSelector/beta.kubernetes.io~1os"),
        ({"nodeName": "n1"}, "DRA203", "/nodeName"),
        ({"schedulerName": "volcano"}, "DRA206", "/schedulerName"),
        ({"schedulerName": ["default-scheduler"]}, "DRA206", "/schedulerName"),
        ({"schedulerName": 1}, "DRA206", "/schedulerName"),
        *(
            ({"nodeSelector": {label: value}}, "DRA306", f"/nodeSelector/{label.replace('/', '~1')}")
            for label, value in [
                ("cloud.google.com/gke-gpu-sharing-strategy", "time-sharing"),
                ("cloud.google.com/gke-max-shared-clients-per-gpu", "4"),
                ("cloud.google.com/gke-gpu-partition-size", "1g.5gb"),
                ("nvidia.com/gpu.sharing-strategy", "mps"),
                ("nvidia.com/gpu.product", "NVIDIA-A100-SHARED"),
                ("nvidia.com/gpu.product", "NVIDIA-A100-MIG-1g.5gb"),
                ("nvidia.com/mig.strategy", "single"),
            ]
        ),
    ],
)
def test_a_pod_spec_that_speaks_against_it(spec: Any, code: str, path: str) -> None:
    assert reason(spec) == (code, SPEC + path)


@pytest.mark.parametrize(
    ("annotations", "code"),
    [
        ({"gpu2dra.dev/convert": "false"}, "DRA201"),
        ({"gpu2dra.dev/convert": "False"}, "DRA201"),
        ({"gpu2dra.dev/convert": False}, "DRA201"),
        ({"kubernetes.io/config.mirror": "abc"}, "DRA202"),
        ({"kubernetes.io/config.source": "file"}, "DRA202"),
        ({"gpu-fraction": "0.5"}, "DRA305"),
        ({"gpu-memory": "2000"}, "DRA305"),
        ({"gpu-fraction-num-devices": "2"}, "DRA305"),
        ({"nvidia.com/use-gputype": "A100"}, "DRA305"),
        ({"nvidia.com/vgpu-mode": "mig"}, "DRA305"),
    ],
)
@pytest.mark.parametrize(("where", "base"), [("own", OWN), ("outer", "/metadata/annotations")])
def test_an_annotation_of_the_template_or_the_workload_speaks_against_it(
    annotations: Any, code: str, where: str, base: str
) -> None:
    (key,) = annotations
    metadata: Any = {where: {"annotations": annotations}}
    assert reason(own=metadata.get("own"), outer=metadata.get("outer")) == (code, f"{base}/{key.replace('/', '~1')}")


@pytest.mark.parametrize("namespace", sorted(SYSTEM_NAMESPACES))
def test_system_namespaces(namespace: str) -> None:
    assert reason(namespace=namespace) == ("DRA205", "/metadata/namespace")


def test_the_namespaces_that_the_design_names_are_among_them() -> None:
    assert {"kube-system", "gpu-operator", "gpu2dra-system"} <= SYSTEM_NAMESPACES


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ({"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A10", "A10-SHARED"]}, True),
        ({"key": "cloud.google.com/gke-gpu-sharing-strategy", "operator": "Exists"}, True),
        ({"key": "cloud.google.com/gke-gpu-sharing-strategy", "operator": "Exists", "values": []}, True),
        ({"key": "nvidia.com/gpu.product", "operator": "In", "values": ["A10", "A100"]}, False),
        ({"key": "nvidia.com/gpu.product", "operator": "NotIn", "values": ["A10-SHARED"]}, False),
        ({"key": "cloud.google.com/gke-gpu-sharing-strategy", "operator": "DoesNotExist"}, False),
        ({"key": "nvidia.com/gpu.sharing-strategy", "operator": "Exists"}, False),
        ({"key": "nvidia.com/mig.strategy", "operator": "In", "values": ["mixed"]}, False),
        ({"key": ["a"], "operator": "In", "values": 1}, False),
        ("text", False),
    ],
)
def test_required_node_affinity(expression: Any, found: bool) -> None:
    assert reason(affinity(expression)) == (("DRA306", f"{TERMS}/1/matchExpressions/0") if found else None)


def test_a_preference_is_no_requirement() -> None:
    strategy = {"key": "cloud.google.com/gke-gpu-sharing-strategy", "operator": "Exists"}
    assert reason(affinity(strategy, required=False)) is None


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"os": {"name": "linux"}},
        {"os": "windows"},
        {"nodeSelector": {"kubernetes.io/os": "linux"}},
        {"nodeSelector": "windows"},
        {"nodeName": ""},
        {"nodeName": None},
        {"schedulerName": "default-scheduler"},
        {"schedulerName": ""},
        {"schedulerName": None},
        {
            "nodeSelector": {
                "nvidia.com/gpu.product": "NVIDIA-A100",
                "nvidia.com/gpu.sharing-strategy": "none",
                "nvidia.com/mig.strategy": "mixed",
            }
        },
        {
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [1, {"matchExpressions": 2}]
                    }
                }
            }
        },
        {"affinity": []},
        {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}}},
    ],
)
def test_what_is_no_reason(spec: Any) -> None:
    assert reason(spec) is None


@pytest.mark.parametrize(
    "annotations",
    [
        {"gpu2dra.dev/convert": "true"},
        {"gpu2dra.dev/convert": True},
        {"kubernetes.io/config.source": "api"},
        {"other": "false"},
        [],
        None,
        {1: 2},
    ],
)
def test_annotations_that_are_no_reason(annotations: Any) -> None:
    assert reason(own={"annotations": annotations}, outer={"annotations": annotations}) is None


def test_the_list_of_schedulers_is_the_callers() -> None:
    assert reason({"schedulerName": "volcano"}, schedulers=("volcano",)) is None
    assert reason({}, schedulers=("volcano",)) == ("DRA206", f"{SPEC}/schedulerName")


def test_the_first_reason_counts_and_the_choice_of_the_user_is_first() -> None:
    assert reason(
        {"nodeName": "n1", "os": {"name": "windows"}}, own={"annotations": {"gpu2dra.dev/convert": "false"}}
    ) == (
        "DRA201",
        f"{OWN}/gpu2dra.dev~1convert",
    )
