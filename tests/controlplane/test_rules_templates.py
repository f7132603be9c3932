"""R8, R9, R11 and R14: names and lives of ResourceClaimTemplates, API versions, what cannot be changed in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable

from controlplane import gpus, scheduling
from controlplane.client import JSON_PATCH, MERGE_PATCH, Object, wait_for
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import (
    ADMISSION,
    claiming,
    container,
    convert,
    deployment,
    install,
    one_gpu,
    pod,
    request,
    template,
)
from gpu2dra import ApiVersion, Options, plan
from gpu2dra.names import digest
from gpu2dra.templates import canonical_spec, fitting_name

Answer = Callable[[str], None]
MIG = "nvidia.com/mig-1g.10gb"
CLAIMS = "resource.k8s.io/v1"
VERSIONS = (ApiVersion.V1, ApiVersion.V1BETA2, ApiVersion.V1BETA1)


def test_r08_immutable(cluster: Cluster, answer: Answer) -> None:
    """A changed count in a template that is there, by patch and by server-side apply; the same spec again."""
    made = install(cluster, one_gpu("app", 1)).templates[0]
    step = {"op": "replace", "path": "/spec/spec/devices/requests/0/exactly/count", "value": 2}
    patched = cluster.client.try_patch(made, [step], JSON_PATCH)
    applied = cluster.client.try_apply({**made, "spec": convert(one_gpu("app", 2)).templates[0]["spec"]}, force=True)
    for refused in (patched, applied):
        assert (refused.status, "field is immutable" in refused.object["message"]) == (422, True)
    before = cluster.client.read(made)
    assert cluster.client.apply(made, force=True)["spec"] == before["spec"]
    answer("spec is immutable: both refused; the same spec is taken")


def test_r08_new_name(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A Deployment converted with one GPU, then with two, then rolled back."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 8))])

    def pods() -> dict[str, Object]:
        found = cluster.client.list("v1", "Pod", cluster.namespace)
        return {each["spec"]["resourceClaims"][0]["resourceClaimTemplateName"]: each for each in found}

    def bound(made: str) -> bool:
        return made in pods() and bool(pods()[made]["spec"].get("nodeName"))

    one, two = (install(cluster, deployment("app", amount)) for amount in (1, 2))
    names = [made.templates[0]["metadata"]["name"] for made in (one, two)]
    assert len(set(names)) == 2
    cluster.client.apply(one.object)
    wait_for("the first pod", lambda: bound(names[0]))
    cluster.client.apply(two.object)
    wait_for("the second pod", lambda: bound(names[1]))
    sets = cluster.client.list("apps/v1", "ReplicaSet", cluster.namespace)
    used = {each["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] for each in sets}
    assert used == set(names)
    found = pods()
    devices = [scheduling.devices_by_container(cluster.client, found[name])["main"] for name in names]
    assert [len(set(each)) for each in devices] == [1, 2]
    # The old ReplicaSet goes on making pods, and a rollback scales it up: from the template of before.
    scheduling.free_devices(cluster.client, cluster.namespace, [found[names[0]]])
    cluster.client.apply(one.object)
    wait_for("a new pod of the old ReplicaSet", lambda: bound(names[0]))
    assert len(cluster.client.list("apps/v1", "ReplicaSet", cluster.namespace)) == 2
    cluster.client.delete(one.object)
    cluster.client.delete_all("apps/v1", "ReplicaSet", cluster.namespace)  # at once: they would make new pods
    answer("two templates side by side; the old ReplicaSet makes pods again after a rollback")


def test_r08_canonical_form(cluster: Cluster, answer: Answer) -> None:
    """Templates in each version, and specs of others, read back: against the form that names are made of."""
    taint = {"key": "example.com/sick", "operator": "Exists"}
    equal = {"key": "example.com/sick", "value": "yes", "effect": "NoSchedule"}
    ours = [convert(each, options).templates[0] for options in (Options(), ADMISSION) for each in (
        one_gpu("app", 2), pod("app", container("a", 1), container("b", 1)), pod("app", container("m", 1, MIG)),
    )]  # fmt: skip
    cel = {"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}
    small = {"name": "small", "deviceClassName": "mig.nvidia.com"}
    bare: list[Object] = [
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}},
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 0}},
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "All", "selectors": [cel]}},
        {"name": "gpu", "firstAvailable": [small, {"name": "big", "deviceClassName": "gpu.nvidia.com", "count": 2}]},
        {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "tolerations": [taint, equal]}},
    ]
    served = [version for version in VERSIONS if cluster.client.serves(version, "ResourceClaimTemplate")]
    ours += [convert(one_gpu("app", 2), Options(api_version=version)).templates[0] for version in served]
    written = [*ours, *(template("bare", each) for each in bare)]
    differing: list[tuple[int, str]] = []
    for number, each in enumerate(written):
        named = cluster.here({**each, "metadata": {**each["metadata"], "name": f"spec-{number}"}})
        cluster.client.create(named)
        for version in served:
            stored = cluster.client.get(version, named["kind"], f"spec-{number}", cluster.namespace)
            if digest(canonical_spec(stored["spec"])) != digest(canonical_spec(each["spec"])):
                differing.append((number, version))
            if number < len(ours):
                stored["metadata"]["name"] = each["metadata"]["name"]
                assert fitting_name(stored) in (None, each["metadata"]["name"])
                assert plan(stored).operations == ()
    assert differing == []
    answer(f"equal, read back in {', '.join(version.rpartition('/')[2] for version in served)}")


def test_r08_names(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A workload name of 253 characters, a container name of 63, four containers that share."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 4))])
    long, other = "c" * 63, "d" * 63
    workload = "p" * 61 + "." + "q" * 61 + "." + "r" * 61 + "." + "s" * 67
    assert len(workload) == 253
    made = install(
        cluster,
        pod(workload, container(long, 1), container(other, 2), init=[container("i" * 63, 2), container("j" * 63, 4)]),
    )
    assert {len(each["metadata"]["name"]) for each in made.templates} == {253}
    assert cluster.outcome(made.object).node == "h100"
    devices = scheduling.devices_by_container(cluster.client, made.object)
    assert {name: len(set(found)) for name, found in devices.items()} == {long: 1, other: 2, "i" * 63: 3, "j" * 63: 4}
    answer("template, claim entries and generated claims taken; pod runs")


def test_r08_generate_name(cluster: Cluster, answer: Answer) -> None:
    """A Job with generateName, its file created twice."""
    job = cluster.object("batch/v1", "Job", "", spec={"template": {"spec": one_gpu("x")["spec"]}})
    job["metadata"] = {"generateName": "run-", "namespace": cluster.namespace}
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    made = install(cluster, job)
    assert (made.plan.own_file, "DRA105" in made.codes) == (True, True)
    names = {cluster.client.create(made.object)["metadata"]["name"] for _ in range(2)}
    assert len(names) == 2
    assert cluster.client.try_create(made.templates[0]).object["reason"] == "AlreadyExists"
    answer("the Job twice, the template once: a second create is refused")


def test_r08_other_namespace(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A template in another namespace than its pod."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    made = convert(cluster.here(one_gpu("away")))
    elsewhere = {**made.templates[0], "metadata": {**made.templates[0]["metadata"], "namespace": "default"}}
    cluster.client.create(elsewhere)
    try:
        away = cluster.client.create(made.object)
        assert "not found" in _told(cluster, "away")
        assert "nodeName" not in cluster.client.read(away)["spec"]
    finally:
        cluster.client.delete(elsewhere)
    answer("pod waits; event FailedResourceClaimCreation: not found")


def test_r09_versions(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """Templates as `plan` writes them in v1, v1beta2 and v1beta1 (flat), each sent to its own version."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 8))])
    served, names = [], []
    for version in VERSIONS:
        short = version.rpartition("/")[2]
        made = convert(cluster.here(one_gpu(short, 2)), Options(api_version=version))
        names.append(digest(canonical_spec(made.templates[0]["spec"])))
        if not cluster.client.serves(version, "ResourceClaimTemplate"):
            continue
        served.append(short)
        warnings = cluster.client.try_create(made.templates[0], fieldValidation="Strict").warnings
        assert all("deprecated" in warning for warning in warnings), warnings
        assert cluster.outcome(made.object).node == "h100"
        assert len(set(scheduling.devices_by_container(cluster.client, made.object)["main"])) == 2
    assert len(set(names)) == 1
    assert served == ["v1", "v1beta2", "v1beta1"]
    answer(f"{', '.join(served)} taken and allocated")


