"""One leader among replicas: who leads, who takes over, and that there are never two."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from controlplane.client import Client, Object, wait_for
from controlplane.testbed import Cluster
from controlplane.webhook_cluster.gate import Gate
from gpu2dra_webhook.cluster import client
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.cluster.leader import Leader, Terms

TERMS = Terms(duration=3, give_up=2, retry=0.2)
LEASE = "janitor"
_numbers = itertools.count(1)


class Replica:
    """A replica that wants to lead, and notes when it does."""

    def __init__(self, api: Api, namespace: str, terms: Terms = TERMS) -> None:
        self.name = f"replica-{next(_numbers)}"
        self.works = threading.Event()
        self.fails = threading.Event()
        self.bugs = 0
        self.leader = Leader(api, namespace, LEASE, self.name, self._work, terms, self._count)

    def _count(self) -> None:
        self.bugs += 1

    def _work(self, holds: Callable[[], bool]) -> None:
        self.works.set()
        while holds():
            if self.fails.wait(0.02):
                self.works.clear()
                raise RuntimeError("an error of ours")
        self.works.clear()


@pytest.fixture
def api(cluster: Cluster, rights: object) -> Iterator[Api]:
    made = client.connect(cluster.plane.kubeconfig("gpu2dra-webhook"))
    yield made
    made.close()


Compete = Callable[..., Replica]


@pytest.fixture
def compete(cluster: Cluster, api: Api) -> Iterator[Compete]:
    """Return what adds a replica that wants to lead."""
    made: list[Replica] = []

    def add(through: Api = api, terms: Terms = TERMS) -> Replica:
        made.append(Replica(through, cluster.namespace, terms))
        made[-1].leader.start()
        return made[-1]

    yield add
    for each in made:
        each.leader.stop()


def lease(cluster: Cluster) -> Object:
    """Return the Lease."""
    return cluster.client.get("coordination.k8s.io/v1", "Lease", LEASE, cluster.namespace)


def test_one_of_many_leads(cluster: Cluster, compete: Compete) -> None:
    replicas = [compete() for _ in range(4)]
    wait_for("one leads", lambda: any(each.works.is_set() for each in replicas))
    leading = [each for each in replicas if each.works.is_set()]
    assert [each.name for each in leading] == [lease(cluster)["spec"]["holderIdentity"]]
    renewed = lease(cluster)["spec"]["renewTime"]
    wait_for("it is renewed", lambda: lease(cluster)["spec"]["renewTime"] != renewed)
    assert [each for each in replicas if each.works.is_set()] == leading


def test_a_leader_that_ends_gives_the_lease_back(cluster: Cluster, compete: Compete) -> None:
    forever = Terms(duration=3600, give_up=1800, retry=0.2)
    first = compete(terms=forever)
    wait_for("the first leads", first.works.is_set)
    second = compete(terms=forever)
    first.leader.stop()
    assert not first.works.is_set()
    wait_for("the second leads", second.works.is_set)
    assert lease(cluster)["spec"]["leaseTransitions"] == 3


def test_a_leader_that_is_cut_off_stops_before_another_begins(cluster: Cluster, compete: Compete, gate: Gate) -> None:
    far = client.connect(gate.kubeconfig)
    first = compete(far)
    wait_for("the first leads", first.works.is_set)
    second = compete()
    gate.hold()
    both = 0
    ends = time.monotonic() + 30
    while not second.leader.holds() and time.monotonic() < ends:
        both += first.leader.holds() and second.leader.holds()
        time.sleep(0.005)
    assert second.leader.holds()
    assert not first.leader.holds()
    assert both == 0
    wait_for("the work of the first has ended", lambda: not first.works.is_set())
    gate.release()
    wait_for("the second works", second.works.is_set)
    assert not first.leader.holds()
    first.leader.stop()
    assert lease(cluster)["spec"]["holderIdentity"] == second.name
    far.close()


def test_a_lease_that_somebody_renews_is_left_to_him(cluster: Cluster, compete: Compete) -> None:
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 2, "renewTime": "2020-01-01T00:00:00.000000Z"}
    made = cluster.client.create(cluster.object("coordination.k8s.io/v1", "Lease", LEASE, spec=spec))
    replica = compete()
    for second in range(12):  # longer than the Lease lasts; its clock is years behind ours
        _renew(cluster.client, made, second)
        time.sleep(0.25)
        assert not replica.leader.holds()
    wait_for("it has run out", replica.works.is_set)


def _renew(admin: Client, made: Object, second: int) -> None:
    patch = {"spec": {"renewTime": f"2020-01-01T00:00:{second + 1:02}.000000Z"}}
    admin.patch(made, patch, "application/merge-patch+json")


def test_a_leader_whose_work_fails_lets_others_have_a_go(cluster: Cluster, compete: Compete) -> None:
    first = compete()
    wait_for("the first leads", first.works.is_set)
    second = compete(terms=Terms(duration=3, give_up=2, retry=0.05))
    first.fails.set()
    wait_for("the second leads", second.works.is_set)
    assert (first.bugs >= 1, second.bugs) == (True, 0)


def test_a_lease_deleted_by_hand_is_made_again(cluster: Cluster, compete: Compete) -> None:
    replica = compete()
    wait_for("it leads", replica.works.is_set)
    cluster.client.delete(lease(cluster))
    wait_for("it is there again", lambda: _holder(cluster) == replica.name)


def _holder(cluster: Cluster) -> str:
    found = cluster.client.list("coordination.k8s.io/v1", "Lease", cluster.namespace)
    return str(found[0]["spec"]["holderIdentity"]) if found else ""
