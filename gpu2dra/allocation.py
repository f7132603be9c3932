"""From what containers want to claims and requests, and who may use which: rules R4, R5 and R6, without any YAML.

Device requests are never cut and never added up: a container that starts last owns one request of its own; a plain
init container borrows whole requests of containers that start after it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple, TypeAlias

from gpu2dra.demand import Phase
from gpu2dra.devices import Device
from gpu2dra.names import namer, unique

CLAIM_LIMIT = 32
"""Most requests, and most devices, of one ResourceClaim (DeviceRequestsMaxSize, AllocationResultsMaxSize)."""

Amount: TypeAlias = int | str
"""A number of devices, or the placeholder that will be one."""


class CannotAllocate(ValueError):
    """The containers' wishes cannot be said with claims; `code` and `container` tell why and where."""

    def __init__(self, code: str, container: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.container = container


class Consumer(NamedTuple):
    """One container in starting order, with the number of devices that it wants of each outcome."""

    name: str
    phase: Phase
    wants: Mapping[Device, Amount]


@dataclass(frozen=True, slots=True)
class Request:
    """One device request, named after the container that it was made for (R4)."""

    name: str
    device: Device
    count: Amount


class Claim(NamedTuple):
    """One claim of the pod: the name of its entry in `spec.resourceClaims` and its requests."""

    entry: str
    requests: tuple[Request, ...]


@dataclass(slots=True)
class Allocation:
    """The claims of a pod and, per container, what it names of them as `(claim entry, request name)`.

    An empty request name is the whole claim (ResourceClaim.request in the API of pods). `devices` says how many devices
    a container reaches by them.
    """

    claims: list[Claim] = field(default_factory=list)
    uses: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    devices: dict[str, Amount] = field(default_factory=dict)


def allocate(consumers: Sequence[Consumer], taken: Collection[str]) -> Allocation:
    """Return the claims for `consumers`, which are in starting order; entries avoid the names in `taken`.

    Raises CannotAllocate when one container wants more devices than a claim holds, or when sharing would have to be
    worked out from a placeholder.
    """
    requests: list[Request] = []
    uses: dict[str, list[Request]] = {consumer.name: [] for consumer in consumers}
    for device in dict.fromkeys(device for consumer in consumers for device in consumer.wants):
        made, used = _share([consumer for consumer in consumers if device in consumer.wants], device)
        requests += made
        for name, wanted in used.items():
            uses[name] += wanted
    order = {consumer.name: index for index, consumer in enumerate(consumers)}
    requests.sort(key=lambda request: order[request.name])  # stable: outcomes of one container stay in their order
    names = _named(requests, order)
    return _claims(list(names.values()), {name: [names[r] for r in used] for name, used in uses.items()}, taken)


def _named(requests: list[Request], containers: Collection[str]) -> dict[Request, Request]:
    """Return each request under a name of its own: a second one of a container must share a claim with the first."""
    names: dict[Request, Request] = {}
    used: set[str] = set()
    for request in requests:
        name = request.name if request.name not in used else unique(request.name, used.union(containers))
        used.add(name)
        names[request] = Request(name, request.device, request.count)
    return names


def _share(consumers: list[Consumer], device: Device) -> tuple[list[Request], dict[str, list[Request]]]:
    """Return the requests for one outcome and which of them each container uses (R5)."""
    for consumer in consumers:
        _check_limit(consumer, consumer.wants[device])
    if len(consumers) == 1:  # nothing to share with, so even a placeholder will do
        alone = Request(consumers[0].name, device, consumers[0].wants[device])
        return [alone], {alone.name: [alone]}
    owned = [Request(c.name, device, c.wants[device]) for c in consumers if c.phase is not Phase.INIT]
    uses = {request.name: [request] for request in owned}
    missing: dict[str, int] = {}
    started = 0  # of those that own a request
    for consumer in consumers:
        if consumer.phase is Phase.INIT:
            later = islice(owned, started, None)
            uses[consumer.name], need = _borrow(_number(consumer.name, consumer.wants[device]), later)
            if need > 0:
                missing[consumer.name] = need
        else:
            started += 1
    if not missing:
        return owned, uses
    extra = Request(next(iter(missing)), device, max(missing.values()))
    for name in missing:
        uses[name].append(extra)
    return [*owned, extra], uses


def _check_limit(consumer: Consumer, count: Amount) -> None:
    if isinstance(count, int) and count > CLAIM_LIMIT:
        raise CannotAllocate(
            "DRA304",
            consumer.name,
            f'Container "{consumer.name}" asks for {count} devices; a ResourceClaim holds at most {CLAIM_LIMIT}.',
        )


def _borrow(need: int, later: Iterable[Request]) -> tuple[list[Request], int]:
    """Return whole requests out of `later`, in order, until `need` devices are covered, and what is still missing."""
    borrowed: list[Request] = []
    for request in later:
        if need <= 0:
            break
        borrowed.append(request)
        need -= _number(request.name, request.count)
    return borrowed, need


def _number(container: str, count: Amount) -> int:
    if isinstance(count, str):
        raise CannotAllocate(
            "DRA316", container,
            f'Init containers share devices with "{container}", whose amount is the placeholder {count}; '
            "write the amounts of this pod as numbers.",
        )  # fmt: skip
    return count


def _claims(requests: list[Request], uses: dict[str, list[Request]], taken: Collection[str]) -> Allocation:
    """Put requests into as few claims as the API allows, and say what each container names of them (R5, R6).

    Few, because before Kubernetes 1.37 a pod with several claims from templates may stay pending (kubernetes#138407).
    """
    whole = all(len(used) in (0, 1, len(requests)) for used in uses.values())
    groups = _spread(requests, [] if whole else list(uses.values()))
    if whole and len(groups) > 1:
        groups = _spread(requests, list(uses.values()))
    name = namer(taken)
    result = Allocation()
    for group in groups:
        kinds = {request.device.entry for request in group}
        result.claims.append(Claim(name(kinds.pop() if len(kinds) == 1 else "gpu"), tuple(group)))
    home = {request: claim.entry for claim in result.claims for request in claim.requests}
    for container, used in uses.items():
        named = [(home[request], request.name) for request in used]
        together = len({entry for entry, _ in named}) < len(named)
        result.uses[container] = [(named[0][0], "")] if together else named
        result.devices[container] = _total([request.count for request in used])
    return result


def _spread(requests: list[Request], together: list[list[Request]]) -> list[list[Request]]:
    """Return groups of requests, each no larger than a claim, that keep apart what stands in one list of `together`."""
    apart: dict[Request, set[Request]] = {}
    for used in together:
        for request in used:
            apart.setdefault(request, set()).update(used)
    groups: list[list[Request]] = []
    room: list[int] = []  # for devices, of each group; as each request has one, requests need not be counted
    for request in requests:
        others = apart.get(request, set())
        devices = request.count if isinstance(request.count, int) else 1
        for index, group in enumerate(groups):
            if devices <= room[index] and others.isdisjoint(group):
                group.append(request)
                room[index] -= devices
                break
        else:
            groups.append([request])
            room.append(CLAIM_LIMIT - devices)
    return groups


def _total(counts: list[Amount]) -> Amount:
    numbers = [count for count in counts if isinstance(count, int)]
    return sum(numbers) if len(numbers) == len(counts) else " + ".join(map(str, counts))
