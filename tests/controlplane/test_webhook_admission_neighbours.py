"""The webhook and what stands around a pod: LimitRanges, quotas, DeviceClasses, and nodes with two owners of a GPU."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from controlplane import gpus, scheduling
from controlplane.client import MERGE_PATCH, Answer, Object, wait_for
from controlplane.installation import CONVERTED
from controlplane.testbed import AddMachines, Cluster
from controlplane.webhook_process import Replica
from controlplane.workloads import GPU, names_a_gpu, one_gpu
from gpu2dra.converted import ANNOTATION

pytestmark = pytest.mark.usefixtures("webhook")
NAMESPACE_LABELS = CONVERTED
CLASS = "gpu.nvidia.com"
DEVICES = f"{CLASS}.deviceclass.resource.k8s.io/devices"
MIG = "nvidia.com/mig-1g.10gb"
NOTICE = "gpu2dra: no ResourceSlice of"


def created(cluster: Cluster, amount: int = 1, resource: str = GPU) -> Answer:
    """Create a legacy pod, only to see what is made of it."""
    legacy = cluster.here(one_gpu("legacy", amount))
    legacy["spec"]["containers"][0]["resources"]["limits"] = {resource: amount}
    return cluster.client.try_create(legacy, dryRun="All")


def is_converted(answer: Answer) -> bool:
    """Whether the pod was taken and carries our record in place of the legacy request."""
    stored = answer.checked()
    converted = ANNOTATION in stored["metadata"].get("annotations", {})
    assert converted is not names_a_gpu(stored)
    return converted


def told(answer: Answer) -> str:
    """Return the one warning about a pod that was not converted."""
    (text,) = [text for text in answer.warnings if not text.startswith(NOTICE)]
    return text


def wait_until(cluster: Cluster, *, converted: bool) -> Answer:
    """Return the first answer after which the caches of the webhook, and of the server, have what was just changed."""

    def look() -> Answer | None:
        answer = created(cluster)
        # The server's own LimitRanger reads from a cache too: when the webhook's is first to know that a LimitRange is
        # gone, the converted pod is refused for the old one.
        return answer if answer.accepted and is_converted(answer) is converted else None

    return wait_for("a pod is converted" if converted else "a pod is left as it is", look)


@pytest.mark.parametrize("kind", ["default", "defaultRequest", "min", "max"])
def test_pods_stay_as_they_are_under_a_limit_range(cluster: Cluster, kind: str) -> None:
    limits = {"type": "Container", kind: {GPU: "1"}}
    # A request alone is refused: what fills it in has to fill in the limit as well.
    filled = limits | ({"default": {GPU: "1"}} if kind in ("defaultRequest", "min") else {})
    made = cluster.client.create(cluster.object("v1", "LimitRange", "gpus", spec={"limits": [filled]}))
    answer = wait_until(cluster, converted=False)
    assert told(answer).startswith(f"gpu2dra: not converted: a LimitRange of the namespace names {GPU}")
    assert is_converted(created(cluster, resource=MIG)) is False
    cluster.client.delete(made)
    wait_until(cluster, converted=True)


def quota(cluster: Cluster, hard: Object, **spec: object) -> Object:
    """Create a ResourceQuota and wait until the controller has counted what is there."""
    made = cluster.client.create(cluster.object("v1", "ResourceQuota", "gpus", spec={"hard": hard, **spec}))
    wait_for("the quota counts", lambda: "used" in cluster.client.read(made).get("status", {}))
    return made


def test_a_quota_that_would_not_count_claims_keeps_pods_as_they_are(cluster: Cluster) -> None:
    made = quota(cluster, {f"requests.{GPU}": "4"})
    answer = wait_until(cluster, converted=False)
    assert told(answer).startswith(f"gpu2dra: not converted: a ResourceQuota counts {GPU}; add {DEVICES}")
    too_many = created(cluster, 5)
    assert (too_many.status, "exceeded quota" in too_many.object["message"]) == (403, True)
    assert is_converted(created(cluster, resource=MIG))
    cluster.client.patch(made, {"spec": {"hard": {DEVICES: "4"}}}, MERGE_PATCH)
    wait_until(cluster, converted=True)


def test_a_scoped_quota_keeps_pods_as_they_are(cluster: Cluster) -> None:
    quota(cluster, {f"requests.{GPU}": "4"}, scopes=["NotTerminating"])
    answer = wait_until(cluster, converted=False)
    assert told(answer).startswith(f"gpu2dra: not converted: a scoped ResourceQuota counts {GPU}")


@contextlib.contextmanager
def changed_class(cluster: Cluster, *, extended: bool | None) -> Iterator[None]:
    """Have the class for whole GPUs carry NVIDIA's extendedResourceName, or (None) have no such class."""
    plain, other = gpus.device_classes()[0], gpus.device_classes(extended=True)[0]
    cluster.client.delete(plain)
    if extended:
        cluster.client.create(other)
    try:
        yield
    finally:
        cluster.client.delete(plain)
        cluster.client.create(plain)


