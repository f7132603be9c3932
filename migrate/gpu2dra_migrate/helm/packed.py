"""A packed chart (.tgz) in a run: it is not edited, but whether it asks for a GPU is told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpu2dra import Finding
from gpu2dra.codes import finding
from gpu2dra_migrate.files import absolute
from gpu2dra_migrate.helm.helper import kube_version_of
from gpu2dra_migrate.helm.program import Helm, RenderError
from gpu2dra_migrate.helm.selection import asking
from gpu2dra_migrate.manifest import Located
from gpu2dra_migrate.worker import FileResult, Job

if TYPE_CHECKING:
    from pathlib import Path


class PackedGroup:
    """One archive, which stands in no other chart."""

    def __init__(self, job: Job, helm: str | None) -> None:
        self._job = job
        self._helm = Helm(helm) if helm else None

    @property
    def files(self) -> frozenset[Path]:
        """The archive."""
        return frozenset({absolute(self._job.path)})

    def results(self) -> Iterator[FileResult]:
        """Yield the result of the archive."""
        found = self._look()
        yield FileResult(self._job.path, [Located(found, 0, 0, "")] if found else [])

    def _look(self) -> Finding | None:
        way = "unpack it here, or let the webhook convert its pods."
        if self._helm is None:
            text = f"This packed chart names a legacy resource, and there is no helm to render it; {way}"
            return finding("DRA424", "", text)
        options = self._job.settings.options
        try:
            rendered = self._helm.template(absolute(self._job.path), kube_version=kube_version_of(options))
        except RenderError as error:
            return finding("DRA422", "", f"The packed chart does not render with its own values: {error}")
        sources = sorted({each.source for each in rendered if asking(each, options)})
        if not sources:
            return None
        return finding("DRA424", "", f"This packed chart asks for a GPU in {', '.join(sources)}; {way}")
