"""R12: what a LimitRange and a ResourceQuota make of converted pods."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from controlplane import gpus, scheduling
from controlplane.client import Object, wait_for
from controlplane.cluster import ControlPlane
from controlplane.testbed import AddMachines, Cluster, add_namespace, remove_namespace
from controlplane.workloads import GPU, codes, container, install, one_gpu, pod
from gpu2dra import plan

Answer = Callable[[str], None]
DEVICES = "gpu.nvidia.com.deviceclass.resource.k8s.io/devices"


@pytest.fixture
def extended(request: pytest.FixtureRequest, release: str, control_plane: ControlPlane) -> Iterator[Cluster]:
    """Return a cluster of its own whose class has NVIDIA's `extendedResourceName: nvidia.com/gpu`, and one node."""
    with ControlPlane(control_plane.binaries) as plane:
        machine = gpus.Machine("h100", gpus.whole(gpus.H100, 4))
        for obj in (*gpus.device_classes(extended=True), *machine.objects()):
            plane.client.create(obj)
        cluster = Cluster(release, plane, "quota")
        add_namespace(plane.client, cluster.namespace)
        yield cluster
        remove_namespace(plane.client, cluster.namespace)


def limit_range(cluster: Cluster, **limits: Object) -> Object:
    """Create the namespace's one LimitRange for containers, in place of the one before."""
    made = cluster.object("v1", "LimitRange", "gpus", spec={"limits": [{"type": "Container", **limits}]})
    assert set(codes(made)) == {"DRA405"}
    cluster.client.delete(made)
    return cluster.client.create(made)


def quota(cluster: Cluster, resource: str, amount: int) -> Object:
    """Create a ResourceQuota and wait until the controller has counted what is there."""
    made = cluster.client.create(cluster.object("v1", "ResourceQuota", "gpus", spec={"hard": {resource: str(amount)}}))
    wait_for("the quota counts", lambda: "used" in cluster.client.read(made).get("status", {}))
    return made


def used(cluster: Cluster, made: Object, resource: str) -> int:
    """Return what a quota has counted of a resource."""
    return int(cluster.client.read(made)["status"]["used"][resource])


def refusal(cluster: Cluster, made: Object) -> str:
    """Return the event that says why the claim of a pod was not made."""

    def look() -> str | None:
        events = cluster.client.list("v1", "Event", cluster.namespace)
        name = made["metadata"]["name"]
        found = (each for each in events if each["involvedObject"]["name"] == name)
        return next((str(each["message"]) for each in found if each["reason"] == "FailedResourceClaimCreation"), None)

    return wait_for("an event", look)


def test_r12_limit_range(cluster: Cluster, answer: Answer) -> None:
    """Converted pods under a LimitRange with default, min, defaultRequest or max on `nvidia.com/gpu`."""
    made = install(cluster, pod("app", container("asks", 1), container("other")))

    limit_range(cluster, default={GPU: "1"})
    stored = cluster.client.create(made.object, dryRun="All")
    resources = [each["resources"] for each in stored["spec"]["containers"]]
    assert resources[0] == {
        "limits": {GPU: "1"}, "requests": {GPU: "1"}, "claims": [{"name": "gpu", "request": "asks"}]
    }  # fmt: skip
    assert resources[1] == {"limits": {GPU: "1"}, "requests": {GPU: "1"}}

    for smallest in ({"min": {GPU: "1"}}, {"defaultRequest": {GPU: "1"}}):  # a min is a default for requests
        limit_range(cluster, **smallest)
        refused = cluster.client.try_create(made.object, dryRun="All")
        assert (refused.status, "Limit must be set for non overcommitable" in refused.object["message"]) == (422, True)
    limit_range(cluster, max={GPU: "2"})
    under_max = cluster.client.try_create(made.object, dryRun="All")
    # And a max is one for limits.
    assert under_max.checked()["spec"]["containers"][0]["resources"]["limits"] == {GPU: "2"}
    answer("default and max put the limit on every container, with claims too; min refuses, it adds a request alone")


def test_r12_quota_on_the_limit(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A quota `requests.nvidia.com/gpu: 1`, no extendedResourceName: a legacy pod with 2 GPUs, the converted one."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 4))])
    counted = quota(cluster, f"requests.{GPU}", 1)
    assert codes(cluster.client.read(counted)) == ["DRA404"]
    refused = cluster.client.try_create(cluster.here(one_gpu("legacy", 2)))
    assert (refused.status, "exceeded quota" in refused.object["message"]) == (403, True)
    made = install(cluster, one_gpu("converted", 2))
    assert cluster.outcome(made.object).node == "h100"
    assert used(cluster, counted, f"requests.{GPU}") == 0
    answer("legacy refused; converted runs past the quota, which counts 0")


def test_r12_quota_with_the_name(extended: Cluster, answer: Answer) -> None:
    """The same with `extendedResourceName: nvidia.com/gpu` on the class, then a converted pod with 1 GPU."""
    kept = extended.client.get("resource.k8s.io/v1", "DeviceClass", "gpu.nvidia.com")["spec"].get(
        "extendedResourceName"
    )
    counted = quota(extended, f"requests.{GPU}", 1)
    refused = extended.client.try_create(extended.here(one_gpu("legacy", 2)))
    assert (refused.status, "exceeded quota" in refused.object["message"]) == (403, True)
    large, small = (install(extended, one_gpu(name, amount)) for name, amount in (("large", 2), ("small", 1)))
    if extended.minor < 36:
        assert kept is None
        assert extended.outcome(large.object).node == "h100"
        assert used(extended, counted, f"requests.{GPU}") == 0
        answer("the field is dropped; converted runs past the quota, which counts 0")
        return
    assert kept == GPU
    extended.client.create(large.object)
    assert "exceeded quota" in refusal(extended, large.object)
    assert extended.outcome(small.object).node == "h100"
    wait_for("the quota counts", lambda: used(extended, counted, f"requests.{GPU}") == 1)
    assert "nodeName" not in extended.client.read(large.object)["spec"]
    answer("claims count too: 2 GPUs wait, event FailedResourceClaimCreation; 1 GPU runs, the quota counts 1")


def test_r12_quota_on_devices(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A quota of one on `gpu.nvidia.com.deviceclass.resource.k8s.io/devices`, and converted pods with 1 and 2 GPUs."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 4))])
    counted = quota(cluster, DEVICES, 1)
    assert not plan(cluster.client.read(counted)).findings
    first, second = (install(cluster, one_gpu(name, amount)) for name, amount in (("first", 1), ("second", 2)))
    assert cluster.outcome(first.object).node == "h100"
    wait_for("the quota counts", lambda: used(cluster, counted, DEVICES) == 1)
    cluster.client.create(second.object)
    assert "exceeded quota" in refusal(cluster, second.object)
    assert "nodeName" not in cluster.client.read(second.object)["spec"]
    scheduling.free_devices(cluster.client, cluster.namespace, [first.object])
    wait_for("the quota counts", lambda: used(cluster, counted, DEVICES) == 0)
    answer("counts devices; the pod too many is created and waits, event FailedResourceClaimCreation")
