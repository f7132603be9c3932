"""The conversion of one pod template: its containers' limits become claims (R1 to R8, R10, R13)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpu2dra.allocation import Allocation, Amount, CannotAllocate, Consumer, allocate
from gpu2dra.codes import finding
from gpu2dra.converted import ANNOTATION as RECORD_ANNOTATION
from gpu2dra.converted import Record, fits, read_record, write_record
from gpu2dra.demand import Demand, Phase, Reading, claim_entries, read
from gpu2dra.devices import Device
from gpu2dra.model import Access, Context, Finding, Object, Operation, Options, Style
from gpu2dra.notes import notes
from gpu2dra.pointers import append, pointer, remove
from gpu2dra.skips import Pod, skip_reason
from gpu2dra.templates import Workload, build

MOST_REQUESTS = 256
"""Legacy requests of one pod that are converted: what an admitted pod has to carry of them fits its annotations, and
nobody can have others wait for a pod that no node will ever run."""


@dataclass(slots=True)
class PodPlan:
    """What becomes of one pod template. With `blockers` the whole object stays as it is."""

    operations: list[Operation] = field(default_factory=list)
    templates: list[Object] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    blockers: list[Finding] = field(default_factory=list)
    access: list[Access] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)


def plan_pod(pod: Pod, workload: Workload, options: Options, context: Context) -> PodPlan:
    """Return the conversion of `pod`, whose templates are named after `workload`."""
    reading = read(pod.spec, pod.spec_path, partial(pod.policy.outcome, namespace=pod.namespace))
    plan = PodPlan(seen={*reading.seen, pointer(pod.base, "metadata", "annotations", RECORD_ANNOTATION)})
    if not reading.asks:
        plan.findings = reading.notes
        return plan
    if reason := skip_reason(pod):
        plan.blockers = [reason]
        return plan
    record = read_record(pod.metadata, pod.spec) if options.style is Style.ADMISSION else Record()
    wanting = [demand for demand in reading.demands if demand.legacy and not _is_served(demand, record)]
    plan.blockers = _too_many(pod, wanting) or [
        *reading.blockers, *_changed_amounts(wanting, record), *_no_lists(pod, wanting),
        *_own_claims(pod, wanting, context, plan),
    ]  # fmt: skip
    if plan.blockers:
        return plan
    try:
        allocation = allocate([_consumer(demand) for demand in wanting], _taken(pod.spec, reading))
    except CannotAllocate as problem:
        path = next(demand.path for demand in wanting if demand.name == problem.container)
        plan.blockers = [finding(problem.code, pointer(path, "resources", "limits"), str(problem))]
        return plan
    names = _add_claims(pod, workload, allocation, options, plan)
    if options.style is Style.ADMISSION and wanting:
        _remember(pod, wanting, record, plan)
    for demand in reading.demands:
        if demand.legacy:
            plan.operations += _edit_container(demand, allocation.uses.get(demand.name, []))
    for demand in wanting:
        _describe(demand, allocation, names, plan)
    plan.operations += _tolerations(pod, reading) if options.tolerations and options.style is Style.FILE else []
    plan.findings += [*reading.notes, *notes(pod, allocation, reading)]
    return plan


def _too_many(pod: Pod, wanting: Sequence[Demand]) -> list[Finding]:
    asked = sum(len(demand.legacy) for demand in wanting)
    if asked <= MOST_REQUESTS:
        return []
    text = f"The pod asks for devices {asked:,} times; with more than {MOST_REQUESTS} it is left as it is."
    return [finding("DRA317", pod.spec_path, text)]


def _remember(pod: Pod, wanting: Sequence[Demand], record: Record, plan: PodPlan) -> None:
    """Add to `plan` that the pod carries what is taken off it; a blocker where its annotations have no room."""
    record.templates |= {template["metadata"]["name"]: template["spec"] for template in plan.templates}
    for demand in wanting:
        record.containers.setdefault(demand.name, {}).update(
            {legacy.resource.name: legacy.amount for legacy in demand.legacy}
        )
    carried = record.text
    plan.operations += write_record(pod.metadata or None, pod.base, carried)
    if not fits(pod.metadata, carried):
        text = "What a converted pod has to carry does not fit its annotations (256 KiB); shorten them."
        plan.blockers = [finding("DRA317", pointer(pod.base, "metadata"), text)]


def _consumer(demand: Demand) -> Consumer:
    wants: dict[Device, Amount] = {}
    for legacy in demand.legacy:
        before = wants.get(legacy.device)
        wants[legacy.device] = legacy.amount if before is None else _sum(before, legacy.amount)
    return Consumer(demand.name, demand.phase, wants)


def _sum(one: Amount, other: Amount) -> Amount:
    return one + other if isinstance(one, int) and isinstance(other, int) else f"{one} + {other}"


def _is_served(demand: Demand, record: Record) -> bool:
    """Whether our claim already gives this container exactly what its returned limits say (R13)."""
    return bool(demand.legacy) and all(
        record.serves(demand.name, legacy.resource.name) == legacy.amount for legacy in demand.legacy
    )


def _changed_amounts(wanting: Sequence[Demand], record: Record) -> list[Finding]:
    return [
        finding(
            "DRA314", pointer(demand.path, "resources", "limits", legacy.resource.name),
            f'Container "{demand.name}" is served by a claim for {served} × {legacy.resource.name} and now asks for '
            f"{legacy.amount}; recreate the pod to change the amount.",
        )
        for demand in wanting
        for legacy in demand.legacy
        if (served := record.serves(demand.name, legacy.resource.name)) is not None
    ]  # fmt: skip


def _taken(spec: Object, reading: Reading) -> set[str]:
    """Return the names of the pod's claims, and those that containers use although the pod does not list them."""
    entries = [*claim_entries(spec), *(claim for demand in reading.demands for _, claim in _claims(demand))]
    return {name for entry in entries if isinstance(name := entry.get("name"), str)}


