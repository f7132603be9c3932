"""The graph of kustomizations: what each takes in, directly and through others, and which of them hang together."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.kustomize.files import CHARTS, LAYERS, PLUGINS, Kustomization, kustomization_in
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.discover import may_hold_legacy

if TYPE_CHECKING:
    from pathlib import Path


class Graph:
    """Kustomizations by their folder, read as they are reached, each once."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._read: dict[Path, Kustomization | None] = {}
        self.all = [self._add(file) for file in files]
        self._closures: dict[Path, tuple[list[Kustomization], list[Path]]] = {}

    def add(self, one: Kustomization) -> None:
        """Take in a kustomization that no folder has."""
        self._read[one.folder] = one
        self.all.append(one)

    def _add(self, file: Path) -> Kustomization:
        one = Kustomization(file)
        self._read[file.parent] = one
        return one

    def at(self, folder: Path) -> Kustomization | None:
        """Return the kustomization in `folder`, or None."""
        if folder not in self._read:
            file = kustomization_in(folder)
            self._read[folder] = Kustomization(file) if file else None
        return self._read[folder]

    def layers(self, one: Kustomization) -> Iterator[Kustomization]:
        """Yield the kustomizations that `one` takes in directly: bases, resources and components."""
        for path in one.entries(*LAYERS):
            if inner := self.at(path):
                yield inner

    def components(self, one: Kustomization) -> list[Kustomization]:
        """Return the components of `one` and theirs, in the order in which they are applied."""
        found: dict[Path, Kustomization] = {}
        waiting = [one]
        while waiting:
            for path in waiting.pop().entries("components"):
                if (inner := self.at(path)) and inner.folder not in found:
                    found[inner.folder] = inner
                    waiting.append(inner)
        return list(found.values())

    def closure(self, one: Kustomization) -> tuple[list[Kustomization], list[Path]]:
        """Return the kustomizations that make up `one`, itself last, and the files that they name."""
        if one.folder not in self._closures:
            order: dict[Path, Kustomization] = {}
            files: dict[Path, None] = {}
            waiting = [(one, False)]
            entered: set[Path] = set()
            while waiting:
                item, done = waiting.pop()
                if done:
                    order[item.folder] = item
                elif item.folder not in entered:
                    entered.add(item.folder)
                    waiting.append((item, True))
                    waiting += [(inner, False) for inner in reversed(list(self.layers(item)))]
                    files[item.file] = None
                    files |= dict.fromkeys(path for path in item.references() if path.is_file())
            self._closures[one.folder] = list(order.values()), list(files)
        return self._closures[one.folder]

    def remote(self, one: Kustomization) -> str:
        """Return something that `one` would fetch from elsewhere, or nothing."""
        return next((entry for inner in self.closure(one)[0] for entry in inner.remote()), "")

    def outside(self, one: Kustomization) -> str:
        """Return a file with a legacy resource by which `one` leaves its repository; or nothing."""
        top = git.top_of(one.folder)
        files = (path for path in self.closure(one)[1] if top and not path.is_relative_to(top))
        return next((os.path.relpath(path, one.folder) for path in files if may_hold_legacy(text_of(path))), "")

    def foreign(self, one: Kustomization) -> str:
        """Return a field by which other programs or charts would take part in the build of `one`, or nothing."""
        fields = (*PLUGINS, *CHARTS)
        return next((key for inner in self.closure(one)[0] for key in fields if inner.data.get(key)), "")

    def connected(self, chosen: Iterable[Kustomization]) -> list[list[Kustomization]]:
        """Return `chosen` in sets that share no kustomization and no file, each in building order."""
        sets: dict[int, list[Kustomization]] = {}
        home: dict[Path, int] = {}
        for number, one in enumerate(chosen):
            inner, files = self.closure(one)
            paths = {*(item.folder for item in inner), *files}
            joined = sorted({home[path] for path in paths if path in home})
            members = [item for old in joined for item in sets.pop(old)]
            sets[number] = [*members, one]
            home |= dict.fromkeys(paths, number)
            moved = set(joined)
            home = {path: number if old in moved else old for path, old in home.items()} if moved else home
        return [self._ordered(members) for members in sets.values()]

    def _ordered(self, members: list[Kustomization]) -> list[Kustomization]:
        order: dict[Path, Kustomization] = {}
        for one in members:
            order |= {item.folder: item for item in self.closure(one)[0] if item.folder not in order}
        known = {one.folder for one in members}
        return [one for folder, one in order.items() if folder in known]
