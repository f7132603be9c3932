"""The patches of a kustomization: where each stands and what it is aimed at; and what else it does to requests."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpu2dra.pointers import pointer
from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.kustomize.files import GENERATORS, Kustomization, strings
from gpu2dra_migrate.manifest import objects

if TYPE_CHECKING:
    from pathlib import Path


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

    def documents(self) -> list[Any]:
        """Return the patch as data: objects (strategic merge), or one list of operations (JSON6902)."""
        return objects(self.text)


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
    path = one.place(entry)
    if path.is_file():
        yield Patch(one, text_of(path), path, "", target)


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
    for entry in one.maps(*GENERATORS):
        for name in [*strings(entry.get("files")), *strings(entry.get("envs")), *strings([entry.get("env")])]:
            yield one.place(name.rpartition("=")[2])
