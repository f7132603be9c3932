"""The webhook in a cluster, from a legacy manifest to devices: what is created, applied, shown and left alone."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

from controlplane import gpus, scheduling
from controlplane.client import MERGE_PATCH, Object, wait_for
from controlplane.installation import CONVERTED, TEMPLATES, is_converted, templates
from controlplane.sharing import PATTERNS, shared
from controlplane.testbed import AddMachines, Cluster
from controlplane.webhook_process import Replica
from controlplane.workloads import GPU, claiming, container, deployment, names_a_gpu, one_gpu, request, template
from gpu2dra.converted import ANNOTATION, LABEL
from gpu2dra.templates import MANAGED_BY

pytestmark = pytest.mark.usefixtures("webhook")
NAMESPACE_LABELS = CONVERTED
Fields = dict[str, Any]


def is_untouched(obj: Object, *, asks: bool = True) -> bool:
    """Whether a stored Pod is as it was sent: no record, and the legacy request if it had one."""
    return ANNOTATION not in obj["metadata"].get("annotations", {}) and names_a_gpu(obj) is asks


def test_containers_find_the_devices_that_they_asked_for(cluster: Cluster, machines: AddMachines) -> None:
    machines(pattern.machine for pattern in PATTERNS)
    outcomes = cluster.outcomes(pattern.pod for pattern in PATTERNS)
    assert [outcome.node for outcome in outcomes] == [pattern.name for pattern in PATTERNS]
    for pattern in PATTERNS:
        stored = cluster.client.read(cluster.here(pattern.pod))
        assert is_converted(stored)
        devices = scheduling.devices_by_container(cluster.client, stored)
        assert {name: len(set(found)) for name, found in devices.items()} == pattern.reaches, pattern.name
        assert shared(devices) == pattern.sharing, pattern.name


def workloads() -> list[Object]:
    """Return a workload of each kind whose controller runs here, with two pods of two GPUs each."""
    made = deployment("model", 2, replicas=2)
    labels, pods = {"app": "model"}, made["spec"]["template"]
    once = {"metadata": pods["metadata"], "spec": {**pods["spec"], "restartPolicy": "Never"}}
    job = {"parallelism": 2, "completions": 2, "template": once}
    replicated = {"replicas": 2, "selector": labels, "template": pods}
    stateful = {"replicas": 2, "podManagementPolicy": "Parallel", "serviceName": "model", "template": pods}
    return [
        made,
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": made["spec"]},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": stateful | {"selector": {"matchLabels": labels}}},
        {"apiVersion": "v1", "kind": "ReplicationController", "spec": replicated},
        {"apiVersion": "batch/v1", "kind": "Job", "spec": job},
    ]


@pytest.mark.parametrize("workload", workloads(), ids=lambda workload: workload["kind"])
def test_pods_of_a_controller_are_converted(cluster: Cluster, machines: AddMachines, workload: Object) -> None:
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 4))])
    cluster.client.create(cluster.here(workload | {"metadata": {"name": "model"}}))

    def both() -> list[Object] | None:
        pods = cluster.client.list("v1", "Pod", cluster.namespace)
        return pods if len(pods) == 2 and all(each["spec"].get("nodeName") for each in pods) else None

    pods = wait_for("two pods are bound", both)
    assert all(map(is_converted, pods))
    devices = [scheduling.devices_by_container(cluster.client, each)["main"] for each in pods]
    assert [len(found) for found in devices] == [2, 2]
    assert len({device for found in devices for device in found}) == 4
    assert len(templates(cluster.client, cluster.namespace)) == 1
    (owner,) = {each["metadata"]["ownerReferences"][0]["kind"] for each in pods}
    events = wait_for("an event on the owner", lambda: converted_events(cluster, owner))
    assert "claims from template" in events[0]["message"]


@pytest.mark.slow
def test_fifty_rollouts_of_a_deployment_leave_one_template(cluster: Cluster, webhook: Replica) -> None:
    """Its manifest names the extended resource for ever; only what the pods look like otherwise changes."""
    made = deployment("rolling", 2, replicas=2)
    made["spec"]["strategy"] = {
        "type": "Recreate"
    }  # no kubelet makes a pod ready, which a rolling update would wait for
    created = functools.partial(webhook.metric, "gpu2dra_template_operations_total", operation="create", result="ok")
    before = created()
    stored = cluster.client.create(cluster.here(made))
    for number in range(50):
        image = f"app:{number}"
        container = {**made["spec"]["template"]["spec"]["containers"][0], "image": image}
        change = {"spec": {"template": {"spec": {"containers": [container]}}}}
        cluster.client.patch(stored, change, MERGE_PATCH)

        def rolled_out(image: str = image) -> list[Object] | None:
            pods = cluster.client.list("v1", "Pod", cluster.namespace)
            return pods if [each["spec"]["containers"][0]["image"] for each in pods] == [image] * 2 else None

        assert all(map(is_converted, wait_for("its pods are there", rolled_out)))
    assert len(templates(cluster.client, cluster.namespace)) == 1
    assert created() == before + 1
    kept = cluster.client.read(cluster.here(made))["spec"]["template"]["spec"]
    assert kept["containers"][0]["resources"]["limits"] == {GPU: "2"}


def converted_events(cluster: Cluster, kind: str) -> list[Object]:
    """Return the Events that tell the owner of pods about their conversion."""
    found = cluster.client.list("v1", "Event", cluster.namespace, fieldSelector="reason=GPUConverted")
    return [event for event in found if event["involvedObject"]["kind"] == kind]


def test_what_a_converted_pod_carries_and_what_is_made_for_it(cluster: Cluster) -> None:
    stored = cluster.client.create(cluster.here(one_gpu("bare", 2)))
    (name,) = templates(cluster.client, cluster.namespace)
    made = cluster.client.get(*TEMPLATES, name, cluster.namespace)
    assert stored["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": name}]
    assert stored["spec"]["containers"][0]["resources"] == {"claims": [{"name": "gpu", "request": "main"}]}
    assert stored["metadata"]["labels"] == {LABEL: "true"}
    record = json.loads(stored["metadata"]["annotations"][ANNOTATION])
    assert record == {"containers": {"main": {GPU: 2}}, "templates": {name: {"spec": made["spec"]["spec"]}}}
    assert MANAGED_BY.items() <= made["metadata"]["labels"].items()
    assert made["spec"]["spec"]["devices"]["requests"] == [
        {"name": "main", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2}}
    ]


def test_the_audit_log_and_the_metrics_tell_what_was_done(cluster: Cluster, webhook: Replica) -> None:
    counted = {"operation": "CREATE", "outcome": "converted", "reason": "none"}
    before = webhook.metric("gpu2dra_admission_requests_total", **counted)
    cluster.client.create(cluster.here(one_gpu("audited")))
    assert webhook.metric("gpu2dra_admission_requests_total", **counted) == before + 1
    (name,) = templates(cluster.client, cluster.namespace)
    path = f"/api/v1/namespaces/{cluster.namespace}/pods"
    (event,) = [
        each for each in cluster.plane.audit_events() if each["requestURI"] == path and each["verb"] == "create"
    ]
    told = {key: value for key, value in event["annotations"].items() if key.startswith("pods.create.gpu2dra.dev/")}
    assert told == {
        "pods.create.gpu2dra.dev/outcome": "converted",
        "pods.create.gpu2dra.dev/reason": "none",
        "pods.create.gpu2dra.dev/templates": name,
    }


SIDES = pytest.mark.parametrize("flags", [(), ("--server-side", "--force-conflicts")], ids=["client", "server"])


@SIDES
def test_a_bare_pod_is_applied_again(cluster: Cluster, flags: tuple[str, ...]) -> None:
    """Public reports: a file that was applied once can be applied again, and nothing changes."""
    legacy = one_gpu("bare", 2)
    assert cluster.kubectl("apply", "-f-", *flags, stdin=legacy).returncode == 0
    before = cluster.client.read(cluster.here(legacy))
    assert is_converted(before)
    again = cluster.kubectl("apply", "-f-", *flags, stdin=legacy)
    assert again.returncode == 0, again.stderr
    after = cluster.client.read(cluster.here(legacy))
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == before["spec"]  # nothing schedules it: there is no node
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]


@SIDES
def test_another_amount_is_refused_by_the_server(cluster: Cluster, flags: tuple[str, ...]) -> None:
    assert cluster.kubectl("apply", "-f-", *flags, stdin=one_gpu("bare", 2)).returncode == 0
    before = cluster.client.read(cluster.here(one_gpu("bare")))
    again = cluster.kubectl("apply", "-f-", *flags, stdin=one_gpu("bare", 3))
    assert (again.returncode, "pod updates may not change fields" in again.stderr.lower()) == (1, True)
    assert cluster.client.read(before)["spec"] == before["spec"]


def test_other_updates_of_a_converted_pod_pass(cluster: Cluster) -> None:
    stored = cluster.client.create(cluster.here(one_gpu("bare")))
    labelled = cluster.kubectl("label", "pod", "bare", "team=a")
    assert labelled.returncode == 0, labelled.stderr
    assert is_converted(cluster.client.read(stored))


DRY_RUNS = pytest.mark.parametrize(
    "command",
    [("create", "--dry-run=server"), ("apply", "--dry-run=server"), ("apply", "--server-side", "--dry-run=server")],
    ids=" ".join,
)


@DRY_RUNS
def test_a_dry_run_shows_the_conversion_and_writes_nothing(cluster: Cluster, command: tuple[str, ...]) -> None:
    shown = cluster.kubectl(*command, "-o", "json", "-f-", stdin=one_gpu("dry"))
    assert shown.returncode == 0, shown.stderr
    assert is_converted(json.loads(shown.stdout))
    assert templates(cluster.client, cluster.namespace) == set()
    assert converted_events(cluster, "Pod") == []


def test_kubectl_diff_shows_the_conversion_and_writes_nothing(cluster: Cluster) -> None:
    shown = cluster.kubectl("diff", "-f-", stdin=one_gpu("dry"))
    assert shown.returncode == 1, shown.stderr
    assert "+  - name: gpu\n+    resourceClaimTemplateName: gpu-" in shown.stdout
    assert templates(cluster.client, cluster.namespace) == set()


def test_a_pod_with_claims_of_its_own_passes_whole(cluster: Cluster) -> None:
    cluster.client.create(cluster.here(template("theirs", request("card"))))
    theirs = cluster.here(claiming("theirs", "theirs", {"name": "gpu", "request": "card"}))
    stored = cluster.client.create(theirs)
    assert is_untouched(stored, asks=False)
    assert stored["spec"]["resourceClaims"] == theirs["spec"]["resourceClaims"]
    assert templates(cluster.client, cluster.namespace) == {"theirs"}


def test_claims_that_are_there_stay_beside_ours(cluster: Cluster, machines: AddMachines) -> None:
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 3))])
    cluster.client.create(cluster.here(template("theirs", request("card"))))
    both = claiming("both", "theirs", {"name": "gpu", "request": "card"})
    both["spec"]["containers"].append(container("legacy", 2))
    assert cluster.outcome(both).node == "h100"
    stored = cluster.client.read(cluster.here(both))
    assert is_converted(stored)
    devices = scheduling.devices_by_container(cluster.client, stored)
    assert {name: len(set(found)) for name, found in devices.items()} == {"main": 1, "legacy": 2}
    assert shared(devices) == frozenset()


def test_a_container_with_a_claim_for_the_class_and_a_limit_is_told_of(cluster: Cluster) -> None:
    cluster.client.create(cluster.here(template("theirs", request("card"))))
    double = claiming("double", "theirs", {"name": "gpu", "request": "card"})
    double["spec"]["containers"][0]["resources"]["limits"] = {GPU: "1"}
    answer = cluster.client.try_create(cluster.here(double))
    assert is_untouched(answer.checked())
    assert [text.startswith("gpu2dra: not converted: DRA") for text in answer.warnings] == [True]


OPTED_OUT: Fields = {"metadata": {"annotations": {"gpu2dra.dev/convert": "false"}}}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        (OPTED_OUT, None),
        ({"spec": {"schedulerName": "volcano"}}, "DRA206"),
        ({"spec": {"nodeName": "somewhere"}}, "DRA203"),
        ({"spec": {"nodeSelector": {"kubernetes.io/os": "windows"}}}, "DRA204"),
        ({"metadata": {"annotations": {"gpu-fraction": "0.5"}}}, "DRA305"),
    ],
    ids=["opted-out", "other-scheduler", "node-name", "windows", "fraction"],
)
def test_what_is_left_alone_says_why(cluster: Cluster, changes: Fields, reason: str | None) -> None:
    legacy = cluster.here(one_gpu("left"))
    legacy["metadata"] |= changes.get("metadata", {})
    legacy["spec"] |= changes.get("spec", {})
    answer = cluster.client.try_create(legacy)
    assert is_untouched(answer.checked())
    expected = [] if reason is None else [f"gpu2dra: not converted: {reason}: "]
    assert [text[: len(expected[0])] for text in answer.warnings] == expected if expected else not answer.warnings
    assert templates(cluster.client, cluster.namespace) == set()


def test_the_first_warning_of_a_pod_that_loses_preemption(cluster: Cluster) -> None:
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": cluster.namespace}}
    cluster.client.create({**priority, "value": 1000})
    answer = cluster.client.try_create(cluster.here(one_gpu("urgent", priorityClassName=cluster.namespace)))
    cluster.client.delete(priority)
    assert is_converted(answer.checked())
    assert [text for text in answer.warnings if text.startswith("gpu2dra: DRA104: ")]


def test_a_namespace_that_has_not_opted_in_is_not_touched(cluster: Cluster, webhook: Replica) -> None:
    cluster.kubectl("label", "namespace", cluster.namespace, "gpu2dra.dev/convert-")
    asked = webhook.metric("gpu2dra_admission_requests_total")
    legacy = cluster.here(one_gpu("legacy"))

    def untouched() -> bool:  # the API server's cache of namespaces may be a moment behind
        return is_untouched(cluster.client.create(legacy, dryRun="All"))

    wait_for("pods are not converted", untouched)
    asked = webhook.metric("gpu2dra_admission_requests_total")
    assert is_untouched(cluster.client.create(legacy))
    assert webhook.metric("gpu2dra_admission_requests_total") == asked


def test_a_template_of_somebody_else_under_our_name_is_never_used(cluster: Cluster) -> None:
    legacy = cluster.here(one_gpu("bare", 2))
    cluster.client.create(legacy)
    (name,) = templates(cluster.client, cluster.namespace)
    cluster.client.delete(legacy)
    cluster.client.delete_all(*TEMPLATES, cluster.namespace)
    foreign = cluster.here(template(name, request("card", 7)))
    before = cluster.client.create(foreign)

    def refusal() -> str:
        answer = cluster.client.try_create(legacy, dryRun="All")
        return "" if answer.accepted else str(answer.object["message"])

    assert name in wait_for("the pod is refused", refusal)
    refused = cluster.client.try_create(legacy)
    assert refused.status == 409
    assert cluster.client.read(foreign) == before
    cluster.client.delete(foreign)
    wait_for("the pod is converted", lambda: cluster.client.try_create(legacy).accepted)


def test_a_deleted_template_of_a_pending_pod_is_put_back(
    cluster: Cluster, machines: AddMachines, webhook: Replica
) -> None:
    """Public report: a template that goes before the claim is made leaves its pod pending for ever."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 2))])
    legacy = cluster.here(one_gpu("pending", 2))
    restored = functools.partial(webhook.metric, "gpu2dra_template_operations_total", operation="restore", result="ok")
    before = restored()
    # Else it might still make the claim from the template that its cache holds.
    with cluster.plane.daemons.paused("kube-controller-manager"):
        cluster.client.create(legacy)
        made = templates(cluster.client, cluster.namespace)
        cluster.client.delete_all(*TEMPLATES, cluster.namespace)
        wait_for("the template is put back", lambda: restored() == before + 1)
        assert templates(cluster.client, cluster.namespace) == made
    stored = scheduling.wait_for_scheduled(cluster.client, legacy)
    assert len(scheduling.devices_by_container(cluster.client, stored)["main"]) == 2
