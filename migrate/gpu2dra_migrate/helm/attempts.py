"""The conversion of the templates of a chart: as many as can be proven."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu2dra.kinds import KINDS
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.helm.chart import Chart
from gpu2dra_migrate.helm.edits import Target, edits_of
from gpu2dra_migrate.helm.helper import helper, target_of
from gpu2dra_migrate.helm.inline import inline, partial
from gpu2dra_migrate.helm.outcome import ChartConversion, Choices, Reason, Template
from gpu2dra_migrate.helm.prover import Construction, Prover, below
from gpu2dra_migrate.helm.selection import asking, template_of
from gpu2dra_migrate.helm.values import KEY, switch

if TYPE_CHECKING:
    from pathlib import Path


class Attempts:
    """Takes templates back until what is left is proven.

    A chart may print all its values, and values may be in a layout that is not edited: then the switch is left out of
    them, where it works all the same.
    """

    def __init__(self, chart: Chart, choices: Choices, prover: Prover | Construction, result: ChartConversion) -> None:
        self._chart = chart
        self._choices = choices
        self._prover = prover
        self._result = result

    def convert(self, templates: frozenset[Template]) -> None:
        """Fill the result."""
        while templates:
            with_switch, unedited = self._problems(templates, switched=True)
            problems, _ = self._problems(templates, switched=False) if with_switch else ({}, "")
            if not problems:
                self._finish(templates, switched=not with_switch, unedited=unedited)
                return
            failing = templates & problems.keys() or templates
            for template in sorted(failing):
                problem = problems.get(template) or next(iter(problems.values()))
                self._result.tell(Reason.NOT_EQUAL, template.path, f"{problem}; left as it was.")
            templates -= failing

    def _problems(self, templates: frozenset[Template], *, switched: bool) -> tuple[dict[Template, str], str]:
        """Return what the prover says, and why values or a schema could not be edited."""
        try:
            return self._prover.problems(self._targets(templates, switched=switched)), ""
        except FileError as error:
            return dict.fromkeys(templates, str(error)), str(error)

    def _targets(self, templates: frozenset[Template], *, switched: bool) -> dict[Path, Target]:
        """Return by chart folder what it is to hold."""
        options = self._choices.options
        texts = [text for chart in self._chart.family() for text in chart.templates.values()]
        groups = frozenset(group for group, _ in KINDS if group and any(group in text for text in texts))
        text = partial(options) if self._choices.inline else helper(options, groups)
        value = switch(self._choices.mode, target_of(options)) if switched else None
        if value and self._choices.inline:
            del value["target"]  # it is written into the templates
        folders = {template.chart for template in templates}
        targets: dict[Path, Target] = {}
        for chart in self._chart.family():
            names = frozenset(template.name for template in templates if template.chart == chart.folder)
            nested = tuple(way for way, inner in below(chart) if inner.folder in folders)
            if self._choices.inline:
                new = {name: inline(chart.templates[name], options) for name in names}
                targets[chart.folder] = Target(frozenset(), text, value, nested, new)
            else:
                targets[chart.folder] = Target(names, text, value, nested)
        return targets

    def _finish(self, templates: frozenset[Template], *, switched: bool, unedited: str) -> None:
        result, folder = self._result, self._chart.folder
        if self._prover.renders and not self._prover.cases:
            text = "Converted without a proof: with no values that are here does the chart render. Name a file of some."
            result.tell(Reason.UNPROVEN, folder, text)
        if unedited:
            text = f"`{KEY}` could not be added to the values ({unedited}); it works when it is set."
            result.tell(Reason.CANNOT_EDIT, folder / "values.yaml", text)
        elif not switched:
            text = f"The chart prints its values, so `{KEY}` was not added to them; it works when it is set."
            result.tell(Reason.NO_SWITCH, folder / "values.yaml", text)
        edits = (edits_of(chart, target) for chart, target in self._targets(templates, switched=switched).items())
        result.edits = [each for each in edits if each]
        result.converted = sorted(template.path for template in templates)
        result.squares = len(self._prover.cases)
        result.requests = sum(
            template_of(self._chart, each.source) in templates and asking(each, self._choices.options)
            for case in self._prover.cases
            for each in case.before
        )
