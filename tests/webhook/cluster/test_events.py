"""How many Events are written, whoever asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu2dra_webhook.cluster.events import EventRecorder
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.ports import OwnerReference
from webhook.cluster.scripted import Answer, serving

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def owner(uid: str) -> OwnerReference:
    return OwnerReference("apps/v1", "ReplicaSet", "web", uid)


def dropped(metrics: Metrics) -> float | None:
    return metrics._registry.get_sample_value("gpu2dra_events_dropped_total")


def test_whoever_makes_owners_up_has_a_hundred_events_written_and_then_one_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("gpu2dra_webhook.cluster.events.time.monotonic", lambda: now[0])
    with serving(tmp_path, lambda path: Answer([{}], 201)) as server:
        metrics = Metrics()
        recorder = EventRecorder(server.api, metrics, "webhook")
        for number in range(300):
            recorder.record("ml", owner(f"made-up-{number}"), "GPUNotConverted", "x", warning=True)
        assert dropped(metrics) == 200
        now[0] += 5
        # Who was not told is told later; who was told is not told again.
        for number in (0, *range(200, 300)):
            recorder.record("ml", owner(f"made-up-{number}"), "GPUNotConverted", "x", warning=True)
        assert dropped(metrics) == 295
        recorder.start()
        recorder.stop()
    assert server.requests == ["POST /api/v1/namespaces/ml/events"] * 105


def test_after_a_while_as_many_may_be_written_at_once_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("gpu2dra_webhook.cluster.events.time.monotonic", lambda: now[0])
    with serving(tmp_path, lambda path: Answer([{}], 201)) as server:
        metrics = Metrics()
        recorder = EventRecorder(server.api, metrics, "webhook")
        for number in range(150):
            recorder.record("ml", owner(f"a-{number}"), "GPUNotConverted", "x", warning=True)
        now[0] += 3600
        for number in range(150):
            recorder.record("ml", owner(f"b-{number}"), "GPUNotConverted", "x", warning=True)
        assert dropped(metrics) == 100
