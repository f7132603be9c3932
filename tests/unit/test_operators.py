"""What operators read out of a limit, and what takes its place when the limit goes (R11)."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from gpu2dra.kinds import KINDS, Kind, OperatorRule, kind_of, matches
from gpu2dra.model import Access, Severity
from gpu2dra.operators import operator_edits

GPU = "nvidia.com/gpu"
Amount = int | str


def run(obj: dict[str, Any], *losing: tuple[str, dict[str, Amount]]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return `obj` after the edits, and code and path of each finding; the edits must not change `obj` itself."""
    row, before = kind_of(obj), deepcopy(obj)
    assert row
    access = [Access(path, "c", tuple(legacy.items()), (), 0) for path, legacy in losing]
    operations, findings = operator_edits(row, obj, access)
    assert obj == before
    assert all(found.message.endswith(".") for found in findings)
    return jsonpatch.apply_patch(obj, operations), [(found.code, found.path) for found in findings]


def container(limits: dict[str, Any] | None = None, name: str = "c", **requests: Any) -> dict[str, Any]:
    return {"name": name, "resources": {"limits": limits or {}, "requests": requests}}


# KubeRay


def group(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"template": {"spec": {"containers": list(containers)}}, **fields}


def cluster(head: dict[str, Any], *workers: dict[str, Any]) -> dict[str, Any]:
    spec = {"headGroupSpec": head, "workerGroupSpecs": list(workers)}
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}, "spec": spec}


HEAD = "/spec/headGroupSpec/template/spec/containers"
WORKER = "/spec/workerGroupSpecs/0/template/spec/containers"
MIG = "nvidia.com/mig-1g.10gb"


@pytest.mark.parametrize(
    ("fields", "limits", "taken", "told"),
    [
        pytest.param({}, {GPU: 2}, {GPU: 2}, {"rayStartParams": {"num-gpus": "2"}}, id="no parameters"),
        pytest.param({"rayStartParams": None}, {GPU: 2}, {GPU: 2}, {"rayStartParams": {"num-gpus": "2"}}, id="null"),
        pytest.param({"rayStartParams": {}}, {GPU: "2"}, {GPU: 2}, {"rayStartParams": {"num-gpus": "2"}}, id="empty"),
        pytest.param(
            {"rayStartParams": {"num-cpus": "1"}},
            {GPU: "2000m"},
            {GPU: 2},
            {"rayStartParams": {"num-cpus": "1", "num-gpus": "2"}},
            id="others stay",
        ),
        pytest.param(
            {}, {GPU: "${GPUS}"}, {GPU: "${GPUS}"}, {"rayStartParams": {"num-gpus": "${GPUS}"}}, id="placeholder"
        ),
        pytest.param({}, {MIG: 3}, {MIG: 3}, {"rayStartParams": {"num-gpus": "3"}}, id="MIG"),
        pytest.param({}, {GPU: 2, MIG: 3}, {GPU: 2, MIG: 3}, {"rayStartParams": {"num-gpus": "2"}}, id="first name"),
        pytest.param(
            {},
            {MIG: 3, GPU: 2},
            {GPU: 2, MIG: 3},
            {"rayStartParams": {"num-gpus": "2"}},
            id="first name, not first line",
        ),
        pytest.param({}, {"a.com/gpu-x": 5, GPU: 2}, {GPU: 2}, {"rayStartParams": {"num-gpus": "2"}}, id="no GPU name"),
        pytest.param({}, {GPU: 0, MIG: 3}, {MIG: 3}, {"rayStartParams": {"num-gpus": "3"}}, id="zero is passed over"),
        pytest.param(
            {"resources": {"CPU": "4"}}, {GPU: 2}, {GPU: 2}, {"resources": {"CPU": "4", "GPU": "2"}}, id="resources"
        ),
        pytest.param(
            {"resources": {}},
            {GPU: 2},
            {GPU: 2},
            {"resources": {}, "rayStartParams": {"num-gpus": "2"}},
            id="no resources",
        ),
    ],
)
def test_kuberay_number_of_gpus(
    fields: dict[str, Any], limits: dict[str, Any], taken: dict[str, Amount], told: dict[str, Any]
) -> None:
    after, findings = run(cluster(group(), group(container(limits), **fields)), (f"{WORKER}/0", taken))
    assert after == cluster(group(), group(container(limits), **told))
    assert findings == [("DRA106", f"{WORKER}/0")]


