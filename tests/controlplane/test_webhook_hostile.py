"""Hostile reviews at the port of a replica in a cluster: nothing that they say reaches the API server."""

from __future__ import annotations

import base64
import json
import socket
import ssl
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from controlplane import build
from controlplane.client import Object, wait_for
from controlplane.cluster import Options
from controlplane.helm import one
from controlplane.installation import Installation, templates
from controlplane.testbed import add_namespace
from controlplane.webhook_process import Replica
from gpu2dra_webhook.room import ROOM, weight
from webhook.server import hostile
from webhook.server.running import PATIENCE, SERVICE, Client, body, pod

USER = "system:serviceaccount:gpu2dra-system:gpu2dra"
OPTIONS = Options(audited_users=[USER])
VICTIM = "victim"
"""A namespace that has not opted in."""
ABOUT_ITSELF = {
    ("list", None), ("watch", None), ("get", "discovery"), ("get", "leases"), ("update", "leases"),
    ("get", "secrets"), ("get", "mutatingwebhookconfigurations"),
}  # fmt: skip
"""What a replica does anyway: fill its caches, see to the Lease and to its certificates."""


@pytest.fixture(scope="session", params=list(build.control_planes())[-1:], ids=lambda release: f"v{release}")
def release(request: pytest.FixtureRequest) -> str:
    """Return the newest release only: what is tried here is ours, not the API server's."""
    return str(request.param)


@pytest.fixture(scope="module")
def replica(installation: Installation) -> Iterator[Replica]:
    """Return a replica in the file's own control plane, with the settings that the chart comes with."""
    add_namespace(installation.plane.client, VICTIM)
    with installation.replicas() as replicas:
        (started,) = replicas.start()
        yield started


def connect(installation: Installation, replica: Replica) -> Client:
    """Return a connection to the port of the replica."""
    bundle = installation.configuration()["webhooks"][0]["clientConfig"]["caBundle"]
    context = ssl.create_default_context(cadata=base64.b64decode(bundle).decode())
    plain = socket.create_connection(("127.0.0.1", replica.port), timeout=PATIENCE)
    return Client(context.wrap_socket(plain, server_hostname=SERVICE))


@pytest.fixture
def client(installation: Installation, replica: Replica) -> Iterator[Client]:
    """Return a connection that ends with the test."""
    with connect(installation, replica) as connected:
        yield connected


def post(client: Client, content: bytes) -> tuple[int, Any]:
    """Return the status of the answer to a review, and the reason that it tells of."""
    answer = client.post(content, "/mutate?timeout=1s")
    return answer.status, answer.json["response"]["auditAnnotations"]["reason"] if answer.status == 200 else ""


def caused(installation: Installation, before: int) -> list[tuple[str, str]]:
    """Return verb and path of what the replica has sent since, but for what it does anyway."""
    events = installation.plane.audit_events(USER)[before:]
    sent = [(event["verb"], event.get("objectRef", {}).get("resource", "discovery"), event) for event in events]
    return [
        (verb, event["requestURI"])
        for verb, resource, event in sent
        if not ABOUT_ITSELF & {(verb, None), (verb, resource)}
    ]


def owned(number: int, **annotations: str) -> Object:
    """Return a legacy pod that names a controller which nobody has made."""
    made = pod("made-up")
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "made-up", "uid": f"u-{number}"}
    made["metadata"] |= {"annotations": annotations, "ownerReferences": [reference | {"controller": True}]}
    return made


def claiming(number: int) -> Object:
    """Return a pod for which the webhook would look claims up, if its namespace had opted in."""
    made = owned(number)
    made["spec"]["resourceClaims"] = [{"name": "own", "resourceClaimName": "secret-claim"}]
    made["spec"]["containers"][0]["resources"]["claims"] = [{"name": "own"}]
    return made


