"""What the tests of the webhook stand on: Services that lead to local processes, tokens, a server that goes away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
import urllib3

from controlplane import other_webhook
from controlplane.client import Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.creations import Habits, Load
from controlplane.daemons import free_port
from controlplane.demo import SIZES
from controlplane.other_webhook import OtherWebhook, Patch
from controlplane.testbed import add_namespace
from controlplane.workloads import one_gpu

if TYPE_CHECKING:
    from pathlib import Path

READER = "system:serviceaccount:harness:reader"
OPTIONS = Options(audited_users=[READER])
NAMESPACE = "harness"
WEBHOOK = "gpu2dra.example.com"


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    add_namespace(own_control_plane.client, NAMESPACE)
    return own_control_plane


@pytest.fixture
def service(plane: ControlPlane) -> Iterator[str]:
    """Return the address of a Service that a webhook configuration for ConfigMaps names."""
    made = other_webhook.service("hook", NAMESPACE)
    stored = plane.client.create(made)
    authority = plane.certificate_authority
    # Creations tell our webhooks by the name.
    configuration = other_webhook.configuration("gpu2dra", made, authority, ["configmaps", "pods"], NAMESPACE)
    plane.client.create(configuration)
    yield f"{stored['spec']['clusterIP']}:443"
    plane.client.delete(configuration)
    plane.client.delete(made)


@pytest.fixture
def ports(plane: ControlPlane) -> Iterator[list[int]]:
    """Return the ports of two backends, which say in the data of a ConfigMap which of them was asked."""

    def names(number: int) -> Patch:
        return lambda _: [{"op": "add", "path": "/data", "value": {"backend": str(number)}}]

    certificate = plane.serving_certificate("hook", [f"hook.{NAMESPACE}.svc"])
    backends = [OtherWebhook(certificate, names(number)) for number in range(2)]
    yield [backend.port for backend in backends]
    for backend in backends:
        backend.end()
        plane.services.cut(backend.port)


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}


def asked(plane: ControlPlane) -> str | None:
    """Create a ConfigMap and return which backend was asked; None when none was or none answered."""
    created = plane.client.try_create(config_map("asked"))
    plane.client.delete(config_map("asked"))
    return str(created.object["data"]["backend"]) if created.accepted and "data" in created.object else None


def test_a_service_leads_to_local_backends_in_turn(plane: ControlPlane, service: str, ports: list[int]) -> None:
    wait_for("without backends the webhook cannot be called", lambda: WEBHOOK in refusal(plane))

    plane.services.set_backends(service, ports[:1])
    assert wait_for("the first backend is asked", lambda: asked(plane)) == "0"
    assert plane.services.open_connections() == {ports[0]: 1}

    # The connection to the first stays in use; a broken one makes the API server connect anew.
    plane.services.set_backends(service, ports[1:])
    assert [asked(plane) for _ in range(3)] == ["0"] * 3
    plane.services.cut(ports[0])
    assert wait_for("the second backend is asked", lambda: asked(plane)) == "1"
    assert plane.services.open_connections() == {ports[1]: 1}

    plane.services.set_backends(service, ports)
    found = set()

    def look() -> bool:
        for port in ports:
            plane.services.cut(port)
        found.add(asked(plane))
        return found >= {"0", "1"}

    wait_for("both backends are asked", look)


def test_a_backend_that_does_not_listen_is_not_left_out(plane: ControlPlane, service: str) -> None:
    plane.services.set_backends(service, [free_port()])
    wait_for("the webhook cannot be called", lambda: WEBHOOK in refusal(plane))
    assert plane.services.open_connections() == {}


def refusal(plane: ControlPlane) -> str:
    """Return why a ConfigMap cannot be created; empty when it can."""
    answer = plane.client.try_create(config_map("refused"), dryRun="All")
    return "" if answer.accepted else str(answer.object["message"])


def test_a_restarted_server_has_everything_at_the_same_address(plane: ControlPlane) -> None:
    plane.client.create(config_map("kept"))
    before = plane.daemons.pids()["kube-apiserver"]
    plane.restart_api_server()
    assert plane.daemons.pids()["kube-apiserver"] != before
    assert plane.client.read(config_map("kept"))["metadata"]["name"] == "kept"
    plane.client.delete(config_map("kept"))


def test_nothing_is_written_while_etcd_stands_still(plane: ControlPlane) -> None:
    with ThreadPoolExecutor(1) as pool:
        with plane.daemons.paused("etcd"):
            written = pool.submit(plane.client.try_create, config_map("late"))
            with pytest.raises(TimeoutError):
                written.result(timeout=2)
        assert written.result(timeout=30).accepted
    plane.client.delete(config_map("late"))


def test_a_token_gives_the_rights_of_its_account_and_the_log_holds_its_reads(plane: ControlPlane) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "reader", "namespace": NAMESPACE}}
    plane.client.create(account)
    config = json.loads(plane.service_account_kubeconfig(NAMESPACE, "reader").read_text())
    token = config["users"][0]["user"]["token"]
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    with urllib3.PoolManager(ca_certs=str(plane.certificate_authority), retries=False) as pool:
        answer = pool.request("GET", plane.server + path, headers={"Authorization": f"Bearer {token}"})
    assert (answer.status, f'User \\"{READER}\\" cannot list' in answer.data.decode()) == (403, True)
    assert [(event["verb"], event["requestURI"]) for event in plane.audit_events(READER)] == [("list", path)]
    plane.client.list("v1", "ConfigMap", NAMESPACE)
    assert path not in [event["requestURI"] for event in plane.audit_events("gpu2dra-admin") if event["verb"] == "list"]


def test_creations_are_told_apart(plane: ControlPlane, service: str) -> None:
    pod = one_gpu("load", schedulingGates=[{"name": "example.com/wait"}])
    load = Load(plane, [pod | {"metadata": {"name": "load", "namespace": NAMESPACE}}], Habits(at_least=20))
    wait_for("the webhook cannot be called", lambda: WEBHOOK in refusal(plane))
    refused = load.run()
    assert (refused.created, refused.by_us, refused.by_outage) == (0, 20, 0)
    assert len(refused.messages) == 1
    assert WEBHOOK in str(refused)


def test_creations_go_on_when_the_server_comes_back(plane: ControlPlane) -> None:
    pod = one_gpu("load", schedulingGates=[{"name": "example.com/wait"}])
    with Load(plane, [pod | {"metadata": {"name": "load", "namespace": NAMESPACE}}], Habits(at_least=50)) as load:
        load.wait_for_more(10)
        plane.restart_api_server()
        load.wait_for_more(10)
    counts = load.counts
    pods = [each["metadata"]["name"] for each in plane.client.list("v1", "Pod", NAMESPACE)]
    assert counts.created == counts.unconverted == len(pods) == len(counts.seconds)
    assert counts.created >= 50
    assert (counts.converted, counts.by_us) == (0, 0)
    assert counts.by_outage > 0


def test_the_demo_shows_converted_pods_on_their_nodes(release: str, root: Path) -> None:
    command = [sys.executable, "-m", "controlplane", "demo", release]
    environment = os.environ | {"PYTHONPATH": str(root / "tests")}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=180)
    assert shown.returncode == 0, shown.stderr
    before, after = shown.stdout.split("=== What was stored of each of its pods")
    assert "limits:\n         nvidia.com/gpu: 1" in before
    assert "limits:" not in after
    assert "resourceClaimTemplateName: gpu-" in after
    for size, product in SIZES.items():
        assert f" on {size}: gpu-0 ({product.name})" in after
