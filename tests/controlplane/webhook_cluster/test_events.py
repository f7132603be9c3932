"""Events on the owners of pods: written once in a while, and never in anybody's way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from controlplane.client import Object, wait_for
from controlplane.testbed import Cluster
from controlplane.webhook_cluster.gate import Gate
from controlplane.webhook_cluster.running import Run
from gpu2dra_webhook.cluster import client
from gpu2dra_webhook.cluster.events import EventRecorder
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.ports import OwnerReference

if TYPE_CHECKING:
    from pathlib import Path


def owner(name: str = "web", uid: str = "0d5ee5b6-7bd5-4b4c-9ad4-5b1f1b0c6a11") -> OwnerReference:
    """Return an owner of pods."""
    return OwnerReference("apps/v1", "ReplicaSet", name, uid)


def events(cluster: Cluster) -> list[Object]:
    """Return the Events of the test's namespace that the webhook wrote."""
    found = cluster.client.list("v1", "Event", cluster.namespace)
    return [event for event in found if event["reportingComponent"] == "gpu2dra-webhook"]


def test_an_event_stands_on_the_owner(cluster: Cluster, run: Run) -> None:
    recorder = run(pod_name="webhook-1").parts.recorder
    recorder.record(cluster.namespace, owner(), "GPUNotConverted", "A reason.", warning=True)
    event = wait_for("it is written", lambda: events(cluster))[0]
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "namespace": cluster.namespace,
        "uid": "0d5ee5b6-7bd5-4b4c-9ad4-5b1f1b0c6a11",
    }  # fmt: skip
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "GPUNotConverted", "A reason.")
    assert event["reportingInstance"] == "webhook-1"


def test_the_same_is_told_once_in_a_while(cluster: Cluster, run: Run) -> None:
    recorder = run().parts.recorder
    for _ in range(5):
        recorder.record(cluster.namespace, owner(), "GPUConverted", "One.", warning=False)
    recorder.record(cluster.namespace, owner(), "GPUNotConverted", "Two.", warning=True)
    recorder.record(cluster.namespace, owner(uid="another"), "GPUConverted", "Three.", warning=False)
    recorder.record(cluster.namespace, None, "GPUConverted", "Nobody's.", warning=False)
    wait_for("they are written", lambda: len(events(cluster)) >= 3)
    assert sorted(event["message"] for event in events(cluster)) == ["One.", "Three.", "Two."]


def test_long_names_and_messages_fit(cluster: Cluster, run: Run) -> None:
    replica = run()
    replica.parts.recorder.record(
        cluster.namespace, owner("n" * 219 + "." + "x" * 33), "GPUConverted", "m" * 5000, warning=False
    )
    event = wait_for("it is written", lambda: events(cluster))[0]
    assert event["message"] == "m" * 1024
    assert replica.count("events_dropped") == 0


@pytest.fixture
def held(gate: Gate) -> Iterator[tuple[EventRecorder, Metrics]]:
    """Return a recorder whose API server does not answer until the test ends."""
    api, metrics = client.connect(gate.kubeconfig), Metrics()
    recorder = EventRecorder(api, metrics, "webhook", quiet=0, burst=2000)
    gate.hold()
    recorder.start()
    yield recorder, metrics
    gate.release()
    recorder.stop()
    api.close()


def test_a_server_that_hangs_holds_nobody_up(cluster: Cluster, held: tuple[EventRecorder, Metrics]) -> None:
    recorder, metrics = held
    began = time.monotonic()
    for _ in range(1100):
        recorder.record(cluster.namespace, owner(), "GPUConverted", "One.", warning=False)
    assert time.monotonic() - began < 4  # one call alone would take five seconds
    dropped = metrics._registry.get_sample_value("gpu2dra_events_dropped_total")
    assert dropped is not None
    assert 90 <= dropped <= 100


def test_a_refusal_is_counted_and_nothing_else(cluster: Cluster, rights: Path) -> None:
    api, metrics = client.connect(cluster.plane.kubeconfig("nobody")), Metrics()
    recorder = EventRecorder(api, metrics, "webhook")
    recorder.start()
    recorder.record(cluster.namespace, owner(), "GPUConverted", "One.", warning=False)
    recorder.record("../x", owner("other"), "GPUNotConverted", "One.", warning=False)
    recorder.stop()
    api.close()
    assert metrics._registry.get_sample_value("gpu2dra_events_dropped_total") == 2
