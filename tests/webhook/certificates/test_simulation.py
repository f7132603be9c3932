"""Hours of several replicas in a second: their calls interleave in every order, some crash, some are cut off.

The API server here is a few dictionaries, since the real one's clock cannot be turned; what it does (resourceVersions,
AlreadyExists, Conflict) is held to the real one in tests/controlplane/test_webhook_certificates.py.
"""

from __future__ import annotations

import base64
import copy
import json
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import greenlet
import pytest

from gpu2dra import Object
from gpu2dra_webhook.certificates.authority import Leaf, create, parse
from gpu2dra_webhook.certificates.selfmanaged import SelfManaged
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.cluster.errors import Unreachable, refusal
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import Settings
from webhook.certificates.tls import HOUR, Clock

BELIEVED = 120.0
"""Seconds for which some API server still knows a caBundle that was replaced; the webhook counts on 300 at most."""
LATE = 150.0
SETTINGS = Settings(ca_lifetime=6 * HOUR, leaf_lifetime=HOUR / 2)
SECRET = "/api/v1/namespaces/gpu2dra-system/secrets/gpu2dra-ca"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/zz-gpu2dra"


@dataclass
class World:
    """The objects, the time, and since when which caBundles were stored."""

    clock: Clock
    objects: dict[str, Object] = field(default_factory=dict)
    version: int = 0
    bundles: list[tuple[float, frozenset[str]]] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    """What was called, before it is done."""

    def write(self, where: str, obj: Object) -> Object:
        """Store an object under its path."""
        self.version += 1
        stored = copy.deepcopy(obj)
        stored["metadata"]["resourceVersion"] = str(self.version)
        self.objects[where] = stored
        return stored

    def bundle(self) -> frozenset[str]:
        """Return the fingerprints in the first caBundle."""
        pem = base64.b64decode(self.objects[CONFIGURATION]["webhooks"][0]["clientConfig"].get("caBundle", ""))
        return frozenset(one.fingerprint for one in parse(pem, b""))

    def believed(self) -> list[frozenset[str]]:
        """Return every caBundle that some API server may know."""
        since = self.clock() - BELIEVED
        older = [one for one in self.bundles if one[0] <= since]
        return [bundle for _, bundle in [*older[-1:], *(one for one in self.bundles if one[0] > since)]]


