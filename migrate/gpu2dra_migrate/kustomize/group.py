"""Kustomizations as groups of a run: which files are theirs, converted together, written and told."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from gpu2dra import Finding
from gpu2dra.codes import finding
from gpu2dra_migrate.config import find_config
from gpu2dra_migrate.files import absolute, write_all
from gpu2dra_migrate.kustomize.conversion import Conversion, Outcome
from gpu2dra_migrate.kustomize.files import Kustomization, find_kustomizations, local, root_of
from gpu2dra_migrate.kustomize.flux import find_applied
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.problem import Problem
from gpu2dra_migrate.kustomize.program import Kustomize, find_kustomize
from gpu2dra_migrate.kustomize.report import Report
from gpu2dra_migrate.kustomize.strays import held_by_strays
from gpu2dra_migrate.kustomize.tree import Tree
from gpu2dra_migrate.manifest import Located
from gpu2dra_migrate.surroundings import Surroundings
from gpu2dra_migrate.worker import FileResult, Job, Mode

_ABSENT = "DRA436"
"""What is told once in a run."""


def find_groups(jobs: Sequence[Job]) -> Iterator[KustomizeGroup]:
    """Yield the connected kustomizations that hold a file of `jobs`."""
    roots = cache(root_of)
    by_path = {}
    for job in jobs:
        path, top = absolute(job.path), roots(absolute(job.path).parent)
        by_path[local(top, os.fspath(path)) if top else path] = job
    tops = {root for path in by_path if (root := roots(path.parent))}
    kustomize = cache(find_kustomize)
    surroundings = Surroundings()
    said: set[str] = set()
    for top in sorted(tops):
        graph = Graph(find_kustomizations(top))
        for made in find_applied([path for path in by_path if path.is_relative_to(top)], top):
            graph.add(made)
        chosen = [one for one in graph.all if any(path in by_path for path in graph.closure(one)[1])]
        held = held_by_strays(graph, chosen)
        for members in graph.connected(chosen):
            files = {path for one in members for path in graph.closure(one)[1]}
            own = {path: by_path.pop(path) for path in sorted(files) if path in by_path}
            if own:
                yield KustomizeGroup(graph, members, own, kustomize, surroundings, said, held)


class KustomizeGroup:
    """Kustomizations that share files, converted together."""

    def __init__(
        self,
        graph: Graph,
        members: list[Kustomization],
        jobs: Mapping[Path, Job],
        kustomize: Callable[[], Kustomize | None],
        surroundings: Surroundings,
        said: set[str],
        held: Mapping[Path, Problem],
    ) -> None:
        self.files = frozenset(absolute(job.path) for job in jobs.values())
        self._graph = graph
        self._members = members
        self._jobs = jobs
        self._kustomize = kustomize
        self._surroundings = surroundings
        self._said = said
        self._held = {one: held[one.file] for one in members if one.file in held}
        self._mode = next(iter(jobs.values())).settings.mode

    def results(self) -> Iterator[FileResult]:
        """Convert, prove and write; yield what became of each file."""
        outcome = self._outcome()
        nodes = {node.folder: node for one in self._members for node in self._graph.closure(one)[0]}
        report = Report(list(nodes.values()), outcome, self._surroundings, self._told_as)
        if self._mode is Mode.VERIFY:
            for file in sorted({*outcome.problems.keys() - outcome.said, *outcome.proven}):
                yield FileResult(self._told_as(file), list(report.problems(file)))
            return
        told = outcome.problems.keys() - outcome.said
        files = sorted({*self._jobs, *told, *outcome.proven, *filter(report.old, outcome.texts)})
        results = [report.result(file, self._told_as(file), self._jobs.get(file), self._mode) for file in files]
        if self._mode is Mode.CONVERT and (problem := _write(outcome.texts)):
            results = [FileResult(self._told_as(self._members[-1].file), [Located(problem, 0, 0, "")])]
        yield from results

    def _outcome(self) -> Outcome:
        kustomize = self._kustomize()
        if self._mode is Mode.CHECK and kustomize:
            outcome = Outcome()
            for one, problem in self._held.items():
                outcome.hold(one, self._graph, problem)
            return outcome  # check runs nobody else's program; diff and convert prove what they show
        with tempfile.TemporaryDirectory(prefix="gpu2dra-kustomize-") as room:
            tree = Tree(self._graph, self._members, kustomize, Path(room), self._may_write)
            options = {path: job.settings.options for path, job in self._jobs.items()}
            conversion = Conversion(
                self._graph, self._members, tree, options, self._surroundings.keeps, self._surroundings.around
            )
            outcome = conversion.run(self._held)
            if self._mode is Mode.VERIFY:
                outcome.problems |= conversion.verify()
        for file in [file for file, problem in outcome.problems.items() if problem.code == _ABSENT]:
            if self._said:
                outcome.said.add(file)
            self._said.add(_ABSENT)
        return outcome

    def _may_write(self, path: Path) -> bool:
        """Whether a file is part of the run: named, or below a folder of it and not left out by the configuration."""
        if path in self._jobs:
            return True
        within = next(iter(self._jobs.values())).within
        return any(path.is_relative_to(root) for root in within) and find_config(path.parent).selects(path)

    def _told_as(self, file: Path) -> Path:
        """Return the path by which the run knows a file."""
        if job := self._jobs.get(file):
            return job.path
        from_root = next(iter(self._jobs.values())).path.is_absolute()
        return file if from_root else Path(os.path.relpath(file))


def _write(texts: Mapping[Path, str]) -> Finding | None:
    """Write files, all or none; return why that did not work."""
    try:
        write_all(texts)
    except OSError as error:
        why = error.strerror or error
        reason = f"Could not be written ({why}), and all is as it was; check permissions and space."
        return finding("DRA510", "", reason)
    return None
