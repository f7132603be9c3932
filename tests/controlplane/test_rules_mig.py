"""MIG profiles (R4): the right slice for each resource name; selectors that bear devices without the attribute."""

from __future__ import annotations

from collections.abc import Callable

from controlplane import gpus, scheduling
from controlplane.client import Object
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import claiming, codes, container, install, pod, request, template

Answer = Callable[[str], None]
PLAIN, MEDIA, LARGE = "nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.me", "nvidia.com/mig-3g.20gb"


def without_profile(name: str) -> list[Object]:
    """Return devices of a node: one MIG slice that says nothing of its profile, and a whole one after it."""
    first, second = gpus.sliced(gpus.A100, [gpus.A100_MIG["2g.10gb"], gpus.A100_MIG["1g.5gb"]])(name)
    del first["attributes"]["profile"]
    return [first, second]


def test_r04_mig_profiles(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """Containers that ask for `mig-1g.5gb`, `mig-1g.5gb.me` and two `mig-3g.20gb`, on nodes that have all and more."""
    some = [gpus.A100_MIG[name] for name in ("1g.5gb+me", "1g.5gb", "2g.10gb")]
    machines([gpus.Machine("a100", _gpus([some, [gpus.A100_MIG["3g.20gb"]] * 2]))])
    made = install(cluster, pod("slices", container("p", 1, PLAIN), container("m", 1, MEDIA), container("l", 2, LARGE)))
    assert cluster.outcome(made.object).node == "a100"
    devices = scheduling.devices_by_container(cluster.client, made.object)
    assert {name: [device.name for device in found] for name, found in devices.items()} == {
        "p": ["gpu-0-mig-1g5gb-19-1"],
        "m": ["gpu-0-mig-1g5gb-me-20-0"],
        "l": ["gpu-1-mig-3g20gb-9-0", "gpu-1-mig-3g20gb-9-4"],
    }
    second = install(cluster, pod("second", container("m", 1, MEDIA)))
    assert not cluster.outcome(second.object).scheduled  # the plain slices that are left will not do
    answer("each container reaches slices of its own profile only")


def test_r04_guarded_selectors(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A slice without the attribute `profile` beside the right one: our selector, and one that does not ask first."""
    machines([gpus.Machine("a100", without_profile)])
    ours = install(cluster, pod("ours", container("main", 1, PLAIN)))
    cel = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"}}
    cluster.client.create(cluster.here(template("bold", request("gpu", 1, "mig.nvidia.com", selectors=[cel]))))
    bold = claiming("bold", "bold")
    refused = cluster.client.create(cluster.here(bold))
    found = scheduling.wait_for_message(cluster.client, refused, "no such key: profile")
    assert "CEL" in found
    assert cluster.outcome(ours.object).node == "a100"
    devices = scheduling.devices_by_container(cluster.client, ours.object)["main"]
    assert [device.name for device in devices] == ["gpu-0-mig-1g5gb-19-2"]
    answer("ours skips the device; the other one fails the pod: no such key")


def test_r10_shares(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """`nvidia.com/gpu.shared`, HAMi's and KubeVirt's names, which `plan` reports, on a node of the driver."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    table = {"nvidia.com/gpu.shared": "DRA306", "nvidia.com/gpumem": "DRA305", "nvidia.com/GA102GL_A10": "DRA305"}
    pods = [pod(f"share-{number}", container("main", 1, name)) for number, name in enumerate(table)]
    assert [codes(each) for each in pods] == [[code] for code in table.values()]
    outcomes = cluster.outcomes(pods)
    assert [f"Insufficient {name}" in found.message for name, found in zip(table, outcomes, strict=True)] == [True] * 3
    answer("taken; they wait for a node that reports the name")


def _gpus(cuts: list[list[gpus.MigProfile]]) -> Callable[[str], list[Object]]:
    def devices(name: str) -> list[Object]:
        found: list[Object] = []
        for index, profiles in enumerate(cuts):
            start = 0
            for profile in profiles:
                found.append(gpus.mig(index, gpus.A100, name, profile, start))
                start += profile.slices
        return found

    return devices
