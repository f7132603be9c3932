"""Comments that silence findings: which codes, and in which line."""

from __future__ import annotations

import pytest

from gpu2dra_migrate.ignores import ignores, is_ignored

ALL = frozenset({"*"})
ONE = frozenset({"DRA001"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n", {}),
        ("a: 1 # gpu2dra: ignore[DRA001] for now\n", {1: ONE}),
        ("a: 1 #gpu2dra:ignore[DRA001]\n", {1: ONE}),
        ("a: 1 # gpu2dra: ignore\n", {1: ALL}),
        ("a: 1 # gpu2dra: ignore because\n", {1: ALL}),
        ("a: 1 # gpu2dra: ignore[DRA001, DRA305]\n", {1: frozenset({"DRA001", "DRA305"})}),
        ("a: 1 # gpu2dra: ignore[]\n", {}),
        ("a: 1 # gpu2dra: ignored\n", {}),
        ("# gpu2dra: ignore[DRA001]\na: 1\n", {2: ONE}),
        ("# gpu2dra: ignore[DRA001]\n\n# more\n  a: 1\nb: 2\n", {4: ONE}),
        ("# gpu2dra: ignore[DRA001]\n# gpu2dra: ignore[DRA305]\na: 1\n", {3: frozenset({"DRA001", "DRA305"})}),
        ("x: 0\r\n# gpu2dra: ignore[DRA001]\r\na: 1\r\nb: 2\r\n", {3: ONE}),
        ("a: 1 # gpu2dra: ignore[DRA001]\r\nb: 2", {1: ONE}),
        ("\ufeff# gpu2dra: ignore[DRA001]\na: 1\n", {2: ONE}),
        ("# gpu2dra: ignore[DRA001]", {}),
    ],
)
def test_lines(text: str, expected: dict[int, frozenset[str]]) -> None:
    assert dict(ignores(text)) == expected


def test_codes() -> None:
    lines = {3: ONE, 4: ALL}
    assert is_ignored("DRA001", 3, lines)
    assert not is_ignored("DRA305", 3, lines)
    assert is_ignored("DRA305", 4, lines)
    assert not is_ignored("DRA001", 5, lines)
