"""Components that nobody in the repository takes in: who does it elsewhere gets them over what would convert here."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.kustomize.files import RESOURCES, Kustomization
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.patches import Patch, aims_at, patches_of
from gpu2dra_migrate.kustomize.problem import Problem
from gpu2dra_migrate.kustomize.requests import request_pointers
from gpu2dra_migrate.manifest import describe, objects
from gpu2dra_migrate.search.discover import may_hold_legacy

if TYPE_CHECKING:
    from pathlib import Path


def held_by_strays(graph: Graph, chosen: Sequence[Kustomization]) -> dict[Path, Problem]:
    """Return, by their files, the kustomizations that stay since a component without a known user is about them.

    Converted, they would have claims and, where the component is added, a limit beside them.
    """
    found: dict[Path, Problem] = {}
    for component, patches in _strays(graph):
        around = _around(component, graph)
        for one in chosen:
            if one.component or one.file in found:
                continue
            near = one.folder.is_relative_to(around)
            if about := next((obj for obj in _asking(graph, one) if _is_about(patches, obj, near=near)), None):
                name = os.path.relpath(component.folder, one.folder)
                text = (
                    f"The component {name} patches the request of {describe(about)} where it is taken in, and no "
                    "kustomization here does that; take it in, or remove it."
                )
                found[one.file] = Problem("DRA437", text)
    return found


def _strays(graph: Graph) -> Iterator[tuple[Kustomization, list[Patch]]]:
    """Yield the components with patches of requests that nobody takes in, with these patches."""
    components = [one for one in graph.all if one.component and _names_legacy(one)]
    users = [one for one in graph.all if not one.component] if components else []
    used = {inner.folder for one in users for inner in graph.closure(one)[0]}
    for one in components:
        patches = [patch for patch in patches_of(one) if any(request_pointers(patch.documents()))]
        if one.folder not in used and patches:
            yield one, patches


def _names_legacy(one: Kustomization) -> bool:
    """Whether a patch of a kustomization may name a legacy resource."""
    return any(may_hold_legacy(patch.text) for patch in patches_of(one))


def _around(component: Kustomization, graph: Graph) -> Path:
    """Return the nearest folder around a component that holds a kustomization: what it is meant for."""
    folders = [one.folder for one in graph.all if not one.component]
    parents = component.folder.parents
    return next((up for up in parents if any(folder.is_relative_to(up) for folder in folders)), parents[-1])


def _asking(graph: Graph, one: Kustomization) -> Iterator[dict[str, object]]:
    """Yield the objects with a request among the resources of a kustomization."""
    for path in dict.fromkeys(path for node in graph.closure(one)[0] for path in node.entries(*RESOURCES)):
        if path.is_file() and may_hold_legacy(text := text_of(path)):
            yield from (obj for obj in objects(text) if isinstance(obj, dict) and any(request_pointers([obj])))


def _is_about(patches: Sequence[Patch], obj: dict[str, object], *, near: bool) -> bool:
    """Whether a patch is about an object: by its name, and (`near`) also by its kind alone."""
    return any(
        aims_at(patch, document, obj) and (near or patch.target.get("name") or not patch.target)
        for patch in patches
        for document in patch.documents()
    )
