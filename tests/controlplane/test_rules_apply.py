"""R13 and R15: converted objects under every way of applying them, and legacy manifests applied over converted pods."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable

import jsonpatch

from controlplane import gpus, scheduling
from controlplane.client import STRATEGIC_MERGE_PATCH, Object, wait_for
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import (
    ADMISSION,
    GPU,
    Converted,
    codes,
    container,
    convert,
    install,
    names_a_gpu,
    one_gpu,
    pod,
)
from gpu2dra import plan

Answer = Callable[[str], None]
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
GATE = [{"name": "example.com/quiet"}]
"""Keeps the scheduler from writing to a pod."""
QUIET = 0.5
"""Seconds without a new resourceVersion after which controllers have written what they have to write of an object."""


def shapes(cluster: Cluster) -> list[Object]:
    """Return one legacy object of each built-in kind, with init container, sidecar, two apps, and a limit of zero."""
    init = [container("load", 2), container("proxy", 1, sidecar=True)]
    apps = [container("main", 2), container("other", 1), container("none", 0)]
    spec = pod("x", *apps, init=init)["spec"]
    once = {**spec, "restartPolicy": "Never"}
    labels = {"app": "shape"}
    template = {"metadata": {"labels": labels}, "spec": spec}
    selected = {"selector": {"matchLabels": labels}, "template": template}
    kinds: dict[tuple[str, str], Object] = {
        ("v1", "Pod"): {"spec": {**spec, "schedulingGates": GATE}},
        ("v1", "PodTemplate"): {"template": template},
        ("v1", "ReplicationController"): {"spec": {"replicas": 0, "selector": labels, "template": template}},
        ("apps/v1", "ReplicaSet"): {"spec": {"replicas": 0, **selected}},
        ("apps/v1", "Deployment"): {"spec": {"replicas": 0, **selected}},
        ("apps/v1", "StatefulSet"): {"spec": {"replicas": 0, "serviceName": "x", **selected}},
        ("apps/v1", "DaemonSet"): {"spec": selected},
        ("batch/v1", "Job"): {"spec": {"suspend": True, "template": {"spec": once}}},
        ("batch/v1", "CronJob"): {
            "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": {"spec": once}}}}
        },
    }
    return [cluster.object(*kind, f"shape-{kind[1].lower()}", **copy.deepcopy(more)) for kind, more in kinds.items()]


def pod_spec(obj: Object) -> Object:
    """Return the PodSpec of an object of a built-in kind."""
    spec: Object = obj["template"]["spec"] if obj["kind"] == "PodTemplate" else obj["spec"]
    if obj["kind"] == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    inner: Object = spec["template"]["spec"] if "template" in spec else spec
    return inner


def claims(obj: Object) -> Object:
    """Return what an object says about claims: entries of the pod, and those of its containers by name."""
    spec = pod_spec(obj)
    found = {each["name"]: each.get("resources", {}) for each in [*spec.get("initContainers", []), *spec["containers"]]}
    return {"pod": spec.get("resourceClaims"), **found}


def same_claims(stored: Object, written: Object) -> bool:
    """Return whether a stored object has the claims that were written, and no request but that of a limit of zero."""
    found, expected = claims(stored), claims(written)
    zero = found.pop("none").get("limits")
    assert expected.pop("none") == {"limits": {GPU: 0}}
    return bool(zero == {GPU: "0"} and found == expected)


def versions(cluster: Cluster, objects: list[Object]) -> list[str]:
    """Return the resourceVersions of objects once nobody has written to any of them for a while.

    A controller writes the names of a pod's claims into its status; that comes first.
    """

    def now() -> list[str]:
        return [cluster.client.read(obj)["metadata"]["resourceVersion"] for obj in objects]

    pods = [obj for obj in objects if obj["kind"] == "Pod"]
    wanted = sum(len(obj["spec"]["resourceClaims"]) for obj in pods)
    wait_for(
        "all claims are named",
        lambda: sum(len(scheduling.claim_names(cluster.client.read(obj))) for obj in pods) == wanted,
    )
    seen, since = now(), time.monotonic()
    while time.monotonic() - since < QUIET:
        newer = now()
        if newer != seen:
            seen, since = newer, time.monotonic()
    return seen


def apply(cluster: Cluster, objects: list[Object], *flags: str) -> tuple[list[str], list[str]]:
    """Apply objects with kubectl in one input; return the kinds that the server refuses, and the lines it prints."""
    done = cluster.kubectl("apply", "-f-", *flags, stdin={"apiVersion": "v1", "kind": "List", "items": objects})
    refused = [obj["kind"] for obj in objects if f'"{obj["metadata"]["name"]}" is invalid' in done.stderr]
    assert done.returncode == bool(refused), done.stderr
    return refused, done.stdout.splitlines()


def in_order(made: list[Converted]) -> list[Object]:
    """Return all objects, each after its templates, as they stand in converted files."""
    return [obj for each in made for obj in (*each.templates, each.object)]


def _twice(cluster: Cluster, flags: tuple[str, ...], attempts: int = 5) -> int:
    """Apply every shape twice; the second time must change nothing. Return how many there are."""
    made = [convert(each) for each in shapes(cluster)]
    objects = in_order(made)
    assert apply(cluster, objects, *flags)[0] == []
    before = versions(cluster, objects)
    refused, printed = apply(cluster, objects, *flags)
    after = versions(cluster, objects)
    # Controllers write status when they like. An apply that changes something does so each time, they do not.
    while after != before and (attempts := attempts - 1):
        before = after
        refused, printed = apply(cluster, objects, *flags)
        after = versions(cluster, objects)
    assert after == before
    assert refused == []
    # `configured` would say that a default is missing in the file, in a list that is compared as a whole.
    templates = {line.split()[-1] for line in printed if line.startswith("resourceclaimtemplate")}
    assert templates == {"serverside-applied" if flags else "unchanged"}
    assert not [each for each in made if not same_claims(cluster.client.read(each.object), each.object)]
    return len(made)


def test_r15_client_side(cluster: Cluster, answer: Answer) -> None:
    """Nine kinds, converted, by `kubectl apply`, and once more."""
    count = _twice(cluster, ())
    answer(f"all {count} taken as written; the second time resourceVersions stay and templates are `unchanged`")


def test_r15_server_side(cluster: Cluster, answer: Answer) -> None:
    """The same by `kubectl apply --server-side`."""
    count = _twice(cluster, ("--server-side",))
    answer(f"all {count} taken as written; the second time resourceVersions stay")


def _over_legacy(cluster: Cluster, flags: tuple[str, ...]) -> list[str]:
    """Apply every shape as legacy, then converted. Return the kinds that refuse the change."""
    legacy = shapes(cluster)
    made = [convert(each) for each in legacy]
    assert apply(cluster, legacy, *flags)[0] == []
    refused, _ = apply(cluster, in_order(made), *flags)
    told = {each.object["kind"] for each in made if "DRA103" in each.codes}
    assert told == {*refused, "ReplicationController", "ReplicaSet"}  # these take it, and keep the pods that they have
    for each in made:
        if each.object["kind"] in refused:
            replaced = cluster.kubectl("replace", "--force", "--grace-period=0", "-f-", stdin=each.object)
            assert replaced.returncode == 0, replaced.stderr
    assert not [each for each in made if not same_claims(cluster.client.read(each.object), each.object)]
    return refused


def test_r15_over_legacy_client_side(cluster: Cluster, answer: Answer) -> None:
    """Nine kinds that exist as legacy, the converted file by `kubectl apply` (a three-way strategic merge)."""
    refused = _over_legacy(cluster, ())
    assert refused == ["Pod", "Job"]
    answer("limits go, claims come; Pod and Job refuse, `kubectl replace --force` does it")


def test_r15_over_legacy_server_side(cluster: Cluster, answer: Answer) -> None:
    """The same by `kubectl apply --server-side`."""
    refused = _over_legacy(cluster, ("--server-side",))
    assert refused == ["Pod", "Job"]
    answer("limits go, claims come; Pod and Job refuse, `kubectl replace --force` does it")


def test_r15_strategic_merge(cluster: Cluster, answer: Answer) -> None:
    """Strategic merge patches over converted objects: another image, one more claim, and the way back to the limit."""
    for legacy in shapes(cluster):
        if legacy["kind"] in ("Pod", "Job"):
            continue
        made = install(cluster, legacy)
        stored = cluster.client.create(made.object)
        image = {"containers": [{"name": "main", "image": "registry.example/app:2"}]}
        patched = cluster.client.patch(made.object, _around(legacy["kind"], image), STRATEGIC_MERGE_PATCH)
        assert claims(patched) == claims(stored)
        assert pod_spec(patched)["containers"][0]["image"] == "registry.example/app:2"
        more = {"resourceClaims": [{"name": "net", "resourceClaimTemplateName": "net"}]}
        patched = cluster.client.patch(made.object, _around(legacy["kind"], more), STRATEGIC_MERGE_PATCH)
        assert [each["name"] for each in claims(patched)["pod"]] == [
            "net",
            *(each["name"] for each in claims(stored)["pod"]),
        ]
        back = {"containers": [{"name": "main", "resources": {"claims": None, "limits": {GPU: 2}}}]}
        patched = cluster.client.patch(made.object, _around(legacy["kind"], back), STRATEGIC_MERGE_PATCH)
        assert "claims" not in claims(patched)["main"]
        assert claims(patched)["other"] == claims(stored)["other"]
    answer("claims stay, entries merge by name, `claims: null` takes them off")


def _around(kind: str, spec: Object) -> Object:
    """Return a patch that holds a part of a PodSpec at its place in a kind."""
    template = {"template": {"spec": spec}}
    if kind == "PodTemplate":
        return template
    return {"spec": {"jobTemplate": {"spec": template}} if kind == "CronJob" else template}


def admitted(cluster: Cluster, legacy: Object) -> Object:
    """Create a Pod as a webhook has it stored when somebody applies a legacy manifest; return it as stored."""
    text = json.dumps(legacy)
    applied = {**legacy, "metadata": {**legacy["metadata"], "annotations": {LAST_APPLIED: text}}}
    return cluster.client.create(install(cluster, applied, ADMISSION).object)


def test_r13_converted_input(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """What the server gives back of converted pods, of files and of admission, planned again."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 8))])
    init = [container("load", 2), container("proxy", 1, sidecar=True)]
    for name, options in (("file", None), ("admission", ADMISSION)):
        made = install(cluster, pod(name, container("a", 1), container("b", 1), init=init), options)
        assert cluster.outcome(made.object).node == "h100"
        for stored in (made.object, cluster.client.read(made.object)):
            for style in (None, ADMISSION):
                again = plan(stored, style) if style else plan(stored)
                assert (again.operations, again.templates) == ((), ())
    for each in cluster.client.list("resource.k8s.io/v1", "ResourceClaimTemplate", cluster.namespace):
        assert plan(each).operations == ()
    answer("pods and templates come back so that `plan` has nothing to do")


