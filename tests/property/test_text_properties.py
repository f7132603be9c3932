"""Generated workloads in generated layouts: what the converter makes of the text is what the plan makes of the data."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any

import jsonpatch
import yaml12
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from gpu2dra import CODES, Object, Options, plan
from gpu2dra_migrate.errors import ALIAS, LAYOUT, YamlSyntaxError
from gpu2dra_migrate.manifest import CONVERSIONS, Conversion, convert
from gpu2dra_migrate.text import proof
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.patch import copied, same
from gpu2dra_migrate.text.values import to_data
from property.strategies import workloads
from property.test_edit_properties import Writer

SLOW = settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    phases=[
        Phase.explicit,
        Phase.reuse,
        Phase.generate,
    ],  # a layout drawn from a seed does not get simpler by shrinking
)
KINDS_OF_TEXT = ("block", "block", "block", "json", "json-lines", "list", "json-list")
_LAYOUT_REFUSED = frozenset({LAYOUT, ALIAS})
"""Findings of a layout that is left alone: an anchor that others use, a form of key that cannot be edited."""
_COMMENTS = frozenset({"# about the next", "# x: 1", "# deeper"})
"""The comments that Writer puts on lines of their own."""


def written(random: Random, kind: str, objs: list[Object]) -> tuple[str, list[Any]]:
    """Return a text that holds `objs` and the documents that are in it."""
    listed = {"apiVersion": "v1", "kind": "List", "items": objs}
    if kind.startswith("json"):
        document = listed if kind == "json-list" else objs[0]
        indent = None if kind == "json-lines" else random.choice((None, 2, 4))
        separators = random.choice(((",", ":"), (", ", ": "), None))
        text = json.dumps(document, indent=indent, separators=separators, ensure_ascii=False)
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
    random = Random(draw(st.integers(0, 1 << 32)))  # noqa: S311 - a layout is no secret
    text, documents = written(random, draw(st.sampled_from(KINDS_OF_TEXT)), objs)
    # Some texts of the unknown fields have no YAML in this layout that says the same (control characters).
    try:
        found = [to_data(document) for document in compose(text)]
    except YamlSyntaxError:
        found = []
    assume(len(found) == len(documents) and all(map(same, found, documents)))
    return text, documents


def refused(result: Conversion) -> bool:
    """Whether the layout of a document forbade its conversion. A proof that fails (DRA505) is never fine."""
    codes = {item.finding.code for item in result.findings}
    assert not codes & {"DRA505", "DRA599"}, [item.finding for item in result.findings]
    return bool(codes & _LAYOUT_REFUSED)


def expected(documents: list[Any]) -> list[Any]:
    """Return the documents that must come out, as the jsonpatch package makes them."""
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
    wanted = expected(documents)
    beside = list(result.beside)
    if beside:
        wanted = [obj for obj in wanted if obj not in beside]
    for found in ([to_data(document) for document in compose(result.text)], *second_opinion(text, result.text)):
        assert len(found) == len(wanted)
        assert all(map(same, found, wanted))


def second_opinion(before: str, after: str) -> list[list[Any]]:
    """Return what another parser reads in `after`; nothing where it refuses the layout of `before`.

    A layout that it takes in `before` it may still refuse in `after` (a flow item at the column of its key); then the
    parser that the proof falls back to has to read it.
    """
    try:
        yaml12.parse_yaml(before.removeprefix("\ufeff"), multi=True)
    except ValueError:
        return []
    try:
        return [yaml12.parse_yaml(after.removeprefix("\ufeff"), multi=True)]
    except ValueError:
        return [proof._ruamel(after)]


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
    counted, left = Counter(map(str.strip, _lines(text))), Counter(map(str.strip, _lines(after)))
    comments = {line: number for line, number in counted.items() if line in _COMMENTS}
    gone = sum(max(number - left[line], 0) for line, number in comments.items())
    # A comment goes only with the map that is emptied around it: at most a few for each request.
    assert gone <= 8 * result.requests


def _lines(text: str) -> list[str]:
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")


@SLOW
@given(texts())
def test_a_text_without_a_request_is_never_touched(drawn: tuple[str, list[Any]]) -> None:
    assert convert(drawn[0].replace("nvidia.com/", "amd.example/"), Options()) == Conversion()
