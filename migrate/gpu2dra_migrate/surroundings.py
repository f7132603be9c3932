"""What the repository around a file says about it: which tools prune what it no longer holds."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpu2dra import Keep
from gpu2dra_migrate.files import Unreadable, read_text
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.manifest import Around
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.walk import surely_holds

if TYPE_CHECKING:
    from gpu2dra.model import Object
    from gpu2dra_migrate.elsewhere.releases import Release

_SIGNS: dict[Keep, tuple[str, ...]] = {
    Keep.ARGOCD: ("argocd.argoproj.io/", "namespace: argocd"),
    Keep.FLUX: ("kustomize.toolkit.fluxcd.io/",),
}
"""What stands in a repository that the tool applies."""
_SOURCES = ("OCIRepository", "HelmChart")
_LARGEST = 1024 * 1024


class Surroundings:
    """Answers about files by their absolute path; each repository is looked at once, and only when it matters."""

    def __init__(self) -> None:
        self._top_of = cache(git.top_of)
        self._tools = cache(_tools)
        self._sources = cache(_sources)
        self._users = cache(_users)

    def keeps(self, path: Path) -> tuple[Keep, ...]:
        """Return the tools that apply the repository of `path` and prune what it no longer holds."""
        top = self._top_of(path.parent)
        return self._tools(top) if top else ()

    def around(self, path: Path) -> Around:
        """Return what the repository of `path` knows of releases."""
        return Around(
            lambda: self._charts(path),
            lambda values: self._releases(path, values),
            lambda name: self._is_chart(path, name),
        )

    def _is_chart(self, path: Path, name: str) -> bool:
        """Return whether `name` leads to a chart in the repository of `path`, from its top or from the file."""
        top = self._top_of(path.parent)
        if top is None:
            return False
        places = (os.path.normpath(base / name.lstrip("/")) for base in (top, path.parent))
        return any(place.startswith(f"{top}{os.sep}") and (Path(place) / CHART_FILE).is_file() for place in places)

    def _charts(self, path: Path) -> Iterator[Any]:
        """Yield the objects in the repository of `path` by which releases name a chart, the nearest to it first."""
        top = self._top_of(path.parent)
        found = self._sources(top) if top else ()
        for _, obj in sorted(found, key=lambda each: _distance(path, each[0])):
            yield obj

    def _releases(self, path: Path, values: Object) -> list[Release]:
        """Return the releases in the repository of `path` that take their values from that file."""
        from gpu2dra_migrate.elsewhere.value_files import ROOTS, releases_of  # noqa: PLC0415 - few files hold values

        top = self._top_of(path.parent)
        if top is None or ROOTS.isdisjoint(values):
            return []
        return list(releases_of(path, values, top, self._users(top)))


def _sources(top: Path) -> tuple[tuple[Path, Any], ...]:
    """Return the OCIRepositories and HelmCharts of Flux in a repository, each with its file."""
    found = _objects_with(top, [f"kind: {kind}" for kind in _SOURCES])
    return tuple((path, obj) for path, obj in found if isinstance(obj, dict) and obj.get("kind") in _SOURCES)


def _users(top: Path) -> tuple[tuple[Path, Any], ...]:
    """Return the objects of a repository that may name files of values, each with its file."""
    return tuple(_objects_with(top, ("valueFiles:", "releases:")))


def _objects_with(top: Path, terms: Iterable[str]) -> Iterator[tuple[Path, Any]]:
    """Yield the objects in the files of a repository that hold a term, each with its file."""
    from gpu2dra_migrate.helm.documents import objects_in  # noqa: PLC0415 - few repositories have releases

    answer = git.grep(top, terms, *git.MANIFESTS)
    for path in answer[0] if answer else ():
        with suppress(Unreadable):
            for obj in objects_in(read_text(path, _LARGEST)):
                yield path, obj


def _distance(path: Path, other: Path) -> int:
    """Return how many folders lie between two files."""
    return os.path.relpath(other, path.parent).count(os.sep)


def _tools(top: Path) -> tuple[Keep, ...]:
    answer = git.grep(top, [term for terms in _SIGNS.values() for term in terms], *git.MANIFESTS)
    missing = {tool: [term.encode() for term in terms] for tool, terms in _SIGNS.items()}
    for path in answer[0] if answer else ():
        missing = {tool: terms for tool, terms in missing.items() if not surely_holds(path, terms)}
        if not missing:
            break
    return tuple(tool for tool in _SIGNS if tool not in missing)
