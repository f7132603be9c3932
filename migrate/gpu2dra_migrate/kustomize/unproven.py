"""Kustomizations that are not built: why, and what is right by construction all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpu2dra.templates import KIND as TEMPLATE
from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.kustomize.files import Kustomization
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.patches import Patch, aims_at, generator_files, patches_of, replaced_fields
from gpu2dra_migrate.kustomize.problem import Problem
from gpu2dra_migrate.kustomize.requests import is_json6902
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.programs import isolated
from gpu2dra_migrate.search.discover import may_hold_legacy

if TYPE_CHECKING:
    from pathlib import Path

ABSENT = "kustomize is not on PATH"

_TOUCHES = re.compile(r"tolerations|resources|resourceClaims|claims|\$patch|\bnull\b|~\s*$", re.MULTILINE)
"""What a patch says that may change a conversion although it names no legacy resource."""
_OUTER = frozenset(("", "metadata", "namespace", "spec", "template", "jobTemplate", "containers", "initContainers"))
"""Fields that hold a request or what it needs; an operation on one of them, or on an item of a list, touches it."""
_REPLACED = re.compile(r"(?:^|\.)(?:metadata|namespace|spec|template|tolerations.*|resources.*|(?:initC|c)ontainers)$")
_PATTERN = re.compile(r"[^\w-]")


_FETCHED = (
    "path",
    "files",
    "envs",
    "env",
    "crds",
    "configurations",
    "patchesStrategicMerge",
    "resources",
    "bases",
    "components",
)
_URL = re.compile(r"https?://|git::|ssh://")


def unproven(graph: Graph, one: Kustomization, said: str) -> Problem:
    """Return why nothing is proven of a kustomization of which kustomize has `said` that it does not build."""
    if remote := graph.remote(one):
        return Problem("DRA439", f"{remote} is elsewhere and is not fetched, so nothing is proven here.")
    if field := graph.foreign(one):
        code = "DRA443" if field.startswith("helm") else "DRA442"
        return Problem(code, f"{field} runs other programs, which stay off, so nothing is proven here.")
    if said == ABSENT:
        return Problem("DRA436", "kustomize is not on PATH, so only what is right by construction converts.")
    return Problem("DRA438", f"Does not build, so nothing is proven here: {said}")


def unbuildable(graph: Graph, one: Kustomization) -> str:
    """Return why a kustomization must not be built: it would fetch, or run other programs. Nothing where it may be."""
    if graph.remote(one):
        return "it would fetch from elsewhere"
    if field := graph.foreign(one):
        return f"{field} would run other programs"
    if not isolated() and any(_URL.search(path) for inner in graph.closure(one)[0] for path in paths_in(inner.data)):
        return "it may fetch from elsewhere, and this system cannot take the network away from it"
    return ""


def paths_in(value: Any, key: str = "") -> Iterator[str]:
    """Yield the strings of a kustomization that are paths: kustomize would fetch what is a URL among them."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths_in(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from paths_in(inner, key)
    elif isinstance(value, str) and key in _FETCHED:
        yield value


def held_back(graph: Graph, one: Kustomization) -> Iterator[Path]:
    """Yield the files that make up `one` and cannot be converted unless its build proves it."""
    nodes, files = graph.closure(one)
    patches = [patch for node in nodes for patch in patches_of(node)]
    changing = any(map(_changes_all, nodes)) or any(map(_meets_templates, patches))
    touching = [patch for patch in patches if _touches(patch)]
    special = {patch.place for patch in patches} | {path for node in nodes for path in generator_files(node)}
    for path in files:
        if path in special or changing or any(_meets(patch, path) for patch in touching):
            yield path


def _changes_all(node: Kustomization) -> bool:
    """Whether a kustomization may change requests, or the names and namespaces of templates, in all that it takes in.

    Charts and generators beside them only add objects.
    """
    replaced = next(replaced_fields(node), None) or any(map(_REPLACED.search, _replaced(node.data.get("replacements"))))
    return bool(node.renames or node.data.get("transformers") or replaced)


def _replaced(value: Any, key: str = "") -> Iterator[str]:
    """Yield the fields that replacements write; something that matters where they stand in a file of their own."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from ("spec",) if name == "path" else _replaced(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _replaced(inner, key)
    elif isinstance(value, str) and key == "fieldPaths":
        yield value


def _touches(patch: Patch) -> bool:
    text = patch.text
    return may_hold_legacy(text) or bool(_TOUCHES.search(text)) or any(map(_is_outer, _operation_paths(patch)))


def _operation_paths(patch: Patch) -> Iterator[str]:
    """Yield the paths of the operations of a patch that is a list of them."""
    documents = patch.documents()
    for operation in documents[0] if is_json6902(documents) else ():
        if isinstance(operation, dict):
            yield from (str(operation.get(key)) for key in ("path", "from") if key in operation)


def _is_outer(path: str) -> bool:
    last = path.rpartition("/")[2]
    return last in _OUTER or last.isdigit() or last == "-"


def _meets_templates(patch: Patch) -> bool:
    """Whether a patch is about the ResourceClaimTemplates that a conversion makes, whatever their names are."""
    target = patch.target
    template = {"kind": TEMPLATE, "metadata": {"name": ""}}
    if not target or not aims_at(patch, None, template, renamed=True):
        return False
    return target.get("kind") == TEMPLATE or not target.get("name") or bool(_PATTERN.search(str(target["name"])))


def _meets(patch: Patch, path: Path) -> bool:
    """Whether a patch may be about an object in the file `path`."""
    documents = patch.documents() or [None]
    return any(
        aims_at(patch, document, obj)
        for obj in objects(text_of(path))
        if isinstance(obj, dict)
        for document in documents
    )
