"""Which charts a run is about, and which of its files belong to them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING

from gpu2dra_migrate import programs
from gpu2dra_migrate.files import absolute, text_of
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.helm.chart import Chart, ChartError, read_chart
from gpu2dra_migrate.helm.convert import VALUES_FILE, values_files
from gpu2dra_migrate.helm.documents import first_mapping
from gpu2dra_migrate.helm.group import ChartGroup
from gpu2dra_migrate.helm.kustomized import Kustomized
from gpu2dra_migrate.helm.packed import PackedGroup
from gpu2dra_migrate.search import git
from gpu2dra_migrate.search.discover import may_hold_legacy
from gpu2dra_migrate.search.packed import ENDING
from gpu2dra_migrate.search.walk import Problem, walk
from gpu2dra_migrate.worker import Job

if TYPE_CHECKING:
    from pathlib import Path

_OWN = re.compile(r"Chart\.yaml|requirements\.yaml|values\.schema(?:\..*)?\.json|.*values.*\.ya?ml", re.IGNORECASE)
_YAML = (".yaml", ".yml")
_FILES = re.compile(r"\.Files\.[A-Z]\w+\s+\(?(?:printf\s+)?[\"`]([^\"`\n]+)[\"`]")
_MANIFEST = re.compile(r"^kind:\s", re.MULTILINE)
_TELLING = 2
"""Top-level keys that a values file has to share with a chart to be taken for its own where there are several."""


def find_charts(jobs: Sequence[Job]) -> Iterator[ChartGroup | PackedGroup]:
    """Yield a group for each chart that has a file among `jobs`; a subchart in a `charts` folder goes with its parent.

    Values files elsewhere in the repository that are clearly for one of the charts, by their keys, go with it as well.
    A packed chart that no other chart holds is a group of its own.
    """
    charts: dict[Path, list[Job]] = {}
    rest: list[Job] = []
    files_of, around, top_level = cache(_read_files), cache(_values_around), cache(_top_level)
    for job in jobs:
        path = absolute(job.path)
        folder = top_chart(path.parent)
        if folder and belongs(path, folder, files_of(folder)):
            charts.setdefault(folder, []).append(job)
        else:
            rest.append(job)
    known = {folder: _keys_of(folder) for folder in charts}
    helm = programs.find("helm")
    told: set[str] = set()
    kustomized = Kustomized()
    yield from (PackedGroup(job, helm) for job in rest if job.path.suffix == ENDING)
    for folder, found in charts.items():
        top = git.top_of(folder)
        own = ((path, top_level(path)) for path in (around(top) if top else ()))
        wanted = {path for path, keys in own if _is_for(keys, known[folder], alone=len(charts) == 1)}
        others = (absolute(job.path) for job in rest if job.path.suffix in _YAML)
        wanted |= {path for path in others if _is_for(top_level(path), known[folder], alone=False)}
        taken = [job for job in rest if absolute(job.path) in wanted]
        named = [
            absolute(path) for path in found[0].settings.values
            if len(charts) == 1 or _is_for(top_level(absolute(path)), known[folder], alone=True)
        ]  # fmt: skip
        values = dict.fromkeys((*values_files(folder), *sorted(wanted), *named))
        yield ChartGroup(folder, [*found, *taken], list(values), helm, told, kustomized)


def charts_below(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the Chart.yaml of each chart below `paths`."""
    for path in paths:
        for found in walk(path, CHART_FILE.__eq__) if path.is_dir() else ():
            if not isinstance(found, Problem) and found.name == CHART_FILE:
                yield found


def top_chart(folder: Path) -> Path | None:
    """Return the chart that `folder` is in, or the one around that, as far as each is in a `charts` folder."""
    nearest = _nearest(folder)
    while nearest and nearest.parent.name == "charts" and (nearest.parent.parent / CHART_FILE).is_file():
        nearest = nearest.parent.parent
    return nearest


def _nearest(folder: Path) -> Path | None:
    if (folder / CHART_FILE).is_file():
        return folder
    return None if (folder / ".git").exists() or folder.parent == folder else _nearest(folder.parent)


def belongs(path: Path, folder: Path, read: Sequence[str] = ()) -> bool:
    """Whether the chart in `folder` makes something of a file: a template, values, or what templates `read`.

    Anything else in its folder, an example say, is as good as outside.
    """
    parts = path.relative_to(folder).parts
    while len(parts) > 2 and parts[0] == "charts":  # noqa: PLR2004 - charts/NAME/FILE
        parts = parts[2:]
    if parts[0] == "templates" and len(parts) > 1:
        return True
    if len(parts) == 1 and _OWN.fullmatch(parts[0]):
        return True
    if (parts[0] == "ci" and path.suffix in _YAML) or (parts[0] == "charts" and path.suffix == ENDING):
        return True
    name = "/".join(parts)
    return any(fnmatchcase(name, pattern.replace("**", "*")) for pattern in read)


def _read_files(folder: Path) -> tuple[str, ...]:
    """Return the patterns of files that templates of the chart read by `.Files`."""
    try:
        chart = read_chart(folder)
    except ChartError:
        return ()
    texts = (text for member in chart.family() for text in member.templates.values())
    return tuple(re.sub(r"%\w", "*", pattern) for text in texts for pattern in _FILES.findall(text))


def _keys_of(folder: Path) -> frozenset[str]:
    """Return the keys that values of the chart in `folder` have: its own, `global`, and the names of its subcharts."""
    try:
        chart = read_chart(folder)
    except ChartError:
        return frozenset()
    return frozenset({*_top_level(folder / "values.yaml"), "global", *_inner(chart)})


def _inner(chart: Chart) -> Iterator[str]:
    yield from (child.name for child in chart.subcharts)
    yield from chart.aliases
    yield from (str(each.get("alias") or each["name"]) for each in chart.missing)
    yield from (re.sub(r"-v?\d.*", "", file.name) for file in chart.archives)


def _values_around(top: Path) -> tuple[Path, ...]:
    """Return the values files of a repository that name a GPU and stand in no chart."""
    answer = git.files(top, "*[vV][aA][lL][uU][eE][sS]*.[yY]*[mM][lL]")
    found = [absolute(file) for file in answer or () if VALUES_FILE.fullmatch(file.name)]
    return tuple(file for file in found if top_chart(file.parent) is None and may_hold_legacy(text_of(file)))


def _is_for(own: frozenset[str], keys: frozenset[str], *, alone: bool) -> bool:
    """Whether values with the keys `own` are for a chart with `keys`: they set nothing that it does not have."""
    return bool(own) and own <= keys and (alone or len(own - {"global"}) >= _TELLING)


def _top_level(path: Path) -> frozenset[str]:
    """Return the keys of a file of values; none of what is a manifest."""
    text = text_of(path)
    if _MANIFEST.search(text):  # most are, and need not be parsed for that
        return frozenset()
    data = first_mapping(text)
    return frozenset() if {"apiVersion", "kind"} <= data.keys() else frozenset(map(str, data))