@pytest.mark.parametrize(
    ("fields", "limits", "taken"),
    [
        pytest.param({"rayStartParams": {"num-gpus": "1"}}, {GPU: 2}, {GPU: 2}, id="already said"),
        pytest.param({"rayStartParams": {"num-gpus": "0"}}, {GPU: 2}, {GPU: 2}, id="said to be none"),
        pytest.param({"resources": {"GPU": "1"}}, {GPU: 2}, {GPU: 2}, id="said in resources"),
        pytest.param({"resources": {GPU: "1"}}, {GPU: 2}, {GPU: 2}, id="said in resources by the long name"),
        pytest.param({}, {"amd.com/gpu": 1, GPU: 2}, {GPU: 2}, id="another name comes first and stays"),
        pytest.param({}, {"nvidia.com/mig-1g.5gb.me": 2}, {"nvidia.com/mig-1g.5gb.me": 2}, id="a name KubeRay skips"),
    ],
)
def test_kuberay_reads_something_else(fields: dict[str, Any], limits: dict[str, Any], taken: dict[str, Amount]) -> None:
    obj = cluster(group(), group(container(limits), **fields))
    assert run(obj, (f"{WORKER}/0", taken)) == (obj, [])


def test_kuberay_counts_the_ray_container_only() -> None:
    obj = cluster(group(container(), container({GPU: 1})))
    assert run(obj, (f"{HEAD}/1", {GPU: 1})) == (obj, [])


def test_kuberay_head_and_each_worker_group() -> None:
    obj = cluster(
        group(container({GPU: 1})), group(container({GPU: 2})), group(container()), group(container({GPU: 4}))
    )
    places = ("/spec/workerGroupSpecs/0", "/spec/workerGroupSpecs/2", "/spec/headGroupSpec")
    amounts: tuple[Amount, ...] = (2, 4, 1)
    losing = [(f"{place}/template/spec/containers/0", {GPU: n}) for place, n in zip(places, amounts, strict=True)]
    after, findings = run(obj, *losing)
    groups = [after["spec"]["headGroupSpec"], *after["spec"]["workerGroupSpecs"]]
    assert [each.get("rayStartParams", {}).get("num-gpus") for each in groups] == ["1", "2", None, "4"]
    assert len(findings) == 3


@pytest.mark.parametrize(
    ("kind", "version", "base"),
    [
        ("RayCluster", "v1alpha1", "/spec"),
        ("RayJob", "v1", "/spec/rayClusterSpec"),
        ("RayService", "v1", "/spec/rayClusterConfig"),
        ("RayCronJob", "v1", "/spec/jobTemplate/rayClusterSpec"),
    ],
)
def test_kuberay_in_every_kind(kind: str, version: str, base: str) -> None:
    inner: dict[str, Any] = {"headGroupSpec": group(container({GPU: 1}))}
    for field in reversed(base.split("/")[1:]):
        inner = {field: inner}
    obj = {"apiVersion": f"ray.io/{version}", "kind": kind, **inner}
    after, findings = run(obj, (f"{base}/headGroupSpec/template/spec/containers/0", {GPU: 1}))
    assert list(matches(after, f"{base}/headGroupSpec/rayStartParams/num-gpus")) == [
        (f"{base}/headGroupSpec/rayStartParams/num-gpus", "1")
    ]
    assert [code for code, _ in findings] == ["DRA106"]