def test_r09_old_shapes(cluster: Cluster, answer: Answer) -> None:
    """The flat request of v1beta1 sent as v1, and the old pod field `source:`."""
    flat = convert(one_gpu("flat"), Options(api_version=ApiVersion.V1BETA1)).templates[0]
    refused = cluster.client.try_create(cluster.here({**flat, "apiVersion": CLAIMS}))
    assert (
        refused.status,
        "exactly one of `exactly` or `firstAvailable` is required" in refused.object["message"],
    ) == (
        422,
        True,
    )
    old = claiming("old", "any")
    old["spec"]["resourceClaims"] = [{"name": "gpu", "source": {"resourceClaimTemplateName": "any"}}]
    answered = cluster.client.try_create(cluster.here(old))
    assert (answered.status, "must specify one of" in answered.object["message"]) == (422, True)
    strict = cluster.client.try_create(cluster.here(old), fieldValidation="Strict")
    assert (strict.status, 'unknown field "spec.resourceClaims[0].source"' in strict.object["message"]) == (400, True)
    answer("both refused")


def test_r09_dropped_fields(cluster: Cluster, answer: Answer) -> None:
    """A request for a capacity (memory), which no built-in plan writes."""
    capacity = {"requests": {"memory": "8Gi"}}
    stored = cluster.client.try_create(cluster.here(template("sized", request("gpu", capacity=capacity))))
    kept = stored.checked()["spec"]["spec"]["devices"]["requests"][0]["exactly"].get("capacity")
    assert kept == (None if cluster.minor < 36 else capacity)
    assert stored.warnings == ()
    answer("stored" if kept else "dropped silently")


