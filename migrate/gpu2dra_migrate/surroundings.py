"""What the repository around a file says about it: which tools prune what it no longer holds."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gpu2dra import Keep
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.walk import Problem, holds

if TYPE_CHECKING:
    from pathlib import Path

_SIGNS: dict[Keep, tuple[str, ...]] = {
    Keep.ARGOCD: ("argocd.argoproj.io/", "namespace: argocd"),
    Keep.FLUX: ("kustomize.toolkit.fluxcd.io/",),
}
"""What stands in a repository that the tool applies."""


class Surroundings:
    """Answers about files by their absolute path; each repository is looked at once, and only when it matters."""

    def __init__(self) -> None:
        self._top_of = cache(git.top_of)
        self._tools = cache(_tools)

    def keeps(self, path: Path) -> tuple[Keep, ...]:
        """Return the tools that apply the repository of `path` and prune what it no longer holds."""
        top = self._top_of(path.parent)
        return self._tools(top) if top else ()


def _tools(top: Path) -> tuple[Keep, ...]:
    answer = git.grep(top, [term for terms in _SIGNS.values() for term in terms], *git.MANIFESTS)
    missing = dict(_SIGNS)
    for path in answer[0] if answer else ():
        missing = {tool: terms for tool, terms in missing.items() if not _holds(path, terms)}
        if not missing:
            break
    return tuple(tool for tool in _SIGNS if tool not in missing)


def _holds(path: Path, terms: tuple[str, ...]) -> bool:
    try:
        return holds(path, [term.encode() for term in terms])
    except Problem:
        return False
