"""Pods are created all the time while replicas end, certificates rotate and servers go away: none is lost to us."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane import behind, build
from controlplane.client import wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.counts import Counts
from controlplane.creations import Habits, Held, Load, waiting
from controlplane.helm import NAMESPACE
from controlplane.installation import Installation, converting_namespace, templates
from controlplane.webhook_process import Replica, Replicas
from controlplane.workloads import one_gpu

pytestmark = pytest.mark.slow
# Nothing here is scheduled; the claims of thousands of pods would be most of the work.
OPTIONS = Options(audit=False, without_controllers=["resourceclaim-controller"])
SHORT_LIVED = ("--leaf-lifetime=6s", "--ca-lifetime=30s")
NEWEST = list(build.control_planes())[-1:]


@pytest.fixture(scope="session", params=NEWEST, ids=lambda release: f"v{release}")
def release(request: pytest.FixtureRequest) -> str:
    """Return the newest release only: what is tried here is ours, not the API server's."""
    return str(request.param)


def test_replicas_that_are_told_to_end_lose_no_pod(installation: Installation, namespace: str, held: Held) -> None:
    """A rolling update: each replica ends, with connections of the API server open, after a new one has come."""
    plane = installation.plane
    with installation.replicas("--drain-seconds=20") as replicas:
        replicas.start(2)
        with Load(plane, waiting(namespace)) as load:
            for old in replicas.serving:
                load.wait_for_more(300)
                replicas.start()
                assert plane.services.open_connections()[old.port] > 0
                replicas.leave_service(old)
                old.terminate()
                assert old.wait_until_ended(30) == 0
                load.wait_for_more(300)
    held(load.counts)


def issuers(replica: Replica) -> list[str]:
    """Return who has signed the certificates that a replica has served, in order."""
    lines = [str(line["msg"]) for line in replica.log()]
    return [line.split()[5].rstrip(",") for line in lines if line.startswith("Serving a certificate signed by ")]


