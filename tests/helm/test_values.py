"""The switch in values.yaml and in a schema: one block more, every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.helm.values import switch, with_schema, with_switch
from gpu2dra_migrate.manifest import objects

SWITCH = switch("auto", "1.34+")
BLOCK = """\
# Dynamic Resource Allocation: what workloads ask of nvidia.com/gpu and MIG profiles becomes ResourceClaims.
dra:
  # auto (where the server is Kubernetes 1.34 or later), true or false
  enabled: auto
  # the DeviceClass that stands for nvidia.com/gpu
  deviceClassName: gpu.nvidia.com
  # the oldest Kubernetes to work with: "1.34+", "1.33" or "1.32"
  target: 1.34+
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", BLOCK, id="empty"),
        pytest.param("# nothing\n", f"# nothing\n\n{BLOCK}", id="comments"),
        pytest.param("# x", f"# x\n\n{BLOCK}".removesuffix("\n"), id="comments without a line break"),
        pytest.param("a: 1\n", f"a: 1\n\n{BLOCK}", id="one key"),
        pytest.param("a: 1\n\n", f"a: 1\n\n{BLOCK}", id="a blank line at the end"),
        pytest.param("a: 1", f"a: 1\n\n{BLOCK}".removesuffix("\n"), id="no line break at the end"),
        pytest.param("a:\n    b: 1\n", f"a:\n    b: 1\n\n{BLOCK.replace('  ', '    ')}", id="four blanks"),
        pytest.param("a: 1\r\n# c\r\n", f"a: 1\n# c\n\n{BLOCK}".replace("\n", "\r\n"), id="Windows"),
        pytest.param("\ufeffa: 1\n", f"\ufeffa: 1\n\n{BLOCK}", id="BOM"),
        pytest.param("---\na: 1\n", f"---\na: 1\n\n{BLOCK}", id="a document mark"),
        pytest.param("a: |\n  text\n", f"a: |\n  text\n\n{BLOCK}", id="a block scalar at the end"),
        pytest.param("a:\n  b: 1\n  # c: 2\n", f"a:\n  b: 1\n  # c: 2\n\n{BLOCK}", id="comments at the end"),
        pytest.param("a: &x {b: 1}\nc: *x\n", f"a: &x {{b: 1}}\nc: *x\n\n{BLOCK}", id="anchors"),
    ],
)
def test_the_switch_comes_at_the_end_with_comments(before: str, after: str) -> None:
    assert with_switch(before, SWITCH) == after
    assert objects(after)[0]["dra"] == SWITCH
    assert with_switch(after, switch("false", "1.32")) == after


KEYS = "".join(line for line in BLOCK.splitlines(keepends=True) if "#" not in line)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a: |\n  text", f"a: |-\n  text\n{KEYS}".removesuffix("\n"), id="a text that would grow"),
        pytest.param("a: 1\n...\n", f"a: 1\n{KEYS}...\n", id="an end mark"),
        pytest.param("a: |+\n  text\n\n", f"a: |+\n  text\n\n{BLOCK}", id="a text that holds its blank lines"),
    ],
)
def test_the_end_of_the_values_keeps_its_meaning(before: str, after: str) -> None:
    assert with_switch(before, SWITCH) == after


@pytest.mark.parametrize("before", ["{}\n", '{"a": 1}\n', '{\n  "a": {\n    "b": 1\n  }\n}\n', "{a: 1}\n"])
def test_values_in_flow_style_stay_in_it(before: str) -> None:
    after = with_switch(before, SWITCH)
    assert objects(after)[0] == {**objects(before)[0], "dra": SWITCH}
    assert "#" not in after
    if before.startswith(('{"', "{\n")):
        assert json.loads(after) == objects(after)[0]


@pytest.mark.parametrize("text", ["a: [http://x:1]\n", "a: [\n", "a: b: c\n", "- 1\n", "text\n"])
def test_values_that_cannot_be_edited_raise(text: str) -> None:
    with pytest.raises(FileError):
        with_switch(text, SWITCH)


@pytest.mark.parametrize(
    ("mode", "enabled"), [("auto", "enabled: auto"), ("true", "enabled: true"), ("false", "enabled: false")]
)
def test_the_mode_is_written_as_helm_reads_it(mode: str, enabled: str) -> None:
    text = with_switch("a: 1\n", switch(mode, "1.33"))
    assert enabled in text
    assert 'target: "1.33"' in text
    assert objects(text)[0]["dra"]["enabled"] in ("auto", True, False)


def closed(**properties: Any) -> dict[str, Any]:
    """Return a schema that allows these properties and no others."""
    return {"additionalProperties": False, "properties": properties}


@pytest.mark.parametrize("indent", [None, 2, 4, "\t"])
@pytest.mark.parametrize(
    ("schema", "way", "place"),
    [
        (closed(a={}), (), ("properties",)),
        ({"additionalProperties": False}, (), ("properties",)),
        ({"unevaluatedProperties": False, "properties": {}}, (), ("properties",)),
        ({"additionalProperties": {"type": "string"}}, (), ("properties",)),
        ({"$ref": "#/definitions/x", "definitions": {"x": closed()}}, (), ("definitions", "x", "properties")),
        (closed(child=closed()), ("child",), ("properties", "child", "properties")),
        (closed(child={"$ref": "#/$defs/c"}) | {"$defs": {"c": closed()}}, ("child",), ("$defs", "c", "properties")),
    ],
)
def test_a_closed_schema_gets_the_switch_and_nothing_else(
    schema: Any, way: tuple[str, ...], place: tuple[str, ...], indent: int | str | None
) -> None:
    text = json.dumps(schema, indent=indent)
    after = json.loads(with_schema(text, way))
    found = after
    for name in place:
        found = found[name]
    assert found.pop("dra")["properties"]["enabled"] == {"enum": ["auto", "true", "false", True, False]}
    if "properties" not in schema and place == ("properties",):
        assert after.pop("properties") == {}
    assert after == schema
    again = with_schema(text, way)
    assert with_schema(again, way) == again


@pytest.mark.parametrize(
    ("schema", "way"),
    [
        ({}, ()),
        ({"properties": {"a": {}}}, ()),
        ({"additionalProperties": True}, ()),
        (closed(dra={}), ()),
        (closed(child={}), ("child",)),
        (closed(child=True), ("child",)),
        (closed(), ("child",)),
        ({"$ref": "other.json", "additionalProperties": True}, ()),
        (True, ()),
        ([], ()),
    ],
)
def test_a_schema_that_allows_it_stays(schema: Any, way: tuple[str, ...]) -> None:
    text = json.dumps(schema)
    assert with_schema(text, way) == text
