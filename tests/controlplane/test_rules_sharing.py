"""R4 and R5: which container reaches which devices, judged by the allocation in the status of the claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controlplane import gpus, scheduling
from controlplane.client import Object
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import claiming, container, install, on_node, pod, request, template

Answer = Callable[[str], None]
MIG = "nvidia.com/mig-1g.10gb"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pod, and by hand: the devices of each container, all devices of the pod, and who shares with whom."""

    name: str
    init: tuple[Object, ...]
    apps: tuple[Object, ...]
    reaches: dict[str, int]
    total: int
    sharing: frozenset[tuple[str, str]] = frozenset()


def init(name: str, amount: int) -> Object:
    """Return a plain init container."""
    return container(name, amount)


def sidecar(name: str, amount: int) -> Object:
    """Return an init container that goes on running."""
    return container(name, amount, sidecar=True)


# The total is max(apps + sidecars, each init container + the sidecars before it); an init container takes whole
# requests of what starts after it, so it may see more than it asked for.
PATTERNS = (
    Pattern("app-only", (), (container("a", 2), container("b", 1)), {"a": 2, "b": 1}, 3),
    Pattern("init-only", (init("i", 2),), (container("a"),), {"i": 2, "a": 0}, 2),
    Pattern("equal", (init("i", 2),), (container("a", 2),), {"i": 2, "a": 2}, 2, frozenset({("i", "a")})),
    Pattern("overshoot", (init("i", 1),), (container("a", 2),), {"i": 2, "a": 2}, 2, frozenset({("i", "a")})),
    Pattern("first-is-enough", (init("i", 1),), (container("a", 1), container("b", 3)), {"i": 1, "a": 1, "b": 3}, 4,
            frozenset({("i", "a")})),
    Pattern("two-requests", (init("i", 2),), (container("a", 1), container("b", 1)), {"i": 2, "a": 1, "b": 1}, 2,
            frozenset({("i", "a"), ("i", "b")})),
    Pattern("overshoot-at-the-last", (init("i", 2),), (container("a", 1), container("b", 3)),
            {"i": 4, "a": 1, "b": 3}, 4, frozenset({("i", "a"), ("i", "b")})),
    Pattern("extra", (init("i", 3),), (container("a", 1),), {"i": 3, "a": 1}, 3, frozenset({("i", "a")})),
    Pattern("extra-shared", (init("i", 2), init("j", 4)), (container("a", 1),), {"i": 4, "j": 4, "a": 1}, 4,
            frozenset({("i", "j"), ("i", "a"), ("j", "a")})),
    Pattern("sidecar-first", (sidecar("s", 1), init("i", 2)), (container("a", 1),), {"s": 1, "i": 2, "a": 1}, 3,
            frozenset({("i", "a")})),
    Pattern("sidecar-later", (init("i", 2), sidecar("s", 1)), (container("a", 1),), {"s": 1, "i": 2, "a": 1}, 2,
            frozenset({("i", "s"), ("i", "a")})),
    Pattern("sidecar-between", (init("i", 1), sidecar("s", 2), init("j", 3)), (container("a", 1), container("b", 2)),
            {"i": 2, "s": 2, "j": 3, "a": 1, "b": 2}, 5, frozenset({("i", "s"), ("j", "a"), ("j", "b")})),
    Pattern("only-sidecars", (sidecar("s", 1), sidecar("t", 2)), (container("a"),), {"s": 1, "t": 2, "a": 0}, 3),
    Pattern("two-outcomes", (container("i", 1, MIG), init("j", 2)), (container("a", 1), container("b", 2, MIG)),
            {"i": 2, "j": 2, "a": 1, "b": 2}, 4, frozenset({("i", "b"), ("j", "a")})),
)  # fmt: skip


def shared(devices: dict[str, list[scheduling.Device]]) -> frozenset[tuple[str, str]]:
    """Return the pairs of containers that reach a device in common, in starting order."""
    names = list(devices)
    pairs = ((one, other) for place, one in enumerate(names) for other in names[place + 1 :])
    return frozenset(pair for pair in pairs if set(devices[pair[0]]) & set(devices[pair[1]]))


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
    mig = [gpus.H100_MIG["1g.10gb"]] * 2
    for pattern in PATTERNS:
        slices = 2 if pattern.name == "two-outcomes" else 0
        machines([gpus.Machine(pattern.name, _devices(pattern.total - slices, mig[:slices]))])
    pods = [on_node(pod(each.name, *each.apps, init=each.init), each.name) for each in PATTERNS]
    made = [install(cluster, each) for each in pods]
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


def _devices(whole: int, slices: list[gpus.MigProfile]) -> Callable[[str], list[Object]]:
    def made(name: str) -> list[Object]:
        found = [gpus.gpu(index, gpus.H100, name) for index in range(whole)]
        return found + [gpus.mig(whole + index, gpus.H100, name, cut, 0) for index, cut in enumerate(slices)]

    return made
