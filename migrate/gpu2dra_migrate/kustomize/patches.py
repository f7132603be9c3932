"""The patches of a kustomization: where each stands, what it is aimed at, and what it says about legacy requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpu2dra.pointers import pointer, segments
from gpu2dra.quantity import AmountError, parse_quantity
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.kustomize.files import Kustomization, normal, strings, text_of
from gpu2dra_migrate.manifest import objects

if TYPE_CHECKING:
    from pathlib import Path

_SECTIONS = ("limits", "requests")


@dataclass(frozen=True, slots=True)
class Patch:
    """One patch: in `file`, or (with a `pointer` into the kustomization) inside `owner` as the string at `pointer`."""

    owner: Kustomization
    text: str
    file: Path | None = None
    pointer: str = ""
    target: dict[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> Path:
        """The file whose text changes with the patch."""
        return self.file or self.owner.file

    @property
    def key(self) -> tuple[Path, str]:
        """What tells this patch from all others."""
        return self.place, f"{self.owner.number}{self.pointer}" if self.file is None else ""

    def documents(self, text: str | None = None) -> list[Any]:
        """Return the patch as data: objects (strategic merge), or one list of operations (JSON6902)."""
        return objects(self.text if text is None else text)


def patches_of(one: Kustomization) -> Iterator[Patch]:
    """Yield the patches of a kustomization in the order of its fields, deprecated fields included."""
    data = one.data
    for key in ("patchesStrategicMerge", "patches", "patchesJson6902"):
        entries = data.get(key)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, str) and key == "patchesStrategicMerge":
                yield from _patch(one, entry, pointer(one.prefix, key, index), {}, named=False)
            elif isinstance(entry, dict) and key != "patchesStrategicMerge":
                target = entry.get("target")
                target = target if isinstance(target, dict) else {}
                if isinstance(path := entry.get("path"), str) and path:
                    yield from _patch(one, path, "", target, named=True)
                elif isinstance(text := entry.get("patch"), str):
                    yield Patch(one, text, None, pointer(one.prefix, key, index, "patch"), target)


def _patch(one: Kustomization, entry: str, where: str, target: dict[str, Any], *, named: bool) -> Iterator[Patch]:
    if not named and ("\n" in entry or "{" in entry):
        yield Patch(one, entry, None, where, target)
        return
    path = normal(one.folder / entry)
    if path.is_file():
        yield Patch(one, text_of(path), path, "", target)


def is_json6902(documents: list[Any]) -> bool:
    """Whether a patch is a list of JSON Patch operations."""
    return len(documents) == 1 and isinstance(documents[0], list)


def request_pointers(documents: list[Any]) -> Iterator[tuple[int, str, str]]:
    """Yield document, JSON Pointer and resource name of each legacy request that a patch sets, changes or removes.

    An amount of 0 is left where it is (rule R2). In a list of operations the pointer is that of an operation whose
    path names the resource, or of a key inside its value.
    """
    if is_json6902(documents):
        for index, operation in enumerate(documents[0]):
            if isinstance(operation, dict):
                yield from ((0, *each) for each in _in_operation(operation, pointer("", index)))
        return
    for number, document in enumerate(documents):
        yield from ((number, *each) for each in _in_value(document, "", ()))


def _in_operation(operation: dict[str, Any], base: str) -> Iterator[tuple[str, str]]:
    path = operation.get("path")
    names = segments(path) if isinstance(path, str) else []
    if len(names) > 1 and names[-2] in _SECTIONS and legacy_resource(names[-1]):
        if not _is_zero(operation.get("value", 1)):
            yield base, names[-1]
        return
    yield from _in_value(operation.get("value"), pointer(base, "value"), tuple(names))


def _in_value(value: Any, base: str, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        section = bool(above) and above[-1] in _SECTIONS
        for key, inner in value.items():
            if section and legacy_resource(key):
                if not _is_zero(inner):
                    yield pointer(base, key), str(key)
            else:
                yield from _in_value(inner, pointer(base, key), (*above, str(key)))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _in_value(inner, pointer(base, index), (*above, str(index)))


def _is_zero(value: Any) -> bool:
    try:
        return value is not None and parse_quantity(value) == 0
    except AmountError:
        return False


def without_requests(document: Any, pointers: list[str]) -> Any:
    """Return a copy of `document` without what `pointers` name, and without the maps that this leaves empty.

    Operations whose value that leaves empty go as well.
    """
    gone = {tuple(segments(each)) for each in pointers}
    return _without(document, (), gone)[0]


def _without(value: Any, at: tuple[str, ...], gone: set[tuple[str, ...]]) -> tuple[Any, bool]:
    """Return the value without what is gone, and whether nothing of it is left that it had."""
    if isinstance(value, dict):
        kept = {}
        for key, inner in value.items():
            place = (*at, str(key))
            if place in gone:
                continue
            new, emptied = _without(inner, place, gone)
            if not emptied:
                kept[key] = new
            elif key == "value" and len(at) == 1:  # an operation that would add nothing
                return {}, True
        return kept, bool(value) and not kept
    if isinstance(value, list):
        items = []
        for index, inner in enumerate(value):
            place = (*at, str(index))
            if place in gone:
                continue
            new, emptied = _without(inner, place, gone)
            if not emptied:
                items.append(new)
        return items, bool(value) and not items and bool(at)
    return value, False


def says_something(document: Any) -> bool:
    """Whether a strategic-merge patch still changes anything: more than names stand in it."""
    if not isinstance(document, dict):
        return bool(document)
    inner = {key: value for key, value in document.items() if key not in ("apiVersion", "kind", "metadata")}
    metadata = document.get("metadata")
    known = {"name", "namespace"}
    return _says(inner) or (isinstance(metadata, dict) and bool(metadata.keys() - known))


def bare_items(value: Any) -> Iterator[str]:
    """Yield the names of list items that say nothing but their name.

    They may stay, since kustomize puts what a patch names before what it does not name.
    """
    if isinstance(value, dict):
        for inner in value.values():
            yield from bare_items(inner)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict) and item.keys() == {"name"} and isinstance(item["name"], str):
                yield item["name"]
            else:
                yield from bare_items(item)


def _says(value: Any) -> bool:
    if isinstance(value, dict):
        return any(key != "name" and _says(inner) for key, inner in value.items())
    if isinstance(value, list):
        return any(_says(item) for item in value)
    return True


def aims_at(patch: Patch, document: Any, obj: dict[str, Any], *, renamed: bool = False) -> bool:
    """Whether a patch (one document of it) may be about a built object, whose name layers above may have changed.

    With `renamed` the name of an object says nothing: another patch gives it one.
    """
    metadata = obj.get("metadata")
    name = str(metadata.get("name") if isinstance(metadata, dict) else "")
    target = patch.target
    if target:
        wanted = str(target.get("name") or "")
        return _fits(str(target.get("kind") or ""), str(obj.get("kind"))) and (
            renamed or not wanted or _named(wanted, name)
        )
    if not isinstance(document, dict):
        return False
    own = document.get("metadata")
    own_name = str(own.get("name") if isinstance(own, dict) else "")
    return document.get("kind") == obj.get("kind") and (renamed or (bool(own_name) and own_name in name))


def _fits(pattern: str, text: str) -> bool:
    try:
        return not pattern or pattern == text or re.fullmatch(pattern, text) is not None
    except re.error:
        return False


def _named(pattern: str, name: str) -> bool:
    """Whether a name, or some part of it, fits: layers put something before and behind it."""
    try:
        return pattern in name or re.search(pattern, name) is not None
    except re.error:
        return False


def replaced_fields(one: Kustomization) -> Iterator[str]:
    """Yield the JSON Pointers of replacements and variables that read or write a legacy request."""
    for key in ("replacements", "vars"):
        entries = one.data.get(key)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if any(re.search(r"limits|requests", text) and "nvidia.com" in text for text in _texts(entry)):
                yield pointer("", key, index)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def generator_files(one: Kustomization) -> Iterator[Path]:
    """Yield the files whose content becomes part of a ConfigMap or Secret."""
    for key in ("configMapGenerator", "secretGenerator"):
        entries = one.data.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                listed = [*strings(entry.get("files")), *strings(entry.get("envs")), *strings([entry.get("env")])]
                for name in listed:
                    yield normal(one.folder / name.rpartition("=")[2])
