"""The conversion of one text: what is converted, what is left and why, and that bad input is told, never raised."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu2dra import Options
from gpu2dra.codes import finding
from gpu2dra_migrate import manifest
from gpu2dra_migrate.errors import CannotEdit, ProofFailed
from gpu2dra_migrate.manifest import Conversion, convert, objects
from gpu2dra_migrate.text import edits, proof

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  containers:
  - name: a
    resources:
      limits:
        nvidia.com/gpu: 1
"""
TWO = (
    POD
    + """\
  - name: b
    resources:
      limits:
        nvidia.com/gpu: 1
"""
)
GENERATED = POD.replace("name: one", "generateName: one-")
JSON = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {"containers": [{"name": "a", '
    '"resources": {"limits": {"nvidia.com/gpu": 1}}}]}}\n'
)


def run(text: str, **more: Any) -> Conversion:
    return convert(text, Options(), **more)


def codes(conversion: Conversion) -> list[tuple[str, int, int]]:
    return [(item.finding.code, item.line, item.column) for item in conversion.findings]


def test_a_converted_object() -> None:
    result = run(POD)
    assert codes(result) == [("DRA103", 2, 1), ("DRA001", 10, 9)]
    assert (result.objects, result.requests, result.ignored, result.beside) == (1, 1, 0, [])
    assert result.text is not None
    template, pod = objects(result.text)
    assert pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]
    again = run(result.text)
    assert (again.text, again.findings) == (None, [])


def test_check_tries_the_edit_and_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proof, "prove", lambda *_: pytest.fail("proven"))
    assert run(POD, write=False).text == convert_text(POD, monkeypatch)


def convert_text(text: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
    monkeypatch.undo()
    return run(text).text


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: [\n", "DRA501", (2, 1)),
        ("nvidia.com/gpu: 1\n\tb: 2\n", "DRA501", (2, 1)),
        ("a: 1\n{{- if .Values.gpu }}\nnvidia.com/gpu: 1\n{{- end }}\n", "DRA509", (3, 1)),
        ("a: *unknown\n", "DRA501", (1, 4)),
        ("a: !!int x\nnvidia.com/gpu: 1\n", "DRA501", None),
        ("[" * 1000, "DRA501", None),
    ],
)
def test_what_does_not_parse(text: str, code: str, place: tuple[int, int] | None) -> None:
    result = run(text)
    assert [item.finding.code for item in result.findings] == [code]
    assert result.text is None
    if place:
        assert (result.findings[0].line, result.findings[0].column) == place


@pytest.mark.parametrize("text", ["", "\n", "---\n", "# nothing\n", "\ufeff", "1\n", "- 1\n", "null\n", "a: 1\n", "{}"])
def test_what_holds_no_object(text: str) -> None:
    assert run(text) == Conversion()


@pytest.mark.parametrize("broken", [7, [], {}, {"a": 1}, "x", None, True])
@pytest.mark.parametrize(
    "where", ["metadata", "spec", "spec.containers", "spec.containers.0", "kind", "spec.containers.0.resources"]
)
def test_wrong_types_are_no_crash(where: str, broken: object) -> None:
    (pod,) = objects(POD)
    *path, last = [int(key) if key.isdigit() else key for key in where.split(".")]
    place: Any = pod
    for key in path:
        place = place[key]
    place[last] = broken
    result = run(json.dumps(pod) + "\n")
    assert all(item.line >= 1 for item in result.findings)


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_an_ignored_request(eol: str) -> None:
    text = POD.replace("gpu: 1", "gpu: 1 # gpu2dra: ignore[DRA001] not yet").replace("\n", eol)
    result = run(text)
    assert result.text is None
    assert (codes(result), result.ignored) == ([], 1)


def test_objects_convert_as_a_whole_or_not_at_all() -> None:
    head, _, tail = TWO.rpartition("gpu: 1")
    result = run(f"{head}gpu: 1  # gpu2dra: ignore[DRA001] the other card{tail}")
    assert result.text is None
    assert (codes(result), result.ignored) == ([("DRA207", 10, 9)], 1)


def test_other_documents_of_the_file_go_on() -> None:
    ignored = POD.replace("gpu: 1", "gpu: 1 # gpu2dra: ignore").replace("name: one", "name: two")
    result = run(f"{ignored}---\n{POD}")
    assert result.text is not None
    assert result.text.startswith(ignored)
    assert (result.objects, result.ignored) == (1, 1)


