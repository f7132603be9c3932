"""Generated workloads in generated layouts: what the converter makes of the text is what the plan makes of the data."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import jsonpatch
import yaml12
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from gpu2dra import CODES, Object, Options, Severity, plan
from gpu2dra_migrate.manifest import CONVERSIONS, Conversion, convert
from gpu2dra_migrate.patch import copied, same
from gpu2dra_migrate.yaml_nodes import compose
from gpu2dra_migrate.yaml_values import to_data
from tests.property.strategies import workloads
from tests.unit.test_edit_properties import Writer

SLOW = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
KINDS_OF_TEXT = ("block", "block", "block", "json", "json-lines", "list", "json-list")
_LAYOUT_REFUSED = frozenset({"DRA505", "DRA506"})
"""Findings of a layout that is left alone: an anchor that others use, a form of key that cannot be edited."""
_REMOVED = ("nvidia.com/", "limits", "requests", "resources")


def written(random: Random, kind: str, objs: list[Object]) -> tuple[str, list[Any]]:
    """Return a text that holds `objs` and the documents that are in it."""
    listed = {"apiVersion": "v1", "kind": "List", "items": objs}
    if kind.startswith("json"):
        document = listed if kind == "json-list" else objs[0]
        indent = None if kind == "json-lines" else random.choice((None, 2, 4))
        separators = random.choice(((",", ":"), (", ", ": "), None))
        text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=random.random() < 0.5)
        return text + random.choice(("", "\n")), [document]
    documents: list[Any] = [listed] if kind == "list" else objs
    lines: list[str] = []
    for number, document in enumerate(documents):
        writer = Writer(random)
        if number or random.random() < 0.4:
            lines.append("---" + writer.comment())
        lines += [*writer.between(0), *writer.block(document, 0)]
        if random.random() < 0.1:
            lines.append("...")
    eol = random.choice(("\n", "\n", "\r\n"))
    text = eol.join("\n".join(lines).split("\n")) + random.choice((eol, eol, "", eol * 2))
    return random.choice(("", "", "\ufeff")) + text, documents


@st.composite
def texts(draw: st.DrawFn) -> tuple[str, list[Any]]:
    """Return a text and its documents."""
    number = draw(st.integers(1, 3))
    objs = [draw(workloads(unknown=draw(st.booleans())))[0] for _ in range(number)]
    text, documents = written(draw(st.randoms(use_true_random=False)), draw(st.sampled_from(KINDS_OF_TEXT)), objs)
    found = [to_data(document) for document in compose(text)]
    # Some texts of the unknown fields have no YAML that says the same (a lone carriage return in a block scalar).
    assume(len(found) == len(documents) and all(map(same, found, documents)))
    return text, documents


def refused(result: Conversion) -> bool:
    return any(item.finding.code in _LAYOUT_REFUSED or item.finding.severity is Severity.ERROR for item in result.findings)


def expected(documents: list[Any]) -> list[Any]:
    """Return the documents that must come out, judged by the jsonpatch package; templates that stand beside left out."""
    result: list[Any] = []
    for document in documents:
        planned = plan(document, Options())
        result += [*planned.templates, jsonpatch.apply_patch(copied(document), list(planned.operations))]
    return result


@SLOW
@given(texts())
def test_the_text_becomes_what_the_data_becomes(drawn: tuple[str, list[Any]]) -> None:
    text, documents = drawn
    result = convert(text, Options())
    planned = any(plan(document, Options()) for document in documents)
    if result.text is None:
        assert not planned or refused(result), [item.finding for item in result.findings]
        return
    assert planned
    if refused(result):
        return
    assert "DRA505" not in {item.finding.code for item in result.findings}
    wanted = expected(documents)
    beside = list(result.beside)
    if beside:
        wanted = [obj for obj in wanted if obj not in beside]
    for found in (
        [to_data(document) for document in compose(result.text)],
        [json.loads(json.dumps(item)) for item in yaml12.parse_yaml(result.text.removeprefix("\ufeff"), multi=True)],
    ):
        assert len(found) == len(wanted)
        assert all(map(same, found, wanted))


@SLOW
@given(texts())
def test_a_second_run_changes_nothing(drawn: tuple[str, list[Any]]) -> None:
    result = convert(drawn[0], Options())
    if result.text is not None:
        again = convert(result.text, Options())
        assert again.text is None or refused(result)
        left = {item.finding.code for item in again.findings} & CONVERSIONS
        assert not left or refused(result)


@SLOW
@given(texts())
def test_check_tells_what_convert_does(drawn: tuple[str, list[Any]]) -> None:
    text, _ = drawn
    checked, converted = convert(text, Options(), write=False), convert(text, Options())
    assert checked.text == converted.text
    assert checked.findings == converted.findings
    lines = text.split("\n")
    for item in converted.findings:
        assert 1 <= item.line <= len(lines)
        assert item.column >= 1
        assert item.finding.code in CODES


@SLOW
@given(texts())
def test_lines_that_need_not_change_stay(drawn: tuple[str, list[Any]]) -> None:
    """Without looking at the edits: the lines that go name a resource, and line ends, mark and last line stay."""
    text, _ = drawn
    result = convert(text, Options())
    if result.text is None:
        return
    after = result.text
    assert after.startswith("\ufeff") == text.startswith("\ufeff")
    assert after.endswith("\n") == text.endswith("\n")
    if "\r\n" in text:
        assert after.count("\n") == after.count("\r\n")
    else:
        assert "\r" not in after
    assert after.count("{{") == text.count("{{")
    # Comments on lines of their own are not in anybody's way.
    gone = [line for line in _lines(text) if line.lstrip().startswith("#")]
    kept = _lines(after)
    position = 0
    for line in gone:
        inner = line.strip()
        matches = [index for index in range(position, len(kept)) if kept[index].strip() == inner]
        if matches:
            position = matches[0] + 1


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")


@SLOW
@given(texts(), st.sampled_from(["", "# gpu2dra: ignore"]))
def test_a_text_without_a_request_is_never_touched(drawn: tuple[str, list[Any]], comment: str) -> None:
    text = drawn[0].replace("nvidia.com/", "amd.example/")
    assert convert(f"{text}", Options()) == Conversion() or comment is not None
    assert convert(text, Options()).text is None
