"""What keeps references right in a build: name references for renamed templates, and namespaces that are replaced."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from gpu2dra.model import Object, Operation
from gpu2dra.pointers import add, pointer, segments
from gpu2dra.templates import KIND
from gpu2dra_migrate.kustomize.square import claim_pointers

CONFIGURATION = "kustomizeconfig-resourceclaims.yaml"
"""The file that tells kustomize where the names of ResourceClaimTemplates are used; it has no rule of its own."""
_GROUP = "resource.k8s.io"

FieldSpec = tuple[str, str, str]
"""Group and kind of an object, and the path of the field in it, as kustomize writes one."""


def field_specs(objects: Iterable[Any]) -> Iterator[FieldSpec]:
    """Yield where the objects name ResourceClaimTemplates."""
    for obj in objects:
        if isinstance(obj, dict):
            group, slash, _ = str(obj.get("apiVersion")).rpartition("/")
            for path, _ in claim_pointers(obj):
                yield group if slash else "", str(obj.get("kind")), _path(path)


def _path(where: str) -> str:
    """Return a JSON Pointer as kustomize writes the path of a field: lists are passed through, `/` is escaped."""
    return "/".join(name.replace("/", "\\/") for name in segments(where) if not name.isdigit())


def configuration(specs: Iterable[FieldSpec]) -> Object:
    """Return the transformer configuration for these fields."""
    fields = []
    for group, kind, path in sorted(set(specs)):
        fields.append({"path": path, **({"group": group} if group else {}), "kind": kind})
    return {"nameReference": [{"kind": KIND, "group": _GROUP, "fieldSpecs": fields}]}


def specs_in(data: Object) -> Iterator[FieldSpec]:
    """Yield the fields of a configuration that `configuration` has made."""
    for row in data.get("nameReference") or ():
        for field in row.get("fieldSpecs") or ():
            yield str(field.get("group") or ""), str(field.get("kind")), str(field.get("path"))


def namespace_targets(replacements: Any, workload: Object, templates: Sequence[str]) -> list[Operation]:
    """Return what lets replacements that set the namespace of `workload` set that of its templates as well.

    `replacements` is the list of a kustomization; the operations are on the kustomization.
    """
    operations: list[Operation] = []
    for index, one in enumerate(replacements if isinstance(replacements, list) else ()):
        given = one.get("targets") if isinstance(one, dict) else None
        targets: list[Any] = given if isinstance(given, list) else []
        for target in targets:
            if not isinstance(target, dict) or not _sets_namespace(target, workload):
                continue
            for name in templates:
                entry = {**target, "select": {"kind": KIND, "name": name}, "fieldPaths": ["metadata.namespace"]}
                if entry not in targets:
                    operations.append(add(pointer("", "replacements", index, "targets", "-"), entry))
    return operations


def _sets_namespace(target: Object, workload: Object) -> bool:
    select = target.get("select")
    paths = target.get("fieldPaths")
    if not isinstance(select, dict) or not isinstance(paths, list) or "metadata.namespace" not in paths:
        return False
    name = str(workload.get("metadata", {}).get("name"))
    wanted = str(select.get("name") or "")
    return select.get("kind") in (None, workload.get("kind")) and wanted in name
