"""From what containers want to claims and requests, and who may use which: rules R4, R5 and R6, without any YAML.

Device requests are never cut and never added up: a container that starts last owns one request of its own; a plain
init container borrows whole requests of containers that start after it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gpu2dra.demand import Phase
from gpu2dra.devices import Device
from gpu2dra.names import namer

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


@dataclass(frozen=True, slots=True)
class Consumer:
    """One container in starting order, with the number of devices that it wants of each outcome."""

    name: str
    phase: Phase
    wants: Mapping[Device, Amount]


@dataclass(frozen=True, slots=True)
class Request:
    """One device request; its name is the name of the container that it was made for (R4)."""

    name: str
    device: Device
    count: Amount


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim of the pod: the name of its entry in `spec.resourceClaims` and its requests."""

    entry: str
    requests: tuple[Request, ...]


@dataclass(slots=True)
class Allocation:
    """The claims of a pod and, per container, the requests that it names as `(claim entry, request name)`.

    `devices` says how many devices these requests hold, `split` that a limit of the API forced more than one claim.
    """

    claims: list[Claim] = field(default_factory=list)
    uses: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    devices: dict[str, Amount] = field(default_factory=dict)
    split: bool = False


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
    return _claims(requests, uses, taken)


def _share(consumers: list[Consumer], device: Device) -> tuple[list[Request], dict[str, list[Request]]]:
    """Return the requests for one outcome and which of them each container uses (R5)."""
    for consumer in consumers:
        _check_limit(consumer, consumer.wants[device])
    if len(consumers) == 1:  # nothing to share with, so even a placeholder will do
        alone = Request(consumers[0].name, device, consumers[0].wants[device])
        return [alone], {alone.name: [alone]}
    owned = {c.name: Request(c.name, device, c.wants[device]) for c in consumers if c.phase is not Phase.INIT}
    uses = {name: [request] for name, request in owned.items()}
    missing: dict[str, int] = {}
    for position, consumer in enumerate(consumers):
        if consumer.phase is Phase.INIT:
            later = [owned[c.name] for c in consumers[position + 1 :] if c.phase is not Phase.INIT]
            uses[consumer.name], need = _borrow(_number(consumer.name, consumer.wants[device]), later)
            if need > 0:
                missing[consumer.name] = need
    if not missing:
        return list(owned.values()), uses
    extra = Request(next(iter(missing)), device, max(missing.values()))
    for name in missing:
        uses[name].append(extra)
    return [*owned.values(), extra], uses


def _check_limit(consumer: Consumer, count: Amount) -> None:
    if isinstance(count, int) and count > CLAIM_LIMIT:
        raise CannotAllocate(
            "DRA304",
            consumer.name,
            f'Container "{consumer.name}" asks for {count} devices; a ResourceClaim holds at most {CLAIM_LIMIT}.',
        )


def _borrow(need: int, later: list[Request]) -> tuple[list[Request], int]:
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
    """Spread requests over claims so that no container names one claim twice (R5) and no claim is too large (R6)."""
    alone = any(len(used) > 1 for used in uses.values())
    groups: list[list[Request]] = []
    room = 0
    for request in requests:
        size = request.count if isinstance(request.count, int) else 1
        if alone or not groups or size > room or len(groups[-1]) == CLAIM_LIMIT:
            groups.append([])
            room = CLAIM_LIMIT
        groups[-1].append(request)
        room -= size
    name = namer(taken)
    result = Allocation(split=not alone and len(groups) > 1)
    home: dict[Request, str] = {}
    for group in groups:
        kinds = {request.device.entry for request in group}
        base = kinds.pop() if len(kinds) == 1 else "gpu"
        entry = name(f"{base}-{group[0].name}" if alone else base)
        result.claims.append(Claim(entry, tuple(group)))
        home.update(dict.fromkeys(group, entry))
    for container, used in uses.items():
        result.uses[container] = [(home[request], request.name) for request in used]
        counts = [request.count for request in used]
        result.devices[container] = (
            sum(count for count in counts if isinstance(count, int)) if all(isinstance(count, int) for count in counts)
            else " + ".join(map(str, counts))
        )  # fmt: skip
    return result
