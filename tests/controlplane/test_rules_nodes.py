"""R7 and R10: tainted nodes, and pods that a scheduler does not place or places by priority."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from controlplane import gpus, scheduling
from controlplane.client import Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import ADMISSION, GPU, codes, convert, install, one_gpu, request, template
from gpu2dra import Context
from gpu2dra import Options as PlanOptions

Answer = Callable[[str], None]
TAINT = {"key": GPU, "value": "present", "effect": "NoSchedule"}
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
UNTOLERATED = PlanOptions(tolerations=False)


def for_gpus(pod: Object) -> list[object]:
    """Return the tolerations of a stored pod, without those that every pod gets."""
    return [each for each in pod["spec"].get("tolerations", []) if not each["key"].startswith("node.kubernetes.io/")]


def test_r07_without_the_plugin(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A tainted node and no ExtendedResourceToleration plugin; converted with and without the toleration."""
    machines([gpus.Machine("tainted", gpus.whole(gpus.H100, 2), taints=(TAINT,))])
    assert for_gpus(cluster.client.create(cluster.here(one_gpu("legacy")), dryRun="All")) == []
    bare, tolerant = (install(cluster, one_gpu(name), how) for name, how in (("bare", UNTOLERATED), ("tolerant", None)))
    refused, found = cluster.outcomes([bare.object, tolerant.object])
    assert "untolerated taint" in refused.message
    assert found.node == "tainted"
    assert for_gpus(cluster.client.read(tolerant.object)) == [TOLERATION]
    answer("legacy pod gets no toleration; converted runs with ours, waits without")


@pytest.fixture(scope="module")
def with_plugins(release: str, control_plane: ControlPlane) -> Iterator[Cluster]:
    """Return a cluster of its own that runs two plugins which others do not, and one tainted node."""
    options = Options(admission_plugins=["ExtendedResourceToleration", "NodeRestriction"])
    with ControlPlane(control_plane.binaries, options) as plane:
        tainted = gpus.Machine("tainted", gpus.whole(gpus.H100, 2), taints=(TAINT,))
        for obj in (*gpus.device_classes(), *tainted.objects()):
            plane.client.create(obj)
        yield Cluster(release, plane, "default")


def test_r07_with_the_plugin(with_plugins: Cluster, answer: Answer) -> None:
    """The same with the plugin: legacy, converted file without the toleration, converted after the plugin has run."""
    cluster = with_plugins
    admitted = cluster.client.create(cluster.here(one_gpu("legacy")), dryRun="All")
    assert for_gpus(admitted) == [TOLERATION]
    # As a webhook sees it: the plugin has run, and tolerations stay when the limit goes.
    webhook = install(cluster, one_gpu("admitted", tolerations=admitted["spec"]["tolerations"]), ADMISSION)
    bare, tolerant = (install(cluster, one_gpu(name), how) for name, how in (("bare", UNTOLERATED), ("tolerant", None)))
    outcomes = cluster.outcomes([webhook.object, bare.object, tolerant.object])
    assert [found.node for found in outcomes] == ["tainted", "", "tainted"]
    assert "untolerated taint" in outcomes[1].message
    for made in (webhook, tolerant):
        assert for_gpus(cluster.client.read(made.object)) == [TOLERATION]
    assert for_gpus(cluster.client.read(bare.object)) == []
    answer("adds it to legacy pods only; ours, or its own of before the conversion, lets the pod run")


def test_r10_mirror_pods(with_plugins: Cluster, answer: Answer) -> None:
    """The mirror pod that a kubelet creates of a static pod, NodeRestriction on: legacy, and with claims."""
    cluster = with_plugins
    group = "rbac.authorization.k8s.io"
    binding = {"apiVersion": f"{group}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "nodes"}}
    role = {"kind": "ClusterRole", "name": "cluster-admin", "apiGroup": group}
    subject = {"kind": "Group", "name": "system:nodes", "apiGroup": group}
    cluster.client.create({**binding, "roleRef": role, "subjects": [subject]})
    uid = cluster.client.get("v1", "Node", "tainted")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "tainted", "uid": uid, "controller": True}
    kubelet = cluster.plane.client_as("system:node:tainted", ["system:nodes"])
    legacy, converted = cluster.here(one_gpu("static")), install(cluster, one_gpu("static")).object
    for obj in (legacy, converted):
        obj["metadata"] |= {"annotations": {"kubernetes.io/config.mirror": "hash"}, "ownerReferences": [owner]}
        obj["spec"]["nodeName"] = "tainted"
    assert codes(legacy) == ["DRA202"]
    assert kubelet.try_create(legacy, dryRun="All").accepted
    refused = kubelet.try_create(converted, dryRun="All")
    assert (refused.status, "can not create pods that reference resourceclaim" in refused.object["message"]) == (
        403,
        True,
    )
    answer("legacy taken, with claims refused: a node may not create pods that reference them")


