"""Pods with init containers, sidecars and apps in many orders, and by hand which devices their containers reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controlplane import gpus, scheduling
from controlplane.client import Object
from controlplane.workloads import container, on_node, pod

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

    @property
    def pod(self) -> Object:
        """The pod, for the node of its name alone."""
        return on_node(pod(self.name, *self.apps, init=self.init), self.name)

    @property
    def machine(self) -> gpus.Machine:
        """That node, with exactly as many devices as the pod needs."""
        slices = [gpus.H100_MIG["1g.10gb"]] * (2 if self.name == "two-outcomes" else 0)
        return gpus.Machine(self.name, _devices(self.total - len(slices), slices))


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


def _devices(whole: int, slices: list[gpus.MigProfile]) -> Callable[[str], list[Object]]:
    def made(name: str) -> list[Object]:
        found = [gpus.gpu(index, gpus.H100, name) for index in range(whole)]
        return found + [gpus.mig(whole + index, gpus.H100, name, cut, 0) for index, cut in enumerate(slices)]

    return made
