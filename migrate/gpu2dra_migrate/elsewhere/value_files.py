"""Which release a values file is for: helmfiles and Argo CD's Applications name files, by path."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpu2dra.model import Object
from gpu2dra_migrate.elsewhere.releases import Release, application_sources, helmfile_releases, mapping, text

ROOTS = frozenset(
    {"ollama", "accelerator", "decode", "prefill", "controllers", "head", "worker", "additionalWorkerGroups"}
)
"""What stands at the top of the values of a chart that is known."""


def releases_of(path: Path, values: Object, top: Path, found: Iterable[tuple[Path, Any]]) -> Iterator[Release]:
    """Yield the releases that take their values from the file `path`, in the repository at `top`.

    `found` holds the objects of helmfiles and Applications with their files. What else a release takes values from is
    its `more`.
    """
    for file, obj in found:
        if not isinstance(obj, dict):
            continue
        for release, names in _named(obj):
            places = [_place(name, file.parent, top) for name in names]
            if path in places:
                rest = [name for name, place in zip(names, places, strict=True) if place != path]
                more = ", ".join([*rest, *filter(None, [release.more])])
                yield replace(release, base="", values=values, text=None, more=more)


def _named(obj: Object) -> Iterator[tuple[Release, list[str]]]:
    """Yield each release with the files that it names; `more` holds what is no file."""
    if obj.get("kind") in ("Application", "ApplicationSet"):
        for _, source, release in application_sources(obj):
            helm = mapping(source.get("helm"))
            more = ", ".join(
                name for name in ("valuesObject", "values", "parameters", "fileParameters") if helm.get(name)
            )
            yield replace(release, more=more), _texts(helm.get("valueFiles"))
    elif "kind" not in obj and isinstance(obj.get("releases"), list):
        for _, entry, release in helmfile_releases(obj):
            listed = entry.get("values")
            inline = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
            others = [name for name in ("set", "valuesTemplate") if entry.get(name)] + ["inline values"] * bool(inline)
            yield replace(release, more=", ".join(others)), _texts(listed)


def _texts(listed: Any) -> list[str]:
    return [each for each in listed if text(each)] if isinstance(listed, list) else []


def _place(name: str, folder: Path, top: Path) -> Path:
    """Return the file behind a name: from the folder of who names it, or (`$ref/…`) from the top of the repository."""
    if name.startswith("$"):
        return Path(os.path.normpath(top / name.partition("/")[2]))
    return Path(os.path.normpath(folder / name))
