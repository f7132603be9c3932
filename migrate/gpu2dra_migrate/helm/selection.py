"""Which templates of a chart are to render through the helper, and which of them may not."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from gpu2dra import Options
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.helm.chart import Chart, is_rendered, raw
from gpu2dra_migrate.helm.documents import objects_in
from gpu2dra_migrate.helm.outcome import ChartConversion, Choices, Reason, Template
from gpu2dra_migrate.helm.program import Rendered
from gpu2dra_migrate.helm.square import asks, is_workload
from gpu2dra_migrate.helm.templates import defined, mentions_request, takes_resources
from gpu2dra_migrate.helm.values import KEY
from gpu2dra_migrate.search import packed
from gpu2dra_migrate.search.discover import SEARCH_TERMS, may_hold_legacy

_COMMON = frozenset({"resources", "limits", "requests", "global"})
_OWN_SWITCH = re.compile(rf"\.Values\.{KEY}\b")


def template_of(chart: Chart, source: str) -> Template | None:
    """Return the template of `chart` or a chart inside that Helm calls `source`; None for one in an archive."""
    owner = chart.owner(source)
    return Template(owner[0].folder, owner[1]) if owner else None


def asking(rendered: Rendered, options: Options) -> bool:
    """Whether a rendered document asks for a GPU in a place that the core knows."""
    return may_hold_legacy(rendered.text) and any(asks(obj, options) for obj in objects_in(rendered.text))


def wanted(chart: Chart, renders: Iterable[Rendered], choices: Choices, result: ChartConversion) -> frozenset[Template]:
    """Return the templates that render requests, say that they may, or are converted already.

    Requests of packed dependencies are told in `result`.
    """
    found = {Template(member.folder, name) for member in chart.family() for name in member.wrapped}
    packed: set[str] = set()
    for each in renders:
        template = template_of(chart, each.source)
        if template is None:
            packed |= {each.source} if asking(each, choices.options) else set()
        elif asking(each, choices.options) or (choices.everything and any(map(is_workload, objects_in(each.text)))):
            found.add(template)
    for source in sorted(packed):
        _tell_packed(chart, source, result)
    return frozenset(found | set(_mentioning(chart)))


def _mentioning(chart: Chart) -> Iterator[Template]:
    """Yield the templates of workloads whose text names a legacy resource, whether or not they render one here."""
    texts = {str(Template(c.folder, name).path): text for c in chart.family() for name, text in c.templates.items()}
    for member in chart.family():
        for name in member.templates:
            template = Template(member.folder, name)
            if not member.library and is_rendered(name) and mentions_request(str(template.path), texts):
                yield template


def taking(chart: Chart, keys: Sequence[str]) -> Iterator[Template]:
    """Yield the templates that may give a workload what values hold at `keys`, as far as their texts tell."""
    texts = {str(Template(c.folder, name).path): text for c in chart.family() for name, text in c.templates.items()}
    names = {member.name for member in chart.family()}
    aliases = {alias: name for member in chart.family() for alias, name in member.aliases.items()}
    words = [key for key in keys if not key.isdigit() and key not in _COMMON and not legacy_resource(key)]
    words = [aliases.get(word, word) for word in words]
    for member in chart.family():
        inner = [word for word in words if word not in names]
        if member.library or (words[:1] and words[0] in names and words[0] != member.name):
            continue
        for name in member.templates:
            template = Template(member.folder, name)
            if is_rendered(name) and takes_resources(str(template.path), texts, inner):
                yield template


def _tell_packed(chart: Chart, source: str, result: ChartConversion) -> None:
    name = re.sub(r".*/charts/([^/]+)/.*", r"\1", source)
    archives: Sequence[str] = [file.name for member in chart.family() for file in member.archives]
    for member in chart.family():
        for file in member.archives:
            if file.name.startswith(f"{name}-") or len(archives) == 1:
                text = f"{source} asks for a GPU and is packed; unpack it here, or let the webhook convert its pods."
                result.tell(Reason.ARCHIVE, file, text)


def tell_unrendered(chart: Chart, result: ChartConversion) -> None:
    """Tell of each packed dependency that names a legacy resource, where nothing renders: nobody knows what it asks."""
    terms = [term.encode() for term in SEARCH_TERMS]
    for file in (file for member in chart.family() for file in member.archives if packed.holds(file, terms)):
        text = (
            "It names a legacy resource, and only a render tells whether it asks; unpack it here, or put helm on PATH."
        )
        result.tell(Reason.ARCHIVE, file, text)


def possible(
    chart: Chart, templates: Iterable[Template], choices: Choices, result: ChartConversion, *, rendered: bool = True
) -> frozenset[Template]:
    """Return those of `templates` that may be converted; tell in `result` what forbids the others.

    Without a proof, where nothing is `rendered`, those go that only a render can judge.
    """
    members = {member.folder: member for member in chart.family()}
    counts = Counter(
        name for member in members.values() for text in member.templates.values() for name in defined(text)
    )
    kept: set[Template] = set()
    for template in sorted(templates):
        member = members[template.chart]
        problem = _elsewhere(chart, template) or _kustomized(member, template, choices)
        problem = problem or _forbidden(member, template.name, counts, choices)
        if not problem and not rendered:
            problem = _unjudged(chart, member.templates[template.name])
        if problem:
            result.tell(problem[0], template.path, problem[1])
        else:
            kept.add(template)
    return frozenset(kept)


def _elsewhere(chart: Chart, template: Template) -> tuple[Reason, str] | None:
    target = template.path.resolve()
    if target.is_relative_to(chart.folder.resolve()):
        return None
    where = os.path.relpath(target, template.path.parent)
    return Reason.LINK, f"A link leads to it, and other charts may use {where}: copy it here, or convert it there."


def _kustomized(chart: Chart, template: Template, choices: Choices) -> tuple[Reason, str] | None:
    if template.name in chart.wrapped | chart.inline or not (file := choices.kustomized(template.path)):
        return None
    where = os.path.relpath(file, template.path.parent)
    return Reason.KUSTOMIZED, f"{where} takes it as a manifest, and would find none: give one of them a copy."


def _forbidden(chart: Chart, name: str, counts: Counter[str], choices: Choices) -> tuple[Reason, str] | None:
    moves = not choices.inline
    twice = next((each for each in defined(chart.templates[name]) if counts[each] > 1), None)
    if choices.options.policy is not None:
        return Reason.POLICY, "Charts cannot be converted by a policy yet; the webhook can."
    if not (chart.wrapped or chart.inline) and any(_OWN_SWITCH.search(text) for text in chart.templates.values()):
        return Reason.OWN_DRA, f"The chart has values of its own under `{KEY}`, where the helper has its switch."
    if twice and moves:
        return Reason.TWICE, f'"{twice}" is defined twice; which one counts depends on names of files. Rename one.'
    if moves and name not in chart.wrapped and raw(name) in chart.templates:
        return Reason.TAKEN, f"{raw(name)} is where its text would go, and exists. Rename that one."
    return None


def _unjudged(chart: Chart, text: str) -> tuple[Reason, str] | None:
    """Return why a template cannot be converted without a render: other files decide what becomes of it."""
    members = list(chart.family())
    if any("resourceClaim" in text or "ResourceClaim" in text for m in members for text in m.templates.values()):
        return Reason.NO_HELM, "The chart makes claims of its own, and only a render tells for whom; left as it was."
    if defined(text) and any(member.archives or member.missing for member in members):
        return Reason.NO_HELM, "A chart that is packed or not here may define the same names; left as it was."
    return None