def _claims(demand: Demand) -> list[tuple[int, Object]]:
    resources = demand.container.get("resources")
    claims = resources.get("claims") if isinstance(resources, dict) else None
    return [(n, claim) for n, claim in enumerate(claims) if isinstance(claim, dict)] if isinstance(claims, list) else []


def _no_lists(pod: Pod, wanting: Sequence[Demand]) -> list[Finding]:
    """Return blockers for fields that are added to and hold something else than a list, which must not be lost (R6)."""
    places = [(pod.spec_path, pod.spec, field_name) for field_name in ("resourceClaims", "tolerations")]
    places += [(pointer(demand.path, "resources"), demand.container["resources"], "claims") for demand in wanting]
    return [
        finding("DRA313", pointer(path, field_name), f"{field_name} is not a list; correct the manifest.")
        for path, where, field_name in places
        if wanting and not isinstance(where.get(field_name), list | None)
    ]


def _own_claims(pod: Pod, wanting: Sequence[Demand], context: Context, plan: PodPlan) -> list[Finding]:
    """Return blockers for containers that hold a claim of the class they would get, too (R6); warn where unknown."""
    sources = {name: entry for entry in claim_entries(pod.spec) if isinstance(name := entry.get("name"), str)}
    blockers: list[Finding] = []
    for demand in wanting:
        wanted = {legacy.device.device_class for legacy in demand.legacy}
        for index, claim in _claims(demand):
            name = claim.get("name")
            entry = sources.get(name) if isinstance(name, str) else None
            if entry is None:
                continue
            path = pointer(demand.path, "resources", "claims", index)
            classes = _classes(entry, context)
            text = f'Container "{demand.name}" also uses claim "{entry.get("name")}"'
            if classes is None:
                plan.findings.append(
                    finding(
                        "DRA108", path, f"{text}, whose DeviceClass is not known here; make sure it is another device."
                    )
                )
            elif same := classes & wanted:
                blockers.append(
                    finding(
                        "DRA307", path, f"{text} for {', '.join(sorted(same))} and has a limit; remove one of them."
                    )
                )
    return blockers


