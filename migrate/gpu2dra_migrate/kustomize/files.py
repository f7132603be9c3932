"""Kustomization files: where they are and what one says, without an opinion about it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from gpu2dra_migrate.files import absolute, text_of
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.groups import KUSTOMIZATION_FILES as NAMES
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.walk import Problem, walk

_DEPTH = 5
"""Folders below the root that are walked where no repository says how far an application reaches."""
PLUGINS = ("transformers", "generators", "validators")
CHARTS = ("helmCharts", "helmChartInflationGenerator")
GENERATORS = ("configMapGenerator", "secretGenerator")
RESOURCES = ("resources", "bases")
LAYERS = ("resources", "bases", "components")
_RENAMING = ("namePrefix", "nameSuffix")


def find_kustomizations(folder: Path) -> list[Path]:
    """Return the kustomization files of the repository around `folder`, or below it, outside a repository."""
    top = git.top_of(folder)
    files = git.files(top, *(f"*{name}" for name in NAMES)) if top else None
    if files is None:
        files = [path for path in walk(folder, NAMES.__contains__, _DEPTH) if not isinstance(path, Problem)]
    return sorted({local(folder, os.fspath(file.parent)) / file.name for file in files if file.name in NAMES})


def root_of(folder: Path) -> Path | None:
    """Return the folder whose kustomizations may concern files of `folder`: its repository, else one worth a walk.

    Outside a repository kustomize's own rule keeps that cheap: a kustomization may name files in and below its folder
    only, so without one in a folder above there is none. Overlays of that one stand beside its folder or nearer.
    """
    if top := git.top_of(folder):
        return top
    nearest = next((outer for outer in (folder, *folder.parents) if kustomization_in(outer)), None)
    if nearest is None:
        return None
    here = Path.cwd()
    return here if nearest != here and nearest.is_relative_to(here) else nearest.parent


def kustomization_in(folder: Path) -> Path | None:
    """Return the kustomization file that stands in `folder`."""
    return next((folder / name for name in NAMES if (folder / name).is_file()), None)


def local(folder: Path, name: str) -> Path:
    """Return what `name` leads to from `folder`, by the one path that has no link in it (but those to `folder`)."""
    path = absolute(folder / name)
    real, here = os.path.realpath(path), os.path.realpath(folder)
    return path if real == os.fspath(path) else absolute(folder / os.path.relpath(real, here))


def links_on(path: Path, top: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the symbolic links on the way from `top` to `path`, each with what it leads to in the end."""
    for place in reversed((path, *path.parents)):
        if place != top and place.is_relative_to(top) and place.is_symlink():
            target = local(place.parent, place.name)
            yield place, target
            yield from links_on(target / path.relative_to(place), top) if target != place else ()
            return


def strings(value: object) -> list[str]:
    """Return the strings of a list, and nothing for what is no list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


class Kustomization:
    """One kustomization file, parsed when somebody asks what it says.

    It is document `number` of its file (None: the first map), with its fields below `prefix`, and is built by
    `build_file`, in `folder`. `listed` is a folder all of whose manifests it takes in, also those that are `added` now.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.build_file = file
        self.folder = file.parent
        self.text = text_of(file)
        self.number: int | None = None
        self.prefix = ""
        self.listed: Path | None = None
        self.added: set[Path] = set()

    @cached_property
    def data(self) -> dict[str, Any]:
        """Its content; empty where the file is no YAML map."""
        return self.data_of(self.text)

    def data_of(self, text: str) -> dict[str, Any]:
        """Return what it says when its file has this text."""
        return first_map(text)

    def build_text(self, text: str) -> str:
        """Return the text of `build_file` when its file has this text."""
        return text

    @property
    def component(self) -> bool:
        """Whether it is a Component, which is part of others and not built by itself."""
        return self.data.get("kind") == "Component"

    @property
    def renames(self) -> bool:
        """Whether it gives what it takes in other names."""
        return any(self.data.get(key) for key in _RENAMING)

    def entries(self, *keys: str) -> Iterator[Path]:
        """Yield the local paths listed under `keys`, whether or not something is there."""
        for key in keys:
            for entry in strings(self.data.get(key)):
                if "\n" not in entry:
                    yield self.place(entry)

    def maps(self, *keys: str) -> Iterator[dict[str, Any]]:
        """Yield the maps among the items of the lists under `keys`."""
        for key in keys:
            listed = self.data.get(key)
            yield from (each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, dict))

    def place(self, name: str) -> Path:
        """Return the path of what an entry names, the same one for all names that links give it."""
        return local(self.folder, name)

    def remote(self) -> Iterator[str]:
        """Yield the bases and resources that stand elsewhere: kustomize would fetch what is not there."""
        for key in LAYERS:
            for entry in strings(self.data.get(key)):
                if "\n" not in entry and not absolute(self.folder / entry).exists():
                    yield entry

    def inflated(self) -> Iterator[tuple[Path, Path]]:
        """Yield each file of values for a chart that is here, with the folder of the chart."""
        settings = self.data.get("helmGlobals")
        home = settings.get("chartHome") if isinstance(settings, dict) else None
        for chart in self.maps("helmCharts"):
            folder = absolute(self.folder / str(home or "charts") / str(chart.get("name")))
            for name in strings([chart.get("valuesFile"), *strings(chart.get("additionalValuesFiles"))]):
                if (folder / CHART_FILE).is_file():
                    yield absolute(self.folder / name), folder

    def references(self) -> Iterator[Path]:
        """Yield every file or folder beside or below that some string of the kustomization names."""
        yield from dict.fromkeys(self.place(name) for name in self._names())

    def aliases(self) -> Iterator[Path]:
        """Yield the same ones by the paths that the strings say, where links stand on them."""
        for name in self._names():
            if (path := absolute(self.folder / name)) != self.place(name):
                yield path

    def _names(self) -> Iterator[str]:
        waiting: list[Any] = [self.data]
        while waiting:
            value = waiting.pop()
            if isinstance(value, dict):
                waiting += value.values()
            elif isinstance(value, list):
                waiting += value
            elif isinstance(value, str) and value and "\n" not in value and "\0" not in value and len(value) < 1024:  # noqa: PLR2004 - a path
                for name in dict.fromkeys((value, value.partition("=")[2])):
                    path = absolute(self.folder / name) if name else self.folder
                    if name and path != self.folder and os.path.lexists(path):
                        yield name


def first_map(text: str) -> dict[str, Any]:
    """Return the first YAML map of `text`, empty where there is none."""
    return next((obj for obj in parsed(text) if isinstance(obj, dict)), {})


def parsed(text: str) -> list[Any]:
    """Return the documents of `text`; none when it does not parse."""
    import yaml12  # noqa: PLC0415 - only where there is a kustomization

    try:  # ten times as fast, and what YAML 1.2 reads differently is no matter of a kustomization
        documents: list[Any] = yaml12.parse_yaml(text.removeprefix("\ufeff"), multi=True)
    except ValueError:
        documents = objects(text)
    return documents
