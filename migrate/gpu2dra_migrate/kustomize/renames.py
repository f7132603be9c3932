"""Templates of ours that were edited by hand get new names (rule R8): patches and replacements follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from gpu2dra import Context
from gpu2dra.templates import WORKLOAD_ANNOTATION
from gpu2dra_migrate.kustomize.changes import edits_between
from gpu2dra_migrate.kustomize.files import Kustomization
from gpu2dra_migrate.kustomize.patches import patches_of
from gpu2dra_migrate.kustomize.requests import request_pointers
from gpu2dra_migrate.kustomize.texts import with_documents, with_inline_patch
from gpu2dra_migrate.kustomize.work import Work
from gpu2dra_migrate.manifest import objects, with_neighbours

if TYPE_CHECKING:
    from pathlib import Path


def renames_in(paths: Iterable[Path], text_of: Callable[[Path], str]) -> dict[tuple[str, str], str]:
    """Return the new name per namespace and old name of the templates in these files."""
    context = Context()
    for path in paths:
        text = text_of(path)
        if WORKLOAD_ANNOTATION in text:
            context = with_neighbours(context, objects(text))
    return dict(context.renames)


def follow(node: Kustomization, work: Work, names: Mapping[str, str], may_change: Callable[[Path], bool]) -> None:
    """Let patches and replacements of `node` name templates as they are called now; raise FileError.

    A patch with a legacy request is left to what converts it.
    """
    for patch in patches_of(node):
        documents = patch.documents()
        new = [_renamed(document, names) for document in documents]
        if new == documents or not may_change(patch.place) or any(request_pointers(documents)):
            continue
        text = with_documents(patch.text, dict(enumerate(new)))
        if patch.file is None:
            text = with_inline_patch(work.tree.text(node.file), patch.pointer, text, node.number)
        work.tree.write(patch.place, text, node)
    data = work.data(node)
    if may_change(node.file) and (replacements := data.get("replacements")):
        work.edit(node, edits_between(replacements, _renamed(replacements, names), "/replacements"))


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _renamed(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_renamed(inner, names) for inner in value]
    return names.get(value, value) if isinstance(value, str) else value
