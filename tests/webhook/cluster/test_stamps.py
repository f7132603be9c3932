"""Points in time, and waits between two tries."""

from __future__ import annotations

import pytest

from gpu2dra_webhook.cluster.backoff import Backoff
from gpu2dra_webhook.cluster.stamps import seconds, stamp


def test_a_stamp_is_read_back_to_the_second() -> None:
    assert stamp(1796058389.9) == "2026-11-30T17:06:29Z"
    assert seconds("2026-11-30T17:06:29Z") == 1796058389


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z", "99999-01-01T00:00:00Z", "1796058389", "é"])
def test_what_is_no_point_in_time_is_none(text: str) -> None:
    assert seconds(text) is None


def test_waits_double_up_to_the_last_and_begin_anew() -> None:
    backoff = Backoff(1, 8)
    for most in (1, 2, 4, 8, 8):
        assert most / 2 <= backoff.next() <= most
    backoff.reset()
    assert backoff.next() <= 1
    assert backoff.next(at_least=30) == 30


def test_many_failures_do_not_overflow() -> None:
    backoff = Backoff(1, 8, failures=100_000)
    assert backoff.next() <= 8
