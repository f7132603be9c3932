"""What each container of a PodSpec asks for, by legacy names, and what stands against a conversion (R1, R2)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, TypeAlias

from gpu2dra.codes import finding
from gpu2dra.devices import Device, device_for
from gpu2dra.model import Finding, Object
from gpu2dra.pointers import pointer
from gpu2dra.policy import LeftAlone, Outcome
from gpu2dra.quantity import AmountError, parse_amount, parse_quantity
from gpu2dra.resources import LegacyResource, Meaning, legacy_resource

_PLACEHOLDER = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?:[:?+=-][^{}\s]*)?\}|\$[A-Za-z_][A-Za-z0-9_]*")
"""A whole value that envsubst or Flux post-build substitution fills in: `${N}`, `$N`, `${N:=2}`."""
_TEMPLATE_MARKS = ("{{", "{%", "${", "<%")

Choose: TypeAlias = Callable[[LegacyResource], Outcome]
"""What becomes of one unit of a resource, as the policy says."""


class Phase(StrEnum):
    """When a container runs, which decides what it can share (R5)."""

    INIT = "init"
    SIDECAR = "sidecar"
    APP = "app"


class Legacy(NamedTuple):
    """One legacy resource of one container and the device that stands for one unit of it.

    `in_requests` says that the key stands in requests as well.
    """

    resource: LegacyResource
    amount: int | str
    in_requests: bool
    device: Device


class Demand(NamedTuple):
    """The legacy resources that one container asks for with an amount above zero, in the order of the manifest."""

    path: str
    name: str
    phase: Phase
    container: Object
    legacy: tuple[Legacy, ...] = ()


@dataclass(slots=True)
class Reading:
    """All containers of a PodSpec in starting order, with `blockers` that forbid a conversion and harmless `notes`.

    `seen` holds the pointer of every legacy key that was looked at.
    """

    demands: list[Demand] = field(default_factory=list)
    blockers: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    @property
    def asks(self) -> bool:
        """Whether any container asks for a legacy resource, convertible or not."""
        return bool(self.blockers) or any(demand.legacy for demand in self.demands)


def claim_entries(spec: Object) -> list[Object]:
    """Return the entries of `resourceClaims` of a PodSpec that are what the API says they are."""
    entries = spec.get("resourceClaims")
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


def is_placeholder(value: object) -> bool:
    """Whether `value` is one whole placeholder of envsubst or Flux."""
    return isinstance(value, str) and _PLACEHOLDER.fullmatch(value) is not None


def read(spec: Object, base: str, choose: Choose = device_for) -> Reading:
    """Return what the containers of the PodSpec at pointer `base` ask for, with the devices that `choose` gives."""
    reading = Reading()
    for container, path, phase in _containers(spec, base):
        reading.demands.append(_read_container(container, path, phase, choose, reading))
    names = Counter(demand.name for demand in reading.demands)
    for demand in reading.demands:
        if demand.legacy and names[demand.name] > 1:
            text = f'Another container is named "{demand.name}" too, and a request is named after its container.'
            reading.blockers.append(finding("DRA313", pointer(demand.path, "name"), text))
    for path, where, code in _forbidden(spec, base):
        for section in ("limits", "requests"):
            for name in _legacy_names(where.get(section)):
                key = pointer(path, section, name)
                reading.seen.add(key)
                reading.blockers.append(finding(code, key, f"{name} cannot stand here: the API server refuses it."))
    return reading


def _containers(spec: Object, base: str) -> Iterator[tuple[Object, str, Phase]]:
    for where in ("initContainers", "containers"):
        items = spec.get(where)
        for index, container in enumerate(items if isinstance(items, list) else ()):
            if isinstance(container, dict):
                sidecar = container.get("restartPolicy") == "Always"
                phase = Phase.APP if where == "containers" else Phase.SIDECAR if sidecar else Phase.INIT
                yield container, pointer(base, where, index), phase


def _forbidden(spec: Object, base: str) -> Iterator[tuple[str, Object, str]]:
    """Places of a PodSpec that can hold neither extended resources nor claims (R6)."""
    if isinstance(resources := spec.get("resources"), dict):
        yield pointer(base, "resources"), resources, "DRA308"
    items = spec.get("ephemeralContainers")
    for index, container in enumerate(items if isinstance(items, list) else ()):
        if isinstance(container, dict) and isinstance(resources := container.get("resources"), dict):
            yield pointer(base, "ephemeralContainers", index, "resources"), resources, "DRA309"


def _legacy_names(section: object) -> list[str]:
    return [name for name in section if legacy_resource(name)] if isinstance(section, dict) else []


def _read_container(container: Object, path: str, phase: Phase, choose: Choose, reading: Reading) -> Demand:
    name = container.get("name")
    resources = container.get("resources")
    sections: dict[str, Object] = {}
    for section in ("limits", "requests"):
        value = resources.get(section) if isinstance(resources, dict) else None
        sections[section] = value if isinstance(value, dict) else {}
    limits, requests = sections["limits"], sections["requests"]
    legacy: list[Legacy] = []
    for key in dict.fromkeys([*_legacy_names(limits), *_legacy_names(requests)]):
        resource = legacy_resource(key)
        assert resource is not None  # noqa: S101 - _legacy_names kept only recognised names
        places = {section: pointer(path, "resources", section, key) for section in sections if key in sections[section]}
        reading.seen.update(places.values())
        where = places.get("limits") or places["requests"]
        amount = _amount(limits, requests, key, places, reading)
        if amount is None:
            continue
        if amount == 0:
            written = "0" if limits[key] is not None else "null"
            reading.notes.append(
                finding("DRA101", where, f"{key}: {written} says that this container gets none; left as it is.")
            )
        elif isinstance(outcome := choose(resource), Device):
            legacy.append(Legacy(resource, amount, key in requests, outcome))
        else:
            reading.blockers.append(_no_device(resource, outcome, where))
    if legacy and not (isinstance(name, str) and name):
        reading.blockers.append(finding("DRA313", path, "The container has no name, and a request is named after it."))
        legacy = []
    return Demand(path, name if isinstance(name, str) else "", phase, container, tuple(legacy))


def _no_device(resource: LegacyResource, outcome: LeftAlone | None, where: str) -> Finding:
    """Return the finding for a resource that the policy leaves alone or has no device for (R10)."""
    if outcome is not None:
        return finding("DRA208", where, f"Left alone: the policy skips {resource.name}: {outcome.reason}")
    if resource.meaning is Meaning.SHARED:
        return finding(
            "DRA306", where, f"{resource.name} is a share of a device whose size the name does not tell; "
            "choose the device that replaces it.",
        )  # fmt: skip
    return finding(
        "DRA305", where, f"{resource.name} is another system's part of a GPU and must not become a whole card; "
        "choose the device that replaces it.",
    )  # fmt: skip


def _amount(limits: Object, requests: Object, key: str, places: dict[str, str], reading: Reading) -> int | str | None:
    """Return the amount by rule R1, or None after adding what is wrong with it to the blockers of `reading`."""
    if key not in limits:
        reading.blockers.append(
            finding(
                "DRA303",
                places["requests"],
                f"{key} is requested without a limit; add the limit or remove the request.",
            )
        )
        return None
    amounts: dict[str, int | str] = {}
    for section, values in (("limits", limits), ("requests", requests)):
        if key not in values:
            continue
        value = values[key]
        if is_placeholder(value):
            amounts[section] = value
        elif isinstance(value, str) and any(mark in value for mark in _TEMPLATE_MARKS):
            reading.blockers.append(
                finding(
                    "DRA310", places[section], f'The amount of {key} is the expression "{value}"; write it as a number.'
                )
            )
            return None
        else:
            try:
                amounts[section] = parse_amount(value)
            except AmountError as error:
                reading.blockers.append(
                    finding("DRA301", places[section], f"{key}: {error}; the API server takes whole numbers from 0 up.")
                )
                return None
    if "requests" in amounts and not _equal(limits[key], requests[key]):
        reading.blockers.append(
            finding(
                "DRA302", places["requests"],
                f"The request for {key} ({requests[key]}) differs from its limit ({limits[key]}); make them equal.",
            )
        )  # fmt: skip
        return None
    return amounts["limits"]


def _equal(limit: Any, request: Any) -> bool:
    if is_placeholder(limit) or is_placeholder(request):
        return bool(limit == request)
    return parse_quantity(limit) == parse_quantity(request)