def test_kuberay_submitter_starts_no_ray_node() -> None:
    template = {"spec": {"containers": [container({GPU: 1})]}}
    obj = {"apiVersion": "ray.io/v1", "kind": "RayJob", "spec": {"submitterPodTemplate": template}}
    assert run(obj, ("/spec/submitterPodTemplate/spec/containers/0", {GPU: 1})) == (obj, [])


# Kubeflow Trainer


def job(*containers: dict[str, Any], name: str = "node", step: str = "") -> dict[str, Any]:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": step} if step else {}
    spec = {"template": {"spec": {"containers": [*containers]}}}
    return {"name": name, "template": {"metadata": {"labels": labels}, "spec": spec}}


def runtime(policy: dict[str, Any] | None, *jobs: dict[str, Any]) -> dict[str, Any]:
    spec = {"mlPolicy": policy, "template": {"spec": {"replicatedJobs": list(jobs)}}}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "ClusterTrainingRuntime", "spec": spec}


NODE = "/spec/template/spec/replicatedJobs/0/template/spec/template/spec/containers/0"


@pytest.mark.parametrize(
    ("policy", "amount", "becomes"),
    [
        ({"torch": {"numProcPerNode": "auto"}}, 4, {"torch": {"numProcPerNode": 4}}),
        ({"mpi": {}}, 4, {"mpi": {"numProcPerNode": 4}}),
        ({"mpi": {"numProcPerNode": 1}}, 4, {"mpi": {"numProcPerNode": 4}}),
        ({"mpi": {"numProcPerNode": None}}, 4, {"mpi": {"numProcPerNode": 4}}),
        (
            {"numNodes": 2, "mpi": {"sshAuthMountPath": "/k"}},
            2,
            {"mpi": {"sshAuthMountPath": "/k", "numProcPerNode": 2}},
        ),
    ],
)
def test_trainer_processes_per_node(policy: dict[str, Any], amount: int, becomes: dict[str, Any]) -> None:
    node = job(container({GPU: amount}, name="node", cpu="8"))
    after, findings = run(runtime(policy, node), (NODE, {GPU: amount}))
    assert after == runtime(policy | becomes, node)
    assert findings == [("DRA106", NODE), ("DRA114", NODE)]


@pytest.mark.parametrize(
    ("policy", "taken", "requests"),
    [
        pytest.param({"torch": {"numProcPerNode": "gpu"}}, {GPU: 4}, {"cpu": 8}, id="torchrun counts devices"),
        pytest.param({"torch": {"numProcPerNode": 2}}, {GPU: 4}, {"cpu": 8}, id="torch, a number"),
        pytest.param({"torch": {}}, {GPU: 1}, {}, id="torch, no CPUs: one process"),
        pytest.param({"torch": {}}, {GPU: 4}, {"cpu": "3500m"}, id="torch, as many CPUs as GPUs"),
        pytest.param({"mpi": {"numProcPerNode": 8}}, {GPU: 4}, {}, id="mpi, a number"),
        pytest.param({"mpi": {"numProcPerNode": "${N}"}}, {GPU: 4}, {}, id="mpi, a placeholder"),
        pytest.param({"mpi": {}}, {GPU: 1}, {}, id="mpi, one GPU"),
        pytest.param({"xgboost": {}}, {GPU: 1}, {}, id="xgboost, one GPU"),
        pytest.param({"torch": {}}, {MIG: 4}, {}, id="MIG names are not read"),
        pytest.param({"torch": None}, {GPU: 4}, {"cpu": 8}, id="no policy in null"),
        pytest.param({"jax": {}}, {GPU: 4}, {"cpu": 8}, id="jax reads nothing"),
        pytest.param({"numNodes": 2}, {GPU: 4}, {"cpu": 8}, id="no framework"),
        pytest.param(None, {GPU: 4}, {"cpu": 8}, id="no policy"),
    ],
)
def test_trainer_needs_no_edit(
    policy: dict[str, Any] | None, taken: dict[str, Amount], requests: dict[str, Any]
) -> None:
    obj = runtime(policy, job(container(dict(taken), name="node", **requests)))
    assert run(obj, (NODE, taken)) == (obj, [("DRA114", NODE)])


