"""`plan`: the conversion of one Kubernetes object, whatever its kind; everything else in this package serves it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from gpu2dra.codes import finding
from gpu2dra.kinds import Kind, claim_templates, kind_of, matches
from gpu2dra.model import Context, Finding, Object, Operation, Options, Plan, Style
from gpu2dra.names import subdomain
from gpu2dra.operators import operator_edits
from gpu2dra.places import elsewhere
from gpu2dra.podspec import PodPlan, plan_pod
from gpu2dra.pointers import add, pointer, replace
from gpu2dra.policy import BUILT_IN
from gpu2dra.skips import Pod
from gpu2dra.templates import KIND as TEMPLATE_KIND
from gpu2dra.templates import Workload, fitting_name

_PLAIN = Options()
_NOTHING_KNOWN = Context()


def plan(obj: Any, options: Options = _PLAIN, context: Context = _NOTHING_KNOWN) -> Plan:
    """Return how `obj` moves from legacy GPU resources to claims (rules R1 to R15 of the design).

    `obj` is one object as plain data, whatever it is, and is not changed. The result is empty, but for findings, when
    there is nothing to convert or something forbids it. Converted input gives an empty plan (R13). Bad input gives
    findings, never an exception.
    """
    result, seen = _plan_object(obj, options, context) if isinstance(obj, dict) else (Plan(), set())
    if not options.elsewhere or _has_objects(obj):
        return result
    rest = elsewhere(obj, seen.__contains__)
    return Plan(result.operations, result.templates, (*result.findings, *rest), result.access, result.own_file)


def _has_objects(obj: Any) -> bool:
    kind = kind_of(obj) if isinstance(obj, dict) else None
    return kind is not None and bool(kind.objects)


def _plan_object(obj: Object, options: Options, context: Context) -> tuple[Plan, set[str]]:
    """Return the plan of one object and the pointers of the legacy keys that it has dealt with."""
    if obj.get("kind") == TEMPLATE_KIND:
        return _plan_template(obj), set()
    kind = kind_of(obj)
    if kind is None:
        return Plan(), set()
    if kind.objects:
        return _plan_wrapped(obj, kind, options, context), set()
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace = _namespace(metadata, context)
    workload = Workload(kind.group, kind.kind, _name(metadata), namespace, _around(metadata, context.wrapper))
    pods = [plan_pod(pod, workload, options, context) for pod in _pods(obj, kind, workload, options, context)]
    seen = set().union(*(pod.seen for pod in pods)) if pods else set()
    references = _renamed_references(obj, namespace, context)
    if blockers := _blockers(workload, pods, options):
        notes = [note for pod in pods for note in pod.findings if note.code == "DRA101"]
        return Plan(operations=references, findings=(*blockers, *notes)), seen
    return _join(obj, kind, pods, references, options), seen


def _blockers(workload: Workload, pods: list[PodPlan], options: Options) -> list[Finding]:
    """Return what forbids converting any part of the object."""
    blockers = [blocker for pod in pods for blocker in pod.blockers]
    named = bool(subdomain(workload.name))
    if not blockers and options.style is Style.FILE and not named and any(pod.operations for pod in pods):
        text = f"This {workload.kind} has no metadata.name, and its template is named after it."
        blockers.append(finding("DRA313", "/metadata", text))
    return blockers


def _join(obj: Object, kind: Kind, pods: list[PodPlan], references: tuple[Operation, ...], options: Options) -> Plan:
    operations = [operation for pod in pods for operation in pod.operations]
    findings = [item for pod in pods for item in pod.findings]
    access = [item for pod in pods for item in pod.access]
    if not operations:
        return Plan(operations=references, findings=tuple(findings))
    edits, notes = operator_edits(kind, obj, access)
    if any(note.code == "DRA315" for note in notes):
        return Plan(operations=references, findings=tuple(notes))
    templates = {template["metadata"]["name"]: template for pod in pods for template in pod.templates}
    metadata = obj.get("metadata", {})
    own_file = options.style is Style.FILE and not isinstance(metadata.get("name"), str)  # so it has a generateName
    if options.style is Style.FILE:
        findings += _object_notes(kind, own_file)
    findings += notes
    return Plan((*operations, *edits, *references), tuple(templates.values()), tuple(findings), tuple(access), own_file)


def _object_notes(kind: Kind, own_file: bool) -> Iterator[Finding]:
    if kind.recreate and not own_file:
        yield finding(
            "DRA103", "/kind", f"A {kind.kind} that exists keeps its old pods: delete it, or them, when you apply this."
        )
    if own_file:
        yield finding(
            "DRA105", "/metadata/generateName",
            "The template goes into a file of its own: apply it once, since generateName makes a new object each time.",
        )  # fmt: skip
    if not kind.namespaced:
        text = f"A {kind.kind} has no namespace, its pods and their template have one: apply the template in each."
        yield finding("DRA113", "/kind", text)
    if not kind.since.startswith("Kubernetes"):
        yield finding(
            "DRA111", "/apiVersion", f"Claims in a {kind.kind} need {kind.since} or later; older ones drop them."
        )


def _namespace(metadata: Object, context: Context) -> str:
    namespace = metadata.get("namespace")
    return namespace if isinstance(namespace, str) and namespace else context.namespace


def _name(metadata: Object) -> str:
    name, generate = metadata.get("name"), metadata.get("generateName")
    if isinstance(name, str):
        return name
    return generate.rstrip("-") if isinstance(generate, str) else ""


def _pods(obj: Object, kind: Kind, workload: Workload, options: Options, context: Context) -> Iterator[Pod]:
    outer = dict(workload.metadata)
    policy = options.policy or BUILT_IN
    around = (workload.namespace, options.schedulers | policy.schedulers, policy, context.priorities)
    for pattern in kind.templates:
        for base, template in matches(obj, pattern):
            spec = template.get("spec") if isinstance(template, dict) else None
            if isinstance(spec, dict):
                own = template.get("metadata")
                own = own if isinstance(own, dict) else {}
                yield Pod(outer, own, base, spec, pointer(base, "spec"), *around)
    for pattern in kind.specs:
        for base, spec in matches(obj, pattern):
            if isinstance(spec, dict):
                yield Pod(outer, {}, base, spec, base, *around)


def _renamed_references(obj: Object, namespace: str, context: Context) -> tuple[Operation, ...]:
    """Return the operations that follow the renames of templates of ours that were edited by hand (R8)."""
    if not context.renames:
        return ()
    return tuple(
        replace(path, new) for path, name in claim_templates(obj) if (new := context.renames.get((namespace, name)))
    )


def _plan_template(obj: Object) -> Plan:
    """Return the rename of a template of ours whose name does not fit its spec (R8)."""
    name = fitting_name(obj)
    old = obj.get("metadata", {}).get("name") if name else None
    if name is None or name == old:
        return Plan()
    text = f"The spec of this template was edited, so its name must be {name}; the old one may still be in use."
    return Plan(operations=(replace("/metadata/name", name),), findings=(finding("DRA002", "/metadata/name", text),))


def _plan_wrapped(obj: Object, kind: Kind, options: Options, context: Context) -> Plan:
    """Return the plan of an object that holds whole objects.

    Templates of a `List` become items before their users, but for those that need a file of their own (R8). Other
    wrappers (AppWrapper) know only some kinds of objects, so their templates stand beside them.
    """
    operations: list[Operation] = []
    templates: list[Object] = []
    findings: list[Finding] = []
    access: list[Any] = []
    listed = kind.kind == "List"
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    own_file = not listed and "generateName" in metadata and not isinstance(metadata.get("name"), str)
    inner = context if listed else _inside(obj, context)
    # Last item first, so that an insertion does not move what comes after it.
    for path, item in reversed([match for pattern in kind.objects for match in matches(obj, pattern)]):
        part = plan(item, options, inner)
        operations += [{**operation, "path": path + operation["path"]} for operation in part.operations]
        if listed and not part.own_file:
            operations += [add(path, template) for template in reversed(part.templates)]
        else:
            templates[:0] = part.templates
            own_file = own_file or part.own_file
        findings[:0] = [Finding(f.code, path + f.path, f.message, f.severity, f.line) for f in part.findings]
        access[:0] = [type(a)(path + a.path, a.container, a.legacy, a.requests, a.devices) for a in part.access]
    return Plan(tuple(operations), tuple(templates), tuple(findings), tuple(access), own_file and bool(templates))


def _inside(obj: Object, context: Context) -> Context:
    """Return the context of the objects wrapped in `obj`, which is what people apply, label and prune."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    namespace, wrapper = _namespace(metadata, context), _around(metadata, context.wrapper)
    return dataclasses.replace(context, namespace=namespace, wrapper=wrapper)


def _around(metadata: Object, wrapper: Mapping[str, Any]) -> Object:
    """Return `metadata` with the labels and annotations of the objects around it added."""
    result = dict(metadata)
    for field in ("labels", "annotations"):
        outer, own = wrapper.get(field), metadata.get(field)
        if isinstance(outer, dict) and outer:
            result[field] = {**outer, **(own if isinstance(own, dict) else {})}
    return result
