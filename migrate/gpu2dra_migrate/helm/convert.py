"""The conversion of one chart folder, with the proof that it renders what converting its output would give."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from gpu2dra import Keep
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.files import read_text
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.helm.attempts import Attempts
from gpu2dra_migrate.helm.chart import Chart, ChartError, read_chart
from gpu2dra_migrate.helm.edits import Edits
from gpu2dra_migrate.helm.helper import FILE_NAME
from gpu2dra_migrate.helm.inline import Refused, inline
from gpu2dra_migrate.helm.outcome import ChartConversion, Choices, Reason, Template
from gpu2dra_migrate.helm.own_switch import own_switch, set_on, unequal
from gpu2dra_migrate.helm.program import Helm, RenderError
from gpu2dra_migrate.helm.prover import Construction, Prover
from gpu2dra_migrate.helm.selection import asking, possible, taking, tell_unrendered, wanted
from gpu2dra_migrate.helm.survey import REQUEST, Place, Survey

VALUES_FILE = re.compile(r".*values.*\.ya?ml", re.IGNORECASE)


def convert_chart(folder: Path, choices: Choices, helm: Helm | None, values: Sequence[Path] = ()) -> ChartConversion:
    """Return what turns the chart in `folder` into one that renders claims; nothing is written.

    Templates whose output asks for GPUs, with the chart's own values or one of the files in `values`, and those that
    name a legacy resource or may take one from values, render through the helper. What would not render as the core
    converts it stays as it was, and a note says so. Without `helm` that is left of it which is right by construction.
    """
    result = ChartConversion()
    if (chart := _read(folder, result)) is None:
        return result
    choices = replace(_for_helm(choices), inline=_is_inline(chart, choices, result))
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
        found -= {Template(member.folder, name) for member in chart.family() for name in member.inline}
        found = frozenset(each for each in found if _may_change(each, chart, survey, choices, result))
        templates = possible(chart, found, choices, result, rendered=prover.renders)
        if choices.inline:
            templates = _writable(chart, templates, choices, result, rendered=prover.renders)
        if templates:
            Attempts(chart, choices, prover, result).convert(templates)
    return result


def verify_chart(folder: Path, choices: Choices, helm: Helm, values: Sequence[Path] = ()) -> ChartConversion:
    """Return whether the chart in `folder`, converted or not, renders converted what converting its output gives.

    In the result `converted` are the templates for which that holds.
    """
    result = ChartConversion()
    if (chart := _read(folder, result)) is None:
        return result
    if not (chart.is_wrapped or chart.is_inline):
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
    converted = {Template(m.folder, name) for m in chart.family() for name in m.wrapped | m.inline}
    result.converted = sorted(template.path for template in converted - problems.keys())
    result.squares = len(prover.cases)
    return result


def _is_inline(chart: Chart, choices: Choices, result: ChartConversion) -> bool:
    """Whether claims are written into templates: the style of a chart is that of its first conversion."""
    if choices.inline and chart.is_wrapped:
        text = "The chart renders through the helper already, and goes on to; take that back first to write it inline."
        result.tell(Reason.NOT_INLINE, chart.folder / "templates" / FILE_NAME, text)
    return (choices.inline and not chart.is_wrapped) or chart.is_inline


def _writable(
    chart: Chart, templates: Iterable[Template], choices: Choices, result: ChartConversion, *, rendered: bool
) -> frozenset[Template]:  # fmt: skip
    """Return those of `templates` that can be written inline; tell why the others are not."""
    texts = {member.folder: member.templates for member in chart.family()}
    kept: set[Template] = set()
    for template in sorted(templates):
        try:
            inline(texts[template.chart][template.name], choices.options)
        except Refused as reason:
            result.tell(Reason.NOT_INLINE, template.path, f"Not written inline: {reason}.")
        else:
            kept.add(template)
    if kept and not rendered:
        for template in sorted(kept):
            result.tell(Reason.NO_HELM, template.path, "What is written inline needs the proof, and so helm.")
        return frozenset()
    return frozenset(kept)


def _for_helm(choices: Choices) -> Choices:
    return replace(choices, options=replace(choices.options, keep=(Keep.HELM,), elsewhere=False))


def _read(folder: Path, result: ChartConversion) -> Chart | None:
    try:
        result.chart = read_chart(folder)
    except ChartError as error:
        result.tell(Reason.NOT_A_CHART, folder / CHART_FILE, f"{error}.")
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


def values_files(folder: Path) -> list[Path]:
    """Return the values files in a chart folder beside its own: those with `values` in their name, and all in `ci`."""
    beside = [file for file in folder.iterdir() if VALUES_FILE.fullmatch(file.name) and file.name != "values.yaml"]
    ci = folder / "ci"
    beside += [file for file in ci.iterdir() if file.suffix in (".yaml", ".yml")] if ci.is_dir() else []
    return sorted(file for file in beside if file.is_file())
