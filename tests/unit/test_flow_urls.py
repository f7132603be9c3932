"""URLs in brackets that libyaml refuses: quotes make them readable, and nothing else changes."""

from __future__ import annotations

import pytest
import yaml12

from gpu2dra_migrate.filters.flow_urls import with_quoted_urls
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.values import to_data


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: [http://host:80]\n", "a: ['http://host:80']\n"),
        ("s: {url: oci://x/a, ref: {tag: 5}}\n", "s: {url: 'oci://x/a', ref: {tag: 5}}\n"),
        (
            "a: [--url=http://x:80/a b, http://c:1, 'http://d']\n",
            "a: ['--url=http://x:80/a b', 'http://c:1', 'http://d']\n",
        ),
        ("a: [\n  http://x:1,\n  b\n]\n", "a: [\n  'http://x:1',\n  b\n]\n"),
        ("{a: {b: x://y}, c: [x://z ]}\n", "{a: {b: 'x://y'}, c: ['x://z' ]}\n"),
        ("- [é http://ü:80] # c\n", "- ['é http://ü:80'] # c\n"),
        ("a: http://host:80\r\nb: [http://x:1]\r\n", "a: http://host:80\r\nb: ['http://x:1']\r\n"),
    ],
)
def test_a_url_in_brackets(text: str, expected: str) -> None:
    assert with_quoted_urls(text) == expected
    assert [to_data(each) for each in compose(expected)] == yaml12.parse_yaml(text, multi=True)


@pytest.mark.parametrize(
    "text", ["", "a: [never\n", "a: [b: c: d]\n", "a: {b: 'x': y}\n", "a: http://x:80\n", "\t- x\n", "[:x:]\n"]
)
def test_another_text_stays(text: str) -> None:
    assert with_quoted_urls(text) == text
