"""The table that readers see: changes, waiting, listeners."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpu2dra_webhook.cluster.cache import Cache, Key

if TYPE_CHECKING:
    import pytest

A, B = Key("one", "a"), Key("two", "b")


def test_it_holds_by_namespace_and_name() -> None:
    cache: Cache[int] = Cache()
    assert not cache
    cache.put(A, 1)
    cache.put(B, 2)
    assert (cache.get("one", "a"), cache.get("two", "a"), cache.get("three", "a")) == (1, None, None)
    assert cache.within("one") == {"a": 1}
    assert sorted(cache.items()) == sorted(cache.walk()) == [(A, 1), (B, 2)]
    cache.remove(A)
    cache.remove(A)
    assert cache.items() == [(B, 2)]
    cache.replace({A: 3})
    assert cache.items() == [(A, 3)]


def test_only_what_is_new_is_a_change() -> None:
    cache: Cache[int] = Cache()
    changes: list[Callable[[], None]] = [
        lambda: cache.put(A, 1), lambda: cache.put(A, 1), lambda: cache.put(A, 2), lambda: cache.replace({A: 2}),
        lambda: cache.remove(B), lambda: cache.remove(A), lambda: cache.replace({A: 2}),
    ]  # fmt: skip
    versions = []
    for change in changes:
        change()
        versions.append(cache.version)
    assert versions == [1, 1, 2, 2, 2, 3, 4]


def test_groups_follow_what_changes() -> None:
    tens, even = Key("one", "tens"), Key("", "even")
    cache: Cache[int] = Cache(
        lambda key, value: [each for each, fits in ((tens, value > 9), (even, value % 2 == 0)) if fits]
    )
    cache.put(A, 1)
    assert cache.groups() == []
    cache.put(A, 10)
    cache.put(B, 11)
    assert (cache.group(tens), cache.group(even)) == ({A: 10, B: 11}, {A: 10})
    cache.put(A, 12)
    assert (cache.group(tens), cache.group(even)) == ({A: 12, B: 11}, {A: 12})
    cache.put(A, 1)
    assert (cache.groups(), cache.group(tens), cache.group(even)) == ([tens], {B: 11}, {})
    cache.replace({A: 5, B: 2})
    assert (cache.groups(), cache.group(even)) == ([even], {B: 2})
    cache.remove(B)
    assert cache.groups() == []


def test_a_walk_lets_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cache: Cache[int] = Cache()
    cache.replace({Key("one", str(number)): number for number in range(1_000)})
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    walk = cache.walk()
    next(walk)
    cache.remove(Key("one", "999"))  # while it is under way
    assert len(list(walk)) == 999
    assert pauses == [0, 0, 0, 0]


def test_copies_do_not_change() -> None:
    cache: Cache[int] = Cache()
    cache.put(A, 1)
    before = cache.within("one")
    cache.put(Key("one", "b"), 2)
    assert before == {"a": 1}


def test_who_waits_is_woken_by_the_change_that_he_waits_for() -> None:
    cache: Cache[int] = Cache()
    found: list[bool] = []
    thread = threading.Thread(target=lambda: found.append(cache.wait_for(lambda: cache.get(*A) == 2, 3600)))
    thread.start()
    cache.put(A, 1)
    cache.put(A, 2)
    thread.join()
    assert found == [True]


def test_who_waits_in_vain_is_told_so() -> None:
    cache: Cache[int] = Cache()
    assert not cache.wait_for(lambda: False, 0.05)
    assert not cache.wait_for(lambda: False, 0)
    assert cache.wait_for(lambda: True, 0)
