"""Stand-ins for files that generators read and the repository does not hold: secrets, settings made at deployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from gpu2dra_migrate.files import absolute
from gpu2dra_migrate.kustomize.files import GENERATORS, Kustomization, strings

if TYPE_CHECKING:
    from pathlib import Path

_DATA = re.compile(r"data\.([\w.-]+)")


def stand_ins(nodes: Iterable[Kustomization]) -> Iterator[tuple[Kustomization, Path, str]]:
    """Yield owner, path and text of each file that stands in for one that is not there.

    Both builds of a square get the same ones. A file of settings holds the keys that replacements and variables of
    these kustomizations read.
    """
    nodes = list(nodes)
    keys = {name: sorted(found) for name, found in _keys_by_name(nodes).items()}
    for node in nodes:
        for entry in node.maps(*GENERATORS):
            yield from _of_entry(node, entry, keys.get(str(entry.get("name")), []))


def _of_entry(node: Kustomization, entry: dict[str, Any], keys: list[str]) -> Iterator[tuple[Kustomization, Path, str]]:
    settings = "".join(f"{key}=stand-in-{re.sub(r'[^a-z0-9]+', '-', key.lower())}\n" for key in keys)
    for listed, text in (("envs", settings), ("env", settings), ("files", "stand-in\n")):
        value = entry.get(listed)
        for name in strings(value if isinstance(value, list) else [value]):
            path = absolute(node.folder / name.rpartition("=")[2])
            if not path.exists() and path.is_relative_to(node.folder) and "://" not in name:
                yield node, path, text


def _keys_by_name(nodes: list[Kustomization]) -> dict[str, set[str]]:
    """Return the keys of ConfigMaps and Secrets that are read, by the name of the object."""
    found: dict[str, set[str]] = {}
    for node in nodes:
        for source in _sources(node):
            for path in (source.get("fieldPath"), source.get("fieldpath")):
                if isinstance(path, str) and (match := _DATA.fullmatch(path)):
                    found.setdefault(str(source.get("name")), set()).add(match[1])
    return found


def _sources(node: Kustomization) -> Iterator[dict[str, Any]]:
    for entry in node.maps("replacements", "vars"):
        parts = [part for name in ("source", "objref", "fieldref") if isinstance(part := entry.get(name), dict)]
        yield {key: value for part in parts for key, value in part.items()}
