"""Pods of kubernetes#138407 whose claims come and go while they are looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

from gpu2dra import ApiVersion
from gpu2dra_webhook.cluster import unstick
from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.discovery import Discovery
from gpu2dra_webhook.cluster.objects import Pod, waiting_groups
from gpu2dra_webhook.cluster.unstick import Unstick
from webhook.cluster.scripted import Answer, serving, status

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/one/resourceclaims"
STATUS = "PATCH /api/v1/namespaces/one/pods/several/status?fieldManager=gpu2dra&force=true"


def seen(**made: str) -> Cache[Pod]:
    """Return the cache that holds a pod of two claims whose status names those in `made`."""
    pods: Cache[Pod] = Cache(waiting_groups)
    both = frozenset({"a", "b"})
    pods.put(Key("one", "several"), Pod("1", "", both, both - made.keys(), both, frozenset(made.items()), stuck=True))
    return pods


def test_a_claim_that_is_gone_is_looked_for_again_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until the controller has forgotten that it made it, the status goes on naming it."""
    monkeypatch.setattr(unstick, "_PATIENCE", 0.0)
    there = {"a-1": False, "a-2": True, "b-1": True}

    def script(path: str) -> Answer:
        name = path.removeprefix(f"{CLAIMS}/")
        if path.startswith(CLAIMS) and not there[name]:
            return status(404, "NotFound", "no such claim")
        return Answer([{"metadata": {"name": name, "ownerReferences": [{"uid": "1"}]}}])

    discovery = mock.create_autospec(Discovery, instance=True, version=ApiVersion.V1)
    with serving(tmp_path, script) as server:
        one = Unstick(server.api, discovery)
        for made in ({"a": "a-1"}, {"b": "b-1"}):  # by then both names are known
            one.run(seen(**made), lambda: True)
        assert server.requests == [f"GET {CLAIMS}/a-1"]
        for made in ({"a": "a-2"}, {"b": "b-1"}):
            one.run(seen(**made), lambda: True)
        assert server.requests[-1] == STATUS
