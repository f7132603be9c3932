"""Renders a chart before and after a conversion, with each set of values, and says which templates differ."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from gpu2dra_migrate.helm.chart import Chart
from gpu2dra_migrate.helm.edits import Target, carry_out, edits_of
from gpu2dra_migrate.helm.helper import kube_version_of, target_of
from gpu2dra_migrate.helm.outcome import Case, ChartConversion, Choices, Reason, Template
from gpu2dra_migrate.helm.program import Helm, Rendered, RenderError
from gpu2dra_migrate.helm.selection import template_of
from gpu2dra_migrate.helm.square import differences
from gpu2dra_migrate.helm.templates import prints_values
from gpu2dra_migrate.helm.values import KEY, switch
from gpu2dra_migrate.helm.workspace import copy, write

if TYPE_CHECKING:
    from pathlib import Path


_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Prover:
    """The copies of one chart in `room`, a folder of its own.

    The chart is copied as it is and, for values that it refuses, once more so that it demands none.
    """

    renders = True

    def __init__(self, chart: Chart, choices: Choices, helm: Helm, room: Path) -> None:
        self._chart = chart
        self._choices = choices
        self._helm = helm
        self._room = room
        self._copies = {lenient: room / f"before-{lenient}" for lenient in (False, True)}
        self._failure = ""
        self._attempts = 0
        self._is_converted = chart.is_wrapped or chart.is_inline
        self.cases: list[Case] = []
        for lenient, folder in self._copies.items():
            copy(chart, folder, lenient=lenient)

    def render_before(self, values: Sequence[Path], result: ChartConversion) -> None:
        """Render with the chart's own values and with each of the files; tell in `result` what does not render."""
        members = {member.folder for member in self._chart.family()}
        off = (self._switch_file(members, enabled=False),) if self._chart.is_inline else ()
        sets = [(), *((file,) for file in values)]
        for files, found in zip(sets, _together(lambda files: self._first_render(files, off), sets), strict=True):
            if isinstance(found, Case):
                self.cases.append(found)
            elif files:
                result.tell(Reason.VALUES_FAIL, files[0], f"Does not render: {found}")
            else:
                self._failure = str(found)
                text = f"The chart does not render with its own values: {found}{self._absent()}"
                result.tell(Reason.NO_RENDER, self._chart.folder, text)

    def _first_render(self, files: tuple[Path, ...], off: tuple[Path, ...]) -> Case | RenderError:
        """Return what renders with `files`, of the copy as it is or else of the lenient one, or why nothing does."""
        failure = RenderError()
        for folder in self._copies.values():
            try:
                return Case(files, folder, tuple(self._render(folder, (*files, *off))))
            except RenderError as error:
                failure = error
        return failure

    def _absent(self) -> str:
        """Return what to do about dependencies that are not here, since their definitions may be what is missing."""
        names = sorted({str(each["name"]) for member in self._chart.family() for each in member.missing})
        return f". Not in its charts folder: {', '.join(names)}; `helm dependency build` brings them." if names else ""

    def _render(self, folder: Path, values: Sequence[Path]) -> list[Rendered]:
        return self._helm.template(folder, values=values, kube_version=kube_version_of(self._choices.options))

    def render_with(self, name: str, text: str) -> list[tuple[Case, list[Rendered]]]:
        """Return each case with what the chart renders when its file `name` holds `text`; raise RenderError."""
        after: dict[Path, Path] = {}
        for folder in dict.fromkeys(case.folder for case in self.cases):
            after[folder] = self._room / f"{folder.name}-{name}"
            shutil.copytree(folder, after[folder])
            write(after[folder] / name, text)
        return [(case, self._render(after[case.folder], case.values)) for case in self.cases]

    def problems(self, targets: Mapping[Path, Target]) -> dict[Template, str]:
        """Return what goes wrong, by template, when the chart is turned into `targets`; nothing when all is well.

        With the switch on, each square has to commute; with the switch off, each byte has to be as before. Raises
        FileError when values or a schema cannot be edited.
        """
        wanted = {Template(chart, name) for chart, target in targets.items() for name in target.names}
        self._attempts += 1
        after: dict[Path, Path] = {}
        for folder in dict.fromkeys(case.folder for case in self.cases) or self._copies.values():
            after[folder] = self._room / f"{folder.name}-{self._attempts}"
            shutil.copytree(folder, after[folder])
            for chart, target in targets.items():
                carry_out(edits_of(after[folder] / chart.relative_to(self._chart.folder), target))
        return self._unequal(after, wanted)

    def problems_as_it_stands(self) -> dict[Template, str]:
        """Return what goes wrong, by template, in the chart as it stands, converted before."""
        wanted = {
            Template(member.folder, name)
            for member in self._chart.family() for name in member.wrapped | member.inline
        }  # fmt: skip
        after: dict[Path, Path] = {}
        for lenient, folder in self._copies.items():
            after[folder] = self._room / f"now-{lenient}"
            copy(self._chart, after[folder], lenient=lenient, converted=True)
        return self._unequal(after, wanted)

    def _unequal(self, after: Mapping[Path, Path], wanted: set[Template]) -> dict[Template, str]:
        try:
            if not self.cases:
                return self._same_failure(wanted, after[self._copies[True]])
            charts = {template.chart for template in wanted}
            on, off = (self._switch_file(charts, enabled=enabled) for enabled in (True, False))
            found = _together(lambda case: [*self._compare(case, after[case.folder], wanted, on, off)], self.cases)
            return {template: problem for problems in found for template, problem in problems}
        except RenderError as error:
            return dict.fromkeys(wanted, f"does not render any more: {error}")

    def _compare(
        self, case: Case, after: Path, wanted: set[Template], on: Path, off: Path
    ) -> Iterator[tuple[Template, str]]:  # fmt: skip
        # The chart's own values may say otherwise: its user's choice, or what the user has changed since.
        forced = (on,) if self._choices.mode != "auto" or self._is_converted else ()
        done = wanted | {Template(member.folder, name) for member in self._chart.family() for name in member.inline}
        converted = {each.source for each in case.before if template_of(self._chart, each.source) in done}
        new = self._render(after, (*case.values, *forced))
        inline = self._choices.inline or self._chart.is_inline
        found = differences(self._before(case, *forced), new, converted, self._choices.options, names=not inline)
        left = self._render(after, (*case.values, off))
        if list(case.before) != left and (before := self._before(case, off)) != left:
            odd = [each for each in (*before, *left) if each not in left or each not in before]
            found |= {each.source: "renders other bytes with the switch off" for each in odd or before}
        for source, problem in found.items():
            yield template_of(self._chart, source) or Template(self._chart.folder, source), problem

    def _before(self, case: Case, *more: Path) -> list[Rendered]:
        """Return what the chart rendered, given `more` values, too: it may print them, a schema may forbid them."""
        if more and not self._chart.is_inline:  # then they switch it
            with suppress(RenderError):
                return self._render(case.folder, (*case.values, *more))
        return list(case.before)

    def _same_failure(self, wanted: set[Template], after: Path) -> dict[Template, str]:
        """Return what goes wrong where no values render: the chart has to fail as it did before."""
        try:
            self._render(after, ())
        except RenderError as error:
            if self._failure.rpartition(" at <")[2] in str(error):
                return {}
            return dict.fromkeys(wanted, f"fails in another way than before: {error}")
        return dict.fromkeys(wanted, "renders, which it did not before")

    def _switch_file(self, charts: Collection[Path], *, enabled: bool) -> Path:
        """Return a values file that switches `charts`, folders of this one, on or off."""
        values: dict[str, Any] = {}
        for way, chart in (((), self._chart), *below(self._chart)):
            if chart.folder in charts:
                place = values
                for key in way:
                    place = place.setdefault(key, {})
                place[KEY] = {**switch("true", target_of(self._choices.options)), "enabled": enabled}
        file = self._room / f"{'on' if enabled else 'off'}.json"
        file.write_text(json.dumps(values), "utf-8")
        return file