@pytest.mark.parametrize(
    ("policy", "amount", "requests"),
    [
        pytest.param({"torch": {}}, 4, {"cpu": 8}, id="torch counts CPUs"),
        pytest.param({"torch": {}}, 2, {}, id="torch, no CPUs: one process"),
        pytest.param({"torch": {}}, "${GPUS}", {"cpu": 8}, id="torch, a placeholder"),
        pytest.param({"torch": {}}, 4, {"cpu": "{{ cpus }}"}, id="torch, CPUs unknown"),
        pytest.param({"torch": {"numProcPerNode": "auto"}}, "${GPUS}", {}, id="torch auto, a placeholder"),
        pytest.param({"mpi": {}}, "${GPUS}", {}, id="mpi, a placeholder"),
        pytest.param({"xgboost": {}}, 2, {}, id="xgboost"),
        pytest.param({"flux": {"numProcPerNode": 2}}, 1, {}, id="flux"),
    ],
)
def test_trainer_has_no_field(policy: dict[str, Any], amount: Amount, requests: dict[str, Any]) -> None:
    obj = runtime(policy, job(container({GPU: amount}, name="node", **requests)))
    assert run(obj, (NODE, {GPU: amount})) == (obj, [("DRA315", NODE)])


def test_trainer_takes_cpu_requests_before_limits() -> None:
    limited = container({GPU: 4, "cpu": 4}, name="node")
    obj = runtime({"torch": {}}, job(limited))
    assert run(obj, (NODE, {GPU: 4})) == (obj, [("DRA114", NODE)])
    limited["resources"]["requests"] = {"cpu": 2}
    assert run(obj, (NODE, {GPU: 4})) == (obj, [("DRA315", NODE)])


@pytest.mark.parametrize(
    ("jobs", "losing", "read"),
    [
        pytest.param([job(container(name="x"), container(name="node"))], (0, 1), True, id="second container"),
        pytest.param([job(container(name="node"), name="a", step="trainer")], (0, 0), True, id="labelled job"),
        pytest.param([job(container(name="node"), name="a", step="dataset")], (0, 0), False, id="other step"),
        pytest.param([job(container(name="node"), name="a")], (0, 0), False, id="another job"),
        pytest.param([job(container(name="main"))], (0, 0), False, id="another container"),
        pytest.param([job({"name": "node"}, name="a"), job(container(name="node"))], (1, 0), True, id="second job"),
        pytest.param(
            [job(container(name="node"), name="launcher", step="trainer"), job(container(name="node"))],
            (1, 0),
            False,
            id="the first that fits",
        ),
    ],
)
def test_trainer_reads_one_container(jobs: list[dict[str, Any]], losing: tuple[int, int], read: bool) -> None:
    index, inner = losing
    path = f"/spec/template/spec/replicatedJobs/{index}/template/spec/template/spec/containers/{inner}"
    _, findings = run(runtime({"flux": {}}, *jobs), (path, {GPU: 1}))
    assert findings == ([("DRA315", path)] if read else [])


# MPIJob


def mpi_job(version: str) -> dict[str, Any]:
    pod = {"template": {"spec": {"containers": [container({GPU: 1})]}}}
    specs = {"Launcher": pod, "Worker": deepcopy(pod)}
    return {"apiVersion": f"kubeflow.org/{version}", "kind": "MPIJob", "spec": {"mpiReplicaSpecs": specs}}


