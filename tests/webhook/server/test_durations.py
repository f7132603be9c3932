"""Durations as Go writes them (time.ParseDuration, without a sign)."""

from __future__ import annotations

import pytest

from gpu2dra_webhook.durations import seconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10s", 10.0), ("1m0s", 60.0), ("500ms", 0.5), ("1h2m3.5s", 3723.5), ("1.5h", 5400.0), (".5s", 0.5),
        ("1.s", 1.0), ("250us", 0.00025), ("250µs", 0.00025), ("250μs", 0.00025), ("7ns", 7e-9), ("0", 0.0),
        ("0s", 0.0), ("1s1s", 2.0), ("3ms2m", 120.003),
    ],
)  # fmt: skip
def test_a_duration_is_read_as_seconds(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text",
    [
        "", "10", "s", "1 s", "-1s", "+1s", "1S", "1d", "1m s", "1s ", "\N{ARABIC-INDIC DIGIT ONE}s", "1e3s", "inf",
        "nan", ".s", "1..5s",
    ],
)  # fmt: skip
def test_what_is_no_duration_is_none(text: str) -> None:
    assert seconds(text) is None
