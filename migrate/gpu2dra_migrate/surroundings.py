"""What the repository around a file says about it: Kustomize patches, and tools that prune what it no longer holds."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from gpu2dra import Finding, Keep
from gpu2dra.codes import finding
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.walk import Problem, holds

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.kustomize import Roles

_SIGNS: dict[Keep, tuple[str, ...]] = {
    Keep.ARGOCD: ("argocd.argoproj.io/", "namespace: argocd"),
    Keep.FLUX: ("kustomize.toolkit.fluxcd.io/",),
}
"""What stands in a repository that the tool applies."""


class Surroundings:
    """Answers about files by their absolute path; each repository is looked at once, and only when it matters."""

    def __init__(self) -> None:
        self._roles: Callable[[Path], Roles] | None = None
        self._top_of = cache(git.top_of)
        self._tools = cache(_tools)

    def forbids(self, path: Path, kind: str, name: str) -> Finding | None:
        """Return why the object must be left alone: its file is a Kustomize patch, or a patch touches the object."""
        if self._roles is None:
            from gpu2dra_migrate.kustomize import lazy_roles  # noqa: PLC0415 - only what converts needs it

            self._roles = lazy_roles()
        roles = self._roles(path)
        if source := roles.patches.get(path):
            where = os.path.relpath(source, path.parent)
            text = f"This is a patch of {where}; convert what kustomize builds, or move the request to the base."
            return finding("DRA409", "", text)
        if source := roles.patched_by(path, kind, name):
            where = os.path.relpath(source, path.parent)
            return finding("DRA410", "", f"{where} patches the GPU request of this {kind}; convert both together.")
        return None

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
