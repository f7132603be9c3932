"""At the cap: which template has to go for a new one, and which one never does."""

# ruff: noqa: ARG002 - stubs have the signatures of what they stand for

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.ledger import Ledger
from gpu2dra_webhook.cluster.objects import Template, content_of
from gpu2dra_webhook.cluster.provision import Provider, Wanted
from gpu2dra_webhook.cluster.stamps import stamp
from gpu2dra_webhook.ports import StoreError, StoreProblem

CAP = 5
SPEC: Any = {"spec": {"devices": {"requests": []}}}


@dataclass
class Cluster:
    """A namespace with templates and pods: the cache of templates and the calls that a Provider makes."""

    cache: Cache[Template] = field(default_factory=Cache)
    used: set[str] = field(default_factory=set)

    def fresh(self, within: float) -> bool:
        """Whether the cache is alive."""
        return True

    def get(self, key: Key, **_: Any) -> Template | None:
        """Return what is stored."""
        return self.cache.get(*key)

    def named_by_pods(self, namespace: str, **_: Any) -> frozenset[str]:
        """Return what pods name."""
        return frozenset(self.used)

    def delete(self, key: Key, seen: Template, **_: Any) -> None:
        """Delete a template."""
        self.cache.remove(key)

    def create(self, namespace: str, obj: Any, **_: Any) -> Template:
        """Make a template."""
        made = Template("uid", "1", content_of(obj["spec"]), stamp(time.time()))
        self.cache.put(Key(namespace, obj["metadata"]["name"]), made)
        return made

    def holds(self, number: int, age: float, unused_since: str = "") -> Key:
        """Have a template of this age; return its key."""
        key = key_of(number)
        self.cache.put(key, Template("uid", "1", content_of(SPEC), stamp(time.time() - age), unused_since))
        return key

    def names(self) -> set[int]:
        """Return the numbers of the templates that are there."""
        return {int(name.removeprefix("gpu-")) for name in self.cache.within("ml")}


def key_of(number: int) -> Key:
    return Key("ml", f"gpu-{number:08}")


class Clock:
    """The time that the ledger sees."""

    def __init__(self) -> None:
        self.now = 10_000.0

    def __call__(self) -> float:
        """Return the time, which only a test moves."""
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock of the ledger."""
    clock = Clock()
    monkeypatch.setattr("gpu2dra_webhook.cluster.ledger.time.monotonic", clock)
    return clock


@pytest.fixture
def cluster() -> Cluster:
    """Return an empty cluster."""
    return Cluster()


@pytest.fixture
def ledger(cluster: Cluster) -> Ledger:
    """Return what a replica knows."""
    return Ledger(cast("Any", cluster))


def provide(cluster: Cluster, ledger: Ledger, number: int) -> None:
    """Have a replica provide a template as for a pod."""
    key = key_of(number)
    obj = {"apiVersion": "resource.k8s.io/v1", "metadata": {"name": key.name}, "spec": SPEC}
    provider = Provider(cast("Any", cluster), ledger, cast("Any", None), CAP)
    ledger.hand_out(key)
    provider.provide(Wanted(key, obj, content_of(SPEC), dry_run=False), time.monotonic() + 10)


def assert_refused(cluster: Cluster, ledger: Ledger, number: int) -> None:
    """Hold that a replica refuses to provide a template, since all are in use."""
    with pytest.raises(StoreError) as caught:
        provide(cluster, ledger, number)
    assert caught.value.kind is StoreProblem.FULL


def test_what_is_handed_out_again_and_again_and_no_pod_names_keeps_nothing_out(
    cluster: Cluster, ledger: Ledger, clock: Clock
) -> None:
    """Whoever reaches the port posts made-up pods again and again, and creates none of them."""
    for number in range(CAP):
        ledger.hand_out(cluster.holds(number, age=60))
    assert_refused(cluster, ledger, 10)
    for _ in range(31):
        clock.now += 1
        for number in (1, 2, 3, 4, 0):
            clock.now += 0.001
            ledger.hand_out(key_of(number))
    ledger.hand_out(key_of(1))
    # That goes which was asked for longest ago.
    provide(cluster, ledger, 10)
    assert cluster.names() == {0, 1, 3, 4, 10}


def test_what_pods_name_stays_however_long_it_is_handed_out(cluster: Cluster, ledger: Ledger, clock: Clock) -> None:
    for number in range(CAP):
        ledger.hand_out(cluster.holds(number, age=60))
        cluster.used.add(key_of(number).name)
    clock.now += 1000
    assert_refused(cluster, ledger, 10)
    cluster.used.remove(key_of(3).name)
    provide(cluster, ledger, 10)
    assert cluster.names() == {0, 1, 2, 4, 10}


def test_what_was_made_a_moment_ago_stays_whoever_has_made_it(cluster: Cluster, ledger: Ledger, clock: Clock) -> None:
    for number in range(CAP):
        cluster.holds(number, age=20)
    assert_refused(cluster, ledger, 10)
    cluster.holds(2, age=40)
    provide(cluster, ledger, 10)
    assert cluster.names() == {0, 1, 3, 4, 10}


def test_what_is_handed_out_after_a_pause_may_be_named_soon(cluster: Cluster, ledger: Ledger, clock: Clock) -> None:
    """A Deployment that is scaled up again: its template is old, its pods are about to come."""
    for number in range(CAP):
        ledger.hand_out(cluster.holds(number, age=100_000))
    clock.now += 400
    for number in range(CAP):
        ledger.hand_out(key_of(number))
    assert_refused(cluster, ledger, 10)
    clock.now += 31
    provide(cluster, ledger, 10)


def test_what_nobody_has_used_for_long_goes_before_what_is_handed_out(
    cluster: Cluster, ledger: Ledger, clock: Clock
) -> None:
    ledger.hand_out(cluster.holds(0, age=9000, unused_since=stamp(time.time() - 8000)))
    clock.now += 60
    cluster.holds(1, age=7000)
    cluster.holds(2, age=5000, unused_since=stamp(time.time() - 4000))
    cluster.holds(3, age=6000, unused_since=stamp(time.time() - 3000))
    cluster.holds(4, age=8000)
    gone = []
    for number in range(10, 10 + CAP):
        before = cluster.names()
        provide(cluster, ledger, number)
        gone += sorted(before - cluster.names())
    assert gone == [2, 3, 4, 1, 0]