def _classes(entry: Mapping[str, Any], context: Context) -> frozenset[str] | None:
    for key, kind in (("resourceClaimTemplateName", "ResourceClaimTemplate"), ("resourceClaimName", "ResourceClaim")):
        if isinstance(name := entry.get(key), str):
            return context.claim_classes.get((kind, name))
    return None


def _add_claims(
    pod: Pod, workload: Workload, allocation: Allocation, options: Options, plan: PodPlan
) -> dict[str, str]:
    """Add templates and pod entries to `plan`; return the template name per claim entry."""
    names: dict[str, str] = {}
    for claim in allocation.claims:
        template = build(claim, workload, options)
        names[claim.entry] = template["metadata"]["name"]
        plan.templates.append(template)
    entries = [{"name": entry, "resourceClaimTemplateName": name} for entry, name in names.items()]
    plan.operations += append(pod.spec_path, "resourceClaims", pod.spec.get("resourceClaims"), entries)
    return names


def _edit_container(demand: Demand, uses: Sequence[tuple[str, str]]) -> list[Operation]:
    """Return the operations that take the legacy keys off one container (R3) and give it its requests (R4)."""
    resources = demand.container["resources"]
    base = pointer(demand.path, "resources")
    gone = {legacy.resource.name for legacy in demand.legacy}
    operations: list[Operation] = []
    for section in ("limits", "requests"):
        values = resources.get(section)
        present = [key for key in values if key in gone] if isinstance(values, dict) else []
        if present and len(present) == len(values):
            operations.append(remove(pointer(base, section)))
        else:
            operations += [remove(pointer(base, section, key)) for key in present]
    claims = [{"name": entry, "request": request} if request else {"name": entry} for entry, request in uses]
    return operations + append(base, "claims", resources.get("claims"), claims)


def _describe(demand: Demand, allocation: Allocation, names: Mapping[str, str], plan: PodPlan) -> None:
    uses = allocation.uses[demand.name]
    devices = allocation.devices[demand.name]
    legacy = tuple((item.resource.name, item.amount) for item in demand.legacy)
    plan.access.append(Access(demand.path, demand.name, legacy, tuple(uses), devices))
    asked = " and ".join(f"{amount} × {name}" for name, amount in legacy)
    becomes = ", ".join(
        f'request "{request}" of claim "{entry}" ({names[entry]})' if request else f'claim "{entry}" ({names[entry]})'
        for entry, request in uses
    )
    where = pointer(demand.path, "resources", "limits", legacy[0][0])
    plan.findings.append(finding("DRA001", where, f'Container "{demand.name}" asks for {asked}: becomes {becomes}.'))
    wanted = [amount for _, amount in legacy if isinstance(amount, int)]
    if demand.phase is Phase.INIT and isinstance(devices, int) and devices > sum(wanted) and len(wanted) == len(legacy):
        plan.findings.append(
            finding(
                "DRA102", where,
                f'Init container "{demand.name}" borrows whole requests and sees {devices} devices, not {sum(wanted)}.',
            )
        )  # fmt: skip


def _tolerations(pod: Pod, reading: Reading) -> list[Operation]:
    """Return what the ExtendedResourceToleration plugin would have added for the names that go (R7)."""
    names = dict.fromkeys(legacy.resource.name for demand in reading.demands for legacy in demand.legacy)
    return tolerating(pod.spec_path, pod.spec.get("tolerations"), names)


def tolerating(base: str, present: object, names: Iterable[str]) -> list[Operation]:
    """Return the operations on the object at `base` by which its `tolerations`, now `present`, bear taints of `names`.

    One that is there already, or is wider, is enough.
    """
    wanted = [
        {"key": name, "operator": "Exists", "effect": "NoSchedule"}
        for name in names
        if not any(_tolerates(toleration, name) for toleration in (present if isinstance(present, list) else ()))
    ]
    return append(base, "tolerations", present, list(wanted))


def _tolerates(toleration: object, key: str) -> bool:
    """Whether a toleration is equal to or wider than `{key, Exists, NoSchedule}`."""
    return (
        isinstance(toleration, dict)
        and toleration.get("operator") == "Exists"
        and toleration.get("key") in (key, "", None)
        and toleration.get("effect") in ("NoSchedule", "", None)
    )
