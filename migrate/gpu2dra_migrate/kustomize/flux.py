"""Flux' Kustomization objects: patches and names that Flux puts over what a folder of the repository builds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gpu2dra_migrate.kustomize.files import Kustomization, kustomization_in, normal, strings, text_of
from gpu2dra_migrate.manifest import objects

if TYPE_CHECKING:
    from pathlib import Path

API = "kustomize.toolkit.fluxcd.io/"
_TAKEN = ("patches", "namePrefix", "nameSuffix", "components")
_MANIFESTS = ("*.yaml", "*.yml")


class FluxKustomization(Kustomization):
    """The kustomization that Flux makes of document `number` of a file, over the folder at its `spec.path`.

    It is built in a folder beside that one, which only the copies have.
    """

    def __init__(self, file: Path, number: int, base: Path) -> None:
        super().__init__(file)
        self.number = self._index = number
        self.prefix = "/spec"
        self.base = base
        self.folder = base.parent / f".flux-{file.stem}-{number}"
        self.build_file = self.folder / "kustomization.yaml"

    def data_of(self, text: str) -> dict[str, Any]:
        """Return what the kustomization says when its file has this text."""
        found = objects(text)
        obj = found[self._index] if len(found) > self._index else None
        spec = obj.get("spec") if isinstance(obj, dict) else None
        spec = spec if isinstance(spec, dict) else {}
        kustomization = kustomization_in(self.base)
        files = [] if kustomization else sorted(path for name in _MANIFESTS for path in self.base.rglob(name))
        names = [f"../{path.relative_to(self.base.parent).as_posix()}" for path in files or [self.base]]
        data: dict[str, Any] = {"resources": names, **{key: spec[key] for key in _TAKEN if spec.get(key)}}
        if components := strings(spec.get("components")):
            data["components"] = [f"../{self.base.name}/{name}" for name in components]
        if isinstance(namespace := spec.get("targetNamespace"), str):
            data["namespace"] = namespace
        return data

    def build_text(self, text: str) -> str:
        """Return the kustomization to build when its file has this text."""
        return json.dumps(self.data_of(text))


def find_flux(files: Iterable[Path], top: Path) -> Iterator[FluxKustomization]:
    """Yield the Kustomization objects of Flux in `files` whose path is a folder of the repository `top`."""
    for file in files:
        text = text_of(file)
        if API not in text:
            continue
        for number, obj in enumerate(objects(text)):
            if isinstance(obj, dict) and obj.get("kind") == "Kustomization":
                spec = obj.get("spec")
                path = spec.get("path") if isinstance(spec, dict) else None
                base = (
                    normal(top / path) if isinstance(path, str) and str(obj.get("apiVersion")).startswith(API) else top
                )
                if base != top and base.is_dir() and base.is_relative_to(top):
                    yield FluxKustomization(file, number, base)