@contextlib.contextmanager
def short_lived_authority(plane: ControlPlane) -> Iterator[None]:
    """Have the next replica make an authority of its own: not that of a year before, nor this one for those after."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "gpu2dra-ca", "namespace": NAMESPACE}}
    plane.client.delete(secret)
    yield
    plane.client.delete(secret)


def test_certificates_of_a_few_seconds_lose_no_pod(installation: Installation, namespace: str, held: Held) -> None:
    """Leaves are exchanged every four seconds, and the authority behind them twice."""
    with short_lived_authority(installation.plane), installation.replicas(*SHORT_LIVED) as replicas:
        both = replicas.start(2)
        with Load(installation.plane, waiting(namespace)) as load:
            seen = {replica: len(set(issuers(replica))) for replica in both}

            def rotated() -> bool:
                return all(len(set(issuers(replica))) >= seen[replica] + 2 for replica in both)

            wait_for("both replicas have changed their authority twice", rotated, 120)
            load.wait_for_more(200)
        assert all(len(issuers(replica)) >= 6 for replica in both)
    held(load.counts)


def test_an_api_server_that_comes_back_finds_the_webhook(
    installation: Installation, namespace: str, held: Held
) -> None:
    with installation.replicas() as replicas:
        both = replicas.start(2)
        with Load(installation.plane, waiting(namespace)) as load:
            load.wait_for_more(500)
            installation.plane.restart_api_server()
            load.wait_for_more(500)
        assert all(replica.is_ready() for replica in both)
        wait_for("the caches live again", lambda: caches_follow(installation.plane, replicas), 60)
    assert load.counts.by_outage > 0
    held(load.counts)


def caches_follow(plane: ControlPlane, replicas: Replicas) -> bool:
    """Whether every replica knows of a namespace that was made a moment ago, and makes a template in it."""
    name = converting_namespace(plane)
    legacy = one_gpu("legacy") | {"metadata": {"name": "legacy", "namespace": name}}
    for replica in replicas.serving:
        plane.services.cut(replica.port)  # so that the next connection may be to another one
        if "resourceClaims" not in plane.client.create(legacy, dryRun="All")["spec"]:
            return False
    return True


def test_an_etcd_that_stands_still_for_twenty_seconds_loses_no_pod(
    installation: Installation, namespace: str, held: Held
) -> None:
    with installation.replicas() as replicas:
        both = replicas.start(2)
        with Load(installation.plane, waiting(namespace)) as load:
            load.wait_for_more(500)
            installation.plane.pause_etcd(20)
            load.wait_for_more(500)
        assert all(replica.is_ready() for replica in both)
    held(load.counts)


def wait_for_clock(moment: float) -> None:
    """Return when it is later than a moment, in seconds since the epoch."""
    wait_for("the certificates have expired", lambda: time.time() > moment)


def test_replicas_that_slept_past_their_certificates_never_show_an_old_one(
    installation: Installation, namespace: str, held: Held
) -> None:
    """All replicas stand still until their leaves have expired; then comes a crowd of new connections."""
    plane = installation.plane
    total = Counts()
    with installation.replicas("--leaf-lifetime=4s") as replicas:
        one, other = replicas.start(2)
        for _ in range(4):
            expired = max(each.metric("gpu2dra_certificate_expiry_timestamp_seconds") for each in (one, other))
            load = Load(plane, waiting(namespace), Habits(at_least=500))
            with contextlib.ExitStack() as crowd, one.frozen(), other.frozen():
                wait_for_clock(expired)
                for each in (one, other):
                    plane.services.cut(each.port)
                crowd.enter_context(load)
            total.add(load.counts)
    held(total)


def test_a_clock_that_jumps_past_the_certificates_never_has_an_old_one_shown(
    installation: Installation, namespace: str, held: Held, tmp_path: Path
) -> None:
    """Both go by clocks and timers by which their certificates last for most of a minute; all at once it is later."""
    plane = installation.plane
    total = Counts()
    for number in range(2):
        right = tmp_path / f"right-{number}"
        environment = {
            "PYTHONPATH": str(Path(__file__).parents[1]), behind.BEHIND: "45", behind.RIGHT: str(right),
        }  # fmt: skip
        with (
            short_lived_authority(plane),
            installation.replicas("--leaf-lifetime=60s", program=behind.__name__, environment=environment) as replicas,
        ):
            both = replicas.start(2)
            issued = [len(issuers(each)) for each in both]
            expired = max(each.metric("gpu2dra_certificate_expiry_timestamp_seconds") for each in both)
            assert 0 < expired - time.time() < 15
            load = Load(plane, waiting(namespace), Habits(at_least=1000))
            with contextlib.ExitStack() as crowd, both[0].frozen(), both[1].frozen():
                wait_for_clock(expired)
                right.touch()
                for each in both:
                    plane.services.cut(each.port)
                crowd.enter_context(load)
            assert [len(issuers(each)) for each in both] == [count + 1 for count in issued]
        total.add(load.counts)
    held(total)


def operations(replicas: Replicas, operation: str) -> float:
    """Return how many templates the replicas have created, deleted or put back."""
    return replicas.metric("gpu2dra_template_operations_total", operation=operation, result="ok")


def test_a_janitor_that_deletes_takes_no_template_from_a_pod(
    installation: Installation, namespace: str, held: Held
) -> None:
    """Pods of fifty shapes come in bursts and go; what rests for some seconds is deleted, and soon asked for again."""
    plane = installation.plane
    pods = waiting(namespace, *(f"shape-{number}" for number in range(50)))
    with installation.replicas("--template-grace=2s") as replicas:
        replicas.start(2)
        # Some of the pods stay, so that the janitor has to tell what is in use.
        with (
            Load(plane, pods[:30], Habits(at_least=1000, in_a_row=40, keep=False)) as going,
            Load(plane, pods[30:], Habits(at_least=1000, in_a_row=40)) as staying,
        ):
            wait_for("templates have been deleted", lambda: operations(replicas, "delete") >= 10, 300)
            wait_for("some are made again", lambda: operations(replicas, "create") > len(pods), 300)
        counts = going.counts
        counts.add(staying.counts)
        held(counts)
        used = {
            entry["resourceClaimTemplateName"]
            for each in plane.client.list("v1", "Pod", namespace)
            for entry in each["spec"]["resourceClaims"]
        }
        assert len(used) == 20
        assert used <= templates(plane.client, namespace)
        assert operations(replicas, "restore") == 0
