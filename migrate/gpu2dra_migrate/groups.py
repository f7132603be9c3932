"""Files that convert together or not at all: what a chart or a kustomization gives to a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.packed import ENDING
from gpu2dra_migrate.worker import FileResult, Job, Mode

CHART_FILE = "Chart.yaml"
FLUX_API = b"kustomize.toolkit.fluxcd.io/"
_LARGEST = 4 * 1024 * 1024
KUSTOMIZATION_FILES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


class Group(Protocol):
    """Some files of a run."""

    @property
    def files(self) -> frozenset[Path]:
        """The absolute paths of the candidates that are this group's and nobody else's."""

    def results(self) -> Iterator[FileResult]:
        """Yield a result for each file that changes or has a finding; with Mode.CONVERT the files are written."""


Finder = Callable[[Sequence[Job]], Iterator[Group]]
"""Given the jobs of a run that no other group has: the groups among them."""


def find_groups(jobs: Sequence[Job]) -> list[Group]:
    """Return the groups among the files of `jobs`, charts first; what is a chart's is nobody else's."""
    groups: list[Group] = []
    for concerns, finder in ((_any_chart, _charts), (_any_kustomization, _kustomizations)):
        if jobs and concerns(jobs):
            groups += (found := list(finder(jobs)))
            taken = {path for group in found for path in group.files}
            jobs = [job for job in jobs if absolute(job.path) not in taken] if taken else jobs
    return groups


def absolute(path: Path) -> Path:
    """Return `path` from the root, its links as they are."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - links stay links


def _any_chart(jobs: Sequence[Job]) -> bool:
    """Whether a file of `jobs` is a packed chart or below a folder that holds a Chart.yaml."""
    return any(job.path.suffix == ENDING for job in jobs) or _any_below(jobs, (CHART_FILE,))


def _charts(jobs: Sequence[Job]) -> Iterator[Group]:
    from gpu2dra_migrate.helm.find import find_charts  # noqa: PLC0415 - most runs meet no chart

    return find_charts(jobs)


def _any_kustomization(jobs: Sequence[Job]) -> bool:
    """Whether a file of `jobs` is below a folder that holds a kustomization, or tells Flux to make one."""
    return (
        _any_below(jobs, KUSTOMIZATION_FILES)
        or any(_holds(job.path, FLUX_API) for job in jobs)
        or (jobs[0].settings.mode is not Mode.CHECK and _any_flux(jobs))
    )


def _any_flux(jobs: Sequence[Job]) -> bool:
    """Whether Flux is told in a repository of `jobs` to make a kustomization; `check` does without that search."""
    tops = {top for folder in {absolute(job.path).parent for job in jobs} if (top := git.top_of(folder))}
    return any(answer and answer[0] for top in tops for answer in [git.grep(top, [FLUX_API.decode()], *git.MANIFESTS)])


def _kustomizations(jobs: Sequence[Job]) -> Iterator[Group]:
    from gpu2dra_migrate.kustomize.group import find_groups as find  # noqa: PLC0415 - only where there is one

    yield from find(jobs)


def _holds(path: Path, term: bytes) -> bool:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - hot
            return os.fstat(file.fileno()).st_size <= _LARGEST and term in file.read()
    except OSError:
        return False


def _any_below(jobs: Sequence[Job], names: Sequence[str]) -> bool:
    """Whether a file of `jobs` is below a folder, in its repository, that holds one of `names`; each is seen once."""
    seen: set[str] = set()
    for job in jobs:
        folder = os.path.dirname(os.path.abspath(job.path))  # noqa: PTH100, PTH120 - links stay links; hot
        while folder not in seen:
            seen.add(folder)
            if any(os.path.exists(os.path.join(folder, name)) for name in names):  # noqa: PTH110, PTH118 - hot
                return True
            if os.path.exists(os.path.join(folder, ".git")):  # noqa: PTH110, PTH118 - hot
                break
            folder = os.path.dirname(folder)  # noqa: PTH120 - hot
    return False
