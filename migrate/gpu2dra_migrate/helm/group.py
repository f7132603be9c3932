"""One chart in a run: what is told about its files, and their conversion as a whole."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpu2dra.codes import finding
from gpu2dra_migrate.files import absolute
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.helm.convert import convert_chart, verify_chart
from gpu2dra_migrate.helm.edits import carry_out
from gpu2dra_migrate.helm.kustomized import Kustomized
from gpu2dra_migrate.helm.outcome import ChartConversion, Choices
from gpu2dra_migrate.helm.program import Helm
from gpu2dra_migrate.helm.report import Report
from gpu2dra_migrate.manifest import Located
from gpu2dra_migrate.worker import FileResult, Job, Mode

_NO_HELM = (
    "There is no helm on PATH (GPU2DRA_HELM may name one), so charts are not rendered: what converts is right by "
    "construction, what only a render tells is not known."
)


class ChartGroup:
    """The chart in `folder` with its subcharts; `values` are files of values for it, beside its own.

    `told`, which the charts of a run share, holds the sentences that are true for all of them and told once.
    """

    def __init__(
        self, folder: Path, jobs: Sequence[Job], values: Sequence[Path], helm: str | None, told: set[str],
        kustomized: Kustomized,
    ) -> None:  # fmt: skip
        self._folder = folder
        self._jobs = jobs
        self._values = values
        self._helm = Helm(helm) if helm else None
        self._told = told
        self._kustomized = kustomized

    @property
    def files(self) -> frozenset[Path]:
        """The candidates that are this chart's."""
        return frozenset(absolute(job.path) for job in self._jobs)

    def results(self) -> Iterator[FileResult]:
        """Yield a result for each file that changes or has a finding, and one for each candidate."""
        results: dict[Path, FileResult] = {path: FileResult(path) for path in sorted(self.files)}
        try:
            self._look(results)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            text = f"Nothing was written: {where}{error.strerror or error}; check permissions and free space."
            self._tell(results, "DRA510", text)
        for result in results.values():
            result.path = self._shown(result.path)
            result.moved = self._shown(result.moved) if result.moved else None
            yield result

    def _look(self, results: dict[Path, FileResult]) -> None:
        settings = self._jobs[0].settings
        inline = settings.helm_style == "inline"
        choices = Choices(
            settings.options, settings.dra_default, selects=settings.config.selects, kustomized=self._kustomized.by,
            inline=inline,
        )  # fmt: skip
        if settings.mode is not Mode.VERIFY:
            conversion = convert_chart(self._folder, choices, self._helm, self._values)
            if conversion.edits or conversion.notes:  # else it is converted as far as its texts tell
                self._tell_no_helm(results)
            self._fill(results, conversion, choices, settings.mode)
        elif self._helm is None:
            self._tell_no_helm(results)
        else:
            conversion = verify_chart(self._folder, choices, self._helm, self._values)
            for path, located in Report(self._folder, conversion, choices.options).verified():
                _add(results, path, located)

    def _tell_no_helm(self, results: dict[Path, FileResult]) -> None:
        if self._helm is None and _NO_HELM not in self._told:
            self._told.add(_NO_HELM)
            self._tell(results, "DRA433", _NO_HELM)

    def _tell(self, results: dict[Path, FileResult], code: str, text: str) -> None:
        """Add a finding about the chart as a whole."""
        _add(results, self._folder / CHART_FILE, Located(finding(code, "", text), 0, 0, ""))

    def _fill(
        self, results: dict[Path, FileResult], conversion: ChartConversion, choices: Choices, mode: Mode
    ) -> None:  # fmt: skip
        report = Report(self._folder, conversion, choices.options)
        changes = {result.path: result for result in report.changes()}
        if mode is Mode.CONVERT:
            carry_out(*conversion.edits)
        results |= changes
        for path, located in report.findings():
            _add(results, path, located)
        next(iter(results.values())).ignored += conversion.ignored

    def _shown(self, path: Path) -> Path:
        """Return a path as the user names files: from here, unless theirs are absolute."""
        return path if self._jobs[0].path.is_absolute() else Path(os.path.relpath(path))


def _add(results: dict[Path, FileResult], path: Path, located: Located) -> None:
    results.setdefault(path, FileResult(path)).findings.append(located)
