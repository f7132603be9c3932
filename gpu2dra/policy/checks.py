"""What no schema can say about a ConversionPolicy: names that are known, rules that are ever reached."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase

from gpu2dra.model import Object
from gpu2dra.pointers import pointer
from gpu2dra.policy.model import LeftAlone, Problem, Rule
from gpu2dra.resources import PREFIXES, legacy_resource

_WILDCARDS = frozenset("*?")


def inconsistent(document: Object) -> Iterator[Problem]:
    """Yield what is wrong between the parts of a document; None stands for a value that is wrong by itself."""
    for part in ("devices", "rules"):
        yield from _repeated(document, part)
    devices = [entry["name"] for _, entry in _entries(document, "devices") if entry.get("name")]
    for path, rule in _entries(document, "rules"):
        yield from _outcome(rule, path, devices)
        match = rule.get("match")
        if match == {}:
            text = 'This matches nothing in particular; list resources or namespaces ("*" stands for all).'
            yield Problem(pointer(path, "match"), text)
        globs = match.get("resources") if isinstance(match, dict) else None
        for index, glob in enumerate(globs or ()):
            if glob and (text := _pointless(glob, device="device" in rule)):
                yield Problem(pointer(path, "match", "resources", index), text)


def _entries(document: Object, part: str) -> Iterator[tuple[str, Object]]:
    for index, entry in enumerate(document.get(part) or ()):
        if isinstance(entry, dict):
            yield pointer("", part, index), entry


def _repeated(document: Object, part: str) -> Iterator[Problem]:
    first: dict[str, str] = {}
    for path, entry in _entries(document, part):
        name = entry.get("name")
        if name and first.setdefault(name, path) != path:
            yield Problem(pointer(path, "name"), f'"{name}" is the name of {first[name]} already; give it another.')


def _outcome(rule: Object, path: str, devices: Sequence[str]) -> Iterator[Problem]:
    if "device" in rule and "skip" in rule:
        yield Problem(pointer(path, "skip"), "A rule has either a device or a reason to skip; remove one of them.")
    if "device" not in rule and "skip" not in rule:
        yield Problem(path, "A rule says what becomes of the request; write device: NAME or skip: REASON.")
    name = rule.get("device")
    if name and name not in devices:
        near = get_close_matches(name, devices, n=1)
        known = f'"{near[0]}" may be meant' if near else f"the devices are {', '.join(devices) or 'none yet'}"
        yield Problem(pointer(path, "device"), f'There is no device "{name}"; {known}.')


def _pointless(glob: str, *, device: bool) -> str:
    """Return what is wrong with the glob of resource names of a rule, empty when nothing is."""
    if _WILDCARDS.isdisjoint(glob):
        resource = legacy_resource(glob)
        if resource is None:
            return f'"{glob}" is no GPU resource that gpu2dra knows; write one such as nvidia.com/gpu.'
        if device and not resource.counted:
            return f"The amount of {glob} is no number of devices; only a rule that skips can be for it."
        return ""
    fixed = _fixed(glob)
    if device and not _overlaps(fixed, "nvidia.com/mig-") and not fnmatchcase("nvidia.com/gpu", glob):
        return (
            f'"{glob}" fits no whole GPU and no MIG profile; a device takes the place of another name only where '
            "that is written out."
        )
    if not any(_overlaps(fixed, prefix) for prefix in PREFIXES):
        return f'"{glob}" fits no GPU resource that gpu2dra knows; they begin with {" or ".join(PREFIXES)}.'
    return ""


def _fixed(glob: str) -> str:
    """Return the part of a glob before its first wildcard."""
    return glob[: min((glob.index(mark) for mark in _WILDCARDS if mark in glob), default=len(glob))]


def _overlaps(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


def unreachable(rules: Sequence[Rule]) -> Iterator[Problem]:
    """Yield the rules that are never reached, since earlier ones match all that they match, as far as one can tell."""
    for index, rule in enumerate(rules):
        pairs = [(glob, namespace) for glob in rule.resources or ("*",) for namespace in rule.namespaces or ("*",)]
        before = rules[:index]
        if all(any(_covers(earlier, rule, *pair) for earlier in before) for pair in pairs):
            text = "This rule is never reached: earlier ones match all that it matches. Move it up or remove it."
            yield Problem(pointer("", "rules", index), text)


def _covers(earlier: Rule, later: Rule, resource: str, namespace: str) -> bool:
    """Whether `earlier` matches all that `later` matches by these two of its globs."""
    if not any(_wider(glob, namespace) for glob in earlier.namespaces or ("*",)):
        return False
    if _WILDCARDS.isdisjoint(resource):
        known = legacy_resource(resource)
        return known is not None and earlier.matches(known, namespace)
    # By a wildcard, a rule that skips matches shares and fractions, too; one with a device does not.
    enough = isinstance(earlier.outcome, LeftAlone) or not isinstance(later.outcome, LeftAlone)
    return enough and any(_wider(glob, resource) for glob in earlier.resources or ("*",))


def _wider(one: str, other: str) -> bool:
    """Whether the glob `one` surely matches all that the glob `other` matches."""
    if one == other or _WILDCARDS.isdisjoint(other):
        return fnmatchcase(other, one)
    return one.endswith("*") and _fixed(other).startswith(one[:-1])
