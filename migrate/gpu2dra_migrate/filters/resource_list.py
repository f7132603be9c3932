"""The items of a KRM function's ResourceList: converted in the text, so that comments survive, and told as results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from gpu2dra import CODES, Context, Finding, Object, Operation, Options, Plan
from gpu2dra.pointers import add, pointer, segments
from gpu2dra_migrate.errors import CannotEdit, ProofFailed
from gpu2dra_migrate.ignores import ignores, is_ignored
from gpu2dra_migrate.manifest import CONVERSIONS, Around, planned, unquoted, with_neighbours
from gpu2dra_migrate.text.edits import DocumentEdit, edit, locate
from gpu2dra_migrate.text.nodes import Document
from gpu2dra_migrate.text.patch import copied, patched
from gpu2dra_migrate.text.proof import prove

PATHS = ("internal.config.kubernetes.io/path", "config.kubernetes.io/path")
INDEXES = ("internal.config.kubernetes.io/index", "config.kubernetes.io/index")
"""Annotations by which an orchestrator knows the file of an item and its place there; the newer name comes first."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(slots=True)
class Converted:
    """The text of the ResourceList after the conversion, and its results: what was done and what is left."""

    text: str
    results: list[Object] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether a result is an error, by which a function has to fail."""
        return any(result["severity"] == "error" for result in self.results)


def convert_list(text: str, documents: list[Document], data: Object, options: Options) -> Converted:
    """Return the ResourceList in `text` converted; `data` is the data of its only document.

    Items that cannot be converted stay as they are, with a result.
    """
    items = data["items"]
    context = with_neighbours(Context(), items)
    lines = ignores(text)
    operations: list[Operation] = []
    results: list[Object] = []
    for index in reversed(range(len(items))):  # so that an insertion does not move what comes after it
        base = pointer("/items", index)
        made = _settled(planned(items[index], options, context, Around(lambda: items)), documents[0], base, lines)
        operations += [{**each, "path": base + each["path"]} for each in made.operations]
        operations += [add(base, _placed(each, items[index], made)) for each in reversed(made.templates)]
        results[:0] = [_result(each, items[index]) for each in made.findings]
    if not results:
        return Converted(text)
    known = data.get("results")
    if isinstance(known, list):
        operations += [add("/results/-", result) for result in results]
    else:
        operations.append(add("/results", results))
    return Converted(_edited(text, documents, data, operations), results)


def _settled(made: Plan, document: Document, base: str, lines: Mapping[int, frozenset[str]]) -> Plan:
    """Return the plan of an item without the findings that comments ignore; none of it goes on without one of those."""
    kept = [each for each in made.findings if not is_ignored(each.code, locate(document, base + each.path)[0], lines)]
    if any(each.code in CONVERSIONS for each in made.findings if each not in kept):
        return Plan(findings=tuple(each for each in kept if each.code not in CONVERSIONS and each.code[3] != "1"))
    return made._replace(findings=tuple(kept))


def _placed(template: Object, user: Object, made: Plan) -> Object:
    """Return a template with the path of its user, as the document before it; in a file of its own where it must be."""
    own = user.get("metadata", {}).get("annotations") or {}
    places = {name: own[name] for name in (*PATHS, *INDEXES) if isinstance(own.get(name), str)}
    if made.own_file:
        paths = {name: PurePosixPath(place) for name, place in places.items() if name in PATHS}
        places = {name: str(path.with_name(f"{path.stem}-gpu-template.yaml")) for name, path in paths.items()}
    metadata = template["metadata"]
    return {**template, "metadata": {**metadata, "annotations": {**metadata["annotations"], **places}}}


def _edited(text: str, documents: list[Document], data: Object, operations: Sequence[Operation]) -> str:
    """Return the text with the operations carried out; written anew, as JSON, where its layout does not allow it."""
    marked: list[Operation] = [
        {**each, "value": unquoted(each["value"])} if "value" in each else each for each in operations
    ]
    change = DocumentEdit(0, marked)
    try:
        new = edit(text, [change], documents)
        prove(text, new, [change], documents)
    except (CannotEdit, ProofFailed):
        return json.dumps(patched(copied(data), operations), indent=2, ensure_ascii=False) + "\n"
    return new


def _result(found: Finding, obj: Any) -> Object:
    """Return a finding as a result of the functions specification."""
    done = found.code in CONVERSIONS
    result: Object = {"message": found.message, "severity": "info" if done else str(found.severity)}
    obj = obj if isinstance(obj, dict) else {}
    metadata = obj.get("metadata") if isinstance(obj.get("metadata"), dict) else {}
    reference = {"apiVersion": obj.get("apiVersion"), "kind": obj.get("kind"), "name": metadata.get("name")}
    if all(isinstance(value, str) for value in reference.values()):
        if isinstance(namespace := metadata.get("namespace"), str):
            reference["namespace"] = namespace
        result["resourceRef"] = reference
        if path := json_path(found.path):
            result["field"] = {"path": path}
    if file := dict(_file(metadata.get("annotations"))):
        result["file"] = file
    result["tags"] = {"code": found.code, "name": CODES[found.code].name}
    return result


def _file(annotations: Any) -> Iterator[tuple[str, Any]]:
    """Yield path and index of an item's file, as far as its annotations say them."""
    known = annotations if isinstance(annotations, dict) else {}
    path = next((known[name] for name in PATHS if isinstance(known.get(name), str)), None)
    index = next((known[name] for name in INDEXES if isinstance(known.get(name), str)), "")
    if path is not None:
        yield "path", path
        if index.isdecimal():
            yield "index", int(index)


def json_path(place: str) -> str:
    """Return a JSON Pointer in the specification's form: `spec.containers[0].resources.limits["nvidia.com/gpu"]`."""
    result = ""
    for name in segments(place):
        if name.isdecimal():
            result += f"[{name}]"
        elif _PLAIN_NAME.fullmatch(name):
            result += f".{name}" if result else name
        else:
            result += f"[{json.dumps(name)}]"
    return result
