"""The conversion of one text: parse, plan each document, edit the text, prove the edit. No files, no output."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu2dra import CODES, Context, Finding, Keep, Object, Options, Plan, plan
from gpu2dra.codes import finding
from gpu2dra.demand import is_placeholder
from gpu2dra.templates import fitting_name
from gpu2dra_migrate.errors import CannotEdit, ProofFailed, YamlSyntaxError
from gpu2dra_migrate.ignores import ignores, is_ignored
from gpu2dra_migrate.search.discover import may_hold_legacy
from gpu2dra_migrate.text import source
from gpu2dra_migrate.text.edits import DocumentEdit, locate, splices_of
from gpu2dra_migrate.text.emit import Verbatim
from gpu2dra_migrate.text.literal_edits import stands_below
from gpu2dra_migrate.text.nodes import Document, compose
from gpu2dra_migrate.text.values import repeated_keys, to_data

if TYPE_CHECKING:
    from gpu2dra_migrate.elsewhere.releases import Release

CONVERSIONS = frozenset({"DRA001", "DRA002", "DRA435"})
"""The codes that say what `convert` does; every other code is about what it leaves or what to know."""
_TEMPLATE_MARKS = re.compile(r"\{\{|\{%|<%|\$\{\{")
_RELEASES = ("HelmRelease", "Application", "ApplicationSet", "HelmChart")
"""Kinds that hand values to charts which live elsewhere, as does a helmfile, which has no kind."""
_NO_ROOM = "DRA105"
_IGNORED = "Left as it is, since a request of this object is ignored."
_NOTHING_KNOWN = Context()


class Around(NamedTuple):
    """What stands around a text, told when somebody asks.

    `charts` gives objects that may name the chart of a release, the nearest first; `releases` those releases, of charts
    elsewhere, that take all of a map as their values; `is_chart` tells whether a path leads to a chart that is here.
    """

    charts: Callable[[], Iterable[Any]] = tuple
    releases: Callable[[Object], Iterable[Release]] = lambda _: ()
    is_chart: Callable[[str], bool] = lambda _: False


_NOTHING_AROUND = Around()
Reason = Callable[[str, str], Finding | None]
"""Given kind and name of an object: the finding because of which it must be left alone, or None."""


@dataclass(frozen=True, slots=True)
class Located:
    """A finding with its place in the file and the object it is about (`Deployment/vllm`)."""

    finding: Finding
    line: int
    column: int
    about: str


@dataclass(slots=True)
class Conversion:
    """What became of one text.

    `text` is the new text, or None where nothing changes. `beside` holds the templates that cannot stand in this file
    and need one of their own. `objects` counts converted objects, `requests` the legacy requests that went, `ignored`
    the findings silenced by comments.
    """

    findings: list[Located] = field(default_factory=list)
    text: str | None = None
    beside: list[Object] = field(default_factory=list)
    objects: int = 0
    requests: int = 0
    ignored: int = 0


@dataclass(slots=True)
class _Part:
    """One document on its way: its data, its plan, and what must stand before it."""

    index: int
    document: Document
    data: Any
    plan: Plan
    own_file: bool = False

    @property
    def about(self) -> str:
        return describe(self.data)


def describe(obj: object) -> str:
    """Return `Kind/name` of an object for people, as far as it has them."""
    if not isinstance(obj, dict) or not isinstance(obj.get("kind"), str):
        return ""
    metadata = obj.get("metadata")
    name = (metadata.get("name") or metadata.get("generateName")) if isinstance(metadata, dict) else None
    return f"{obj['kind']}/{name}" if name else str(obj["kind"])


def convert(
    text: str,
    options: Options,
    context: Context = _NOTHING_KNOWN,
    *,
    reason: Reason | None = None,
    keep: Callable[[], tuple[Keep, ...]] = tuple,
    around: Around = _NOTHING_AROUND,
    write: bool = True,
) -> Conversion:
    """Return what becomes of `text`.

    `context` knows what stands in other files, `reason` may forbid an object; `keep`, asked only where something
    converts, tells which tools would prune the templates; `around` knows of releases. With `write` false the edit is
    tried but not proven, as `check` needs it. Bad input gives findings, never an exception.
    """
    try:
        documents = compose(text)
        data = [to_data(document) for document in documents]
    except YamlSyntaxError as error:
        return Conversion([_unparsed(text, error)])
    context = with_neighbours(context, data)
    beside = around._replace(charts=lambda: chain(data, around.charts()))
    plans = [planned(obj, options, context, beside) for obj in data]
    if any(plans) and (tools := keep()):
        options = replace(options, keep=tools)
        plans = [
            planned(obj, options, context, beside) if first else first for obj, first in zip(data, plans, strict=True)
        ]
    parts = [_Part(index, *each) for index, each in enumerate(zip(documents, data, plans, strict=True))]
    result = Conversion()
    lines = ignores(text)
    for part in parts:
        _settle(part, reason, lines, result)
    _write(text, parts, options, context, result, write=write)
    for part in parts:
        if part.document.repeating and may_hold_legacy(text[part.document.start : part.document.end]):
            _tell_repeated_keys(part, lines, result)
    result.findings.sort(key=lambda located: (located.line, located.column, located.finding.code))
    return result


def planned(obj: Any, options: Options, context: Context, around: Around = _NOTHING_AROUND) -> Plan:
    """Return the plan of an object in a file: the core's, or where it hands values to a chart, that of the values."""
    if isinstance(obj, dict) and (obj.get("kind") in _RELEASES or ("kind" not in obj and "releases" in obj)):
        from gpu2dra_migrate.elsewhere.plan import plan_releases  # noqa: PLC0415 - few files hold one

        return plan_releases(obj, options, context, around.charts, around.is_chart)
    if isinstance(obj, dict) and "kind" not in obj and (found := list(around.releases(obj))):
        from gpu2dra_migrate.elsewhere.plan import plan_releases  # noqa: PLC0415 - as above

        return plan_releases(obj, options, context, of_file=found)
    return plan(obj, options, context)


