"""Objects of Flux and Argo CD that put patches and names over what a folder of the repository builds."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from gpu2dra.pointers import pointer, value_at
from gpu2dra_migrate.elsewhere.releases import argo_sources, mapping
from gpu2dra_migrate.files import absolute, text_of
from gpu2dra_migrate.groups import FLUX_API, KUSTOMIZATION_FILES
from gpu2dra_migrate.kustomize.files import Kustomization, kustomization_in, local, strings
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.search import git

_ARGO = "argoproj.io/"
_CHANGING = ("patches", "namePrefix", "nameSuffix", "components")
_NAMESPACES = ("targetNamespace", "namespace")
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}")
"""What an ApplicationSet fills in."""


class AppliedKustomization(Kustomization):
    """The kustomization that Flux or Argo CD makes of document `number` of a file, over the folder `base`.

    What it says stands at the JSON Pointer `where` of the document. It is built in a folder beside `base`, which only
    the copies have.
    """

    def __init__(self, file: Path, number: int, base: Path, where: str, name: str) -> None:
        super().__init__(file)
        self.number = self._index = number
        self.prefix = where
        self.base = base
        self.folder = base.parent / f".applied-{name}-{number}{where.replace('/', '-')}-{base.name}"
        self.build_file = self.folder / "kustomization.yaml"
        self.listed = None if kustomization_in(base) else base

    def data_of(self, text: str) -> dict[str, Any]:
        """Return what the kustomization says when its file has this text."""
        found = objects(text)
        spec: Any = found[self._index] if len(found) > self._index else None
        spec = mapping(value_at(spec, self.prefix))
        names = [self._from_here(path) for path in self._generated()] or [f"../{self.base.name}"]
        data: dict[str, Any] = {"resources": names, **{key: spec[key] for key in _CHANGING if spec.get(key)}}
        if components := strings(spec.get("components")):
            data["components"] = [self._from_here(self.base / name) for name in components]
        if isinstance(patches := spec.get("patches"), list):
            data["patches"] = [self._patch(each) for each in patches]
        for key in _NAMESPACES:
            if isinstance(namespace := spec.get(key), str):
                data["namespace"] = namespace
        return {key: _filled(value) if key != "patches" else value for key, value in data.items()}

    def _generated(self) -> list[Path]:
        """Return what Flux lists where it makes a kustomization for a folder without one; nothing where there is one.

        A folder inside with one of its own is taken in as such.
        """
        found = sorted(self.added)
        for here, folders, files in os.walk(self.listed) if self.listed else ():
            folder = Path(here)
            inner = [name for name in sorted(folders) if kustomization_in(folder / name)]
            found += [folder / name for name in inner]
            folders[:] = [name for name in folders if name not in inner and name != ".git"]
            found += [folder / name for name in sorted(files) if name.endswith((".yaml", ".yml"))]
        return found

    def lists(self, path: Path) -> bool:
        """Whether Flux would list a new file."""
        top = self.listed
        return (
            top is not None
            and path.is_relative_to(top)
            and not any(kustomization_in(up) for up in path.parents if up != top and up.is_relative_to(top))
        )

    def _from_here(self, path: Path) -> str:
        return Path(os.path.relpath(path, self.folder)).as_posix()

    def _patch(self, entry: Any) -> Any:
        path = entry.get("path") if isinstance(entry, dict) else None
        return {**entry, "path": self._from_here(self.base / path)} if isinstance(path, str) and path else entry

    def build_text(self, text: str) -> str:
        """Return the kustomization to build when its file has this text."""
        return json.dumps(self.data_of(text))


def find_applied(files: Iterable[Path], top: Path) -> Iterator[AppliedKustomization]:
    """Yield what changes names, namespaces or requests of a folder of the repository `top`, in `files` or in all of it.

    Everything is looked through that git knows of: what gives another name holds no request.
    """
    answer = git.grep(top, (FLUX_API, _ARGO), *git.MANIFESTS) if git.top_of(top) else None
    for file in dict.fromkeys([*files, *map(absolute, answer[0] if answer else ())]):
        text = text_of(file)
        if FLUX_API not in text and not (_ARGO in text and "kustomize" in text):
            continue
        name = "-".join(file.relative_to(top).with_suffix("").parts)
        for number, obj in enumerate(objects(text)):
            for where, path in _named(obj) if isinstance(obj, dict) else ():
                for base in _folders(top, path):
                    one = AppliedKustomization(file, number, base, where, name)
                    if _matters(one):
                        yield one


def _matters(one: AppliedKustomization) -> bool:
    """Whether a conversion of what `one` is put over could come out otherwise than without it."""
    return any(one.data.get(key) for key in _CHANGING) or bool(one.data.get("namespace") and kustomization_in(one.base))


def _named(obj: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield where the fields of a kustomization stand in an object, and the folder that they are put over."""
    api, kind = str(obj.get("apiVersion")), obj.get("kind")
    if kind == "Kustomization" and api.startswith(FLUX_API):
        path = mapping(obj.get("spec")).get("path")
        if isinstance(path, str):
            yield "/spec", path
    elif kind in ("Application", "ApplicationSet") and api.startswith(_ARGO):
        for where, source in argo_sources(obj):
            if mapping(source.get("kustomize")) and isinstance(path := source.get("path"), str):
                yield pointer(where, "kustomize"), path


def _folders(top: Path, path: str) -> Iterator[Path]:
    """Yield the folders of a repository that `path` names; a placeholder in it may stand for any of them."""
    if "{{" not in path:
        base = local(top, path.lstrip("/"))
        if base.is_dir() and base.is_relative_to(top) and (base != top or kustomization_in(base)):
            yield base
        return
    pattern = re.compile(".+".join(map(re.escape, _PLACEHOLDER.split(path.strip("/").removeprefix("./")))))
    answer = git.files(top, *(f"*{name}" for name in KUSTOMIZATION_FILES))
    for file in sorted(absolute(file) for file in answer or () if file.name in KUSTOMIZATION_FILES):
        if pattern.fullmatch(file.parent.relative_to(top).as_posix()):
            yield file.parent


def _filled(value: Any) -> Any:
    return _PLACEHOLDER.sub("x", value) if isinstance(value, str) else value
