"""Which files of a repository are Kustomize patches on a GPU request, and which objects such patches touch.

Until patches are converted together with their bases, both are reported and left alone (DRA409, DRA410).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu2dra_migrate.discover import git_files, may_hold_legacy
from gpu2dra_migrate.manifest import objects

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_LARGEST = 4 * 1024 * 1024
_REWRITING = (b"patch", b"components", b"replacements", b"vars")
"""A kustomization without any of these changes nothing of what it takes in."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a patch is aimed at; an empty field stands for any. `source` is the kustomization that holds the patch."""

    kind: str
    name: str
    source: Path

    def matches(self, kind: str, name: str) -> bool:
        """Whether an object of this kind and name is patched. Selectors of kustomize are anchored expressions.

        A name counts as well when it ends in the object's: a layer between may have added a prefix.
        """
        if self.kind and not _fits(self.kind, kind):
            return False
        return not self.name or _fits(self.name, name) or self.name.endswith(name)


def _fits(pattern: str, text: str) -> bool:
    try:
        return pattern == text or re.fullmatch(pattern, text) is not None
    except re.error:
        return False


@dataclass(slots=True)
class Roles:
    """`patches`: files that are patches, with the kustomization that uses each. `touched`: targets per resource file."""

    patches: dict[Path, Path] = field(default_factory=dict)
    touched: dict[Path, list[Target]] = field(default_factory=dict)

    def patched_by(self, path: Path, kind: str, name: str) -> Path | None:
        """Return the kustomization whose patch sets or removes a GPU request of this object, or None."""
        for target in self.touched.get(path, ()):
            if target.matches(kind, name):
                return target.source
        return None


def find_roles(folder: Path) -> Roles:
    """Return the roles of the files in the repository around `folder` (or below it, outside a repository)."""
    files = git_files(folder, *(f"*{name}" for name in NAMES))
    if files is None:
        files = [Path(root, name) for root, _, names in os.walk(folder) for name in names if name in NAMES]
    return _Graph().roles(sorted(Path(os.path.abspath(file)) for file in files if file.name in NAMES))  # noqa: PTH100 - no links


class _Graph:
    """Reads kustomizations as they are reached, each once."""

    def __init__(self) -> None:
        self._read: dict[Path, dict[str, Any]] = {}

    def roles(self, files: list[Path]) -> Roles:
        roles = Roles()
        for file in files:
            if not any(word in _bytes(file) for word in _REWRITING):
                continue
            targets = list(self._gpu_targets(file, roles, set()))
            if not targets:
                continue
            for resource in self._resources(file, set()):
                roles.touched.setdefault(resource, []).extend(targets)
        return roles

    def _data(self, file: Path) -> dict[str, Any]:
        if file not in self._read:
            self._read[file] = next((obj for obj in objects(_text(file)) if isinstance(obj, dict)), {})
        return self._read[file]

    def _gpu_targets(self, file: Path, roles: Roles, seen: set[Path]) -> Iterator[Target]:
        """Yield the targets of all patches on a legacy name in `file` and the components it includes."""
        if file in seen:
            return
        seen.add(file)
        data = self._data(file)
        for patch, target in _patches(data):
            path = _path(file, patch)
            if path is not None:
                roles.patches.setdefault(path, file)
            text = patch if path is None else _text(path)
            if not may_hold_legacy(text.encode("utf-8", "surrogatepass")):
                continue
            if target.get("kind") or target.get("name"):
                yield Target(str(target.get("kind") or ""), str(target.get("name") or ""), file)
            else:
                yield from _own_targets(text, file)
        for rewriting in ("replacements", "vars"):
            if may_hold_legacy(repr(data.get(rewriting)).encode("utf-8", "surrogatepass")):
                yield Target("", "", file)
        for component in _strings(data.get("components")):
            if inner := _kustomization(file.parent / component):
                yield from self._gpu_targets(inner, roles, seen)

    def _resources(self, file: Path, seen: set[Path]) -> Iterator[Path]:
        """Yield the resource files that `file` and everything below it takes in."""
        if file in seen:
            return
        seen.add(file)
        data = self._data(file)
        for name in (entry for key in ("resources", "bases", "components") for entry in _strings(data.get(key))):
            path = Path(os.path.normpath(file.parent / name))
            if inner := _kustomization(path):
                yield from self._resources(inner, seen)
            elif path.is_file():
                yield path


def _patches(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield `(path or text, target)` of each patch of a kustomization, the deprecated fields included."""
    for key in ("patches", "patchesJson6902"):
        entries = data.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                target = entry.get("target")
                patch = entry.get("path") or entry.get("patch")
                if isinstance(patch, str):
                    yield patch, target if isinstance(target, dict) else {}
    for patch in _strings(data.get("patchesStrategicMerge")):
        yield patch, {}


def _own_targets(text: str, source: Path) -> Iterator[Target]:
    """Yield what a strategic merge patch is aimed at: the kind and name that it carries."""
    patches = [obj for obj in objects(text) if isinstance(obj, dict)]
    if not patches:
        yield Target("", "", source)
    for obj in patches:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        yield Target(str(obj.get("kind") or ""), str(name or ""), source)


def _path(file: Path, patch: str) -> Path | None:
    """Return the file that a patch entry names, or None for an inline patch."""
    if "\n" in patch or ":" in patch or "{" in patch:
        return None
    path = Path(os.path.normpath(file.parent / patch))
    return path if path.is_file() else None


def _kustomization(folder: Path) -> Path | None:
    folder = Path(os.path.normpath(folder))
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes() if path.stat().st_size <= _LARGEST else b""
    except OSError:
        return b""


def _text(path: Path) -> str:
    return _bytes(path).decode("utf-8", "replace")


def lazy_roles() -> Callable[[Path], Roles]:
    """Return `find_roles` that asks each repository once."""
    known: dict[Path, Roles] = {}

    def roles(folder: Path) -> Roles:
        top = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), folder)
        if top not in known:
            known[top] = find_roles(top)
        return known[top]

    return roles