def _together(function: Callable[[_In], _Out], items: Sequence[_In]) -> list[_Out]:
    """Return what `function` gives for each of `items`; it waits for helm, so several run at a time."""
    if len(items) < 2:  # noqa: PLR2004 - one needs no threads
        return [function(item) for item in items]
    with ThreadPoolExecutor(min(len(items), os.cpu_count() or 1)) as pool:
        return list(pool.map(function, items))


class Construction:
    """Stands for the prover where there is no helm: what it lets pass is right by construction."""

    renders = False

    def __init__(self, chart: Chart) -> None:
        self.cases: list[Case] = []
        self._prints = any(prints_values(text) for member in chart.family() for text in member.templates.values())

    def problems(self, targets: Mapping[Path, Target]) -> dict[Template, str]:
        """Return all templates of a chart that prints its values, and so the switch; raise FileError as the prover."""
        for chart, target in targets.items():
            edits_of(chart, target)
        wanted = {Template(chart, name) for chart, target in targets.items() for name in target.converted}
        switched = any(target.switch is not None for target in targets.values())
        return dict.fromkeys(wanted, "prints all values") if switched and self._prints else {}


def below(chart: Chart) -> Iterator[tuple[tuple[str, ...], Chart]]:
    """Yield each chart inside `chart` with the way to its values, under each name that it has."""
    for inner in chart.subcharts:
        for key in [alias for alias, name in chart.aliases.items() if name == inner.name] or [inner.name]:
            yield (key,), inner
            yield from (((key, *way), deeper) for way, deeper in below(inner))
