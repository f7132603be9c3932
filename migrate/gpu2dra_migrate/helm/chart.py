"""A chart folder as it stands: its templates, values and subcharts, and what gpu2dra has put there before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from gpu2dra_migrate.files import Unreadable, read_text
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.helm.documents import first_mapping
from gpu2dra_migrate.helm.helper import FILE_NAME
from gpu2dra_migrate.helm.inline import is_inline
from gpu2dra_migrate.search import git

NOTES = "NOTES.txt"
_MAX_SIZE = 1024 * 1024
"""Bytes of a template that is still read; Helm's own limit for a whole release is of that size."""
_ENTRANCE = re.compile(r'\{\{ include "gpu2dra\.[0-9a-f]{8}\.file" \(list \. "(?P<name>[^"]+)"\) -\}\}\n?')


class ChartError(Exception):
    """The folder is no chart that can be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. Names of `templates` are relative to the chart's `templates` folder.

    `templates` holds the text of each file, a converted one under its own name with the text from before; `wrapped`
    names the converted ones, `inline` those that hold claims in their own text. `missing` are dependencies that the
    folder `charts` does not hold, `archives` packed ones.
    """

    folder: Path
    name: str
    library: bool
    templates: Mapping[str, str]
    wrapped: frozenset[str] = frozenset()
    inline: frozenset[str] = frozenset()
    subcharts: tuple[Chart, ...] = ()
    archives: tuple[Path, ...] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[Mapping[str, Any], ...] = ()

    def family(self) -> Iterator[Chart]:
        """Yield the chart and all charts in its folder."""
        yield self
        for chart in self.subcharts:
            yield from chart.family()

    @property
    def is_inline(self) -> bool:
        """Whether templates of the chart or one in its folder hold claims in their own text."""
        return any(member.inline for member in self.family())

    @property
    def is_wrapped(self) -> bool:
        """Whether templates of the chart or one in its folder render through the helper."""
        return any(member.wrapped for member in self.family())

    def owner(self, source: str) -> tuple[Chart, str] | None:
        """Return the chart of this folder that holds a template, and its name in there; None when it is in an archive.

        `source` is the path by which Helm calls a template: `parent/charts/child/templates/NAME`.
        """
        chart, rest = self, PurePosixPath(source).parts[1:]
        while rest[:1] == ("charts",):
            wanted = chart.aliases.get(rest[1], rest[1])
            inner = next((child for child in chart.subcharts if child.name == wanted), None)
            if inner is None:
                return None
            chart, rest = inner, rest[2:]
        return chart, str(PurePosixPath(*rest[1:]))


def raw(name: str) -> str:
    """Return the name under which the text of a converted template stands."""
    path = PurePosixPath(name)
    return str(path.with_name(f"_{path.name}"))


def is_rendered(name: str) -> bool:
    """Whether Helm sends what the template of this name renders to the cluster: all but partials and notes."""
    base = PurePosixPath(name).name
    return not base.startswith("_") and base != NOTES


def read_chart(folder: Path) -> Chart:
    """Return the chart in `folder` with its subcharts; raise ChartError when Chart.yaml cannot be read."""
    described = _described(folder)
    texts = dict(_templates(folder))
    wrapped = frozenset(name for name, text in texts.items() if _ENTRANCE.fullmatch(text) and raw(name) in texts)
    plain = {name: texts[raw(name)] if name in wrapped else text for name, text in texts.items()}
    for name in (FILE_NAME, *map(raw, wrapped)):
        plain.pop(name, None)
    inside = folder / "charts"
    entries = sorted(filter(is_followed, inside.iterdir())) if inside.is_dir() else []
    subcharts = tuple(read_chart(entry) for entry in entries if (entry / CHART_FILE).is_file())
    archives = tuple(entry for entry in entries if entry.suffix in (".tgz", ".gz"))
    dependencies = [item for item in _dependencies(folder, described) if isinstance(item.get("name"), str)]
    present = {chart.name for chart in subcharts}
    missing = [
        item for item in dependencies
        if item["name"] not in present and not any(file.name.startswith(f"{item['name']}-") for file in archives)
    ]  # fmt: skip
    aliases = {item["alias"]: item["name"] for item in dependencies if isinstance(item.get("alias"), str)}
    library = described.get("type") == "library"
    inline = frozenset(name for name, text in plain.items() if is_inline(text))
    return Chart(
        folder, described["name"], library, plain, wrapped, inline, subcharts, archives, aliases, tuple(missing)
    )  # fmt: skip


def _described(folder: Path) -> dict[str, Any]:
    file = folder / CHART_FILE
    try:
        described = first_mapping(read_text(file, _MAX_SIZE))
    except Unreadable as error:
        raise ChartError(f"Chart.yaml: {error.message}") from None
    if not isinstance(described.get("name"), str):
        raise ChartError("Chart.yaml names no chart")
    return described


def _dependencies(folder: Path, described: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the dependencies that Chart.yaml declares, or requirements.yaml of a chart for Helm 2."""
    declared = described.get("dependencies")
    older = folder / "requirements.yaml"
    if declared is None and older.is_file():
        with suppress(Unreadable):
            declared = first_mapping(read_text(older, _MAX_SIZE)).get("dependencies")
    return [item for item in declared if isinstance(item, dict)] if isinstance(declared, list) else []


def _templates(folder: Path) -> Iterator[tuple[str, str]]:
    base = folder / "templates"
    for file in sorted(_files(base)):
        try:
            yield file.relative_to(base).as_posix(), read_text(file, _MAX_SIZE)
        except Unreadable as error:
            raise ChartError(f"{file.relative_to(folder).as_posix()}: {error.message}") from None


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below `folder` as Helm meets them, links included."""
    for entry in folder.iterdir() if folder.is_dir() else ():
        if not is_followed(entry):
            continue
        if entry.is_dir():
            yield from _files(entry)
        elif entry.is_file():
            yield entry


def is_followed(path: Path) -> bool:
    """Whether `path` is no link, or one that leads neither back to a folder above it nor out of its repository."""
    if not path.is_symlink():
        return True
    try:
        here, target = path.parent.resolve(), path.resolve()
    except (OSError, RuntimeError):  # links that lead to each other
        return False
    return not here.is_relative_to(target) and target.is_relative_to(git.top_of(here) or here)
