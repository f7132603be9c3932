"""What the tests of the webhook stand on: Services that lead to local processes, tokens, a server that goes away."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import urllib3

from controlplane.client import Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.creations import Load
from controlplane.daemons import free_port
from controlplane.testbed import add_namespace
from controlplane.workloads import one_gpu

if TYPE_CHECKING:
    from pathlib import Path

READER = "system:serviceaccount:harness:reader"
OPTIONS = Options(audited_users=[READER])
NAMESPACE = "harness"
RESOURCES = ["configmaps", "pods"]


class Backend(ThreadingHTTPServer):
    """A webhook that allows everything and says in an annotation which backend it was."""

    daemon_threads = True

    def __init__(self, certificate: Path, key: Path) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self.thread.start()

    def end(self) -> None:
        """Stop listening; open connections go on."""
        self.shutdown()
        self.server_close()
        self.thread.join()


class Answering(BaseHTTPRequestHandler):
    """Answers one review after the other on a connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment

    def do_POST(self) -> None:
        """Answer a review with a patch."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = [{"op": "add", "path": "/data", "value": {"backend": str(self.connection.getsockname()[1])}}]
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch", "patch": encoded}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's own name for it
        """Say nothing."""


@pytest.fixture(scope="module")
def plane(own_control_plane: ControlPlane) -> ControlPlane:
    add_namespace(own_control_plane.client, NAMESPACE)
    return own_control_plane


@pytest.fixture
def service(plane: ControlPlane) -> Iterator[str]:
    """Return the address of a Service that a webhook configuration for ConfigMaps names."""
    metadata = {"name": "hook", "namespace": NAMESPACE}
    made: Object = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}
    stored = plane.client.create(made)
    authority = base64.b64encode(plane.certificate_authority.read_bytes()).decode()
    webhook = {
        "name": "harness.gpu2dra.dev",
        "clientConfig": {"service": {**metadata, "path": "/"}, "caBundle": authority},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": RESOURCES}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "harness"},
        "webhooks": [webhook],
    }
    plane.client.create(configuration)
    yield f"{stored['spec']['clusterIP']}:443"
    plane.client.delete(configuration)
    plane.client.delete(made)


@pytest.fixture
def backends(plane: ControlPlane) -> Iterator[list[Backend]]:
    files = plane.serving_certificate("hook", [f"hook.{NAMESPACE}.svc"])
    made = [Backend(*files) for _ in range(2)]
    yield made
    for each in made:
        each.end()
        plane.services.cut(each.server_port)


def config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": NAMESPACE}}


def asked(plane: ControlPlane) -> str | None:
    """Create a ConfigMap and return which backend was asked; None when none was or none answered."""
    created = plane.client.try_create(config_map("asked"))
    plane.client.delete(config_map("asked"))
    return str(created.object["data"]["backend"]) if created.accepted and "data" in created.object else None


def test_a_service_leads_to_local_backends_in_turn(plane: ControlPlane, service: str, backends: list[Backend]) -> None:
    ports = [backend.server_port for backend in backends]
    wait_for("without backends the webhook cannot be called", lambda: "harness.gpu2dra.dev" in refusal(plane))

    plane.services.set_backends(service, ports[:1])
    assert wait_for("the first backend is asked", lambda: asked(plane)) == str(ports[0])
    assert plane.services.open_connections() == {ports[0]: 1}

    # The connection to the first stays in use; a broken one makes the API server connect anew.
    plane.services.set_backends(service, ports[1:])
    assert [asked(plane) for _ in range(3)] == [str(ports[0])] * 3
    plane.services.cut(ports[0])
    assert wait_for("the second backend is asked", lambda: asked(plane)) == str(ports[1])
    assert plane.services.open_connections() == {ports[1]: 1}

    plane.services.set_backends(service, ports)
    found = set()

    def look() -> bool:
        for port in ports:
            plane.services.cut(port)
        found.add(asked(plane))
        return found >= set(map(str, ports))

    wait_for("both backends are asked", look)


def test_a_backend_that_does_not_listen_is_not_left_out(plane: ControlPlane, service: str) -> None:
    plane.services.set_backends(service, [free_port()])
    wait_for("the webhook cannot be called", lambda: "harness.gpu2dra.dev" in refusal(plane))
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
    load = Load(plane, [pod | {"metadata": {"name": "load", "namespace": NAMESPACE}}], at_least=20)
    wait_for("the webhook cannot be called", lambda: "harness.gpu2dra.dev" in refusal(plane))
    refused = load.run()
    assert (refused.created, refused.by_us, refused.by_outage) == (0, 20, 0)
    assert len(refused.messages) == 1
    assert "harness.gpu2dra.dev" in str(refused)


def test_creations_go_on_when_the_server_comes_back(plane: ControlPlane) -> None:
    pod = one_gpu("load", schedulingGates=[{"name": "example.com/wait"}])
    with Load(plane, [pod | {"metadata": {"name": "load", "namespace": NAMESPACE}}], at_least=50) as load:
        load.wait_for_more(10)
        plane.restart_api_server()
        load.wait_for_more(10)
    counts = load.counts
    pods = [each["metadata"]["name"] for each in plane.client.list("v1", "Pod", NAMESPACE)]
    assert counts.created == counts.unconverted == len(pods) == len(counts.seconds)
    assert counts.created >= 50
    assert (counts.converted, counts.by_us) == (0, 0)
    assert counts.by_outage > 0
