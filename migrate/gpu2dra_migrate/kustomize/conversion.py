"""The conversion of kustomizations that hang together: resources, patches and names, until the squares commute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from gpu2dra import Context, Keep, Object, Options
from gpu2dra_migrate import manifest
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.kustomize.carrier import Carrier, Ignored, strip
from gpu2dra_migrate.kustomize.files import RESOURCES, Kustomization
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.layer import Layer
from gpu2dra_migrate.kustomize.patches import generator_files, patches_of
from gpu2dra_migrate.kustomize.problem import Problem
from gpu2dra_migrate.kustomize.program import BuildError
from gpu2dra_migrate.kustomize.renames import follow, renames_in
from gpu2dra_migrate.kustomize.requests import is_json6902, request_pointers
from gpu2dra_migrate.kustomize.square import Key, State, Wanted, states, wanted
from gpu2dra_migrate.kustomize.tree import NotPartOfRun, Tree
from gpu2dra_migrate.kustomize.unproven import held_back, unproven
from gpu2dra_migrate.kustomize.verify import built_problems
from gpu2dra_migrate.kustomize.work import Work
from gpu2dra_migrate.worker import beside_files

if TYPE_CHECKING:
    from pathlib import Path

STAND_IN = "DRA449"


@dataclass(slots=True)
class Outcome:
    """What became of connected kustomizations.

    `texts` holds each file that changes or is new with its text, `conversions` the resource files that convert,
    `carriers` the patches that do. `frozen` says for each file that stays as it is because of a kustomization which
    one, `problems` what is wrong with a kustomization (`said`: where the run has told that already), `proven` which
    squares commute, `refusals` why patches stay.
    """

    texts: dict[Path, str] = field(default_factory=dict)
    conversions: dict[Path, manifest.Conversion] = field(default_factory=dict)
    carriers: list[Carrier] = field(default_factory=list)
    frozen: dict[Path, Path] = field(default_factory=dict)
    problems: dict[Path, Problem] = field(default_factory=dict)
    said: set[Path] = field(default_factory=set)
    proven: list[Path] = field(default_factory=list)
    refusals: dict[tuple[Path, str], str] = field(default_factory=dict)

    def tell(self, one: Kustomization, problem: Problem) -> None:
        """Tell of a problem with `one`, where nothing else is told of it."""
        known = self.problems.get(one.file)
        if known is None or known.code == STAND_IN:
            self.problems[one.file] = problem

    def hold(self, one: Kustomization, graph: Graph, problem: Problem) -> None:
        """Leave the files that make up `one` as they are, and tell why, where nothing else is told of it."""
        self.tell(one, problem)
        for path in graph.closure(one)[1]:
            self.frozen.setdefault(path, one.file)


class Conversion:
    """Converts `members`, which share no file with other kustomizations; `editable` are the files that may change."""

    def __init__(
        self, graph: Graph, members: list[Kustomization], tree: Tree, editable: Mapping[Path, Options],
        keeps: Callable[[Path], tuple[Keep, ...]], around: Callable[[Path], manifest.Around],
    ) -> None:  # fmt: skip
        self._graph = graph
        self._members = members
        self._tree = tree
        self._editable = editable
        self._keeps = keeps
        self._around = around
        self._users: dict[Path, list[Kustomization]] = {}
        nodes: dict[Path, Kustomization] = {}
        for one in members:
            for node in graph.closure(one)[0]:
                nodes[node.folder] = node
                self._users.setdefault(node.folder, []).append(one)
        self._nodes = list(nodes.values())
        self._files = {node.file for node in self._nodes}
        patch_files = {patch.file for node in self._nodes for patch in patches_of(node) if patch.file}
        self._special = patch_files.union(path for node in self._nodes for path in generator_files(node))
        self._options = next(iter(editable.values()))
        self._due: dict[Path, dict[Key, Wanted]] = {}
        self._failed = self._zeros = False
        self._context = Context()
        self.outcome = Outcome()

    def run(self, held: Mapping[Kustomization, Problem] = MappingProxyType({})) -> Outcome:
        """Convert, and take back what does not commute, until all that is left does; `held` are left anyway."""
        self._build_before()
        for one, problem in held.items():
            self.outcome.hold(one, self._graph, problem)
        start = dict(self.outcome.frozen), dict(self.outcome.problems)
        frozen = -1
        while frozen < len(self.outcome.frozen):
            frozen, self._failed = len(self.outcome.frozen), False
            self._attempt()
            if not self._failed:
                self._judge()
                return self.outcome
            if not self._zeros and self._sets_zero():
                self._zeros, frozen = True, -1
                self.outcome.frozen, self.outcome.problems = start
        for one in self._members:
            self._fail(one, Problem("DRA437", "No conversion was found that commutes with the build."))
        self._attempt()
        self.outcome.texts = {}
        self._judge()
        return self.outcome

    def _judge(self) -> None:
        """Tell what is wrong with what will be built, also where no object has a request left that would convert."""
        for one in self._members:
            if one.folder in self._due:
                with suppress(BuildError):  # then that is told
                    self._tell(one, self._tree.after(one) if self.outcome.texts else self._tree.before(one))

    def _tell(self, one: Kustomization, built: list[Object]) -> None:
        for code, message in built_problems(built):
            self.outcome.tell(one, Problem(code, message))
        if State.LEFT in states(built, self._due[one.folder]).values() and (outside := self._graph.outside(one)):
            text = f"{outside} is outside of this repository and asks for a GPU: convert it where it lives."
            self.outcome.tell(one, Problem("DRA439", text))

    def _sets_zero(self) -> bool:
        """Whether an operation sets an amount to 0, which fails once the request of the base is gone."""
        patches = [patch.documents() for node in self._nodes for patch in patches_of(node)]
        return any(
            len(list(request_pointers(each, zeros=True))) > len(list(request_pointers(each)))
            for each in patches
            if is_json6902(each)
        )

    def _build_before(self) -> None:
        """Build what can be built; where nothing can, what is not right by construction stays as it is."""
        self._tree.build_all([one for one in self._members if not one.component])
        for one in self._members:
            if one.component:
                continue
            try:
                self._due[one.folder] = self._wanted(one)
            except BuildError as error:
                self.outcome.problems[one.file] = unproven(self._graph, one, str(error))
                for path in held_back(self._graph, one):
                    self.outcome.frozen.setdefault(path, one.file)
            else:
                self._tell_stand_ins(one)

    def _wanted(self, one: Kustomization) -> dict[Key, Wanted]:
        built, around = self._tree.before(one), self._around(one.file)
        due = wanted(built, self._options, around)
        tools = self._keeps(one.file) if any(each.plan.templates for each in due.values()) else ()
        return wanted(built, replace(self._options, keep=tools), around) if tools else due

    def _tell_stand_ins(self, one: Kustomization) -> None:
        for path in self._tree.stand_ins.get(one.file, ()):
            text = f"{path.name}, which a generator reads, is not here; it was built with a stand-in."
            self.outcome.problems[one.file] = Problem(STAND_IN, text)

    def _fail(self, one: Kustomization, problem: Problem) -> None:
        """Leave the files that make up `one` as they are, because of `problem` or of what holds them back already."""
        self._failed = True
        frozen, files = self.outcome.frozen, self._graph.closure(one)[1]
        because = next((frozen[path] for path in files if path in frozen and path in self._editable), None)
        if because and because != one.file:
            name = f"{because.parent.name}/{because.name}"
            problem = Problem(problem.code, f"Shares files with {name}, which stays as it is. {problem.message}")
        self.outcome.hold(one, self._graph, problem)

    def verify(self) -> dict[Path, Problem]:
        """Return what is wrong with what is built already, whatever is converted and whatever not."""
        found: dict[Path, Problem] = {}
        for one in self._members:
            if one.folder in self._due:
                for code, message in built_problems(self._tree.before(one)):
                    found.setdefault(one.file, Problem(code, message))
        return found

    def _attempt(self) -> None:
        self._tree.revert()
        work = Work(self._graph, self._tree)
        outcome = self.outcome
        outcome.conversions, outcome.carriers, outcome.proven = {}, [], []
        resources = [
            (path, node)
            for node in self._nodes
            for path in node.entries(*RESOURCES)
            if path in self._editable and path not in outcome.frozen and path not in self._special
        ]
        self._context = Context(renames=renames_in((path for path, _ in resources), self._tree.text))
        for path, node in resources:
            self._convert_resource(path, node, work)
        for node in self._nodes:
            self._strip(node, work)
        self._settle(work)
        changed = self._tree.changed.items()
        outcome.texts = {path: text for path, text in changed if not path.exists() or text != text_of(path)}

    def _settle(self, work: Work) -> None:
        """Make patches say what each kustomization lacks, bases first."""
        for one in self._members:
            if one.folder in self._due:
                layer = Layer(one, work, self._due[one.folder], self.outcome.carriers)
                if problem := layer.settle():
                    self._fail(one, problem)
                elif layer.proven():
                    self.outcome.proven.append(one.file)
        for one in self._members:  # a patch of a component that one settles may be another's as well
            if one.folder in self._due and one.file not in self.outcome.frozen and self._is_wrong(one):
                self._fail(one, Problem("DRA437", "What it shares with others would have to be another here."))

    def _strip(self, node: Kustomization, work: Work) -> None:
        """Take the requests off the patches of `node`, which are made to fit later."""
        names = {old: new for (_, old), new in self._context.renames.items()}
        try:
            if names:
                follow(node, work, names, lambda path: path not in self.outcome.frozen)
            for found in strip(node, work, self._may_change, self._due_of(node), zeros=self._zeros):
                if isinstance(found, Carrier):
                    self.outcome.carriers.append(found)
                else:
                    self.outcome.refusals[found[0].key] = found[1]
        except (Ignored, NotPartOfRun) as error:
            self._fail(node, Problem("DRA437", f"Left as it is: {error}."))
        except FileError as error:
            self._fail(node, Problem("DRA445", f"A patch cannot be edited: {error}"))

    def _is_wrong(self, one: Kustomization) -> bool:
        try:
            return State.WRONG in states(self._tree.after(one), self._due[one.folder]).values()
        except BuildError:
            return True

    def _may_change(self, path: Path) -> bool:
        return path not in self.outcome.frozen and (path in self._editable or path in self._files)

    def _due_of(self, node: Kustomization) -> list[Wanted]:
        """Return what is due in all kustomizations that `node` is part of."""
        return [
            each
            for one in self._users[node.folder]
            if one.folder in self._due
            for each in self._due[one.folder].values()
        ]

    def _convert_resource(self, path: Path, node: Kustomization, work: Work) -> None:
        if path not in self.outcome.conversions:
            conversion = manifest.convert(
                self._tree.text(path), self._editable[path], self._context, keep=lambda: self._keeps(path),
                around=self._around(path),
            )  # fmt: skip
            self.outcome.conversions[path] = conversion
            if conversion.text is not None:
                self._tree.write(path, conversion.text, node)
        conversion = self.outcome.conversions[path]
        if conversion.text is None:
            return
        created = beside_files(path, conversion.beside)
        try:
            for new, text in created.items():
                work.add_resource(node, new, text)
            work.add_references(node, manifest.objects(conversion.text))
        except FileError as error:
            self._fail(node, Problem("DRA445", f"Cannot be edited: {error}"))
