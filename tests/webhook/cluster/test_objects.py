"""What is kept of pods and templates."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from gpu2dra_webhook.cluster.objects import Pod, PodObject, TemplateObject, content_of, pod, template


def read_pod(status: dict[str, Any] | None, *entries: dict[str, str], deleting: bool = False) -> Pod | None:
    """Return what is kept of a pod with this status and these claims."""
    metadata = {"name": "p", "namespace": "n", "uid": "1", "creationTimestamp": "2026-11-30T17:06:29Z"}
    if deleting:
        metadata["deletionTimestamp"] = "2026-11-30T17:06:29Z"
    obj = {"metadata": metadata, "spec": {"resourceClaims": list(entries)}} | (
        {} if status is None else {"status": status}
    )
    return pod(msgspec.json.decode(json.dumps(obj), type=PodObject))


A = {"name": "a", "resourceClaimTemplateName": "gpu-1"}
B = {"name": "b", "resourceClaimTemplateName": "gpu-2"}
OWN = {"name": "own", "resourceClaimName": "mine"}


def made(*pairs: tuple[str, str | None]) -> list[dict[str, str | None]]:
    return [{"name": name, "resourceClaimName": claim} for name, claim in pairs]


@pytest.mark.parametrize(
    ("status", "entries", "waiting", "stuck"),
    [
        (None, (A, OWN), {"gpu-1"}, False),
        ({"phase": "Pending"}, (A, B), {"gpu-1", "gpu-2"}, False),
        ({"phase": "Pending", "resourceClaimStatuses": made(("a", "p-a"))}, (A, B), {"gpu-2"}, True),
        ({"phase": "Pending", "resourceClaimStatuses": made(("a", "p-a"), ("b", "p-b"))}, (A, B), set(), False),
        ({"phase": "Pending", "resourceClaimStatuses": made(("a", None))}, (A,), set(), False),
        ({"phase": "Running"}, (A,), set(), False),
        ({"phase": "Failed", "resourceClaimStatuses": made(("a", "p-a"))}, (A, B), set(), False),
    ],
    ids=["new", "nothing made", "one made", "all made", "not needed", "running", "failed"],
)
def test_a_pod_waits_for_what_is_not_made_yet(
    status: dict[str, Any] | None, entries: tuple[dict[str, str], ...], waiting: set[str], stuck: bool
) -> None:
    kept = read_pod(status, *entries)
    assert kept is not None
    assert kept.waiting == waiting
    assert kept.stuck == stuck
    assert kept.templates == {entry["resourceClaimTemplateName"] for entry in entries if entry is not OWN}


def test_a_pod_that_is_being_deleted_waits_for_nothing() -> None:
    kept = read_pod({"phase": "Pending"}, A, deleting=True)
    assert kept is not None
    assert kept.waiting == set()
    assert kept.templates == {"gpu-1"}


def test_a_pod_without_templates_is_left_out() -> None:
    assert read_pod({"phase": "Pending"}, OWN) is None
    assert read_pod({"phase": "Pending"}) is None


@pytest.mark.parametrize(
    ("metadata", "ours", "deleting", "since"),
    [
        ({"labels": {"app.kubernetes.io/managed-by": "gpu2dra", "more": "labels"}}, True, False, ""),
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, False, False, ""),
        ({"labels": None, "annotations": {"gpu2dra.dev/unused-since": "x"}}, False, False, "x"),
        ({"deletionTimestamp": "2026-11-30T17:06:29Z"}, False, True, ""),
    ],
)
def test_a_template_is_known_by_its_label(metadata: dict[str, Any], ours: bool, deleting: bool, since: str) -> None:
    obj = {"metadata": {"name": "t", "uid": "u", "resourceVersion": "7", **metadata}, "spec": {"spec": {"devices": {}}}}
    kept = template(msgspec.json.decode(json.dumps(obj), type=TemplateObject))
    assert (kept.ours, kept.deleting, kept.unused_since) == (ours, deleting, since)
    assert (kept.uid, kept.resource_version) == ("u", "7")


def test_content_is_equal_when_the_server_has_filled_defaults_in() -> None:
    sent = {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": 1}}]}}}
    flat = {"spec": {"devices": {"requests": [{"name": "a", "deviceClassName": "c"}]}}, "metadata": {}}
    more = {"spec": {"devices": {"requests": [{"name": "a", "exactly": {"deviceClassName": "c", "count": 2}}]}}}
    assert content_of(sent) == content_of(flat)
    assert content_of(sent) != content_of(more)
