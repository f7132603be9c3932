"""R4 and R5: which container reaches which devices, judged by the allocation in the status of the claims."""

from __future__ import annotations

from collections.abc import Callable

from controlplane import gpus, scheduling
from controlplane.client import Object
from controlplane.sharing import PATTERNS, init, shared
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import claiming, container, install, pod, request, template

Answer = Callable[[str], None]


def test_r04_own_devices(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """Three containers that ask for 3, 1 and no GPU, on a node with eight."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 8))])
    made = install(cluster, pod("own", container("a", 3), container("b", 1), container("c")))
    assert cluster.outcome(made.object).node == "h100"
    devices = scheduling.devices_by_container(cluster.client, made.object)
    assert {name: len(set(found)) for name, found in devices.items()} == {"a": 3, "b": 1, "c": 0}
    assert shared(devices) == frozenset()
    claim = cluster.client.list("resource.k8s.io/v1", "ResourceClaim", cluster.namespace)[0]
    assert len(claim["status"]["allocation"]["devices"]["results"]) == 4
    answer("one claim with 4 devices; the containers reach 3, 1 and 0, none twice")


def test_r04_wrong_request_name(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A container that names a request which its claim does not have; one that names a claim the pod does not have."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    cluster.client.create(cluster.here(template("one", request("gpu"))))
    wrong = claiming("wrong", "one", {"name": "gpu", "request": "gpus"})
    assert cluster.outcome(wrong).scheduled
    assert scheduling.devices_by_container(cluster.client, cluster.here(wrong)) == {"main": []}
    absent = cluster.client.try_create(cluster.here(claiming("absent", "one", {"name": "other"})))
    assert (absent.status, "must be one of the names in pod.spec.resourceClaims" in absent.object["message"]) == (
        422,
        True,
    )
    answer("taken and bound, the container reaches nothing; an unknown claim is refused")


def test_r05_sharing(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """Fourteen orders of init containers, sidecars and apps, each on a node with as many devices as the pod needs."""
    machines(pattern.machine for pattern in PATTERNS)
    made = [install(cluster, pattern.pod) for pattern in PATTERNS]
    outcomes = cluster.outcomes(each.object for each in made)
    assert [(each.name, found.node) for each, found in zip(PATTERNS, outcomes, strict=True)] == [
        (each.name, each.name) for each in PATTERNS
    ]
    for pattern, converted in zip(PATTERNS, made, strict=True):
        devices = scheduling.devices_by_container(cluster.client, converted.object)
        assert {name: len(set(found)) for name, found in devices.items()} == pattern.reaches, pattern.name
        assert len(set().union(*devices.values())) == pattern.total, pattern.name
        assert shared(devices) == pattern.sharing, pattern.name
        more = [found for each in pattern.init if (found := pattern.reaches[each["name"]]) > _asked(each)]
        assert converted.codes.count("DRA102") == len(more), pattern.name
    answer(f"{len(PATTERNS)} of {len(PATTERNS)} as worked out by hand")


def test_r05_one_claim_twice(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """Two entries in `resources.claims` with one claim and two requests; what `plan` makes of the same pod."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 3))])
    cluster.client.create(cluster.here(template("two", request("a"), request("b"))))
    twice = cluster.here(claiming("twice", "two", {"name": "gpu", "request": "a"}, {"name": "gpu", "request": "b"}))
    assert cluster.client.try_create(twice, dryRun="All").accepted
    refused = cluster.client.try_apply(twice, dryRun="All")
    assert (refused.status, 'duplicate entries for key [name="gpu"]' in refused.object["message"]) == (500, True)
    assert cluster.kubectl("apply", "--dry-run=server", "-f-", stdin=twice).returncode == 0
    flux = cluster.kubectl("apply", "--server-side", "--dry-run=server", "-f-", stdin=twice)
    assert flux.returncode == 1
    ours = install(cluster, pod("ours", container("a", 1), container("b", 1), container("c", 1), init=[init("i", 2)]))
    assert cluster.client.apply(ours.object)["spec"]["initContainers"][0]["resources"]["claims"] == [
        {"name": "gpu", "request": "a"},
        {"name": "gpu-2", "request": "b"},
    ]
    scheduling.wait_for_scheduled(cluster.client, ours.object)
    answer("create and client-side apply take the two entries, server-side apply refuses them; "
           "one claim for each of the two requests passes both")  # fmt: skip


def _asked(obj: Object) -> int:
    return sum(int(amount) for amount in obj["resources"]["limits"].values())
