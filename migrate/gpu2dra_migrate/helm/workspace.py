"""Copies of charts to render in: as they were before gpu2dra, alike in every render, and complete without a network."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpu2dra_migrate.files import Unreadable, read_text
from gpu2dra_migrate.groups import CHART_FILE
from gpu2dra_migrate.helm.chart import Chart, ChartError, is_followed, raw, read_chart
from gpu2dra_migrate.helm.documents import first_mapping
from gpu2dra_migrate.helm.helper import FILE_NAME
from gpu2dra_migrate.helm.templates import stabilised

_LOCAL = "file://"
_DEEPEST = 5
"""Charts that depend on charts beside them, one after the other."""
_LARGEST = 1024 * 1024
_LARGEST_COPIED = 16 * 1024 * 1024
"""Bytes of a file beside the templates that is still copied, a packed chart or what `.Files` reads."""


def copy(chart: Chart, to: Path, *, lenient: bool = False, converted: bool = False, depth: int = 0) -> None:
    """Copy `chart` into the new folder `to` as helm can render it.

    Converted templates are as they were before, unless `converted`; random values are constants, dependencies in
    folders of the same repository are filled in and those that are missing are taken off the list. A `lenient` copy
    demands no values and no version of the server, and has no schema of its values.
    """
    shutil.copytree(chart.folder, to, ignore=_left_out, ignore_dangling_symlinks=True)
    for member in chart.family():
        folder = to / member.folder.relative_to(chart.folder)
        _plain(member, folder, lenient=lenient, converted=converted)
        _settle(member, folder, lenient=lenient, depth=depth)


def _left_out(folder: str, names: Collection[str]) -> set[str]:
    """Return what no template needs: version control, large files, and links that are not followed."""
    out = {".git"}
    for path in (Path(folder, name) for name in names):
        if not is_followed(path) or (path.is_file() and path.stat().st_size > _LARGEST_COPIED):
            out.add(path.name)
    return out


def _plain(chart: Chart, folder: Path, *, lenient: bool, converted: bool) -> None:
    base = folder / "templates"
    if not converted:
        for name in chart.wrapped:
            (base / raw(name)).unlink()
        if not chart.inline:
            (base / FILE_NAME).unlink(missing_ok=True)
    if lenient:
        (folder / "values.schema.json").unlink(missing_ok=True)
        _for_any_server(folder / CHART_FILE)
    for name, text in chart.templates.items():
        place = raw(name) if converted and name in chart.wrapped else name
        write(base / place, stabilised(text, lenient=lenient))


def _for_any_server(file: Path) -> None:
    """Take off what a chart demands of the server's version: it is proven for the oldest that has the claims."""
    with suppress(Unreadable):
        described = first_mapping(read_text(file, _LARGEST))
        if described.pop("kubeVersion", None):
            write(file, json.dumps(described, ensure_ascii=False))


def _settle(chart: Chart, folder: Path, *, lenient: bool, depth: int) -> None:
    """Fill in dependencies that stand in a folder beside the chart and forget those that cannot be had offline."""
    absent = []
    for dependency in chart.missing:
        source = _folder_of(dependency, chart.folder)
        if source is None or depth >= _DEEPEST:
            absent.append(dependency)
            continue
        try:
            inside = folder / "charts" / str(dependency["name"])
            copy(read_chart(source), inside, lenient=lenient, depth=depth + 1)
        except ChartError:
            absent.append(dependency)
    if absent:
        for name in (CHART_FILE, "requirements.yaml"):
            _without(folder / name, absent)


def _folder_of(dependency: Mapping[str, Any], folder: Path) -> Path | None:
    repository = dependency.get("repository")
    if not isinstance(repository, str) or not repository.startswith(_LOCAL):
        return None
    source = (folder / repository.removeprefix(_LOCAL)).resolve()
    return source if (source / CHART_FILE).is_file() else None


def _without(file: Path, absent: list[Mapping[str, Any]]) -> None:
    try:
        described = first_mapping(read_text(file, _LARGEST))
    except Unreadable:
        return
    if isinstance(declared := described.get("dependencies"), list):
        left = [item for item in declared if item not in absent]
        write(file, json.dumps({**described, "dependencies": left}, ensure_ascii=False))


def write(file: Path, text: str) -> None:
    """Write `text` with the line breaks that it has."""
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
