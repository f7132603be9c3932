"""Which files are Kustomize patches on a GPU request, and which objects such patches touch.

Until patches are converted together with their bases, both are reported and left alone (DRA409, DRA410).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.discover import may_hold_legacy
from gpu2dra_migrate.search.walk import Problem, walk

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_LARGEST = 4 * 1024 * 1024
_DEPTH = 5
"""Folders below the root that are walked where no repository says how far an application reaches."""
_REWRITING = ("patch", "components", "replacements", "vars")
"""A kustomization without any of these words changes nothing of what it takes in."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a patch is aimed at; an empty field stands for any. `source` is the kustomization that holds the patch."""

    kind: str
    name: str
    source: Path

    def matches(self, kind: str, name: str) -> bool:
        """Whether an object of this kind and name is patched. Selectors of kustomize are anchored expressions.

        A name counts as well when it has the object's inside: a layer between may have added a prefix or a suffix.
        """
        if self.kind and not _fits(self.kind, kind):
            return False
        return not self.name or _fits(self.name, name) or (bool(name) and name in self.name)


def _fits(pattern: str, text: str) -> bool:
    try:
        return pattern == text or re.fullmatch(pattern, text) is not None
    except re.error:
        return False


@dataclass(slots=True)
class Roles:
    """`patches`: the kustomization that uses a file as a patch. `touched`: targets per resource file."""

    patches: dict[Path, Path] = field(default_factory=dict)
    touched: dict[Path, list[Target]] = field(default_factory=dict)

    def patched_by(self, path: Path, kind: str, name: str) -> Path | None:
        """Return the kustomization whose patch sets or removes a GPU request of this object, or None."""
        for target in self.touched.get(path, ()):
            if target.matches(kind, name):
                return target.source
        return None


def find_roles(folder: Path) -> Roles:
    """Return the roles of the files in the repository around `folder`, or below it, outside a repository."""
    return roles_of(kustomizations(folder))


def kustomizations(folder: Path) -> list[Path]:
    """Return the kustomization files of the repository around `folder`, or below it, outside a repository."""
    top = git.top_of(folder)
    files = git.files(top, *(f"*{name}" for name in NAMES)) if top else None
    if files is None:
        files = [path for path in walk(folder, NAMES.__contains__, _DEPTH) if not isinstance(path, Problem)]
    return sorted(Path(os.path.abspath(file)) for file in files if file.name in NAMES)  # noqa: PTH100 - links stay links


def roles_of(files: Iterable[Path]) -> Roles:
    """Return what the kustomizations `files` do to files. Only those that rewrite what they take in are parsed."""
    roles = Roles()
    graph = _Graph()
    for file in files:
        kustomization = graph.read(file)
        if not kustomization.rewrites:
            continue
        if targets := list(graph.gpu_targets(kustomization, roles, set())):
            for resource in graph.resources(kustomization, set()):
                roles.touched.setdefault(resource, []).extend(targets)
    return roles