@pytest.mark.parametrize(
    ("version", "replica", "name", "kept"),
    [
        ("v1", "Launcher", GPU, True),
        ("v1", "Launcher", MIG, False),
        ("v1", "Worker", GPU, False),
        ("v2beta1", "Launcher", GPU, False),
    ],
)
def test_mpi_launcher_with_a_gpu_is_a_worker_in_v1(version: str, replica: str, name: str, kept: bool) -> None:
    path = f"/spec/mpiReplicaSpecs/{replica}/template/spec/containers/0"
    obj = mpi_job(version)
    assert run(obj, (path, {name: 1})) == (obj, [("DRA315", path)] if kept else [])


# KServe

MODE = "serving.kserve.io/deploymentMode"
PREDICTOR = "/spec/predictor/containers/0"


def service(mode: str | None, **predictor: Any) -> dict[str, Any]:
    metadata = {"name": "s"} | ({"annotations": {MODE: mode}} if mode else {})
    spec = {"predictor": {"containers": [container({GPU: 1})], **predictor}}
    return {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("obj", "kept"),
    [
        pytest.param(service("Standard"), False, id="standard"),
        pytest.param(service("RawDeployment"), False, id="raw"),
        pytest.param(service("Serverless"), True, id="serverless"),
        pytest.param(service("Knative"), True, id="knative"),
        pytest.param(service(None), True, id="unsaid"),
        pytest.param(service("Standard", workerSpec={}), True, id="several nodes"),
    ],
)
def test_kserve_service_must_not_be_knative(obj: dict[str, Any], kept: bool) -> None:
    assert run(obj, (PREDICTOR, {GPU: 1})) == (obj, [("DRA315", PREDICTOR)] if kept else [])


@pytest.mark.parametrize("kind", ["ServingRuntime", "ClusterServingRuntime"])
@pytest.mark.parametrize("several", [False, True])
def test_kserve_counts_nodes_of_a_runtime_by_limits(kind: str, several: bool) -> None:
    spec: dict[str, Any] = {"containers": [container({GPU: 1})]} | ({"workerSpec": {}} if several else {})
    obj = {"apiVersion": "serving.kserve.io/v1alpha1", "kind": kind, "spec": spec}
    assert run(obj, ("/spec/containers/0", {GPU: 1})) == (obj, [("DRA315", "/spec/containers/0")] if several else [])


# All rules


def test_a_canary_of_several_nodes_is_seen() -> None:
    obj = service("Standard")
    obj["spec"]["canary"] = [{"predictor": {"workerSpec": {}}}]
    assert run(obj, (PREDICTOR, {GPU: 1}))[1] == [("DRA315", PREDICTOR)]


@pytest.mark.parametrize("row", [row for row in KINDS.values() if row.operator], ids=lambda row: row.kind)
def test_nothing_is_edited_where_nothing_is_taken(row: Kind) -> None:
    for version in row.versions:
        odd: tuple[Any, ...] = ({}, {"spec": None}, {"spec": []}, {"spec": {"headGroupSpec": [], "mlPolicy": ""}})
        for spec in odd:
            obj = {"apiVersion": f"{row.group}/{version}", "kind": row.kind, **spec}
            assert operator_edits(row, obj, [Access("/spec/x", "c", (), (), 0)]) == ([], [])
            assert operator_edits(row, obj, []) == ([], [])


def test_severities() -> None:
    edited = cluster(group(container({GPU: 1})))
    kept = mpi_job("v1")
    row = KINDS["ray.io", "RayCluster"], KINDS["kubeflow.org", "MPIJob"]
    launcher = "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/0"
    (info,) = operator_edits(row[0], edited, [Access(f"{HEAD}/0", "c", ((GPU, 1),), (), 1)])[1]
    (warning,) = operator_edits(row[1], kept, [Access(launcher, "c", ((GPU, 1),), (), 1)])[1]
    assert (info.severity, warning.severity) == (Severity.INFO, Severity.WARNING)


def test_every_rule_is_used() -> None:
    assert {row.operator for row in KINDS.values()} == {None, *OperatorRule}