def test_r13_reapplied(cluster: Cluster, answer: Answer) -> None:
    """A bare legacy Pod, converted at admission, applied again from the same file, on either side."""
    legacy = cluster.here(one_gpu("bare", 2, schedulingGates=GATE))
    versions(cluster, [admitted(cluster, legacy)])
    stored = cluster.client.read(legacy)
    for flags in ((), ("--server-side", "--force-conflicts")):
        done = cluster.kubectl("apply", "-f-", *flags, stdin=legacy)
        assert done.returncode == 1
        assert "pod updates may not change fields" in done.stderr.lower()
    assert versions(cluster, [stored]) == [stored["metadata"]["resourceVersion"]]
    # What a webhook sees of that update: the limit is back in both maps, beside our claim.
    merged = copy.deepcopy(stored)
    merged["spec"]["containers"][0]["resources"] |= {"limits": {GPU: "2"}, "requests": {GPU: "2"}}
    made = plan(merged, ADMISSION)
    assert made.templates == ()
    stripped = jsonpatch.apply_patch(merged, [dict(step) for step in made.operations])
    assert stripped == stored
    assert cluster.client.put(stripped)["metadata"]["resourceVersion"] == stored["metadata"]["resourceVersion"]
    answer("refused: pod updates may not change resources; stripped by `plan` it is taken and changes nothing")


