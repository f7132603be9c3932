"""The proof of an edit: nobody has to trust the editor, since two parsers judge what it wrote."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Items
from typing import Any

import yaml12
from ruamel.yaml import YAML
from ruamel.yaml.error import ReusedAnchorWarning, YAMLError

from gpu2dra_migrate.errors import ProofFailed, YamlSyntaxError
from gpu2dra_migrate.text.edits import DocumentEdit, splices_of
from gpu2dra_migrate.text.nodes import BOM, Document, compose, last_text
from gpu2dra_migrate.text.patch import BadOperation, copied, patched, same
from gpu2dra_migrate.text.source import Splice
from gpu2dra_migrate.text.values import to_data


def prove(
    before: str,
    after: str,
    edits: Iterable[DocumentEdit],
    documents: list[Document] | None = None,
    splices: list[Splice] | None = None,
    data: list[Any] | None = None,
) -> list[Any]:
    """Return the data of `after`; raise ProofFailed unless `after` is `before` with exactly these edits.

    The checks: bytes outside the splices are those of `before`; `after` is YAML; its data, as our composer reads it
    and as an independent parser reads it, are those of `before` with the operations applied and the new documents in
    their place. `documents`, `data` and `splices` are `compose(before)`, its data and `splices_of(...)`, if the caller
    has them.
    """
    edits = list(edits)
    documents = compose(before) if documents is None else documents
    _check_bytes(before, after, splices_of(before, edits, documents) if splices is None else splices)
    try:
        found = [to_data(document) for document in compose(after)]
    except YamlSyntaxError as error:
        raise ProofFailed("parse", str(error)) from None
    expected = _expected([to_data(document) for document in documents] if data is None else data, edits)
    _compare("data", found, expected)
    # To a text without a last line break that ends in a block scalar yaml12 adds one, and kubectl does not.
    open_end = not before.endswith("\n") and documents and last_text(documents[-1].root)
    _judge(before, after, edits, expected, (_ruamel,) if open_end else (_yaml12, _ruamel))
    return found


def _check_bytes(before: str, after: str, splices: list[Splice]) -> None:
    """Walk both texts along the splices: what lies between them must be equal, and what they put in must be there."""
    old = new = 0
    for splice in splices:
        kept = splice.start - old
        if kept < 0 or before[old : splice.start] != after[new : new + kept]:
            raise ProofFailed("bytes", f"the text before offset {splice.start} is not the original")
        new += kept
        if after[new : new + len(splice.text)] != splice.text:
            raise ProofFailed("bytes", f"the new text at offset {new} is not the one recorded")
        new += len(splice.text)
        old = splice.end
    if before[old:] != after[new:]:
        raise ProofFailed("bytes", "the text behind the last edit is not the original")


def _expected(data: list[Any], edits: list[DocumentEdit]) -> list[Any]:
    """Return the documents as they must be; `data`, what they are before, stays as it is."""
    data = data.copy()
    new: dict[int, list[Any]] = {}
    for edit in edits:
        data[edit.index] = patched(copied(data[edit.index]), edit.operations)
        new.setdefault(edit.index, []).extend(edit.before)
    return [item for index, document in enumerate(data) for item in (*new.get(index, ()), document)]


def _judge(
    before: str, after: str, edits: list[DocumentEdit], expected: list[Any], parsers: Items[Callable[[str], list[Any]]]
) -> None:
    """Raise ProofFailed unless the first of `parsers` that reads the texts finds in `after` what must be there.

    That is `expected`; or, as these go by YAML 1.2 and kubectl by 1.1, what the parser itself reads in `before` with
    the operations applied. yaml12 (in Rust) refuses some texts that libyaml and kubectl take, for instance flow items
    at the column of their key; ruamel.yaml (in Python) is slow.
    """
    problem: Exception | None = None
    for parse in parsers:
        try:
            found = parse(after)
            if same(found, expected):
                return
            original = parse(before)
        except (YAMLError, ValueError) as error:
            problem = error
            continue
        if any(edit.index >= len(original) for edit in edits):
            raise ProofFailed("second parser", f"it sees {len(original)} documents in the original")
        try:
            expected = _expected(original, edits)
        except BadOperation as error:
            raise ProofFailed("second parser", f"it reads the original differently: {error}") from None
        _compare("second parser", found, expected)
        return
    raise ProofFailed("second parser", f"no second parser reads the texts: {problem}")


def _yaml12(text: str) -> list[Any]:
    documents: list[Any] = yaml12.parse_yaml(text.removeprefix(BOM), multi=True)
    return documents


def _ruamel(text: str) -> list[Any]:
    parser = YAML(typ="safe", pure=True)
    parser.allow_duplicate_keys = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReusedAnchorWarning)
        return [copied(document) for document in parser.load_all(text.removeprefix(BOM))]  # aliases are shared objects


def _compare(which: str, found: list[Any], expected: list[Any]) -> None:
    if len(found) != len(expected):
        raise ProofFailed(which, f"{len(found)} documents where {len(expected)} are due")
    for number, (one, other) in enumerate(zip(found, expected, strict=True), 1):
        if not same(one, other):
            raise ProofFailed(which, f"document {number} differs at {_difference(one, other) or '/'}")


def _difference(found: Any, expected: Any) -> str:
    """Return a JSON pointer to the first difference."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for key in (*found, *expected):
            if key not in found or key not in expected or not same(found[key], expected[key]):
                token = str(key).replace("~", "~0").replace("/", "~1")
                return f"/{token}" + _difference(found.get(key), expected.get(key))
    if isinstance(found, list) and isinstance(expected, list):
        for index, (one, other) in enumerate(zip(found, expected, strict=False)):
            if not same(one, other):
                return f"/{index}" + _difference(one, other)
    return ""
