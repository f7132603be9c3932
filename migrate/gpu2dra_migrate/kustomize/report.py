"""What is told about the files of kustomizations: conversions, what is left and why, and what could not be proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from gpu2dra import Context, Finding, Object
from gpu2dra.codes import finding
from gpu2dra_migrate import manifest
from gpu2dra_migrate.files import Unreadable, read_text, text_of
from gpu2dra_migrate.ignores import ignores, is_ignored
from gpu2dra_migrate.kustomize.conversion import STAND_IN, Outcome
from gpu2dra_migrate.kustomize.files import RESOURCES, Kustomization
from gpu2dra_migrate.kustomize.patches import Patch, generator_files, patches_of, replaced_fields
from gpu2dra_migrate.kustomize.requests import request_pointers
from gpu2dra_migrate.kustomize.texts import place_in
from gpu2dra_migrate.kustomize.verify import is_claimed
from gpu2dra_migrate.manifest import Located, describe
from gpu2dra_migrate.surroundings import Surroundings
from gpu2dra_migrate.worker import FileResult, Job, Mode, failed

if TYPE_CHECKING:
    from pathlib import Path

_PATCH, _LEFT_PATCH, _LEFT_OBJECT, _GENERATED, _REPLACED = "DRA435", "DRA409", "DRA410", "DRA440", "DRA441"
_NONE, _VALUES = "DRA101", "DRA403"
_FOR_PATCHES = frozenset({_LEFT_PATCH, _LEFT_OBJECT, "DRA418"})
"""Codes of the core for which this module has findings of its own."""
_CLAIMED = "Left as it is: the container that it patches has a claim already, and would ask for GPUs twice."


class Report:
    """Tells about the files of `nodes`, kustomizations that convert together, what `outcome` holds.

    `told_as` gives the path by which the run knows a file.
    """

    def __init__(
        self, nodes: Sequence[Kustomization], outcome: Outcome, surroundings: Surroundings,
        told_as: Callable[[Path], Path],
    ) -> None:  # fmt: skip
        self._outcome = outcome
        self._surroundings = surroundings
        self._told_as = told_as
        self._nodes = {node.file: node for node in nodes}
        self._tellers: dict[Path, Path] = {
            node.listed: node.file for node in nodes if node.listed and node.file in outcome.texts
        }
        self._tellers |= {node.folder: node.file for node in nodes if node.file == node.build_file}
        self._patches: dict[Path, list[Patch]] = {}
        for node in nodes:
            for patch in patches_of(node):
                self._patches.setdefault(patch.place, []).append(patch)
        self._generated = {path for node in nodes for path in generator_files(node)}
        self._inflated = {path: chart for node in nodes for path, chart in node.inflated()}
        self._resources = {path for node in nodes for path in node.entries(*RESOURCES)}
        self._requests = {carrier.patch.key: carrier.requests for carrier in outcome.carriers}
        self._objects = {carrier.patch.place: carrier.objects for carrier in outcome.carriers}

    def old(self, path: Path) -> bool:
        """Whether a changed file has been there before."""
        return path in self._nodes or path in self._patches or path in self._resources

    def result(self, path: Path, name: Path, job: Job | None, mode: Mode) -> FileResult:
        """Return what became of a file, which the run knows as `name`."""
        try:
            text = read_text(path, job.settings.max_size if job else 1 << 30)
        except Unreadable as error:
            return failed(name, error.code, error.message)
        result = FileResult(name, list(self.problems(path)))
        if job:
            self._tell_content(path, text, job, result)
        for patch in self._patches.get(path, ()):
            self._tell_patch(patch, text, mode, result)
        if path in self._nodes:
            self._tell_replaced(self._nodes[path], text, result)
        if path in self._outcome.texts:
            result.changed = True
            result.created = self._created(path)
            if mode is Mode.DIFF:
                result.before, result.after = text, self._outcome.texts[path]
        result.findings.sort(key=lambda located: (located.line, located.column, located.finding.code))
        return result

    def problems(self, path: Path) -> Iterator[Located]:
        """Yield what is wrong with the kustomization in a file."""
        problem = self._outcome.problems.get(path)
        if problem and path not in self._outcome.said:
            yield Located(finding(problem.code, "", problem.message), 0, 0, "")
        if path in self._outcome.proven and (problem is None or problem.code == STAND_IN):
            message = "Building it converted gives what converting its build gives."
            yield Located(finding("DRA423", "", message), 0, 0, "")

    def _created(self, path: Path) -> dict[Path, str]:
        """Return the new files that the kustomization in a file has brought about."""
        if path not in self._nodes:
            return {}
        folders = {folder for folder, file in self._tellers.items() if file == path}
        return {
            self._told_as(new): text
            for new, text in self._outcome.texts.items()
            if new.parent in folders and not self.old(new)
        }

    def _tell_content(self, path: Path, text: str, job: Job, result: FileResult) -> None:
        """Add what is to be said about the objects of a file as such."""
        conversion = self._outcome.conversions.get(path)
        reason = self._reason(path)
        if conversion is None or reason:
            conversion = manifest.convert(
                text, job.settings.options, Context(), reason=reason, write=False,
                keep=lambda: self._surroundings.keeps(path), around=self._surroundings.around(path),
            )  # fmt: skip
        covered = self._covered(path)
        gone = {each[1] for patch in self._patches.get(path, ()) for each in request_pointers(patch.documents())}
        result.findings += [
            self._of_chart(path, each) for each in conversion.findings
            if not (each.finding.code in _FOR_PATCHES and each.finding.path.startswith(covered))
            and not (each.finding.code == _NONE and each.finding.path in gone)  # null in a patch takes it away
        ]  # fmt: skip
        result.ignored += conversion.ignored
        if not reason and conversion.text is not None:
            result.objects += conversion.objects
            result.requests += conversion.requests
            result.changed = True

    def _of_chart(self, path: Path, located: Located) -> Located:
        """Return a finding; that of values for a chart that is here says how to convert the chart."""
        chart = self._inflated.get(path)
        if chart is None or located.finding.code != _VALUES:
            return located
        names = self._told_as(chart), self._told_as(path)
        text = "Values of the chart in {0}, which kustomize inflates: convert it by `gpu2dra convert {0} --values {1}`."
        return replace(located, finding=finding(_VALUES, located.finding.path, text.format(*names)))

    @cached_property
    def _claiming(self) -> list[Object]:
        """The objects among the resources that have claims."""
        texts = {path: text for path in sorted(self._resources) if "resourceClaims" in (text := text_of(path))}
        return [obj for text in texts.values() for obj in manifest.objects(text) if isinstance(obj, dict)]

    def _covered(self, path: Path) -> tuple[str, ...]:
        """Return the JSON Pointers of a file below which this module tells about requests itself."""
        patches = [
            patch for patch in self._patches.get(path, ()) if any(request_pointers(patch.documents(), zeros=True))
        ]
        replaced = replaced_fields(self._nodes[path]) if path in self._nodes else ()
        return (*(patch.pointer for patch in patches), *replaced)

    def _reason(self, path: Path) -> Callable[[str, str], Finding | None] | None:
        """Return why the objects of a file must stay as they are, for `manifest.convert`."""
        if path in self._generated:
            text = "The content of this file goes into a ConfigMap or Secret, so its reader alone converts it."
            return lambda kind, name: finding(_GENERATED, "", text)
        if path in self._patches:
            return lambda kind, name: finding(_LEFT_OBJECT, "", "")
        if because := self._outcome.frozen.get(path):
            text = f"Left as it is because of {self._name(because)}: {self._why(because)}"
            return lambda kind, name: finding(_LEFT_OBJECT, "", text)
        return None

    def _tell_patch(self, patch: Patch, text: str, mode: Mode, result: FileResult) -> None:
        documents = patch.documents()
        lines = ignores(text)
        requests = self._requests.get(patch.key, ())
        told: set[tuple[int, int]] = set()
        checking = mode is Mode.CHECK
        for number, where, name in request_pointers(documents, removals=not checking):
            line, column = place_in(text, patch.pointer, patch.text, number, where, patch.owner.number)
            known = (number, where, name) in requests
            claimed = checking and any(is_claimed(patch, documents[number], obj) for obj in self._claiming)
            converts = known or (checking and patch.place not in self._outcome.frozen and not claimed)
            if known and patch.place not in self._outcome.texts:
                continue  # it says what it has to
            code = _PATCH if converts else _LEFT_PATCH
            if is_ignored(code, line, lines):
                result.ignored += 1
            elif (line, column) not in told:
                told.add((line, column))
                about = describe(documents[number])
                message = f"This patch of {name} converts with what it patches." if converts else self._left(patch)
                message = _CLAIMED if claimed and not converts else message
                result.findings.append(Located(finding(code, where, message), line, column, about))
            if converts and "/requests" not in where:
                result.requests += 1
                result.changed = True
        if patch.key in self._requests:
            result.objects += self._objects.get(patch.place, 0)

    def _left(self, patch: Patch) -> str:
        because = self._outcome.frozen.get(patch.place)
        if because:
            return f"Left as it is because of {self._name(because)}: {self._why(because)}"
        if refusal := self._outcome.refusals.get(patch.key):
            return f"Left as it is with what it patches: {refusal}"
        return "Left as it is: no kustomization that could be built uses this patch for a request that converts."

    def _why(self, because: Path) -> str:
        problem = self._outcome.problems.get(because)
        return problem.message if problem else "it is not part of this run."

    def _name(self, file: Path) -> str:
        top = min(self._nodes, key=lambda path: len(path.parts)).parent
        return file.relative_to(top.parent).as_posix() if file.is_relative_to(top.parent) else str(file)

    def _tell_replaced(self, node: Kustomization, text: str, result: FileResult) -> None:
        for where in replaced_fields(node):
            line, column = place_in(text, "", text, 0, where)
            message = "A replacement or variable reads or writes the request, which is not there after a conversion."
            result.findings.append(Located(finding(_REPLACED, where, message), line, column, ""))
