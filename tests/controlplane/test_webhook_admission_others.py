"""The webhook beside others that change the same pods: before it, after it, and against it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from controlplane import gpus, other_webhook, scheduling
from controlplane.client import Object, wait_for
from controlplane.installation import CONVERTED, is_converted
from controlplane.other_webhook import OtherWebhook, Patch
from controlplane.sharing import shared
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import GPU, container, one_gpu, pod
from gpu2dra.converted import ANNOTATION

pytestmark = pytest.mark.usefixtures("webhook")
NAMESPACE_LABELS = CONVERTED


@pytest.fixture
def second_webhook(cluster: Cluster) -> Iterator[Callable[[str, Patch], None]]:
    """Return what has another webhook review the pods of the test's namespace, by a name and with a patch."""
    made: list[tuple[OtherWebhook, Object, Object]] = []
    plane = cluster.plane

    def add(name: str, patch: Patch) -> None:
        webhook = OtherWebhook(plane.serving_certificate(name, [f"{name}.{cluster.namespace}.svc"]), patch)
        service = plane.client.create(other_webhook.service(name, cluster.namespace))
        plane.services.set_backends(f"{service['spec']['clusterIP']}:443", [webhook.port])
        authority = plane.certificate_authority
        configuration = other_webhook.configuration(name, service, authority, ["pods"], cluster.namespace)
        made.append((webhook, service, plane.client.create(configuration)))
        probe = cluster.here(pod("probe", container("main")))
        wait_for(f"{name} is asked", lambda: plane.client.create(probe, dryRun="All")["spec"]["containers"][1:])

    yield add
    for webhook, service, configuration in made:
        plane.client.delete(configuration)
        plane.client.delete(service)
        webhook.end()
        plane.services.cut(webhook.port)


def injects(amount: int) -> Patch:
    """Return a patch that adds a container with GPUs, once."""

    def patch(seen: Object) -> list[dict[str, Any]]:
        if any(each["name"] == "injected" for each in seen["spec"]["containers"]):
            return []
        return [{"op": "add", "path": "/spec/containers/-", "value": container("injected", amount)}]

    return patch


@pytest.mark.parametrize("name", ["aa-injector", "zzz-injector"])
def test_a_container_of_another_webhook_gets_its_devices_too(
    cluster: Cluster, machines: AddMachines, second_webhook: Callable[[str, Patch], None], name: str
) -> None:
    """One that comes before ours, and one that comes after, so that ours is asked for a second time."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 3))])
    second_webhook(name, injects(1))
    assert cluster.outcome(one_gpu("injected", 2)).node == "h100"
    stored = cluster.client.read(cluster.here(one_gpu("injected")))
    assert is_converted(stored)
    devices = scheduling.devices_by_container(cluster.client, stored)
    assert {name: len(set(found)) for name, found in devices.items()} == {"main": 2, "injected": 1}
    assert shared(devices) == frozenset()
    record = json.loads(stored["metadata"]["annotations"][ANNOTATION])
    assert record["containers"] == {"main": {GPU: 2}, "injected": {GPU: 1}}


def test_a_pod_gets_a_gpu_from_another_webhook_alone(
    cluster: Cluster, second_webhook: Callable[[str, Patch], None]
) -> None:
    second_webhook("aa-injector", injects(1))
    stored = cluster.client.create(cluster.here(pod("plain", container("main"))))
    assert is_converted(stored)
    assert [each["resources"].get("claims") for each in stored["spec"]["containers"]] == [
        None, [{"name": "gpu", "request": "injected"}]
    ]  # fmt: skip


def restores(seen: Object) -> list[dict[str, Any]]:
    """Return a patch that puts the limit of the first container back, as a policy does that wants one."""
    first = seen["spec"]["containers"][0]
    probed = first["resources"] == {}
    if probed:
        return [{"op": "add", "path": "/spec/containers/-", "value": container("probed")}]
    limits = {"op": "add", "path": "/spec/containers/0/resources/limits", "value": {GPU: "2"}}
    return [] if "limits" in first["resources"] else [limits]


def test_a_limit_that_another_webhook_puts_back_is_taken_off_again(
    cluster: Cluster, second_webhook: Callable[[str, Patch], None]
) -> None:
    second_webhook("zzz-restorer", restores)
    stored = cluster.client.create(cluster.here(one_gpu("restored", 2)))
    assert is_converted(stored)
    assert stored["spec"]["containers"][0]["resources"]["claims"] == [{"name": "gpu", "request": "main"}]
