"""The square: converting what a chart renders, and rendering the converted chart, must give the same objects."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from gpu2dra import Context, Options, Plan, plan
from gpu2dra.kinds import kind_of
from gpu2dra.templates import canonical_spec
from gpu2dra_migrate.helm.documents import objects_in
from gpu2dra_migrate.helm.program import Rendered
from gpu2dra_migrate.manifest import describe, with_neighbours
from gpu2dra_migrate.text.patch import copied, patched

_REASON = re.compile(r"^# gpu2dra leaves this on the extended resource: DRA\d{3} [a-z-]+\n+", re.MULTILINE)
_NEIGHBOURS = ("ResourceClaim", "ComputeDomain", "PriorityClass")
"""What stands in a document that says something about others."""
_WAITING = ("DRA2", "DRA3")
"""Codes of requests that are there and not converted: with other values they may be."""


def asks(obj: Any, options: Options) -> bool:
    """Whether `obj` is a workload of a known kind that asks for a GPU, converted or not."""
    made = plan(obj, options)
    return bool(made) or any(found.code.startswith(_WAITING) for found in made.findings)


def is_workload(obj: Any) -> bool:
    """Whether `obj` is of a kind that holds PodSpecs."""
    return isinstance(obj, dict) and kind_of(obj) is not None


def surroundings(rendered: Iterable[Rendered]) -> Context:
    """Return what the objects of a chart that are no workloads mean for those that are."""
    texts = (each.text for each in rendered if any(word in each.text for word in _NEIGHBOURS))
    return with_neighbours(Context(), [obj for text in texts for obj in objects_in(text)])


def differences(
    before: Sequence[Rendered], after: Sequence[Rendered], sources: Collection[str], options: Options, *,
    names: bool = True,
) -> dict[str, str]:  # fmt: skip
    """Return by source what differs between the two ways around the square; nothing when it commutes.

    Documents of `sources` go through the core, whose map keys have the alphabet's order as in Helm.
    All others must be the same text. Without `names`, templates of claims are the same that have one spec and one
    namespace, whatever their names and labels are.
    """
    context = surroundings(before)
    found: dict[str, str] = {}
    for source in dict.fromkeys(each.source for each in (*before, *after)):
        old = [each.text for each in before if each.source == source]
        new = [each.text for each in after if each.source == source]
        if source not in sources:
            if sorted(old) != sorted(new):
                found[source] = "renders another text than before"
        elif problem := _compared(old, new, options, context, names=names):
            found[source] = problem
    return found


def _compared(old: Iterable[str], new: Iterable[str], options: Options, context: Context, *, names: bool) -> str:
    """Return what differs in the documents of one source, or nothing."""
    wanted: list[Any] = []
    kept: Counter[str] = Counter()
    for text in old:
        done = list(converted(objects_in(text), options, context))
        wanted += done
        if [_key(obj) for obj in done] == [_key(obj) for obj in objects_in(text)]:
            kept[text.strip()] += 1
    texts = [_REASON.sub("", text.strip(), count=1).strip() for text in new]
    found = [obj for text in texts for obj in objects_in(text)]
    expected, actual = (Counter(map(_key, each if names else _nameless(each))) for each in (wanted, found))
    for key in (*(expected - actual), *(actual - expected)):
        return f"{describe(json.loads(key)) or 'An object'} would not be what converting the rendered manifest gives"
    if kept - Counter(texts):
        return "a document without a conversion does not keep its text"
    return ""


def converted(objs: Iterable[Any], options: Options, context: Context) -> Iterator[Any]:
    """Yield what the core makes of objects, each with its templates before it."""
    for obj in map(sorted_keys, objs):
        made = plan(obj, options, context) if isinstance(obj, dict) else Plan()
        yield from made.templates
        yield patched(copied(obj), made.operations)


def _nameless(objs: Sequence[Any]) -> list[Any]:
    """Return objects in which templates of claims, and what refers to them, are named after their specs."""
    own = [obj for obj in objs if isinstance(obj, dict) and obj.get("kind") == "ResourceClaimTemplate"]
    specs = {_metadata(obj).get("name"): _key(canonical_spec(obj.get("spec") or {})) for obj in own}
    templates = [
        {"kind": obj["kind"], "apiVersion": obj.get("apiVersion"), "name": specs[_metadata(obj).get("name")],
         "namespace": _metadata(obj).get("namespace")}
        for obj in own
    ]  # fmt: skip
    return [*templates, *(_renamed(obj, specs) for obj in objs if not any(obj is each for each in own))]


def _metadata(obj: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _renamed(value: Any, names: Mapping[Any, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: names.get(item, item) if key == "resourceClaimTemplateName" and isinstance(item, str)
            else _renamed(item, names)
            for key, item in value.items()
        }  # fmt: skip
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


def _key(obj: Any) -> str:
    return json.dumps(obj, sort_keys=True)


def sorted_keys(value: Any) -> Any:
    """Return a copy in whose maps keys stand in the alphabet's order, as in a map of Helm."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return [sorted_keys(item) for item in value] if isinstance(value, list) else value
