"""The proof has to fail: each check is shown a text that only it can reject."""

from __future__ import annotations

import pytest

from gpu2dra_migrate.errors import ProofFailed
from gpu2dra_migrate.text.edits import DocumentEdit, edit, splices_of
from gpu2dra_migrate.text.proof import prove
from gpu2dra_migrate.text.source import Splice

TEXT = "a: 1  # one\nb:\n  c: 2\n"
REMOVAL = [DocumentEdit(0, [{"op": "remove", "path": "/b/c"}, {"op": "add", "path": "/b/d", "value": "x"}])]


def test_a_right_edit_passes_and_its_data_comes_back() -> None:
    assert prove(TEXT, edit(TEXT, REMOVAL), REMOVAL) == [{"a": 1, "b": {"d": "x"}}]


@pytest.mark.parametrize(
    ("after", "which"),
    [
        ("a: 1  # ONE\nb:\n  d: x\n", "bytes"),
        ("a: 1  # one\nb:\n  d: y\n", "bytes"),
        ("a: 1  # one\nb:\n  d: x\n# more\n", "bytes"),
    ],
)
def test_a_changed_byte_is_found(after: str, which: str) -> None:
    with pytest.raises(ProofFailed) as caught:
        prove(TEXT, after, REMOVAL)
    assert caught.value.which == which


@pytest.mark.parametrize(
    ("text", "new", "which", "detail"),
    [
        (TEXT, "d: [", "parse", "expected"),
        (TEXT, "d: y", "data", "/b/d"),
        (TEXT, "d: x\n---\nmore: 1", "data", "2 documents where 1 are due"),
        (TEXT, "d: x\n  1: x", "data", "document 1 differs at /b/1"),
    ],
)
def test_wrong_data_is_found(text: str, new: str, which: str, detail: str) -> None:
    start = text.index("c: 2")
    splices = [Splice(start, start + 4, new)]
    with pytest.raises(ProofFailed) as caught:
        prove(text, text[:start] + new + text[start + 4 :], REMOVAL, splices=splices)
    assert caught.value.which == which
    assert detail in caught.value.detail


def test_the_second_parser_has_a_say() -> None:
    """`!x 1` and `"1"` are one value to our composer; the other parser keeps the tag and sees a difference."""
    edits = [DocumentEdit(0, [{"op": "replace", "path": "/a", "value": "1"}])]
    splices = [Splice(3, 4, "!x 1")]
    with pytest.raises(ProofFailed) as caught:
        prove("a: 2\n", "a: !x 1\n", edits, splices=splices)
    assert caught.value.which == "second parser"


@pytest.mark.parametrize(
    "text",
    ["a: [\n1\n]\nb: 1\n", 'a: "x\ny"\nb: 1\n', "b: 1\na: |\n  x"],
)
def test_texts_that_the_first_judge_refuses_have_another(text: str) -> None:
    edits = [DocumentEdit(0, [{"op": "remove", "path": "/b"}, {"op": "add", "path": "/c", "value": [1]}])]
    after = edit(text, edits)
    prove(text, after, edits)
    with pytest.raises(ProofFailed):
        prove(text, after.replace("- 1", "- 2"), edits, splices=splices_of(text, edits))


def test_a_placeholder_count_is_a_text() -> None:
    edits = [DocumentEdit(0, [{"op": "replace", "path": "/a", "value": "${N}"}])]
    assert prove("a: 1\n", "a: ${N}\n", edits) == [{"a": "${N}"}]


@pytest.mark.parametrize("quirk", ["", "q: [\n1\n]\n"])
def test_aliases_are_no_shared_objects_to_any_judge(quirk: str) -> None:
    edits = [DocumentEdit(0, [{"op": "remove", "path": "/a/k"}])]
    text = f"{quirk}a: &x\n  k: 1\n  l: 2\nb: *x\n"
    prove(text, edit(text, edits), edits)
