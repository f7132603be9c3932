"""Legacy Pods for the equivalence tests, and what Kubernetes owes them: worked out by hand, without the converter.

`sample` draws the Pods. The rest of this file is the second opinion: how many devices a pod needs, and which devices
of an allocation each of its containers must reach.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings

from controlplane.client import Object
from property import strategies

RESOURCES = {
    "nvidia.com/gpu": "",
    "nvidia.com/mig-1g.5gb": "1g.5gb",
    "nvidia.com/mig-3g.20gb.me": "3g.20gb+me",
}
"""What the drawn Pods ask for, and the MIG profile that each name stands for."""
FEATURES = (
    "an init container before a sidecar",
    "an init container after a sidecar",
    "several resource names",
    "existing claims",
    "a zero",
)
SHARE = 0.15
"""The least part of the sample that has each feature."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What one container asks for: amounts by resource name, zeros included. `role` is init, sidecar or app."""

    name: str
    role: str
    amounts: Mapping[str, int]
    claims: tuple[str, ...] = ()
    """Entries of claims that it already uses."""

    def amount(self, resource: str) -> int:
        """Return how many devices of a resource it asks for."""
        return self.amounts.get(resource, 0)


@functools.cache
def sample(number: int) -> tuple[str, ...]:
    """Return different Pods as JSON, the same in every run."""
    found: dict[str, None] = {}

    @settings(
        max_examples=number + number // 2,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(strategies.pods())
    def draw(pod: Object) -> None:
        containers = [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
        # A pod without any request is not converted, and schedules everywhere.
        if any(RESOURCES.keys() & container.get("resources", {}).get("limits", {}) for container in containers):
            found[json.dumps(pod, sort_keys=True)] = None

    draw()
    assert len(found) >= number, f"only {len(found)} different Pods"
    return tuple(found)[:number]


def wishes(stored: Object) -> list[Wish]:
    """Return what the containers of a Pod ask for, in starting order.

    The Pod is one that the API server has stored (or would have): its quantities are decimal numbers by then
    (`2000m` is `2`; `1E0` stays).
    """
    spec = stored["spec"]
    return [_wish(item, "init") for item in spec.get("initContainers", [])] + [
        _wish(item, "app") for item in spec["containers"]
    ]


def _wish(container: Mapping[str, Any], role: str) -> Wish:
    resources = container.get("resources", {})
    amounts = {name: int(Decimal(amount)) for name, amount in resources.get("limits", {}).items() if name in RESOURCES}
    used = tuple(claim["name"] for claim in resources.get("claims", []))
    return Wish(container["name"], "sidecar" if container.get("restartPolicy") == "Always" else role, amounts, used)


def need(containers: Collection[Wish], resource: str) -> int:
    """Return how many devices a pod takes from its node, by the rule of the API's documentation of init containers.

    The highest of: everything that runs in the end (sidecars and app containers), and for each plain init container
    itself and the sidecars that started before it.
    """
    in_the_end = sum(wish.amount(resource) for wish in containers if wish.role != "init")
    highest = in_the_end
    sidecars = 0
    for wish in containers:
        if wish.role == "sidecar":
            sidecars += wish.amount(resource)
        elif wish.role == "init":
            highest = max(highest, sidecars + wish.amount(resource))
    return highest


def needs(containers: Collection[Wish]) -> dict[str, int]:
    """Return the needs above zero, by resource name."""
    found = {resource: need(containers, resource) for resource in RESOURCES}
    return {resource: amount for resource, amount in found.items() if amount}


def features(containers: list[Wish]) -> set[str]:
    """Return which of FEATURES a pod has. Containers that ask for nothing make no init container or sidecar."""
    found = set()
    for resource in RESOURCES:
        roles = [wish.role for wish in containers if wish.amount(resource)]
        for index, role in enumerate(roles):
            if role == "init" and "sidecar" in roles[index:]:
                found.add(FEATURES[0])
            if role == "init" and "sidecar" in roles[:index]:
                found.add(FEATURES[1])
    if len(needs(containers)) > 1:
        found.add(FEATURES[2])
    if any(wish.claims for wish in containers):
        found.add(FEATURES[3])
    if any(amount == 0 for wish in containers for amount in wish.amounts.values()):
        found.add(FEATURES[4])
    return found


def faults(containers: list[Wish], resource: str, reached: Mapping[str, list[str]], allocated: set[str]) -> list[str]:
    """Return what is wrong with an allocation, for one resource; nothing when it is as rule R5 of the design says.

    `reached` names the devices of that resource that each container finds, `allocated` all that the pod holds.
    """
    return list(_faults(containers, resource, reached, allocated))


def _faults(
    containers: list[Wish], resource: str, reached: Mapping[str, list[str]], allocated: set[str]
) -> Iterator[str]:
    if len(allocated) != need(containers, resource):
        yield f"the pod holds {len(allocated)} devices and needs {need(containers, resource)}"
    owned = {wish.name: set(reached[wish.name]) for wish in containers if wish.role != "init"}
    extra = allocated - set().union(*owned.values())
    for wish in containers:
        devices = reached[wish.name]
        if len(devices) != len(set(devices)):
            yield f"{wish.name} reaches a device twice"
        if wish.role == "init":
            expected = _borrowed(containers, resource, wish, owned, extra)
            if set(devices) != expected:
                yield f"init container {wish.name} reaches {sorted(devices)} and should {sorted(expected)}"
        elif len(devices) != wish.amount(resource):
            yield f"{wish.role} {wish.name} reaches {len(devices)} devices and asked for {wish.amount(resource)}"
    if sum(map(len, owned.values())) != len(set().union(*owned.values())):
        yield "containers that run at the same time share a device"


def _borrowed(
    containers: list[Wish], resource: str, wish: Wish, owned: Mapping[str, set[str]], extra: set[str]
) -> set[str]:
    """Return the devices of those that start later, one container after the other until there are enough; else more."""
    found: set[str] = set()
    for later in containers[containers.index(wish) + 1 :]:
        if later.role != "init" and len(found) < wish.amount(resource):
            found |= owned[later.name]
    return found if len(found) >= wish.amount(resource) else found | extra
