"""Two copies of some kustomizations in a folder of their own: as they are, and as they become."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.files import absolute, text_of
from gpu2dra_migrate.kustomize.files import Kustomization, links_on
from gpu2dra_migrate.kustomize.flux import AppliedKustomization
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.program import BuildError, Kustomize
from gpu2dra_migrate.kustomize.standins import stand_ins
from gpu2dra_migrate.kustomize.unproven import ABSENT, paths_in, unbuildable

_RESTRICTED = "security; file"
"""What kustomize says of a file outside of the folder of a kustomization, which users may let it read all the same."""
_LARGEST = 64 * 1024 * 1024


class NotPartOfRun(FileError):
    """A file that would have to change is outside of what the run is about, or left out by its configuration."""


class Tree:
    """The files of `members` and of what these take in; `room` is a folder that nobody else uses.

    `may_write` says which files may change or come. What is built is kept, so that only what changes is built again.
    Without `kustomize` nothing builds.
    """

    def __init__(
        self, graph: Graph, members: Sequence[Kustomization], kustomize: Kustomize | None, room: Path,
        may_write: Callable[[Path], bool],
    ) -> None:  # fmt: skip
        self.graph = graph
        self.changed: dict[Path, str] = {}
        self._owned: dict[Path, set[Path]] = {}
        self._kustomize = kustomize
        self._may_write = may_write
        files = {file for one in members for file in graph.closure(one)[1]}
        nodes = {inner.folder: inner for one in members for inner in graph.closure(one)[0]}
        aliases = {path for node in nodes.values() for path in node.aliases()}
        self._top = Path(os.path.commonpath([*(path.parent for path in (*files, *aliases)), *nodes]))
        self._before, self._after = room / "before", room / "after"
        self._built: dict[tuple[Path, object], list[Any] | BuildError] = {}
        for file in files if kustomize else ():
            if file.stat().st_size > _LARGEST:
                continue  # then it does not build, which is told
            for copy in (self._before, self._after):
                target = copy / file.relative_to(self._top)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, target)
        links = dict(pair for path in aliases for pair in links_on(path, self._top)) if kustomize else {}
        for link, target in links.items():
            for copy in (self._before, self._after) if target.is_relative_to(self._top) else ():
                self._link(copy / link.relative_to(self._top), copy / target.relative_to(self._top))
        self._made = [node for node in nodes.values() if isinstance(node, AppliedKustomization)]
        for node in self._made:
            for copy in (self._before, self._after):
                self._put(node.build_file, node.build_text(node.text), copy)
        self.stand_ins: dict[Path, list[Path]] = {}
        for owner, path, text in stand_ins(nodes.values()) if kustomize else ():
            self.stand_ins.setdefault(owner.file, []).append(path)
            for copy in (self._before, self._after):
                self._put(path, text, copy)

    @staticmethod
    def _link(place: Path, target: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(place):
            place.symlink_to(os.path.relpath(target, place.parent))

    def text(self, path: Path) -> str:
        """Return the text of a file as it becomes."""
        return self.changed[path] if path in self.changed else text_of(path)

    def write(self, path: Path, text: str, owner: Kustomization) -> None:
        """Change a file of `owner`, or make a new one; raise NotPartOfRun where nothing may be written."""
        if not self._may_write(path):
            raise NotPartOfRun(f"{path.parent.name}/{path.name} would change and is not part of this run")
        self.changed[path] = text
        self._owned.setdefault(owner.folder, set()).add(path)
        self._put(path, text)
        for node in self._made if not path.exists() else ():
            if node.lists(path):
                node.added.add(path)
                self._put(node.build_file, node.build_text(self.text(node.file)))

    def revert(self) -> None:
        """Make all files what they were."""
        for path in self.changed:
            if path.is_file():
                self._put(path, text_of(path))
            else:
                (self._after / path.relative_to(self._top)).unlink(missing_ok=True)
        self.changed = {}
        self._owned = {}
        for node in self._made:
            if node.added:
                node.added.clear()
                self._put(node.build_file, node.build_text(node.text))

    def _put(self, path: Path, text: str, copy: Path | None = None) -> None:
        if self._kustomize is not None:
            target = (copy or self._after) / path.relative_to(self._top)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text.encode("utf-8", "surrogateescape"))
            for node in self._made if copy is None else ():
                if node.file == path:
                    self._put(node.build_file, node.build_text(text))

    def build_all(self, members: Sequence[Kustomization]) -> None:
        """Build what `before` will give of these, several at a time."""
        workers = min(os.cpu_count() or 1, len(members))
        if workers > 1:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(self._try, members))

    def _try(self, one: Kustomization) -> None:
        with suppress(BuildError):  # kept, for who asks
            self.before(one)

    def before(self, one: Kustomization) -> list[Any]:
        """Return what `one` builds as it is; raise BuildError."""
        return self._build(self._before, one, ())

    def after(self, one: Kustomization) -> list[Any]:
        """Return what `one` builds as it becomes; raise BuildError."""
        inner, files = self.graph.closure(one)
        paths = {*files, *(path for each in inner for path in (*self._owned.get(each.folder, ()), *each.added))}
        state = tuple(sorted((str(path), hash(self.changed[path])) for path in paths if path in self.changed))
        return self._build(self._after if state else self._before, one, state)

    def probe(self, one: Kustomization, text: str) -> list[Any]:
        """Return what `one` as it becomes would build if its file had this text; raise BuildError."""
        kept = one.build_text(self.text(one.file))
        self._put(one.build_file, text)
        try:
            return self._run(self._after, one)
        finally:
            self._put(one.build_file, kept)

    def _build(self, copy: Path, one: Kustomization, state: object) -> list[Any]:
        key = (one.folder, state)
        if key not in self._built:
            try:
                self._built[key] = self._run(copy, one)
            except BuildError as error:
                self._built[key] = BuildError(str(error).replace(f"{copy}/", ""))
        found = self._built[key]
        if isinstance(found, BuildError):
            raise found
        return found

    def _run(self, copy: Path, one: Kustomization) -> list[Any]:
        if self._kustomize is None:
            raise BuildError(ABSENT)
        if problem := unbuildable(self.graph, one):
            raise BuildError(problem)
        folder = copy / one.folder.relative_to(self._top)
        try:
            return self._kustomize.build(folder, anywhere=one in self._made and self._stays_inside(one))
        except BuildError as error:
            if _RESTRICTED not in str(error) or not self._stays_inside(one):
                raise
        return self._kustomize.build(folder, anywhere=True)

    def _stays_inside(self, one: Kustomization) -> bool:
        """Whether all files that `one` may name are in the copies, whose links lead nowhere else."""
        return all(
            absolute(node.folder / part).is_relative_to(self._top) and not part.startswith("/")
            for node in self.graph.closure(one)[0]
            for path in paths_in(node.data)
            for part in (path, path.rpartition("=")[2])
        )