RECORD = json.dumps({"containers": {"server": {"nvidia.com/gpu": 2}}, "templates": {"gpu-e66e2886": {}}})
UPDATE = {"operation": "UPDATE", "oldObject": owned(0, **{"gpu2dra.dev/converted": "{}"})}
RESTORE = {"operation": "UPDATE", "oldObject": owned(0, **{"gpu2dra.dev/converted": RECORD})}


def reviews() -> Iterator[tuple[bytes, tuple[int, str]]]:
    """Yield bodies with the status and the reason of their answers."""
    yield from ((content, (400, "")) for content, _ in hostile.NO_REVIEWS)
    yield from ((body(**fields), (200, reason)) for fields, reason in hostile.NOTHING_FOR_US)
    yield from ((hostile.filled(value, 7 * hostile.MEBIBYTE), (413, "")) for value in hostile.SMALL_VALUES)
    for number, name in enumerate(hostile.STRANGE_NAMES):
        strange = owned(number)
        strange["metadata"] |= {"name": name, "labels": {name: name}}
        strange["metadata"]["ownerReferences"][0] |= {"name": name, "kind": name}
        yield body(strange, namespace=VICTIM), (200, "not-opted-in")
        yield body(strange, namespace=name), (200, "namespace-unknown") if len(name) <= 63 else (400, "")
    for number in range(110):
        made = owned(number)
        yield body(made, namespace=VICTIM, **UPDATE), (200, "not-ours")
        yield body(made, namespace=VICTIM, **RESTORE), (200, "not-ours")
        yield body(made, namespace=VICTIM), (200, "not-opted-in")
        yield body(claiming(number), namespace=VICTIM), (200, "not-opted-in")


def test_nothing_that_hostile_reviews_say_is_sent_to_the_api_server(
    installation: Installation, replica: Replica, client: Client
) -> None:
    before = len(installation.plane.audit_events(USER))
    found = [(post(client, content), expected) for content, expected in reviews()]
    assert [pair for pair in found if pair[0] != pair[1]] == []
    assert len(found) > 400
    # Events are written by a thread of their own: one that is right, and was asked for last, is written after all.
    namespace = "opted-in"
    add_namespace(installation.plane.client, namespace, {"gpu2dra.dev/convert": "true"})
    assert wait_for("it is known", lambda: post(client, body(owned(1000), namespace=namespace))) == (200, "none")
    root = f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaimtemplates"
    wanted = [
        ("create", f"{root}?fieldManager=gpu2dra"),
        ("create", f"/api/v1/namespaces/{namespace}/events"),
    ]
    wait_for("its Event is written", lambda: len(caused(installation, before)) >= len(wanted))
    assert caused(installation, before) == wanted
    assert templates(installation.plane.client, VICTIM) == set()
    assert replica.metric("gpu2dra_errors_total") == 0


def test_reviews_that_wait_together_take_no_more_memory_than_the_container_has(
    installation: Installation, replica: Replica, client: Client
) -> None:
    """Each is as large as one may be, and waits for a namespace that nobody has made."""
    value = hostile.SMALL_VALUES[3]
    whole = hostile.filled(value, hostile.MEBIBYTE)
    size = int(0.95 * hostile.MEBIBYTE * (ROOM // 2) / weight(whole))

    def send(number: int) -> tuple[int, Any]:
        with connect(installation, replica) as connection:
            return post(connection, hostile.filled(value, size, namespace=f"nobodys-{number}"))

    with ThreadPoolExecutor(24) as pool:
        sent = [pool.submit(send, number) for number in range(48)]
        # An ordinary one goes through all the while.
        asked = [post(client, body(owned(number), namespace=VICTIM)) for number in range(100)]
        answers = Counter(future.result() for future in sent)
    assert set(asked) == {(200, "not-opted-in")}
    assert answers.keys() == {(200, "namespace-unknown"), (503, "")}
    limit = one(list(installation.objects), "Deployment")["spec"]["template"]["spec"]["containers"][0]["resources"]
    assert limit["limits"]["memory"] == "256Mi"
    status = Path(f"/proc/{replica.pid}/status").read_text()
    assert next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) < 256 * 1024
