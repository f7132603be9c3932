"""What the conversion of a chart means for its files: findings with their places, and texts before and after."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpu2dra import Finding, Options
from gpu2dra.codes import finding
from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.helm.outcome import ChartConversion, Note, Reason, Template
from gpu2dra_migrate.helm.survey import REQUEST, Size, Survey, Told
from gpu2dra_migrate.manifest import Located
from gpu2dra_migrate.worker import FileResult

if TYPE_CHECKING:
    from pathlib import Path

CODES = {
    Reason.NOT_A_CHART: "DRA421",
    Reason.NO_RENDER: "DRA422",
    Reason.VALUES_FAIL: "DRA422",
    Reason.ARCHIVE: "DRA424",
    Reason.TWICE: "DRA425",
    Reason.TAKEN: "DRA425",
    Reason.LINK: "DRA425",
    Reason.KUSTOMIZED: "DRA425",
    Reason.NOT_INLINE: "DRA426",
    Reason.OWN_DRA: "DRA427",
    Reason.POLICY: "DRA428",
    Reason.NOT_EQUAL: "DRA429",
    Reason.NO_SWITCH: "DRA430",
    Reason.CANNOT_EDIT: "DRA430",
    Reason.UNPROVEN: "DRA431",
    Reason.OWN_SWITCH: "DRA432",
    Reason.NO_HELM: "DRA433",
    Reason.IGNORED: "DRA207",
    Reason.NO_WORKLOAD: "DRA434",
}
"""The code of a finding for each reason of a note."""
_NO_MATTER_OF_PROOF = (Reason.IGNORED, Reason.NO_WORKLOAD)
_BESIDE = "DRA1"
"""How the codes of notes begin that mean nothing without a conversion."""


class Report:
    """Tells about one chart, whose files may have changed since the conversion was worked out."""

    def __init__(self, folder: Path, conversion: ChartConversion, options: Options) -> None:
        self._folder = folder
        self._done = conversion
        chart = conversion.chart
        self._survey = Survey(chart, conversion.cases, options) if chart else None
        self._wrapped = {
            Template(member.folder, name).path
            for member in (chart.family() if chart else ()) for name in member.wrapped | member.inline
        }  # fmt: skip
        self._new = set(conversion.converted) - self._wrapped
        self._noted = {note.path for note in conversion.notes}

    def findings(self) -> Iterator[tuple[Path, Located]]:
        """Yield the findings of the chart, each with its file."""
        for note in self._done.notes:
            path = note.path if note.path != self._folder else self._folder / CHART_FILE
            yield path, Located(finding(CODES[note.reason], "", note.message), *self._place_of(note), "")
        if self._survey is None:
            return
        seen: set[Path] = set()
        for told in self._survey.told:
            path = told.template.path
            if not self._matters(told, path):
                continue
            seen.add(path)
            place = self._survey.place(told)
            yield place.path, Located(self._explained(told), place.line, place.column, told.about)
        for path in sorted(self._new - seen):
            place = self._survey.mention(path)
            text = "Renders no request with the values that are here; what it renders with others becomes claims."
            yield path, Located(finding(REQUEST, "", text), place.line, place.column, "")

    def _matters(self, told: Told, path: Path) -> bool:
        """Whether a finding about a rendered object says something about what stands here or is done."""
        if told.finding.code == REQUEST:
            by_own_switch = bool(self._done.edits) and not self._done.converted and path not in self._noted
            return path in self._new or by_own_switch
        return path in self._new or not told.finding.code.startswith(_BESIDE)

    def _explained(self, told: Told) -> Finding:
        """Return a finding about a rendered object as one about the files of the chart."""
        item = told.finding
        where = f"rendered by {os.path.relpath(told.template.path, self._folder)}"
        if told.values:
            where += " with " + ", ".join(os.path.relpath(file, self._folder) for file in told.values)
        return Finding(item.code, "", f"{item.message.removesuffix('.')} ({where}).", item.severity)

    def _place_of(self, note: Note) -> tuple[int, int]:
        if note.line or self._survey is None:
            return note.line, note.column
        for told in self._survey.told:
            if told.template.path == note.path and told.names:
                place = self._survey.place(told)
                return (place.line, place.column) if place.path == note.path else (0, 0)
        return 0, 0

    def verified(self) -> Iterator[tuple[Path, Located]]:
        """Yield what the proof found: what is not proven, why, and what is."""
        for note in (note for note in self._done.notes if note.reason not in _NO_MATTER_OF_PROOF):
            path = note.path if note.path != self._folder else self._folder / CHART_FILE
            yield path, Located(finding(CODES[note.reason], "", note.message), note.line, note.column, "")
        for path in self._done.converted:
            if self._done.squares:
                sets = f"{self._done.squares} set{'s' * (self._done.squares != 1)} of values"
                yield path, Located(finding("DRA423", "", f"The square commutes with {sets}."), 0, 0, "")

    def changes(self) -> Iterator[FileResult]:
        """Yield what the edits do to each file, with its text before and after. Nothing may be written yet."""
        for edits in self._done.edits:
            for path, text in edits.writes.items():
                result = FileResult(path, changed=True, after=text)
                result.moved = edits.moves.get(path)
                if not result.moved and path.exists():
                    result.before = text_of(path)
                for size in self._sizes(path):
                    result.objects += size.objects
                    result.requests += size.requests
                yield result

    def _sizes(self, path: Path) -> list[Size]:
        """Return how much converts by a change of the file `path`: a template, or the values with a switch."""
        if self._survey is None:
            return []
        if self._done.converted:
            return [size for template, size in self._survey.sizes.items() if template.path == path in self._new]
        return list(self._survey.sizes.values())
