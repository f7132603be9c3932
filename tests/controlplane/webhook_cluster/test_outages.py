"""An API server that goes away, stands still or forgets: caches come back without a hot loop and without a gap."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from controlplane.client import MERGE_PATCH, wait_for
from controlplane.testbed import Cluster
from controlplane.webhook_cluster import running
from controlplane.webhook_cluster.gate import Gate
from controlplane.webhook_cluster.running import Run, Running, name_of, template
from gpu2dra_webhook.cluster import view as views
from gpu2dra_webhook.ports import StoreError, StoreProblem

if TYPE_CHECKING:
    from pathlib import Path

CACHES = (
    "namespaces", "limitranges", "resourcequotas", "nodes", "resourceslices", "deviceclasses", "resourceclaimtemplates",
)  # fmt: skip


def failures(replica: Running) -> list[int]:
    """Return how often each cache has failed to list or watch."""
    return [reflector.failures for reflector in replica.parts.view._reflectors]


def lists(replica: Running) -> list[int]:
    """Return how often each cache has listed everything."""
    return [reflector.lists for reflector in replica.parts.view._reflectors]


def test_caches_survive_a_restart_of_the_api_server(cluster: Cluster, run: Run) -> None:
    here, plane = cluster.namespace, cluster.plane
    replica = run(janitor=True)
    view, leader = replica.parts.view, replica.parts.leader
    try:
        plane.daemons.stop("kube-apiserver")
        wait_for("all caches have noticed", lambda: min(failures(replica)) > 0)
        before = failures(replica)
        time.sleep(3)  # a hot loop would fail hundreds of times
        assert all(now - then <= 8 for now, then in zip(failures(replica), before, strict=True))
        with pytest.raises(StoreError) as caught:
            replica.ensure(here, template(), timeout=1)
        assert caught.value.kind is StoreProblem.UNAVAILABLE
        assert "cannot be reached" in caught.value.message
    finally:
        plane.restart_api_server()
    running.opt_in(cluster)
    wait_for("the label is seen", lambda: (state := view.namespace(here)) and running.is_opted_in(state))
    replica.ensure(here, template())
    cache = view.templates.cache
    assert cache.wait_for(lambda: cache.get(here, name_of(template())) is not None, 10)
    assert leader is not None
    wait_for("the janitor works again", leader.holds)


def test_what_happens_while_nothing_is_heard_is_not_missed(cluster: Cluster, run: Run, gate: Gate) -> None:
    for gpus in (1, 2, 3):
        cluster.client.create(cluster.here(template(gpus)))
    replica = run(gate.kubeconfig)
    cache = replica.parts.view.templates.cache
    listed = lists(replica)
    gate.hold()
    cluster.client.delete(cluster.here(template(1)))
    note = {"metadata": {"annotations": {running.UNUSED_SINCE: "2020-01-01T00:00:00Z"}}}
    cluster.client.patch(cluster.here(template(2)), note, MERGE_PATCH)
    cluster.client.create(cluster.here(template(4)))
    gate.cut()
    gate.release()
    wait_for("the new one is seen", lambda: cache.get(cluster.namespace, name_of(template(4))))
    held = cache.within(cluster.namespace)
    assert set(held) == {name_of(template(gpus)) for gpus in (2, 3, 4)}
    assert held[name_of(template(2))].unused_since == "2020-01-01T00:00:00Z"
    assert lists(replica) == listed  # the watch went on where it had ended


def test_a_list_of_many_pages_is_read_to_its_end(cluster: Cluster, run: Run) -> None:
    for gpus in range(1, 8):
        cluster.client.create(cluster.here(template(gpus)))
    replica = run()
    reflector = replica.parts.view.templates
    object.__setattr__(reflector.source, "page", 2)
    where = reflector.source.where()
    assert where
    reflector.cache.replace({})
    reflector._list_all(where)
    assert set(reflector.cache.within(cluster.namespace)) == {name_of(template(gpus)) for gpus in range(1, 8)}


def test_caches_of_which_nothing_is_heard_for_long_are_told(
    cluster: Cluster, run: Run, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = run(gate.kubeconfig).parts.view
    assert view.synced() == ()
    gate.hold()
    monkeypatch.setattr(views, "STALE_AFTER", 0.2)
    wait_for("it is told", lambda: view.synced() == CACHES)


def test_caches_that_were_never_filled_are_told(cluster: Cluster) -> None:
    stranger = running.run(cluster.plane.kubeconfig("nobody"), wait=False, janitor=False)
    try:
        wait_for("the version is known", lambda: stranger.parts.view.discovery.known)
        wait_for("all have tried", lambda: min(failures(stranger)) > 0)
        assert stranger.parts.view.synced() == CACHES
        assert b'gpu2dra_informer_synced{cache="nodes"} 0.0' in stranger.metrics.render()
        assert b'gpu2dra_informer_synced{cache="discovery"} 1.0' in stranger.metrics.render()
    finally:
        stranger.stop()


_UNDER_GEVENT = """
from gevent import monkey
monkey.patch_all()
import sys, threading
from pathlib import Path
from controlplane.webhook_cluster import running
replica = running.run(Path(sys.argv[1]), janitor=True)
threads = [threading.Thread(target=replica.ensure, args=(sys.argv[2], running.template())) for _ in range(20)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
cache = replica.parts.view.templates.cache
assert cache.wait_for(lambda: cache.get(sys.argv[2], running.name_of(running.template())) is not None, 20)
print(replica.count("template_operations", operation="create", result="ok"))
replica.stop()
"""


def test_all_of_it_runs_under_gevent(cluster: Cluster, rights: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", _UNDER_GEVENT, str(rights), cluster.namespace]
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": ""}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "1.0\n"), done.stderr
    assert running.names(cluster) == {name_of(template())}
