"""The square: converting what a kustomization builds, and building the converted one, must give the same objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Any

from gpu2dra import Context, Object, Options, Plan
from gpu2dra.kinds import claim_templates, kind_of
from gpu2dra.names import canonical_json
from gpu2dra.templates import KIND, WORKLOAD_ANNOTATION, canonical_spec
from gpu2dra_migrate.elsewhere.references import claim_references, pods_namespace
from gpu2dra_migrate.manifest import Around, planned, with_neighbours
from gpu2dra_migrate.text.patch import copied, patched, same

_REFUSED = ("DRA2", "DRA3")
Key = tuple[str, str, str, str]
"""apiVersion, kind, namespace and name."""


class State(StrEnum):
    """What became of one built object."""

    RIGHT = "right"  # what converting the built object gives
    LEFT = "left"  # what it was, although a conversion would change it
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A built object as it was, what converting it gives, and the plan behind that."""

    before: Object
    after: Object
    plan: Plan

    @property
    def refusal(self) -> str:
        """Why an object that asks for a GPU is not converted; empty where it is, or asks for none."""
        if self.plan:
            return ""
        return next((found.message for found in self.plan.findings if found.code.startswith(_REFUSED)), "")


def key_of(obj: Object) -> Key:
    """Return what tells an object from all others of one build."""
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    return (
        str(obj.get("apiVersion")), str(obj.get("kind")),
        str(metadata.get("namespace") or ""), str(metadata.get("name") or metadata.get("generateName") or ""),
    )  # fmt: skip


def wanted(built: Sequence[Object], options: Options, around: Around) -> dict[Key, Wanted]:
    """Return what converting each built object gives; `around` is what stands around the kustomization."""
    options = replace(options, elsewhere=False)
    context = with_neighbours(Context(), built)
    beside = around._replace(charts=lambda: chain(built, around.charts()))
    result = {}
    for obj in built:
        made = planned(obj, options, context, beside)
        result[key_of(obj)] = Wanted(obj, patched(copied(obj), made.operations) if made else obj, made)
    return result


def claim_pointers(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield pointer and value of each reference to a ResourceClaimTemplate in an object of a known kind."""
    yield from claim_templates(obj) if kind_of(obj) else claim_references(obj)


def templates_in(objects: Sequence[Object]) -> dict[tuple[str, str], Object]:
    """Return the ResourceClaimTemplates by namespace and name."""
    return {key_of(obj)[2:]: obj for obj in objects if obj.get("kind") == KIND}


def is_ours(obj: Object) -> bool:
    """Whether an object is a ResourceClaimTemplate made by gpu2dra."""
    metadata = obj.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return obj.get("kind") == KIND and isinstance(annotations, dict) and WORKLOAD_ANNOTATION in annotations


def resolved(obj: Object, templates: Mapping[tuple[str, str], Object]) -> Object:
    """Return an object in which each reference is the spec of its template: what does not depend on names."""
    namespace = pods_namespace(obj)
    operations: list[Any] = []
    for path, name in claim_pointers(obj):
        template = templates.get((namespace, name))
        if template is not None and isinstance(spec := template.get("spec"), dict):
            text = canonical_json([template.get("apiVersion"), canonical_spec(spec)])
            operations.append({"op": "replace", "path": path, "value": text})
    return patched(copied(obj), operations) if operations else obj


def states(have: Sequence[Object], due: Mapping[Key, Wanted]) -> dict[Key, State]:
    """Return the state of each object that was built before; what is new besides templates of ours is wrong, too.

    A template of ours that nobody uses any more is no difference: an overlay that changes an amount leaves the one
    of its base behind.
    """
    templates = templates_in(have)
    old_templates = templates_in([each.before for each in due.values()])
    made = [template for each in due.values() for template in each.plan.templates]
    due_templates = templates_in([*(each.after for each in due.values()), *made])
    found: dict[Key, State] = {}
    for obj in have:
        key = key_of(obj)
        expected = due.get(key)
        if expected is None:
            if not is_ours(obj):
                found[key] = State.WRONG
        elif same(resolved(obj, templates), resolved(expected.after, due_templates)):
            found[key] = State.RIGHT
        else:
            left = same(obj, expected.before) and same(resolved(obj, templates), resolved(obj, old_templates))
            found[key] = State.LEFT if left else State.WRONG
    gone = {key: each for key, each in due.items() if key not in found}
    # A template of ours may have another name now; what matters is who gets its spec.
    return found | {key: State.WRONG for key, each in gone.items() if not is_ours(each.before)}