def test_r11_immutable_kinds(cluster: Cluster, answer: Answer) -> None:
    """A Job and a Pod that exist as legacy, then are patched to what `plan` makes of them; a CronJob likewise."""
    spec = one_gpu("x")["spec"] | {"restartPolicy": "Never"}
    job = cluster.object("batch/v1", "Job", "job", spec={"suspend": True, "template": {"spec": spec}})
    cron = cluster.object(
        "batch/v1", "CronJob", "cron",
        spec={"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": {"spec": spec}}}},
    )  # fmt: skip
    answers = []
    for legacy in (job, cluster.here(one_gpu("bare", schedulerName="default-scheduler")), cron):
        cluster.client.create(legacy)
        made = convert(legacy)
        answered = cluster.client.try_patch(legacy, [dict(step) for step in made.plan.operations], JSON_PATCH)
        assert answered.accepted == ("DRA103" not in made.codes), answered
        answers.append(answered.status)
        assert cluster.client.try_create(made.object, dryRun="All").object["reason"] == "AlreadyExists"
    assert answers == [422, 422, 200]
    answer("Job and Pod refuse the change and have to be made anew; a CronJob takes it")


def test_r14_same_bytes(cluster: Cluster, answer: Answer) -> None:
    """One Pod planned in two processes with other hash seeds, both applied on the server's side."""
    legacy = cluster.here(pod("app", container("a", 2), container("b", 1), init=[container("i", 4)]))
    program = (
        "import json, sys; from gpu2dra import plan; made = plan(json.load(sys.stdin));"
        "print(json.dumps([made.operations, made.templates]))"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program], input=json.dumps(legacy), check=True, capture_output=True, text=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(printed) == 1
    _, templates = json.loads(printed.pop())
    for each in templates:
        first = cluster.client.apply(each)
        assert cluster.client.apply(each)["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    answer("the second apply changes nothing: resourceVersion stays")


def test_r15_template_missing(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """Two pods created before their template, then the template; one pod gets an annotation after that."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 2))])
    legacy = [one_gpu("waits"), one_gpu("woken")]
    made = [convert(cluster.here(each), ADMISSION) for each in legacy]
    for each in made:
        cluster.client.create(each.object)
    assert all("not found" in _told(cluster, each["metadata"]["name"]) for each in legacy)
    assert not any("nodeName" in cluster.client.read(each.object)["spec"] for each in made)
    assert made[0].templates == made[1].templates
    cluster.client.create(cluster.here(made[0].templates[0]))
    cluster.client.patch(made[1].object, {"metadata": {"annotations": {"gpu2dra.dev/woken": "1"}}}, MERGE_PATCH)
    scheduling.wait_for_scheduled(cluster.client, made[1].object, deadline=5)
    scheduling.wait_for_scheduled(cluster.client, made[0].object)
    answer("pods wait, event FailedResourceClaimCreation; bound once it is there, at once when the pod is touched")


def _told(cluster: Cluster, name: str) -> str:
    """Return what the controller says about the claim of a pod that it could not make."""

    def look() -> str | None:
        for event in cluster.client.list("v1", "Event", cluster.namespace):
            if (event["involvedObject"]["name"], event["reason"]) == (name, "FailedResourceClaimCreation"):
                return str(event["message"])
        return None

    return wait_for(f"an event of pod {name}", look)
