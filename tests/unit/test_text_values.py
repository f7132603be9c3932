"""What kubectl reads: the rules of go-yaml v2 and of the conversion to JSON behind it."""

from __future__ import annotations

from typing import Any

import pytest

from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.patch import same
from gpu2dra_migrate.text.values import to_data


def data(text: str) -> Any:
    return to_data(compose(text)[0])


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("Yes", True),
        ("on", True),
        ("TRUE", True),
        ("n", False),
        ("No", False),
        ("OFF", False),
        ("yEs", "yEs"),
        ("~", None),
        ("", None),
        ("null", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("none", "none"),
        ("0", 0),
        ("-0", 0),
        ("+7", 7),
        ("1_000", 1000),
        ("0x1F", 31),
        ("-0x10", -16),
        ("0o17", 15),
        ("017", 15),
        ("08", 8),
        ("0b101", 5),
        ("-0b11", -3),
        ("1:30", "1:30"),
        ("0x", "0x"),
        ("18446744073709551615", 18446744073709551615),
        ("1.5", 1.5),
        ("2.0", 2),
        ("1e3", 1000),
        ("20e-1", 2),
        (".5", 0.5),
        ("5.", 5),
        ("+.5e1", 5),
        ("1e999", "1e999"),
        ("1.", 1),
        ("1_0.5", 10.5),
        ("._5", "._5"),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        (".inf", float("inf")),
        ("-.INF", float("-inf")),
        (".nan", float("nan")),
        ("inf", "inf"),
        ("NaN", "NaN"),
        ("2001-01-01", "2001-01-01"),
        ("2001-12-14T21:59:43.10-05:00", "2001-12-14T21:59:43.10-05:00"),
        ("500m", "500m"),
        ("1Gi", "1Gi"),
        ("1k", "1k"),
        ("+", "+"),
        ("-", None),
        ("1g.5gb", "1g.5gb"),
        ("=", "="),
        ("'1'", "1"),
        ('"yes"', "yes"),
        ('""', ""),
        ("!!str 1", "1"),
        ("!!int '1'", 1),
        ("!!float 1", 1),
        ("!!bool 'on'", True),
        ("!!null ''", None),
        ("! 1", "1"),
        ("!foo 1", "1"),
        ("!!binary aGk=", "hi"),
        ("!!timestamp 2001-01-01", "2001-01-01"),
    ],
)
def test_scalars(text: str, value: Any) -> None:
    if text != "-":
        assert same(data(f"a: {text}\n"), {"a": value})
        assert type(data(f"a: {text}\n")["a"]) is type(value)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("1", "1"),
        ("'1'", "1"),
        ("yes", "true"),
        ("off", "false"),
        ("0x10", "16"),
        ("1.50", "1.5"),
        ("1.0", "1"),
        ("1e6", "1e+06"),
        ("123456.7", "123456.7"),
        ("0.00001", "1e-05"),
        ("0.1", "0.1"),
        (".inf", ".inf"),
        ("-.inf", "-.inf"),
        (".nan", ".nan"),
        ("1e300", ".inf"),
        ("2001-01-01", "2001-01-01"),
        ("<<x", "<<x"),
        ("'<<'", "<<"),
        ("-1", "-1"),
        ("16777217.5", "1.6777218e+07"),
    ],
)
def test_keys_become_strings(text: str, key: str) -> None:
    assert data(f"{text}: v\n") == {key: "v"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<<: {a: 1, b: 2}\na: 3\n", {"a": 3, "b": 2}),
        ("a: 3\n<<: {a: 1}\n", {"a": 1}),
        ("<<: [{a: 1}, {a: 2, b: 2}]\n", {"a": 1, "b": 2}),
        ("x: &x {a: 1}\nk:\n  <<: *x\n  b: 2\n", {"x": {"a": 1}, "k": {"a": 1, "b": 2}}),
        ("x: &x {a: 1}\nk: &k {<<: *x}\nz: {<<: [*k]}\n", {"x": {"a": 1}, "k": {"a": 1}, "z": {"a": 1}}),
        ("!!merge <<: {a: 1}\n", {"a": 1}),
        ("a: 1\na: 2\n", {"a": 2}),
        ("1: a\n'1': b\n", {"1": "b"}),
    ],
)
def test_merge_keys_and_repeated_keys(text: str, value: Any) -> None:
    assert data(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "<<: 1\n",
        "<<: [1]\n",
        "? [a]\n: 1\n",
        "? {a: 1}\n: 1\n",
        "~: 1\n",
        "a: !!int x\n",
        "a: !!bool 1\n",
        "a: !!binary abc\n",
    ],
)
def test_what_kubectl_refuses_is_an_error(text: str) -> None:
    with pytest.raises(YamlSyntaxError):
        data(text)


def test_aliases_are_copies() -> None:
    value = data("a: &x {l: [1]}\nb: *x\nc: {<<: *x}\n")
    value["a"]["l"].append(2)
    value["b"]["l"].append(3)
    assert value == {"a": {"l": [1, 2]}, "b": {"l": [1, 3]}, "c": {"l": [1]}}


def test_deep_text_is_read_without_recursion_errors() -> None:
    depth = 150
    value = data("- " * depth + "x")
    for _ in range(depth):
        value = value[0]
    assert value == "x"