def _tell_repeated_keys(part: _Part, lines: Mapping[int, frozenset[str]], result: Conversion) -> None:
    """Add a finding for each key that stands twice in a map: what the first one says is lost on Kubernetes (DRA508)."""
    told = {item.line for item in result.findings if item.finding.code == "DRA508"}
    for name, key in repeated_keys(part.document):
        line = key.line + 1
        if is_ignored("DRA508", line, lines):
            result.ignored += 1
        elif line not in told:
            text = f'"{name}" stands twice in this map and Kubernetes takes the last one; remove one.'
            result.findings.append(Located(finding("DRA508", "", text), line, key.column + 1, part.about))


def objects(text: str) -> list[Any]:
    """Return the documents of `text` as plain data; none when it does not parse."""
    try:
        return [to_data(document) for document in compose(text)]
    except YamlSyntaxError:
        return []


def with_neighbours(context: Context, objects: Sequence[Any]) -> Context:
    """Return `context` with what the objects of the same file add to it."""
    classes, priorities, renames = dict(context.claim_classes), dict(context.priorities), dict(context.renames)
    for obj in objects:
        metadata = obj.get("metadata") if isinstance(obj, dict) else None
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not isinstance(metadata, dict):
            continue
        kind = obj.get("kind")
        if kind in ("ResourceClaim", "ResourceClaimTemplate"):
            classes[(kind, name)] = frozenset(_device_classes(obj.get("spec")))
            new = fitting_name(obj)
            if new and new != name:
                renames[(str(metadata.get("namespace") or ""), name)] = new
        elif kind == "ComputeDomain":
            channel = _at(obj, "spec", "channel", "resourceClaimTemplate", "name")
            classes[("ResourceClaimTemplate", str(channel))] = frozenset({"compute-domain-default-channel.nvidia.com"})
        elif kind == "PriorityClass" and isinstance(value := obj.get("value"), int):
            priorities[name] = value
    return replace(context, claim_classes=classes, priorities=priorities, renames=renames)


def _device_classes(value: Any) -> list[str]:
    found: list[str] = []
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if isinstance(name := node.get("deviceClassName"), str):
                found.append(name)
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return found