class SimulatedApi(Api):
    """What one replica sees of the world. Others act before each of its calls."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.cut_off = False
        self.ours = False

    def read(self, method: str, where: str, body: Any = None, **_: Any) -> Object:
        """Do a call."""
        self.world.calls.append(f"{method} {where}")
        main = greenlet.getcurrent().parent
        if main:
            main.switch()
        if self.cut_off:
            raise Unreachable(f"{method} {where}", "cut off")
        return copy.deepcopy(_CALLS[method](self, where, body))

    def call(self, method: str, where: str, body: Any = None, **_: Any) -> bytes:
        """Do a call."""
        return json.dumps(self.read(method, where, body)).encode()

    def _get(self, where: str, _body: Object) -> Object:
        if where not in self.world.objects:
            raise refusal(where, 404, b'{"reason": "NotFound"}')
        return self.world.objects[where]

    def _post(self, where: str, body: Object) -> Object:
        if body["kind"] == "SelfSubjectReview":
            now = datetime.fromtimestamp(self.world.clock(), UTC).isoformat()
            return {"metadata": {"creationTimestamp": now}}
        where = f"{where}/{body['metadata']['name']}"
        if where in self.world.objects:
            raise refusal(where, 409, b'{"reason": "AlreadyExists"}')
        return self.world.write(where, body)

    def _unchanged(self, where: str, body: Object) -> Object:
        stored = self._get(where, body)
        current = stored["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion", current) != current:  # who names none wants no guard
            raise refusal(where, 409, b'{"reason": "Conflict"}')
        return stored

    def _put(self, where: str, body: Object) -> Object:
        self._unchanged(where, body)
        return self.world.write(where, body)

    def _patch(self, where: str, body: Object) -> Object:
        stored = copy.deepcopy(self._unchanged(where, body))
        changed = {entry["name"]: entry["clientConfig"] for entry in body["webhooks"]}
        for entry in stored["webhooks"]:
            entry["clientConfig"].update(changed.get(entry["name"], {}))
        written = self.world.write(where, stored)
        self.world.bundles.append((self.world.clock(), self.world.bundle()))
        return written


_CALLS: dict[str, Callable[[SimulatedApi, str, Object], Object]] = {
    "GET": SimulatedApi._get,
    "POST": SimulatedApi._post,
    "PUT": SimulatedApi._put,
    "PATCH": SimulatedApi._patch,
}


class Replica:
    """A replica that takes its turns when the simulation says so."""

    def __init__(self, world: World) -> None:
        self.api = SimulatedApi(world)
        self.certificates = SelfManaged(SETTINGS, self.api, Metrics(), world.clock)
        self.due = world.clock()
        self._running: greenlet.greenlet | None = None

    def turn(self) -> None:
        """Take a whole turn, with nobody in between."""
        self.certificates.turn()

    def step(self, rng: random.Random) -> bool:
        """Go on to the next call to the API server, or to the end of the turn; return whether that is reached."""
        if self._running is None or self._running.dead:
            self._running = greenlet.greenlet(self.certificates.turn)
        pause = self._running.switch()
        ended = bool(self._running.dead)
        if ended:  # and the next one comes late: this machine has other things to do
            self.due = self.certificates._clock() + pause + rng.uniform(0, LATE)
        return ended

    @property
    def leaf(self) -> Leaf | None:
        """What it serves."""
        return self.certificates._endpoint.leaf


class Simulation:
    """Some replicas in a world."""

    def __init__(self, seed: int, replicas: int) -> None:
        random.seed(seed)
        self.rng = random.Random(seed)  # noqa: S311 - it has to repeat itself
        self.world = World(Clock())
        entries: list[Object] = [{"name": name, "clientConfig": {}} for name in ("create", "update")]
        self.world.write(CONFIGURATION, {"metadata": {"name": "zz-gpu2dra"}, "webhooks": entries})
        self.replicas = [Replica(self.world) for _ in range(replicas)]
        self.signers: set[str] = set()

    def run(self, seconds: float, disturb: Callable[[Simulation], None] = lambda _: None) -> None:
        """Let some time pass; after each call every leaf that is served has to be acceptable to every API server."""
        end = self.world.clock() + seconds
        settled = self.world.clock() + BELIEVED + 60
        while self.world.clock() < end:
            self.world.clock.now += self.rng.uniform(0, 0.5)
            ready = [one for one in self.replicas if one.due <= self.world.clock()]
            if not ready:
                self.world.clock.now = min(one.due for one in self.replicas)
                continue
            version = self.world.version
            ended = self.rng.choice(ready).step(self.rng)
            disturb(self)
            if self.world.clock() > settled and (ended or version != self.world.version):
                self.check()

    def check(self) -> None:
        """Assert that every API server accepts the leaf of every replica that is ready."""
        now, believed = self.world.clock(), self.world.believed()
        for number, replica in enumerate(self.replicas):
            if replica.certificates.problems():
                continue
            leaf = replica.leaf
            assert leaf is not None
            self.signers.add(leaf.issuer)
            assert leaf.valid(now) or replica.certificates._issue(now), f"replica {number}: expired"
            assert all(leaf.issuer in bundle for bundle in believed), f"replica {number}: not trusted"

    def ready(self) -> int:
        """Return how many replicas have no problem."""
        return sum(not one.certificates.problems() for one in self.replicas)


SEEDS = range(3)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Log nothing: hours of cut-off replicas have a lot to say."""
    caplog.set_level(logging.CRITICAL)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_rotations_are_seen_by_nobody(seed: int) -> None:
    simulation = Simulation(seed, replicas=4)
    simulation.run(14 * HOUR)
    assert simulation.ready() == 4
    assert len(simulation.signers) == 4  # authorities of the hours 0, 4, 8 and 12
    assert len(simulation.world.bundle()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_that_crash_disturb_nobody(seed: int) -> None:
    def crash(simulation: Simulation) -> None:
        if simulation.rng.random() < 0.005:
            simulation.replicas[simulation.rng.randrange(4)] = Replica(simulation.world)

    simulation = Simulation(seed, replicas=4)
    simulation.run(10 * HOUR, crash)
    assert len(simulation.signers) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_replicas_that_are_cut_off_for_long_disturb_nobody(seed: int) -> None:
    def cut_off(simulation: Simulation) -> None:
        if simulation.rng.random() < 0.002:
            api = simulation.rng.choice(simulation.replicas).api
            api.cut_off = not api.cut_off

    simulation = Simulation(seed, replicas=4)
    simulation.run(14 * HOUR, cut_off)
    for replica in simulation.replicas:
        replica.api.cut_off = False
    simulation.run(HOUR / 2)
    assert simulation.ready() == 4
    assert len(simulation.signers) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_secret_that_is_deleted_now_and_then_disturbs_nobody(seed: int) -> None:
    def delete(simulation: Simulation) -> None:
        if simulation.rng.random() < 0.0005:
            simulation.world.objects.pop(SECRET, None)

    simulation = Simulation(seed, replicas=4)
    simulation.run(10 * HOUR, delete)
    assert simulation.ready() == 4
    assert len(simulation.signers) >= 3


def two(hours: float = 0) -> tuple[World, Replica, Replica]:
    """Return two replicas that have been at work for some hours, a turn each minute."""
    simulation = Simulation(0, replicas=2)
    first, second = simulation.replicas
    together(simulation.world, hours + 0.1, first, second)
    return simulation.world, first, second


def together(world: World, hours: float, *replicas: Replica) -> None:
    """Let hours pass in which these replicas take a turn each minute."""
    end = world.clock() + hours * HOUR
    while world.clock() < end:
        world.clock.now += 60
        for replica in replicas:
            replica.turn()


def test_a_replica_that_was_silent_for_long_signs_with_what_the_others_sign_with() -> None:
    world, first, second = two()
    before = second.leaf
    assert before is not None
    # The other one makes the next authority after 4 hours and promotes it; the former one stays trusted for a while.
    together(world, 4.5, first)
    assert before.issuer in world.bundle()
    assert first.leaf is not None
    assert first.leaf.issuer != before.issuer
    assert second.certificates.problems()
    second.turn()
    assert second.leaf is not None
    assert second.leaf.issuer == first.leaf.issuer
    assert second.certificates.problems() == ()


def test_a_slow_replica_does_not_put_back_what_others_have_replaced() -> None:
    world, first, second = two(3.8)
    world.objects[CONFIGURATION]["webhooks"][0]["clientConfig"] = {}  # there is something to put right
    slow = greenlet.greenlet(second.certificates.turn)
    while world.calls[-1:] != [f"PATCH {CONFIGURATION}"]:  # it is about to write what it has read
        slow.switch()
    together(world, 0.5, first)
    assert len(world.bundle()) == 2
    slow.switch()
    assert len(world.bundle()) == 2


def test_what_is_in_the_ca_bundle_before_the_secret_is_made_stays_while_somebody_may_need_it() -> None:
    world = World(Clock())
    former = create(world.clock(), 100 * HOUR)
    bundle = base64.b64encode(former.pem).decode()
    world.write(CONFIGURATION, {"metadata": {}, "webhooks": [{"name": "create", "clientConfig": {"caBundle": bundle}}]})
    replica = Replica(world)
    together(world, 1, replica)
    assert former.fingerprint in world.bundle()
    assert len(world.bundle()) == 2
    together(world, 0.5, replica)
    assert former.fingerprint not in world.bundle()
