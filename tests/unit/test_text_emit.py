"""What is written is read back as what it was, by YAML 1.1 and by YAML 1.2, in block and in flow style."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
import yaml12
from hypothesis import example, given
from hypothesis import strategies as st

from gpu2dra_migrate.text.emit import (
    FlowStyle,
    Layout,
    Verbatim,
    block_value,
    documents_text,
    flow_value,
    plain_is_safe,
    scalar,
)
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.patch import same
from gpu2dra_migrate.text.values import to_data

TEXTS = (
    st.text()
    | st.from_regex(r"[-+.0-9:_eExob]{1,8}", fullmatch=True)
    | st.from_regex(r"[-?:,\[\]{}#&*!|>'\"%@` =~a\n]{1,5}", fullmatch=True)
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | TEXTS,  # yaml12 reads larger ones as floats
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
LAYOUTS = st.builds(
    Layout, step=st.integers(1, 4), offset=st.sampled_from((0, 2)), dash=st.integers(2, 4), literals=st.booleans()
)
STYLES = st.builds(
    FlowStyle,
    quoted=st.booleans(),
    colon=st.sampled_from((" ", "")),
    comma=st.sampled_from((" ", "")),
    step=st.sampled_from(("", "  ", "\t")),
)


def read(text: str) -> list[Any]:
    """Return what our composer, an independent parser of YAML 1.2 and one of YAML 1.1 make of a text."""
    return [to_data(compose(text)[0]), yaml12.parse_yaml(text), yaml.load(text, yaml.CSafeLoader)]


@given(DATA, LAYOUTS)
@example({"a": "two\n\nlines\n", "b": ["x\ny", "\nz", "a\n\n", " a\nb", "a \nb"]}, Layout())
def test_block_style_is_read_back(value: Any, layout: Layout) -> None:
    text = "".join(f"{line}\n" for line in block_value({"key": value}, layout, 0))
    for found in read(text):
        assert same(found, {"key": value}), text


@given(DATA, STYLES)
def test_flow_style_is_read_back(value: Any, style: FlowStyle) -> None:
    text = f"key: {flow_value(value, style, '  ')}\n"
    for found in read(text):
        assert same(found, {"key": value}), text


@pytest.mark.parametrize(
    ("value", "block", "flow"),
    [
        ("main", "main", "main"),
        ("gpu.nvidia.com", "gpu.nvidia.com", "gpu.nvidia.com"),
        ("1g.5gb", "1g.5gb", "1g.5gb"),
        ("a, b", "a, b", '"a, b"'),
        ("a[0]", "a[0]", '"a[0]"'),
        ("1", '"1"', '"1"'),
        ("yes", '"yes"', '"yes"'),
        ("", '""', '""'),
        ("1e3", '"1e3"', '"1e3"'),
        ("1:30", '"1:30"', '"1:30"'),
        ("2001-01-01", '"2001-01-01"', '"2001-01-01"'),
        ("8Gi", "8Gi", "8Gi"),
        ("a: b", '"a: b"', '"a: b"'),
        ("a #b", '"a #b"', '"a #b"'),
        ("--flag", '"--flag"', '"--flag"'),
        ("-x", "-x", "-x"),
        ("'a' in b", "\"'a' in b\"", "\"'a' in b\""),
        ("x == 'a'", "x == 'a'", "x == 'a'"),
        ("é😀", "é😀", "é😀"),
        ("\x7f", '"\\u007f"', '"\\u007f"'),
        (True, "true", "true"),
        (None, "null", "null"),
        (1.5, "1.5", "1.5"),
        (float("inf"), ".inf", ".inf"),
        (-3, "-3", "-3"),
    ],
)
def test_scalars(value: Any, block: str, flow: str) -> None:
    assert (scalar(value, flow=False), scalar(value, flow=True)) == (block, flow)


@pytest.mark.parametrize(
    "word",
    [
        "y",
        "N",
        "Yes",
        "NO",
        "on",
        "Off",
        "null",
        "~",
        "True",
        ".NaN",
        ".inf",
        "=",
        "<<",
        "0x1",
        "0o7",
        "0b1",
        "1_0",
        "12e03",
    ],
)
def test_words_of_yaml_1_1_and_1_2_are_quoted(word: str) -> None:
    assert not plain_is_safe(word, flow=False)


def test_literal_text_and_nested_values() -> None:
    value = {"a": {"b": [{"c": 1, "d": []}, []]}, "t": "one\ntwo\n", "v": Verbatim("${N}"), "e": {}}
    assert block_value(value, Layout(step=4, offset=2, dash=4), 2) == [
        "  a:",
        "      b:",
        "        -   c: 1",
        "            d: []",
        "        -   []",
        "  t: |",
        "      one",
        "      two",
        "  v: ${N}",
        "  e: {}",
    ]


def test_a_file_of_documents() -> None:
    assert documents_text([{"a": 1}, {"b": [2]}]) == "a: 1\n---\nb:\n- 2\n"