def test_r13_other_amount(cluster: Cluster, answer: Answer) -> None:
    """The same with another amount in the file."""
    stored = admitted(cluster, cluster.here(one_gpu("bare", 2)))
    done = cluster.kubectl("apply", "-f-", stdin=cluster.here(one_gpu("bare", 3)))
    assert (done.returncode, "pod updates may not change fields" in done.stderr.lower()) == (1, True)
    merged = copy.deepcopy(stored)
    merged["spec"]["containers"][0]["resources"] |= {"limits": {GPU: "3"}, "requests": {GPU: "3"}}
    assert codes(merged, ADMISSION) == ["DRA314"]
    assert not names_a_gpu(cluster.client.read(stored))
    answer("refused; `plan` leaves it to the server")


def test_r13_same_name_again(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A converted Pod created, deleted and created again by the same name, on a node with one GPU."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    names = set()
    for _ in range(3):
        made = install(cluster, one_gpu("again"), ADMISSION)
        assert cluster.outcome(made.object).node == "h100"
        (claim,) = cluster.client.list("resource.k8s.io/v1", "ResourceClaim", cluster.namespace)
        owner = claim["metadata"]["ownerReferences"][0]
        assert owner["uid"] == cluster.client.read(made.object)["metadata"]["uid"]
        names.add(claim["metadata"]["name"])
        scheduling.free_devices(cluster.client, cluster.namespace)
    assert len(names) == 3
    answer("each pod gets a claim of its own, gone with the pod; the device is free for the next")
