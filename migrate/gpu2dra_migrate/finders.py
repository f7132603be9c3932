"""Which files of a run belong to charts and kustomizations; nobody else pays for the question."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from gpu2dra_migrate.files import absolute
from gpu2dra_migrate.groups import CHART_FILE, FLUX_API, KUSTOMIZATION_FILES, Group
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.packed import ENDING
from gpu2dra_migrate.search.walk import surely_holds
from gpu2dra_migrate.worker import Job, Mode

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
        or any(surely_holds(job.path, [FLUX_API.encode()]) for job in jobs)
        or (jobs[0].settings.mode is not Mode.CHECK and _any_flux(jobs))
    )


def _any_flux(jobs: Sequence[Job]) -> bool:
    """Whether Flux is told in a repository of `jobs` to make a kustomization; `check` does without that search."""
    tops = {top for folder in {absolute(job.path).parent for job in jobs} if (top := git.top_of(folder))}
    return any(answer and answer[0] for top in tops for answer in [git.grep(top, [FLUX_API], *git.MANIFESTS)])


def _kustomizations(jobs: Sequence[Job]) -> Iterator[Group]:
    from gpu2dra_migrate.kustomize.group import find_groups as find  # noqa: PLC0415 - only where there is one

    yield from find(jobs)


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
