"""Files that convert together or not at all: what a chart or a kustomization gives to a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.worker import FileResult

CHART_FILE = "Chart.yaml"
FLUX_API = "kustomize.toolkit.fluxcd.io/"
KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class Group(Protocol):
    """Some files of a run."""

    @property
    def files(self) -> frozenset[Path]:
        """The absolute paths of the candidates that are this group's and nobody else's."""

    def results(self) -> Iterator[FileResult]:
        """Yield a result for each file that changes or has a finding; with Mode.CONVERT the files are written."""
