"""Templates that a kustomization takes as manifests: for it they must stay what they are."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gpu2dra_migrate.files import absolute
from gpu2dra_migrate.kustomize.files import Kustomization, find_kustomizations, root_of

if TYPE_CHECKING:
    from pathlib import Path

_TEMPLATES = "templates"


class Kustomized:
    """Answers which kustomization takes a template; each repository is looked at once, and only when it matters."""

    def __init__(self) -> None:
        self._root_of = cache(root_of)
        self._taken = cache(_taken)

    def by(self, template: Path) -> Path | None:
        """Return the file of a kustomization that names `template`, or None."""
        top = self._root_of(template.parent)
        return self._taken(top).get(absolute(template)) if top else None


def _taken(top: Path) -> dict[Path, Path]:
    """Return the files in folders for templates that kustomizations below `top` name, and where each is named."""
    found: dict[Path, Path] = {}
    for file in find_kustomizations(top):
        one = Kustomization(file)
        if _TEMPLATES in file.parts or _TEMPLATES in one.text:
            for path in one.references():
                if _TEMPLATES in path.parts and path.is_file():
                    found.setdefault(path, file)
    return found