def test_r10_node_name(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A pod with nodeName, which bypasses the scheduler: as it is, and with claims."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    assert codes(one_gpu("pinned", nodeName="h100")) == ["DRA203"]
    made = install(cluster, one_gpu("pinned"))
    made.object["spec"]["nodeName"] = "h100"
    cluster.client.create(made.object)
    claim = wait_for("a claim", lambda: cluster.client.list("resource.k8s.io/v1", "ResourceClaim", cluster.namespace))[
        0
    ]
    # The next pod is scheduled and gets the only device: so nobody has come to allocate it for the first.
    other = install(cluster, one_gpu("scheduled"))
    assert cluster.outcome(other.object).node == "h100"
    assert "allocation" not in cluster.client.read(claim).get("status", {})
    answer("bound, its claim is never allocated, and the device goes to the next pod")


def test_r10_other_scheduler(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A pod for a scheduler that does not exist here, which `plan` leaves alone."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    assert codes(one_gpu("theirs", schedulerName="other")) == ["DRA206"]
    made = install(cluster, one_gpu("theirs"))
    made.object["spec"]["schedulerName"] = "other"
    theirs = cluster.client.create(made.object)
    claim = wait_for("a claim", lambda: cluster.client.list("resource.k8s.io/v1", "ResourceClaim", cluster.namespace))[
        0
    ]
    ours = install(cluster, one_gpu("ours"))
    assert cluster.outcome(ours.object).node == "h100"
    assert "nodeName" not in cluster.client.read(theirs)["spec"]
    assert "allocation" not in cluster.client.read(claim).get("status", {})
    answer("claim made, but allocation is the work of the scheduler that the pod names")


def test_r10_priority(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A full node, and a pod of higher priority that wants a GPU: legacy and converted."""
    machines([gpus.plugin("plugin", 1), gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    important = cluster.client.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "value": 1000,
            "metadata": {"name": "important"},
        }
    )
    try:
        low = cluster.here(one_gpu("low"))
        low_claims = install(cluster, one_gpu("low-claims")).object
        assert [found.node for found in cluster.outcomes([low, low_claims])] == ["plugin", "h100"]
        high = cluster.client.create(cluster.here(one_gpu("high", priorityClassName="important")))
        legacy = wait_for("a victim", lambda: cluster.client.read(low)["metadata"].get("deletionTimestamp"))
        assert legacy
        wait_for("a nomination", lambda: cluster.client.read(high)["status"].get("nominatedNodeName") == "plugin")
        known = Context(priorities={"important": 1000})
        made = install(cluster, one_gpu("high-claims", priorityClassName="important"), context=known)
        assert "DRA104" in made.codes
        found = cluster.outcome(made.object)
        assert "nominatedNodeName" not in cluster.client.read(made.object)["status"]
        assert "deletionTimestamp" not in cluster.client.read(low_claims)["metadata"]
        assert "cannot allocate all claims" in found.message
    finally:
        cluster.client.delete(important)
    answer("legacy evicts the lower pod; converted waits, nobody is evicted")


def test_r10_both_on_one_node(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A node whose one GPU is reported by the device plugin and published by the driver as well."""
    machines([gpus.Machine("mixed", gpus.whole(gpus.H100, 1), resources={GPU: 1})])
    legacy, converted = one_gpu("legacy"), install(cluster, one_gpu("converted")).object
    assert [found.node for found in cluster.outcomes([legacy, converted])] == ["mixed", "mixed"]
    answer("both pods bound: one GPU handed out twice")


def test_r10_class_missing(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A claim for a DeviceClass that does not exist."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    made = convert(cluster.here(one_gpu("early")))
    missing = template(made.templates[0]["metadata"]["name"], request("main", 1, "not.there.yet"))
    cluster.client.create(cluster.here(missing))
    assert "device class not.there.yet does not exist" in cluster.outcome(made.object).message
    assert not scheduling.devices_by_container(cluster.client, made.object)["main"]
    answer("template and pod taken, pod waits: the class does not exist")
