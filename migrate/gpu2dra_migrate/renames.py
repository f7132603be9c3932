"""Templates of ours that were edited by hand get new names (rule R8): which, and which other files name them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu2dra import Context
from gpu2dra_migrate import manifest
from gpu2dra_migrate.files import Unreadable, absolute, read_text
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.discover import search
from gpu2dra_migrate.worker import FileResult, Job, Renames

if TYPE_CHECKING:
    from pathlib import Path

_OURS = "gpu2dra.dev/workload"


def find_renames(jobs: Iterable[Job]) -> Renames:
    """Return the new names of the templates in the files of `jobs`."""
    context = Context()
    for job in jobs:
        try:
            text = read_text(job.path, job.settings.max_size)
        except Unreadable:
            continue  # told when it is converted
        if _OURS in text:
            context = manifest.with_neighbours(context, manifest.objects(text))
    return context.renames


def users(renames: Renames, folders: Iterable[Path]) -> list[Path]:
    """Return the files below `folders` that name a template which gets another name."""
    names = sorted({old for _, old in renames})
    return [found.path for folder in folders for found in search(folder, names) if not found.code]


def tell_others(results: Iterator[FileResult], renames: Renames, known: Sequence[Path]) -> Iterator[FileResult]:
    """Add to each rename among `results` which files outside the run name the template, since they must follow."""
    covered = {os.path.realpath(path) for path in known}
    others: dict[Path, Mapping[str, list[Path]] | None] = {}
    for result in results:
        if any(located.finding.code == "DRA002" for located in result.findings):
            folder = absolute(result.path).parent
            top = git.top_of(folder) or folder
            if top not in others:
                others[top] = _others(top, renames, covered)
            result.findings = [_told(located, result.path, others[top], renames) for located in result.findings]
        yield result


def _others(top: Path, renames: Renames, covered: set[str]) -> Mapping[str, list[Path]] | None:
    """Return the files per old name; None where there is no repository that could be asked."""
    found: dict[str, list[Path]] = {}
    for name in sorted({old for _, old in renames}):
        answer = git.grep(top, [name], *git.MANIFESTS)
        if answer is None:
            return None
        found[name] = [path for path in answer[0] if os.path.realpath(path) not in covered]
    return found


def _told(
    located: manifest.Located, path: Path, others: Mapping[str, list[Path]] | None, renames: Renames
) -> manifest.Located:
    if located.finding.code != "DRA002":
        return located
    if others is None:
        more = " References to it in files that are not part of this run must follow."
    else:
        old = next((old for (_, old), new in renames.items() if new in located.finding.message), "")
        start = absolute(path).parent
        names = ", ".join(os.path.relpath(other, start) for other in others.get(old, ()))
        more = f" {names} may name it, too: convert it in the same run." if names else ""
    return replace(located, finding=located.finding._replace(message=located.finding.message + more))
