"""JSON Pointers and JSON Patch operations."""

from __future__ import annotations

import pytest

from gpu2dra.pointers import add, append, pointer, remove, replace, segments


@pytest.mark.parametrize(
    ("base", "steps", "path"),
    [
        ("", (), ""),
        ("", ("",), "/"),
        ("/spec", ("containers", 0, "name"), "/spec/containers/0/name"),
        ("/limits", ("nvidia.com/gpu",), "/limits/nvidia.com~1gpu"),
        ("", ("a~b", "~1", "/~"), "/a~0b/~01/~1~0"),
    ],
)
def test_a_pointer_escapes_its_segments_and_segments_takes_it_apart(
    base: str, steps: tuple[str | int, ...], path: str
) -> None:
    assert pointer(base, *steps) == path
    assert segments(path) == [*segments(base), *map(str, steps)]


def test_operations() -> None:
    assert add("/a", [1]) == {"op": "add", "path": "/a", "value": [1]}
    assert remove("/a") == {"op": "remove", "path": "/a"}
    assert replace("/a", None) == {"op": "replace", "path": "/a", "value": None}


@pytest.mark.parametrize("present", [None, [], "text", {"a": 1}])
def test_append_makes_the_list_where_there_is_none(present: object) -> None:
    assert append("/x", "f", present, [1, 2]) == [{"op": "add", "path": "/x/f", "value": [1, 2]}]


def test_append_adds_each_value_to_a_list_that_is_there() -> None:
    assert append("/x", "f", [0], [1, 2]) == [
        {"op": "add", "path": "/x/f/-", "value": 1},
        {"op": "add", "path": "/x/f/-", "value": 2},
    ]


@pytest.mark.parametrize("present", [None, [], [0]])
def test_append_of_nothing_is_nothing(present: object) -> None:
    assert append("/x", "f", present, []) == []
