"""Edits of patches and kustomizations in their text: by span, proven, also inside the block scalar of a patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu2dra.model import Operation
from gpu2dra.pointers import append, segments, value_at
from gpu2dra_migrate.errors import LAYOUT, CannotEdit, ProofFailed
from gpu2dra_migrate.kustomize.changes import edits_between
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.text import source
from gpu2dra_migrate.text.edits import DocumentEdit, locate, splices_of
from gpu2dra_migrate.text.nodes import Mapping as MapNode
from gpu2dra_migrate.text.nodes import Node, Scalar, compose
from gpu2dra_migrate.text.nodes import Sequence as ListNode
from gpu2dra_migrate.text.patch import same
from gpu2dra_migrate.text.proof import prove
from gpu2dra_migrate.text.source import Source, Splice
from gpu2dra_migrate.text.values import key_names


def with_documents(text: str, wanted: Mapping[int, Any]) -> str:
    """Return `text` in which the documents of these numbers say what they should.

    Raises FileError where the layout does not allow it, or the proof fails.
    """
    documents = compose(text)
    have = objects(text)
    edits = [DocumentEdit(n, operations) for n, new in wanted.items() if (operations := edits_between(have[n], new))]
    return _edited(text, edits, documents, have) if edits else text


def with_operations(text: str, operations: Sequence[Operation], number: int | None = None) -> str:
    """Return `text` after `operations` on document `number`, or on its first map; raises FileError as above."""
    have = objects(text)
    if number is None:
        number = next((n for n, each in enumerate(have) if isinstance(each, dict)), None)
    if number is None:
        raise CannotEdit(LAYOUT, "there is no map to add to", 1, 1)
    return _edited(text, [DocumentEdit(number, operations)], compose(text), have)


def _edited(text: str, edits: list[DocumentEdit], documents: list[Any], data: list[Any]) -> str:
    splices = splices_of(text, edits, documents)
    new = source.apply(text, splices)
    prove(text, new, edits, documents, splices, data)
    return new


def listed(data: Any, field: str, entry: Any) -> list[Operation]:
    """Return the operations that add `entry` to a list of a kustomization, which is made where it is absent."""
    present = data.get(field)
    return append("", field, present, [] if isinstance(present, list) and entry in present else [entry])


def with_inline_patch(text: str, pointer: str, patch: str, number: int | None = None) -> str:
    """Return the text of a kustomization in which the string at `pointer` (of document `number`) is `patch`.

    A block scalar keeps its header and its indent. Raises CannotEdit for other strings that hold several lines, and
    ProofFailed where the result does not say what it should.
    """
    for index, document in enumerate(compose(text)):
        node = _scalar_at(document.root, segments(pointer)) if number in (None, index) else None
        if node is not None:
            break
    else:
        raise CannotEdit(LAYOUT, "the patch is not found", 1, 1)
    new = _block(text, node, patch) if node.style == "|" else _quoted(text, node, patch, pointer, number)
    before, after = objects(text), objects(new)
    for index, (one, other) in enumerate(zip(before, after, strict=True)):
        if number in (None, index) and _scalar_data(one, pointer) is not None:
            given = str(_scalar_data(other, pointer))
            if given.rstrip("\n") != patch.rstrip("\n"):
                raise ProofFailed("data", f"the patch at {pointer} would not be what it should")
            _put(other, pointer, _scalar_data(one, pointer))
        if not same(one, other):
            raise ProofFailed("data", f"more than the patch at {pointer} would change")
    return new


def _quoted(text: str, node: Scalar, patch: str, pointer: str, number: int | None) -> str:
    if "\n" in patch.rstrip("\n") or node.style == ">":
        raise CannotEdit(
            LAYOUT, "a patch of several lines that is no literal block (|)", node.line + 1, node.column + 1
        )
    return with_operations(text, [{"op": "replace", "path": pointer, "value": patch}], number)


def _block(text: str, node: Scalar, patch: str) -> str:
    """Replace the lines of a literal block scalar, each with the indent that the old ones have."""
    seen = Source(text)
    top = seen.next_line(seen.content_start(node))
    end = node.end
    if top >= end:
        raise CannotEdit(LAYOUT, "an empty patch", node.line + 1, node.column + 1)
    header = text[seen.content_start(node) : top]
    if any(character.isdigit() for character in header.partition("#")[0]):
        raise CannotEdit(LAYOUT, "a block with an indentation indicator", node.line + 1, node.column + 1)
    indent = min(len(line) - len(line.lstrip(" ")) for line in text[top:end].split("\n") if line.strip(" \r"))
    eol = seen.eol(top)
    ends_line = text[end - 1 : end] == "\n"
    lines = patch.rstrip("\n").split("\n")
    new = eol.join(" " * indent + line if line.strip() else "" for line in lines) + eol * ends_line
    return source.apply(text, [Splice(top, end, new)])


def _scalar_at(node: Any, names: list[str]) -> Scalar | None:
    found: Node | None = node
    for name in names:
        if isinstance(found, MapNode):
            keys = key_names(found)
            if name not in keys:
                return None
            found = found.children[2 * keys.index(name) + 1]
        elif isinstance(found, ListNode) and name.isdigit() and int(name) < len(found.children):
            found = found.children[int(name)]
        else:
            return None
    return found if isinstance(found, Scalar) else None


def _scalar_data(data: Any, pointer: str) -> str | None:
    found = value_at(data, pointer)
    return found if isinstance(found, str) else None


def _put(data: Any, pointer: str, value: Any) -> None:
    names = segments(pointer)
    for name in names[:-1]:
        data = data[name] if isinstance(data, dict) else data[int(name)]
    if isinstance(data, dict):
        data[names[-1]] = value
    else:
        data[int(names[-1])] = value


def place_in(text: str, pointer: str, inner: str, number: int, where: str, outer: int | None = None) -> tuple[int, int]:
    """Return line and column of `where` in document `number` of a patch.

    The patch is a file, or the string at `pointer` (of document `outer`) of `text`.
    """
    try:
        patch = compose(inner)
        line, column = locate(patch[number], where)
        if not pointer:
            return line, column
        documents = [each for index, each in enumerate(compose(text)) if outer in (None, index)]
        node = next(filter(None, (_scalar_at(document.root, segments(pointer)) for document in documents)), None)
    except (IndexError, ValueError):
        return 1, 1
    if node is None:
        return 1, 1
    return (node.line + 1 + line, column) if node.style == "|" else (node.line + 1, node.column + 1)
