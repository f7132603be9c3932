"""The conversion of one chart folder, with the proof that it renders what converting its output would give."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpu2dra import Keep
from gpu2dra.kinds import KINDS
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.files import read_text
from gpu2dra_migrate.helm.chart import Chart, ChartError, read_chart
from gpu2dra_migrate.helm.edits import Edits, Target, edits_of
from gpu2dra_migrate.helm.helper import helper, target_of
from gpu2dra_migrate.helm.outcome import ChartConversion, Choices, Reason, Template
from gpu2dra_migrate.helm.own_switch import own_switch, set_on, unequal
from gpu2dra_migrate.helm.program import Helm, RenderError
from gpu2dra_migrate.helm.prover import Construction, Prover, below
from gpu2dra_migrate.helm.selection import asking, possible, taking, tell_unrendered, template_of, wanted
from gpu2dra_migrate.helm.survey import REQUEST, Place, Survey
from gpu2dra_migrate.helm.values import KEY, switch

_VALUES_FILE = re.compile(r".*values.*\.ya?ml", re.IGNORECASE)


def convert_chart(folder: Path, choices: Choices, helm: Helm | None, values: Sequence[Path] = ()) -> ChartConversion:
    """Return what turns the chart in `folder` into one that renders claims; nothing is written.

    Templates whose output asks for GPUs, with the chart's own values or one of the files in `values`, and those that
    name a legacy resource or may take one from values, render through the helper. What would not render as the core
    converts it stays as it was, and a note says so. Without `helm` that is left of it which is right by construction.
    """
    result = ChartConversion()
    choices = _for_helm(choices)
    if (chart := _read(folder, result)) is None:
        return result
    with tempfile.TemporaryDirectory(prefix="gpu2dra-chart-") as room:
        prover = Prover(chart, choices, helm, Path(room)) if helm else Construction(chart)
        if isinstance(prover, Prover):
            prover.render_before(values, result)
        else:
            tell_unrendered(chart, result)
        result.cases = prover.cases
        survey = Survey(chart, prover.cases, choices.options)
        if (own := own_switch(chart)) and _settled(own, chart, choices, prover, result):
            for named in () if result.edits else survey.unseen(values):
                if legacy_resource(named.keys[-1]):  # as a text it may be what the switch is about
                    text = f"{named.name} is no request in any workload that the chart renders; {own} may be for it."
                    result.tell(Reason.NO_WORKLOAD, *_as_note(named.place, text))
            return result
        renders = [each for case in prover.cases for each in case.before]
        found = wanted(chart, renders, choices, result) | _named(chart, survey, values, result)
        found = frozenset(each for each in found if _may_change(each, chart, survey, choices, result))
        if templates := possible(chart, found, choices, result, rendered=prover.renders):
            _Run(chart, choices, prover, result).convert(templates)
    return result


def verify_chart(folder: Path, choices: Choices, helm: Helm, values: Sequence[Path] = ()) -> ChartConversion:
    """Return whether the chart in `folder`, converted or not, renders converted what converting its output gives.

    In the result `converted` are the templates for which that holds.
    """
    result = ChartConversion()
    if (chart := _read(folder, result)) is None:
        return result
    if not any(member.wrapped for member in chart.family()):
        result = convert_chart(folder, choices, helm, values)
        result.edits = []
        return result
    with tempfile.TemporaryDirectory(prefix="gpu2dra-chart-") as room:
        prover = Prover(chart, _for_helm(choices), helm, Path(room))
        prover.render_before(values, result)
        result.cases = prover.cases
        problems = prover.problems_as_it_stands()
    for template, problem in sorted(problems.items()):
        result.tell(Reason.NOT_EQUAL, template.path, f"{problem}.")
    converted = {Template(member.folder, name) for member in chart.family() for name in member.wrapped}
    result.converted = sorted(template.path for template in converted - problems.keys())
    result.squares = len(prover.cases)
    return result


def _for_helm(choices: Choices) -> Choices:
    return replace(choices, options=replace(choices.options, keep=(Keep.HELM,), elsewhere=False))


def _read(folder: Path, result: ChartConversion) -> Chart | None:
    try:
        result.chart = read_chart(folder)
    except ChartError as error:
        result.tell(Reason.NOT_A_CHART, folder / "Chart.yaml", f"{error}.")
    return result.chart


def _named(chart: Chart, survey: Survey, values: Sequence[Path], result: ChartConversion) -> set[Template]:
    """Return the templates that may take a resource from values, of those that values name and nothing rendered asks.

    Where no template may, that is told.
    """
    found: set[Template] = set()
    absent = {str(each.get(key)) for member in chart.family() for each in member.missing for key in ("name", "alias")}
    for named in survey.unseen(values):
        if templates := set(taking(chart, named.keys)):
            found |= templates
            continue
        text = f"{named.name} is no request in any workload that the chart renders, with no values that are here."
        if named.keys[0] in absent:
            text = f"{named.name} is for the chart {named.keys[0]}, which is not in the charts folder: unpack it there."
        result.tell(Reason.NO_WORKLOAD, *_as_note(named.place, text))
    return found


def _may_change(
    template: Template, chart: Chart, survey: Survey, choices: Choices, result: ChartConversion
) -> bool:  # fmt: skip
    """Whether configuration and comments leave a template in; one that is converted already stays so."""
    member = next(each for each in chart.family() if each.folder == template.chart)
    if template.name in member.wrapped:
        return True
    if not choices.selects(template.path):
        return False
    requests = [told for told in survey.told if told.template == template and told.finding.code == REQUEST]
    places = [survey.place(told) for told in requests] or [survey.mention(template.path)]
    silent = [survey.ignored(place, REQUEST) for place in places]
    result.ignored += sum(silent)
    if any(silent):
        for told, place, is_silent in zip(requests, places, silent, strict=False):
            if not is_silent:
                text = f"{told.about} is left as it is, since a request of this template is ignored."
                result.tell(Reason.IGNORED, *_as_note(place, text))
    return not any(silent)


def _as_note(place: Place, text: str) -> tuple[Path, str, int, int]:
    return place.path, text, place.line, place.column


def _settled(own: str, chart: Chart, choices: Choices, prover: Prover | Construction, result: ChartConversion) -> bool:
    """Set the chart's own switch if it does what a conversion does; return whether nothing is left to do.

    Where it does not, the helper does: a chart renders through it what its switch, which is off, leaves.
    """
    values = chart.folder / "values.yaml"
    if not isinstance(prover, Prover):
        text = f"The chart has a switch of its own, {own}; whether it does what a conversion does, a render would tell."
        result.tell(Reason.NO_HELM, values, text)
        return True
    asked = [case for case in prover.cases if any(asking(each, choices.options) for each in case.before)]
    if not asked:
        text = f"The chart has a switch of its own, {own}: set it where values ask for a GPU."
        result.tell(Reason.OWN_SWITCH, values, text)
        return True
    try:
        old = read_text(values, MAX_SIZE)
        new = set_on(old, own)
        problem = next(
            (why for case, after in prover.render_with("values.yaml", new)
             if (why := unequal(case.before, after, choices.options))),
            "",
        )  # fmt: skip
    except (FileError, RenderError) as error:
        problem = str(error)
    else:
        if not problem:
            result.tell(Reason.OWN_SWITCH, values, f"The chart has a switch of its own, {own}, which is now on.")
            result.edits = [Edits(writes={values: new})] if new != old else []
            result.squares = len(prover.cases)
            return True
    result.tell(
        Reason.OWN_SWITCH, values, f"The chart's own switch, {own}, stays off, and its templates convert: {problem}."
    )
    return False


class _Run:
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
        text = helper(options, groups)
        value = switch(self._choices.mode, target_of(options)) if switched else None
        folders = {template.chart for template in templates}
        return {
            chart.folder: Target(
                frozenset(template.name for template in templates if template.chart == chart.folder),
                text,
                value,
                tuple(way for way, inner in below(chart) if inner.folder in folders),
            )
            for chart in self._chart.family()
        }

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


def values_files(folder: Path) -> list[Path]:
    """Return the values files in a chart folder beside its own: those with `values` in their name, and all in `ci`."""
    beside = [file for file in folder.iterdir() if _VALUES_FILE.fullmatch(file.name) and file.name != "values.yaml"]
    ci = folder / "ci"
    beside += [file for file in ci.iterdir() if file.suffix in (".yaml", ".yml")] if ci.is_dir() else []
    return sorted(file for file in beside if file.is_file())
