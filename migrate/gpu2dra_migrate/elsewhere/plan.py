"""The plan for an object that hands values to charts which live elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from gpu2dra import Access, Context, Finding, Object, Operation, Options, Plan
from gpu2dra.codes import finding
from gpu2dra.places import elsewhere
from gpu2dra.pointers import replace as replaced
from gpu2dra_migrate.elsewhere.outcome import Outcome, too_old
from gpu2dra_migrate.elsewhere.post_renderers import with_patches
from gpu2dra_migrate.elsewhere.references import renamed_references
from gpu2dra_migrate.elsewhere.releases import Beside, Release, Version, local_charts, releases
from gpu2dra_migrate.elsewhere.sketch import rooted
from gpu2dra_migrate.elsewhere.table import CHARTS, Known
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.text.edits import DocumentEdit, edit, locate
from gpu2dra_migrate.text.nodes import Document, compose
from gpu2dra_migrate.text.patch import BadOperation
from gpu2dra_migrate.text.proof import prove
from gpu2dra_migrate.text.values import to_data

Here = Callable[[str], bool]


def _nowhere(path: str) -> bool:
    return False


def plan_releases(
    obj: Object, options: Options, context: Context, beside: Beside = tuple, here: Here = _nowhere,
    of_file: Iterable[Release] = (),
) -> Plan:  # fmt: skip
    """Return how the values in `obj` ask by claims: those of charts that are known; all others are reported.

    `beside` gives the objects around it, the nearest first; it is asked only where a chart stands in one of them.
    `here` tells whether a path leads to a chart of the repository. `of_file`: releases that take all of `obj` as their
    values. An object without values gives an empty plan, but for findings.
    """
    operations: list[Operation] = []
    templates: list[Object] = []
    findings: list[Finding] = []
    access: list[Access] = []
    seen: set[str] = set()
    for release in (*releases(obj, beside), *of_file):
        known = CHARTS.get(release.chart)
        if known is None:
            continue
        part = _in_text(release, known, options, context) if release.text is not None else None
        part = part or _in_place(release, known, options, context)
        operations += part.operations
        templates += part.templates
        findings += part.findings
        access += part.access
        seen |= part.seen
    touched = {each["path"] for each in operations}
    operations += [each for each in renamed_references(obj, context.renames) if each["path"] not in touched]
    rest = elsewhere(obj, seen.__contains__) if options.elsewhere else []
    told = [_for_chart_here(each, obj, here) for each in rest]
    return Plan(tuple(operations), tuple(templates), (*findings, *told), tuple(access))


def _for_chart_here(found: Finding, obj: Object, here: Here) -> Finding:
    """Return a finding about a value, as a note where its chart is in this repository: there the chart converts."""
    if found.code != "DRA403":
        return found
    for base, chart in local_charts(obj):
        if chart and found.path.startswith(f"{base}/") and here(chart):
            text = (
                f"A value for {chart}, which is a chart of this repository: it stays, and the chart makes claims of it."
            )
            return finding("DRA453", found.path, text, found.line)
    return found


def _judged(release: Release, known: Known, options: Options, context: Context) -> Outcome:
    """Return what becomes of a release, where nothing forbids it that has to do with no chart in particular."""
    outcome = known.convert(release, options, context)
    if not outcome.operations:
        return outcome
    if release.more:
        why = f"{release.chart} takes claims, but values also come from {release.more}, which is not seen from here."
        return _refused(outcome, "DRA451", why)
    if known.template and release.room:
        return _refused(outcome, "DRA452", f"{release.chart} takes claims, but {release.room}.")
    if not outcome.patches and not _reaches(release.version, known.since):
        return _refused(outcome, "DRA450", too_old(release, known.since))
    try:
        outcome.operations = rooted(release.values, outcome.operations)
    except BadOperation as error:
        why = f"The values of {release.chart} have another form than the chart reads ({error})."
        return _refused(outcome, "DRA451", why)
    return outcome


def _refused(outcome: Outcome, code: str, why: str) -> Outcome:
    """Return an outcome in which what would be converted stays, for one reason."""
    result = Outcome(outcome.tool, seen=outcome.seen)
    result.findings = [each for each in outcome.findings if each.code[3] not in "01"]
    result.refuse(outcome.seen or {each.path for each in outcome.findings}, code, why)
    return result


def _reaches(version: Version | None, since: tuple[int, int, int]) -> bool:
    return version is not None and version.low >= since


def _in_place(release: Release, known: Known, options: Options, context: Context) -> Outcome:
    """Return the outcome of values that stand in the object itself, with pointers into the object."""
    made = _judged(release, known, options, context)
    base = release.base
    made.operations = [{**each, "path": base + each["path"]} for each in made.operations]
    made.operations += with_patches(release.spec, made.patches)
    made.findings = [each._replace(path=base + each.path) for each in made.findings]
    made.access = [each._replace(path=base + each.path) for each in made.access]
    made.seen = {base + each for each in made.seen}
    return made


def _in_text(release: Release, known: Known, options: Options, context: Context) -> Outcome | None:
    """Return the outcome of values that stand in a string: one operation puts the string anew, edited by span.

    None where the string is no map of values.
    """
    text = release.text or ""
    try:
        documents = compose(text)
        data = [to_data(document) for document in documents]
    except FileError:
        return None
    if len(data) != 1 or not isinstance(data[0], dict):
        return None
    made = _judged(replace(release, values=data[0]), known, options, context)
    if made.operations:
        try:
            new = _edited(text, documents, made.operations)
        except FileError as error:
            made = _refused(made, "DRA451", f"The string of values cannot be edited in place ({error}).")
        else:
            made.operations = [replaced(release.base, new)]
    rest = elsewhere(data[0], made.seen.__contains__) if options.elsewhere else []
    made.findings = [_inside(each, release.base, documents[0]) for each in (*made.findings, *rest)]
    made.access = [each._replace(path=release.base) for each in made.access]
    made.seen = {release.base}
    return made


def _edited(text: str, documents: list[Document], operations: list[Operation]) -> str:
    change = DocumentEdit(0, operations)
    new = edit(text, [change], documents)
    prove(text, new, [change], documents)
    return new


def _inside(found: Finding, base: str, document: Document) -> Finding:
    """Return a finding about a place in a string: `line` counts the line breaks before it."""
    return found._replace(path=base, line=locate(document, found.path)[0] - 1)