def _at(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _unparsed(text: str, error: YamlSyntaxError) -> Located:
    if _TEMPLATE_MARKS.search(text):
        message = f"Not YAML until it is rendered ({error.problem}); convert what the tool prints."
        return Located(finding("DRA509", "", message), error.line, error.column, "")
    message = f"Not valid YAML: {error.problem}; correct it here."
    return Located(finding("DRA501", "", message), error.line, error.column, "")


def _settle(part: _Part, reason: Reason | None, lines: Mapping[int, frozenset[str]], result: Conversion) -> None:
    """Decide whether the document is converted, and add its findings to the result."""
    findings = list(part.plan.findings)
    metadata = part.data.get("metadata") if isinstance(part.data, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if reason and part.plan and (why := reason(str(_at(part.data, "kind") or ""), str(name or ""))):
        findings = _left_alone(findings, why)
        part.plan = Plan()
    located = [_place(part, item) for item in findings]
    kept = [item for item in located if not is_ignored(item.finding.code, item.line, lines)]
    result.ignored += len(located) - len(kept)
    if any(item.finding.code in CONVERSIONS for item in located if item not in kept):
        part.plan = Plan()
        kept = [
            _place(part, finding("DRA207", item.finding.path, _IGNORED)) if item.finding.code in CONVERSIONS else item
            for item in kept
            if item.finding.code in CONVERSIONS or not _goes_with(item.finding)
        ]
    result.findings += kept


def _goes_with(item: Finding) -> bool:
    """Whether a finding is a note beside a conversion, and means nothing without it."""
    return item.code.startswith("DRA1")


def _left_alone(findings: list[Finding], why: Finding) -> list[Finding]:
    """Put `why` in the place of each conversion, and drop the notes that go with one."""
    return [
        why._replace(path=item.path) if item.code in CONVERSIONS else item
        for item in findings
        if item.code in CONVERSIONS or not _goes_with(item)
    ]


def _place(part: _Part, item: Finding) -> Located:
    line, column = locate(part.document, item.path)
    below = stands_below(part.document, item.path)
    if item.line or below:
        line += item.line + below
        column = 1
    return Located(item, line, column, part.about)


def _write(
    text: str, parts: list[_Part], options: Options, context: Context, result: Conversion, *, write: bool
) -> None:
    """Edit the text by the plans; a document whose layout forbids it is reported and left, the others still change."""
    active = [part for part in parts if part.plan]
    documents = [part.document for part in parts]
    while active:
        edits = [_edit_of(part) for part in active]
        try:
            splices = splices_of(text, edits, documents)
            new = source.apply(text, splices)
            if write:
                from gpu2dra_migrate.text.proof import prove  # noqa: PLC0415 - loads two more parsers, which check needs not

                found = prove(text, new, edits, documents, splices, [part.data for part in parts])
                _prove_stable(found, active, options, context)
        except CannotEdit as problem:
            part = _part_at(active, problem.line)
            if problem.code == _NO_ROOM and not part.own_file:
                part.own_file = True
                result.findings.append(
                    Located(
                        finding(_NO_ROOM, "", _sentence(problem.message, _NO_ROOM)),
                        problem.line,
                        problem.column,
                        part.about,
                    )
                )
                continue
            active.remove(part)
            _give_up(part, problem.code, problem.message, problem.line, problem.column, result)
        except ProofFailed as problem:
            for part in active:
                line, column = locate(part.document, "")
                _give_up(part, "DRA505", f"Nothing was written: {problem}", line, column, result)
            return
        else:
            result.text = new
            result.beside = _beside(active)
            result.objects = len(active)
            result.requests = sum(len(access.legacy) for part in active for access in part.plan.access)
            return


def _give_up(part: _Part, code: str, message: str, line: int, column: int, result: Conversion) -> None:
    dropped = {id(item) for item in part.plan.findings if item.code in CONVERSIONS or _goes_with(item)}
    result.findings = [item for item in result.findings if id(item.finding) not in dropped]
    result.findings.append(Located(finding(code, "", _sentence(message, code)), line, column, part.about))


def _sentence(message: str, code: str) -> str:
    """Return a message of the text editor as a sentence, with what to do about it."""
    return f"{message[:1].upper()}{message[1:].rstrip('.')}. {CODES[code].todo}"


def _edit_of(part: _Part) -> DocumentEdit:
    before = [] if part.own_file or part.plan.own_file else [unquoted(template) for template in part.plan.templates]
    operations = [
        {**operation, "value": unquoted(operation["value"])} if "value" in operation else operation
        for operation in part.plan.operations
    ]
    return DocumentEdit(part.index, operations, before)  # type: ignore[arg-type] # a TypedDict spread is a plain dict to mypy


def unquoted(value: Any) -> Any:
    """Return `value` with the placeholder counts of a template marked to be written without quotes."""
    if not isinstance(value, dict) or value.get("kind") != "ResourceClaimTemplate":
        return value
    requests = [
        {
            key: _unquoted_count(inner) if key == "exactly" else _unquoted_count({key: inner})[key]
            for key, inner in request.items()
        }
        for request in value["spec"]["spec"]["devices"]["requests"]
    ]
    return {**value, "spec": {"spec": {"devices": {"requests": requests}}}}


def _unquoted_count(request: Object) -> Object:
    return {**request, "count": Verbatim(request["count"])} if is_placeholder(request.get("count")) else request


def _part_at(parts: list[_Part], line: int) -> _Part:
    """Return the document that `line` belongs to: the last that begins at or above it."""
    best = parts[0]
    for part in parts:
        if locate(part.document, "")[0] <= line:
            best = part
    return best


def _beside(parts: list[_Part]) -> list[Object]:
    """Return the templates that cannot stand in this file."""
    return [unquoted(t) for part in parts if part.own_file or part.plan.own_file for t in part.plan.templates]


def _prove_stable(found: list[Any], parts: list[_Part], options: Options, context: Context) -> None:
    """Raise ProofFailed unless converting the result, `found`, again changes nothing: the fourth check."""
    options, context = replace(options, elsewhere=False), replace(context, renames={})
    shift = 0
    for part in parts:
        before = 0 if part.own_file or part.plan.own_file else len(part.plan.templates)
        first = part.index + shift
        shift += before
        for obj in found[first : first + before + 1]:
            again = planned(obj, options, context, Around(lambda: found))
            if again.operations:
                raise ProofFailed("stable", f"a second run would change {again.operations[0]['path']} again")
