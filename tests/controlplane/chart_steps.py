"""Things that happen to an installation of the chart, each of which makes the webhook use a right that it has."""

from __future__ import annotations

import time

from controlplane import gpus, workloads
from controlplane.chart_walk import OPTED_IN, Walk
from controlplane.client import MERGE_PATCH, Object, wait_for
from controlplane.testbed import add_namespace
from controlplane.workloads import GPU, container, deployment, one_gpu, pod
from gpu2dra.converted import ANNOTATION, LABEL
from gpu2dra_webhook.cluster.objects import UNUSED_SINCE
from gpu2dra_webhook.cluster.stamps import stamp

TEMPLATE = ("resource.k8s.io/v1", "ResourceClaimTemplate")


def is_converted(stored: Object) -> bool:
    """Whether a Pod carries the record of its conversion."""
    return ANNOTATION in stored["metadata"].get("annotations", {})


def reasons(walk: Walk) -> set[str]:
    """Return the reasons of the Events in the namespace."""
    return {event["reason"] for event in walk.plane.client.list("v1", "Event", walk.namespace)}


def an_event_tells_of_a_conversion(walk: Walk) -> None:
    """Create a pod that has an owner to tell it of, and delete both."""
    client = walk.plane.client
    owner = walk.create(deployment("told", 1))
    wait_for("an Event tells of it", lambda: "GPUConverted" in reasons(walk))
    client.delete(owner)
    wait_for("nothing makes pods", lambda: not client.list("apps/v1", "ReplicaSet", walk.namespace))


def a_foreign_template_is_refused(walk: Walk, template: str) -> None:
    """Take the name of a template in another namespace."""
    other = f"{walk.namespace}-foreign"
    client = walk.plane.client
    add_namespace(client, other, OPTED_IN)
    theirs = workloads.template(template, workloads.request("theirs"))
    client.create(theirs | {"metadata": {"name": template, "namespace": other}})
    answer = client.try_create(one_gpu("p") | {"metadata": {"name": "p", "namespace": other}})
    assert "another object has this name" in answer.object.get("message", "created")


def a_claim_of_the_pods_own_is_looked_at(walk: Walk) -> None:
    """Create a pod whose container has a claim of its own beside the limit."""
    request = {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "nic"}}
    walk.create(claim | {"spec": {"devices": {"requests": [request]}}})
    resources = {"limits": {GPU: 1}, "claims": [{"name": "nic"}]}
    entry = {"name": "nic", "resourceClaimName": "nic"}
    stored = walk.create(pod("own-claim", container("main", resources=resources), resourceClaims=[entry]))
    assert is_converted(stored)
    assert {claim["name"] for claim in stored["spec"]["resourceClaims"]} == {"nic", "gpu"}


def a_missing_template_comes_back(walk: Walk, converted: Object, template: str) -> None:
    """Delete a template, then have a pod name it that the webhook does not see again."""
    client = walk.plane.client
    client.delete(client.get(*TEMPLATE, template, walk.namespace))
    (main,) = converted["spec"]["containers"]
    containers = [{key: main[key] for key in ("name", "image", "resources")}]
    waiting = pod("waiting", *containers, resourceClaims=converted["spec"]["resourceClaims"])
    waiting["metadata"] |= {"labels": {LABEL: "true"}, "annotations": converted["metadata"]["annotations"]}
    stored = walk.create(waiting)
    wait_for("the template is back", lambda: template in walk.templates())
    wait_for("the pod is bound", lambda: client.read(stored)["spec"].get("nodeName"))


def an_unused_template_goes(walk: Walk) -> None:
    """Create a pod of another shape, then delete it."""
    before = set(walk.templates())
    stored = walk.create(one_gpu("short", 9))
    (unused,) = set(walk.templates()) - before
    walk.plane.client.delete(stored)
    wait_for("a template that no pod names is gone", lambda: unused not in walk.templates(), deadline=60)


def a_policy_is_taken_and_given_up(walk: Walk, values: Object) -> None:
    """Give the release of these values a policy for shares, then none; the replicas run on."""
    client = walk.plane.client
    client.create(gpus.device_class("share.example.com", "gpu"))
    policy = {
        "apiVersion": "gpu2dra.dev/v1alpha1",
        "kind": "ConversionPolicy",
        "devices": [{"name": "share", "deviceClassName": "share.example.com"}],
        "rules": [{"match": {"resources": [f"{GPU}.shared"]}, "device": "share"}],
    }

    def converted() -> bool:
        asking = container("main", 1, f"{GPU}.shared")
        return is_converted(walk.create(pod(f"share-{time.monotonic_ns()}", asking)))

    assert not converted()
    walk.upgrade(values | {"policy": policy})
    walk.mount_policy()
    wait_for("the policy holds", converted)
    walk.upgrade(values)
    walk.mount_policy()
    wait_for("it holds no more", lambda: not converted())


def a_mark_of_a_template_is_taken_off(walk: Walk, template: str) -> None:
    """Mark a template as the janitor of before would have, then create pods that need it."""
    client = walk.plane.client
    stored = client.get(*TEMPLATE, template, walk.namespace)
    client.patch(stored, {"metadata": {"annotations": {UNUSED_SINCE: stamp(time.time())}}}, MERGE_PATCH)

    def taken_off() -> bool:
        walk.create(one_gpu(f"marked-{time.monotonic_ns()}"))
        return UNUSED_SINCE not in client.read(stored)["metadata"].get("annotations", {})

    wait_for("a template that is used again has no mark", taken_off)


def the_last_template_makes_room(walk: Walk, template: str) -> None:
    """Have no pod name the only template that there may be, then create a pod of another shape."""
    client = walk.plane.client
    client.delete_all("v1", "Pod", walk.namespace)
    wanted = one_gpu("another-shape", 9)
    wanted["metadata"]["namespace"] = walk.namespace
    wait_for("an unused template makes room", lambda: client.try_create(wanted).accepted, deadline=60)
    assert template not in walk.templates()
