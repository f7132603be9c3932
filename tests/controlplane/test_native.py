"""A second judge: what the scheduler itself makes of a legacy Pod where the class carries extendedResourceName.

Kubernetes 1.36 and later turn such a Pod into one claim, with mappings from containers to requests in the Pod's
status (KEP-5004). That is another program with the same task as the converter, so each container should reach as many
devices, and share as many with each other container.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

import pytest

from controlplane import equivalence, gpus, trial
from controlplane.client import Object
from controlplane.cluster import Options
from controlplane.equivalence import NAMESPACE, Case, Record
from controlplane.pods import RESOURCES, needs
from controlplane.testbed import StartControlPlane
from controlplane.trial import Placement, Verdict

LIMIT = 32
RIGHT_DIFFERENCES = {
    "more than 32 devices": (
        "The scheduler makes one claim for the whole pod, and a claim holds at most 32 devices: it refuses the pod. "
        "The twin has several claims."
    ),
}
"""Where the two differ and the twin is right, and why; every other difference is a bug."""


def classes() -> list[Object]:
    """Return classes that carry the resource names, one for each MIG profile, as administrators make them."""
    found = [gpus.device_class("gpu.nvidia.com", "gpu", "nvidia.com/gpu"), gpus.device_class("mig.nvidia.com", "mig")]
    for resource, profile in RESOURCES.items():
        if profile:
            name = f"{resource.removeprefix('nvidia.com/')}.gpu.nvidia.com"
            made = gpus.device_class(name, "mig", resource)
            expression = f"device.attributes['{gpus.DRIVER}'].profile == '{profile}'"
            made["spec"]["selectors"].append({"cel": {"expression": expression}})
            found.append(made)
    return found


def expected_difference(case: Case) -> str:
    """Return which of RIGHT_DIFFERENCES a Pod must show; empty for none."""
    return "more than 32 devices" if sum(needs(case.wishes).values()) > LIMIT else ""


def placements(case: Case) -> Iterator[Placement]:
    """Yield the legacy Pod and its twin, each on a node with just enough devices in a ResourceSlice."""
    enough = needs(case.wishes)
    native = trial.pinned(case.legacy, f"{case.name}-native", NAMESPACE)
    twin = trial.pinned(case.twin, f"{case.name}-twin", NAMESPACE)
    yield Placement(native, enough, plugin=False, fits=not expected_difference(case))
    yield Placement(twin, enough, plugin=False, fits=True)


def shape(verdict: Verdict) -> dict[str, tuple[dict[str, int], dict[tuple[str, str], int], int]]:
    """Return for each resource the devices of each container, those that each pair has in common, and the total."""
    found = {}
    for resource in RESOURCES:
        reached = {name: set(devices[resource]) for name, devices in verdict.devices.items()}
        counts = {name: len(devices[resource]) for name, devices in verdict.devices.items()}
        pairs = {(one, other): len(reached[one] & reached[other]) for one, other in combinations(reached, 2)}
        found[resource] = counts, pairs, len(verdict.allocated[resource])
    return found


@pytest.mark.parametrize("release", ["1.37"], indirect=True, ids=["v1.37"])
def test_the_scheduler_reads_a_legacy_pod_as_the_converter_does(
    start_control_plane: StartControlPlane, record_property: Record
) -> None:
    client, found = equivalence.start(start_control_plane, Options(audit=False), classes())
    verdicts = {
        verdict.placement.name: verdict
        for verdict in trial.run(client, NAMESPACE, [one for case in found for one in placements(case)])
    }
    problems = [verdict.unexpected for verdict in verdicts.values() if verdict.unexpected]
    differing: Counter[str] = Counter()
    for case in found:
        native, twin = verdicts[f"{case.name}-native"], verdicts[f"{case.name}-twin"]
        difference = expected_difference(case)
        differing[difference] += 1
        if not difference and native.bound and twin.bound:
            problems += differences(case.name, shape(native), shape(twin))
    right = {name: number for name, number in differing.items() if name}
    lines = [
        f"{len(found)} legacy Pods, by the scheduler and by the converter: {differing['']} are read alike;",
        *(f"  {number} × {name}: {RIGHT_DIFFERENCES[name]}" for name, number in right.items()),
        f"  {len(problems)} other differences",
    ]
    record_property("figures", "\n".join(lines))
    assert problems == []


def differences(name: str, native: Mapping[str, object], twin: Mapping[str, object]) -> list[str]:
    return [
        f"{name}: {resource}: the scheduler gives {native[resource]}, the twin gets {twin[resource]}"
        for resource in native
        if native[resource] != twin[resource]
    ]