def test_another_code_is_not_ignored() -> None:
    result = run(POD.replace("gpu: 1", "gpu: 1 # gpu2dra: ignore[DRA103]"))
    assert result.text is not None
    assert result.ignored == 0  # DRA103 stands in the line of `kind`


def test_an_ignored_note_changes_nothing_else() -> None:
    result = run(POD.replace("kind: Pod", "kind: Pod # gpu2dra: ignore[DRA103] never runs"))
    assert result.text is not None
    assert ([code for code, *_ in codes(result)], result.ignored) == (["DRA001"], 1)


def test_a_forbidden_object_is_left_and_the_reason_told() -> None:
    asked: list[tuple[str, str]] = []

    def reason(kind: str, name: str) -> Any:
        asked.append((kind, name))
        return finding("DRA410", "", "because") if name == "one" else None

    two = POD.replace("name: one", "name: two")
    result = run(f"{POD}---\n{two}---\napiVersion: v1\nkind: ConfigMap\n", reason=reason)
    assert asked == [("Pod", "one"), ("Pod", "two")]
    assert codes(result) == [("DRA410", 10, 9), ("DRA103", 13, 1), ("DRA001", 21, 9)]
    assert result.text is not None
    assert result.text.startswith(POD)


def test_tools_that_prune_are_asked_for_only_where_something_converts() -> None:
    assert run("apiVersion: v1\nkind: Pod\n", keep=lambda: pytest.fail("asked")).text is None


@pytest.mark.parametrize(
    ("text", "code"), [(JSON, "DRA105"), (GENERATED, "DRA105"), ("%YAML 1.1\n---\n" + POD, "DRA105")]
)
def test_templates_that_stand_beside(text: str, code: str) -> None:
    result = run(text)
    assert result.text is not None
    assert code in [item.finding.code for item in result.findings]
    assert [template["kind"] for template in result.beside] == ["ResourceClaimTemplate"]
    assert "ResourceClaimTemplate" not in [obj["kind"] for obj in objects(result.text)]


@pytest.mark.parametrize(
    "problem", [ProofFailed("bytes", "told"), CannotEdit("DRA506", "the reason", 10, 9)], ids=["proof", "edit"]
)
def test_an_edit_that_fails_is_told_in_place_of_the_conversion(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail(*_: object) -> None:
        raise problem

    monkeypatch.setattr(proof, "prove", fail)
    result = run(POD)
    assert result.text is None
    assert result.objects == 0
    (only,) = result.findings
    assert only.finding.code == ("DRA505" if isinstance(problem, ProofFailed) else "DRA506")
    assert only.finding.message[0].isupper()
    assert only.finding.message.endswith(".")


def test_one_layout_that_cannot_be_edited_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    real = edits.splices_of

    def refuse(text: str, changes: Any, documents: Any) -> Any:
        if any(change.index == 0 for change in changes):
            raise CannotEdit("DRA507", "a merge key", 10, 9)
        return real(text, changes, documents)

    monkeypatch.setattr(manifest, "splices_of", refuse)
    result = run(f"{POD}---\n{POD.replace('name: one', 'name: two')}")
    assert codes(result) == [("DRA507", 10, 9), ("DRA103", 13, 1), ("DRA001", 21, 9)]
    assert result.text is not None
    assert result.text.startswith(POD)
    assert result.objects == 1


def test_a_result_that_would_change_again_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    real = proof.prove
    monkeypatch.setattr(proof, "prove", lambda *args: [objects(POD)[0], *real(*args)[1:]])
    result = run(POD)
    assert [item.finding.code for item in result.findings] == ["DRA505"]
    assert "second run" in result.findings[0].finding.message


@pytest.mark.parametrize(
    ("count", "converted"), [("${GPUS}", True), ("$GPUS", True), ('"${GPUS}"', True), ("'{{ gpus }}'", False)]
)
def test_placeholders(count: str, converted: bool) -> None:
    result = run(POD.replace("gpu: 1", f"gpu: {count}"))
    assert (result.text is not None) is converted
    if result.text is not None:
        assert f"count: {count.strip(chr(34))}\n" in result.text