def test_a_quota_counts_claims_where_the_class_carries_the_name(cluster: Cluster) -> None:
    made = quota(cluster, {f"requests.{GPU}": "4"})
    wait_until(cluster, converted=False)
    with changed_class(cluster, extended=True):
        carried = cluster.client.read(gpus.device_classes()[0])["spec"].get("extendedResourceName")
        assert carried == (GPU if cluster.minor >= 36 else None)
        answer = wait_until(cluster, converted=cluster.minor >= 36)
    if cluster.minor < 36:  # the server has dropped the field
        assert told(answer).startswith("gpu2dra: not converted: a ResourceQuota counts")
    wait_until(cluster, converted=False)
    cluster.client.delete(made)


def test_pods_are_converted_as_soon_as_their_class_appears(cluster: Cluster, webhook: Replica) -> None:
    assert is_converted(created(cluster))
    with changed_class(cluster, extended=None):
        answer = wait_until(cluster, converted=False)
        assert told(answer) == f"gpu2dra: not converted: there is no DeviceClass {CLASS}; install the DRA driver"
        assert webhook.is_ready()
        assert webhook.metric("gpu2dra_device_class_missing", device_class=CLASS) == 1
        assert is_converted(created(cluster, resource=MIG))
    wait_until(cluster, converted=True)
    assert webhook.metric("gpu2dra_device_class_missing", device_class=CLASS) == 0


def test_nothing_is_converted_while_a_node_hands_its_gpus_out_twice(
    cluster: Cluster, machines: AddMachines, webhook: Replica
) -> None:
    mixed = gpus.Machine("mixed", gpus.whole(gpus.H100, 1), {GPU: 1})
    machines([mixed])
    answer = wait_until(cluster, converted=False)
    assert told(answer) == ("gpu2dra: not converted: node mixed: device plugin and DRA driver both hand out its GPUs")
    assert webhook.is_ready()
    assert webhook.metric("gpu2dra_mixed_nodes") == 1
    node, _ = mixed.objects()
    # What the kubelet says when the device plugin is gone.
    gone = {"status": {"allocatable": {GPU: "0"}}}
    cluster.client.call("PATCH", f"{cluster.client.path_of(node)}/status", gone, MERGE_PATCH).checked()
    wait_until(cluster, converted=True)
    assert webhook.metric("gpu2dra_mixed_nodes") == 0


def test_without_any_slice_pods_are_converted_and_wait(cluster: Cluster, machines: AddMachines) -> None:
    """Nodes that start from zero have no slices until a pod wants them."""
    machines([gpus.Machine("no-gpus")])
    waiting = cluster.here(one_gpu("waiting"))
    cluster.client.create(waiting)
    assert "allocate all claims" in scheduling.wait_for_unschedulable(cluster.client, waiting)
    machines([gpus.Machine("new", gpus.whole(gpus.A10_4Q))])
    assert scheduling.wait_for_scheduled(cluster.client, waiting)["spec"]["nodeName"] == "new"
