"""Legacy requests that stand outside a known PodSpec: found wherever they are, told for what they are (R11, R12)."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu2dra.codes import finding
from gpu2dra.kinds import KINDS
from gpu2dra.places.operators import other_version
from gpu2dra.places.row import FILE
from gpu2dra.places.shapes import shape_of
from gpu2dra.places.table import PLACES
from gpu2dra.places.text import LOOKALIKE_WORD, TEXT_FORMS, Form, base_name, mentions, strongest
from gpu2dra.pointers import pointer, segments
from gpu2dra.resources import legacy_resource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpu2dra.model import Finding
    from gpu2dra.places.row import Place

MAX_VISITS = 64
"""How often one block that aliases repeat is looked into: enough for people, and it bounds alias bombs and cycles."""
MAX_FINDINGS = 25
"""How many findings of one row one object gives; the last one counts the rest."""

_COLLECTIONS = (dict, list)
_AUTOSCALER_TAG = "k8s.io/cluster-autoscaler/node-template/resources/"
_LABEL_VALUES = frozenset({"true", "false", "present", "exists", "yes", "no", ""})
_LOOKALIKE = re.compile(rf"(?:{LOOKALIKE_WORD})$", re.IGNORECASE)
_REQUEST_CODES = frozenset({"DRA312", "DRA401", "DRA402", "DRA403", "DRA413", "DRA417"})


class _Trail(NamedTuple):
    """The way from the document down to one value: a linked list, so that only hits pay for a pointer."""

    above: _Trail | None
    parent: Any
    step: str


class _Hit(NamedTuple):
    """One place that names resources: in which form, and the value (an amount, or the string that holds the name)."""

    form: Form
    names: tuple[str, ...]
    pointer: str
    value: Any
    line: int = 0

    @property
    def owner(self) -> str:
        """The place that a finding is about: limits and requests of one object are one place."""
        if self.form is not Form.KEY:
            return self.pointer
        return self.pointer.rpartition("/")[0].removesuffix("/limits").removesuffix("/requests")

    @property
    def zero(self) -> bool:
        """Whether the amount is 0, which asks for nothing (R2)."""
        return self.form is Form.KEY and self.value in (0, "0")


@dataclass(slots=True)
class _Group:
    """Hits that share one row and one place, told in one finding."""

    row: Place
    hits: list[_Hit] = field(default_factory=list)


def elsewhere(obj: Any, covered: Callable[[str], bool]) -> list[Finding]:
    """Return a finding for each legacy request in `obj` that stands outside the PodSpecs of known kinds.

    `obj` is one parsed document, an object or not. `covered` tells of the JSON Pointer of a mapping key or scalar
    whether the plan has dealt with it. Findings come in document order, the same for the same document; their `path`
    is the key or scalar that names the resource, `line` counts line breaks inside that scalar. Raises nothing.
    """
    api, kind = _type_of(obj)
    groups: dict[tuple[int, str], _Group] = {}
    for hit in _hits(obj):
        if covered(hit.pointer):
            continue
        text = hit.value if hit.form in TEXT_FORMS else ""
        number, row = next((n, row) for n, row in enumerate(_rows(api, kind)) if row.hits(hit.form, hit.pointer, text))
        if row.code:
            place = "" if row.whole else hit.owner
            groups.setdefault((number, place), _Group(row)).hits.append(hit)
    return list(_findings(api, kind, list(groups.values())))


def _type_of(obj: Any) -> tuple[str, str]:
    """Return apiVersion and kind; for a document without them `FILE` and what it looks like."""
    if isinstance(obj, dict):
        api, kind = obj.get("apiVersion"), obj.get("kind")
        if isinstance(api, str) and isinstance(kind, str):
            return api, kind
    return FILE, shape_of(obj)


@lru_cache(maxsize=256)
def _rows(api: str, kind: str) -> tuple[Place, ...]:
    """Return the rows about this kind; the last ones of the table are about any hit."""
    rows = tuple(row for row in PLACES if row.applies(api, kind))
    group, _, version = api.rpartition("/")
    known = KINDS.get((group, kind))
    if known is not None and version not in known.versions:
        return (other_version(api, kind, known.versions), *rows)
    return rows


def _hits(obj: Any) -> Iterator[_Hit]:
    """Walk `obj` in document order, without recursion, and yield the legacy names that are no look-alikes."""
    visits: dict[int, int] = {id(obj): 1}
    stack: list[tuple[_Trail | None, Any, Iterator[tuple[Any, Any]]]] = []
    if isinstance(obj, _COLLECTIONS):
        stack.append((None, obj, _members(obj)))
    elif isinstance(obj, str) and _may_name(obj):
        yield from _scalar_hit(None, obj)
    while stack:
        trail, parent, rest = stack[-1]
        for step, value in rest:
            if isinstance(step, str) and ("nvidia" in step or "volcano.sh/" in step):
                yield from _key_hit(_Trail(trail, parent, step), value)
            if isinstance(value, str):
                if "nvidia" in value or "volcano.sh/" in value:
                    yield from _scalar_hit(_Trail(trail, parent, str(step)), value)
            elif isinstance(value, _COLLECTIONS):
                count = visits[id(value)] = visits.get(id(value), 0) + 1
                if count <= MAX_VISITS:
                    stack.append((_Trail(trail, parent, str(step)), value, _members(value)))
                    break
        else:
            stack.pop()


def _members(value: dict[Any, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _may_name(text: str) -> bool:
    return "nvidia" in text or "volcano.sh/" in text


def _key_hit(trail: _Trail, value: Any) -> Iterator[_Hit]:
    name = base_name(trail.step)
    if name.startswith(_AUTOSCALER_TAG):
        name = name.removeprefix(_AUTOSCALER_TAG)
    elif "\\" in name:  # Helm's --set in a map: `resources.limits.nvidia\.com/gpu: 1`
        name = next((mention.name for mention in mentions(name)), "")
    elif not _is_request(trail.above, value):
        return
    if legacy_resource(name) is not None:
        yield _Hit(Form.KEY, (name,), _pointer(trail), value)


def _is_request(above: _Trail | None, amount: Any) -> bool:
    """Whether a key below `above` with this value can be a request: not the key of a label, taint or annotation."""
    if above is not None and above.step in ("limits", "requests"):
        return True
    if isinstance(amount, bool) or (isinstance(amount, str) and amount.lower() in _LABEL_VALUES):
        return False
    return not (above is not None and above.step == "annotations") and not _is_lookalike(above)


def _scalar_hit(trail: _Trail | None, value: str) -> Iterator[_Hit]:
    """Yield the name that the scalar is, or the strongest form of mention in it with the line of the first."""
    if _is_lookalike(trail):
        return
    name = base_name(value.strip())
    if legacy_resource(name) is not None:
        if trail is None or trail.step != "key" or not {"effect", "operator"} & trail.parent.keys():
            yield _Hit(Form.NAME, (name,), _pointer(trail), value)
        return
    if found := strongest(value):
        names = tuple(dict.fromkeys(mention.name for mention in found))
        yield _Hit(found[0].form, names, _pointer(trail), value, found[0].line)


def _is_lookalike(trail: _Trail | None) -> bool:
    """Whether a field here or above is about tolerations, taints, labels or selectors."""
    while trail is not None:
        if isinstance(trail.parent, dict) and _LOOKALIKE.search(trail.step):
            return True
        trail = trail.above
    return False


def _pointer(trail: _Trail | None) -> str:
    steps: list[str] = []
    while trail is not None:
        steps.append(trail.step)
        trail = trail.above
    return pointer("", *reversed(steps))


def _findings(api: str, kind: str, groups: list[_Group]) -> Iterator[Finding]:
    total = Counter(id(group.row) for group in groups)
    told: Counter[int] = Counter()
    for group in groups:
        told[id(group.row)] += 1
        if told[id(group.row)] <= MAX_FINDINGS:
            last = told[id(group.row)] == MAX_FINDINGS
            yield _finding(api, kind, group, total[id(group.row)] - MAX_FINDINGS if last else 0)


def _finding(api: str, kind: str, group: _Group, rest: int) -> Finding:
    asking = [hit for hit in group.hits if not hit.zero]
    hits = asking or group.hits
    first = next((hit for hit in hits if "/limits/" in hit.pointer), hits[0])
    names = ", ".join(dict.fromkeys(name for hit in hits for name in hit.names))
    where = f"a string of {kind}" if first.form in TEXT_FORMS else kind
    if api == FILE and not group.row.whole:
        where += f" ({'.'.join(segments(first.owner))})"
    places = len({hit.owner for hit in hits}) if group.row.whole else 1
    counted = f" in {places} places" if places > 1 else ""
    more = f" (and {rest} more like this one)" if rest > 0 else ""
    if not asking and group.row.code in _REQUEST_CODES:
        return finding("DRA101", first.pointer, f"{names}: 0 in {where}{counted}{more}. No GPU is asked for.")
    return finding(group.row.code, first.pointer, f"{names} in {where}{counted}{more}. {group.row.advice}", first.line)