class _Kustomization:
    """One kustomization file, parsed when somebody asks what it says."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.text = _text(file)

    @property
    def rewrites(self) -> bool:
        return any(word in self.text for word in _REWRITING)

    @cached_property
    def data(self) -> dict[str, Any]:
        import yaml12  # noqa: PLC0415 - only where kustomize rewrites something

        try:  # ten times as fast, and what YAML 1.2 reads differently is no matter of a kustomization
            read: list[Any] = yaml12.parse_yaml(self.text.removeprefix("\ufeff"), multi=True)
        except ValueError:
            read = objects(self.text)
        return next((obj for obj in read if isinstance(obj, dict)), {})

    def entries(self, *keys: str) -> Iterator[Path]:
        """Yield the local paths listed under `keys`; remote ones lead nowhere and are dropped by who looks there."""
        for key in keys:
            for entry in _strings(self.data.get(key)):
                yield Path(os.path.normpath(self.file.parent / entry))


class _Graph:
    """Reads kustomizations as they are reached, each once."""

    def __init__(self) -> None:
        self._read: dict[Path, _Kustomization] = {}

    def read(self, file: Path) -> _Kustomization:
        if file not in self._read:
            self._read[file] = _Kustomization(file)
        return self._read[file]

    def gpu_targets(self, top: _Kustomization, roles: Roles, seen: set[Path]) -> Iterator[Target]:
        """Yield the targets of all patches on a legacy name in `top` and the components it includes."""
        waiting = [top]
        while waiting:
            one = waiting.pop()
            if one.file in seen:
                continue
            seen.add(one.file)
            for text, file, target in _patches(one):
                if file is not None:
                    roles.patches.setdefault(file, one.file)
                if may_hold_legacy(text):
                    yield from _targets(text, target, one.file)
            if any(may_hold_legacy(repr(one.data.get(key))) for key in ("replacements", "vars")):
                yield Target("", "", one.file)
            waiting += [self.read(inner) for path in one.entries("components") if (inner := _kustomization(path))]

    def resources(self, top: _Kustomization, seen: set[Path]) -> Iterator[Path]:
        """Yield the resource files that `top` and everything below it takes in."""
        waiting = [top]
        while waiting:
            one = waiting.pop()
            if one.file in seen:
                continue
            seen.add(one.file)
            for path in one.entries("resources", "bases", "components"):
                if inner := _kustomization(path):
                    waiting.append(self.read(inner))
                elif path.is_file():
                    yield path


def _patches(one: _Kustomization) -> Iterator[tuple[str, Path | None, dict[str, Any]]]:
    """Yield text, file (None: inline) and target of each patch of a kustomization, deprecated fields included."""
    data = one.data
    for key in ("patches", "patchesJson6902"):
        entries = data.get(key)
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict):
                target = entry.get("target")
                patch = entry.get("path") or entry.get("patch")
                if isinstance(patch, str):
                    yield _patch(one.file, patch, target if isinstance(target, dict) else {})
    for patch in _strings(data.get("patchesStrategicMerge")):
        yield _patch(one.file, patch, {})


def _patch(file: Path, patch: str, target: dict[str, Any]) -> tuple[str, Path | None, dict[str, Any]]:
    if "\n" not in patch and "{" not in patch:
        path = Path(os.path.normpath(file.parent / patch))
        if path.is_file():
            return _text(path), path, target
    return patch, None, target


def _targets(text: str, target: dict[str, Any], source: Path) -> Iterator[Target]:
    """Yield what a patch is aimed at: its `target`, else (strategic merge) the kind and name that it carries.

    A target that selects by labels alone may be any object.
    """
    if target:
        yield Target(str(target.get("kind") or ""), str(target.get("name") or ""), source)
        return
    patches = [obj for obj in objects(text) if isinstance(obj, dict)]
    if not patches:
        yield Target("", "", source)
    for obj in patches:
        metadata = obj.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        yield Target(str(obj.get("kind") or ""), str(name or ""), source)


def _kustomization(folder: Path) -> Path | None:
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _text(path: Path) -> str:
    try:
        status = path.stat()
        if not path.is_file() or status.st_size > _LARGEST:
            return ""
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def lazy_roles() -> Callable[[Path], Roles]:
    """Return a function that gives the roles around a file, asking each repository once."""
    root_of, roles_below = cache(_root), cache(find_roles)

    def roles(file: Path) -> Roles:
        root = root_of(file.parent)
        return roles_below(root) if root else Roles()

    return roles


def _root(folder: Path) -> Path | None:
    """Return the folder whose kustomizations may concern files of `folder`: its repository, else one worth a walk.

    Outside a repository kustomize's own rule keeps that cheap: a kustomization may name files in and below its folder
    only, so without one in a folder above there is none. Overlays of that one stand beside its folder or nearer.
    """
    if top := git.top_of(folder):
        return top
    nearest = next((outer for outer in (folder, *folder.parents) if _kustomization(outer)), None)
    if nearest is None:
        return None
    here = Path.cwd()
    return here if nearest != here and nearest.is_relative_to(here) else nearest.parent
