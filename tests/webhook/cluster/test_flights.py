"""One answer for all who ask at once, and nobody held beyond his deadline."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from gpu2dra_webhook.cluster.flights import Flights
from gpu2dra_webhook.ports import StoreError, StoreProblem


def soon(seconds: float = 30) -> float:
    return time.monotonic() + seconds


def together(number: int, call: Callable[[], None]) -> list[Exception]:
    """Run a call in many threads and return what they raised."""
    raised: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - whatever it is
            raised.append(error)

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


def test_work_asked_for_at_once_is_done_once() -> None:
    flights, go, done = Flights(), threading.Event(), []

    def work(deadline: float) -> None:
        go.wait()
        done.append(deadline)

    threading.Timer(0.2, go.set).start()
    assert together(10, lambda: flights.run("key", work, soon())) == []
    assert len(done) == 1
    flights.run("key", work, soon())
    assert len(done) == 2


def test_other_work_does_not_wait() -> None:
    flights, never = Flights(), threading.Event()
    with pytest.raises(StoreError):
        flights.run("slow", lambda deadline: _ignore(never.wait(20)), soon(0.05))
    flights.run("fast", lambda deadline: None, soon(5))
    never.set()


def _ignore(result: object) -> None:
    del result


def test_an_error_comes_to_all_who_wait() -> None:
    flights, go = Flights(), threading.Event()

    def work(deadline: float) -> None:
        go.wait()
        raise StoreError(StoreProblem.FOREIGN, "taken")

    threading.Timer(0.2, go.set).start()
    raised = together(5, lambda: flights.run("key", work, soon()))
    assert [str(error) for error in raised] == ["taken"] * 5
    assert len({id(error) for error in raised}) == 5  # each has a traceback of its own


def test_an_error_of_ours_comes_through(caplog: pytest.LogCaptureFixture) -> None:
    def work(deadline: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Flights().run("key", work, soon())
    assert "an error of ours" in caplog.text


def test_work_that_hangs_ends_the_wait_at_the_deadline() -> None:
    never = threading.Event()
    with pytest.raises(StoreError) as caught:
        Flights().run("key", lambda deadline: _ignore(never.wait(20)), soon(0.05))
    never.set()
    assert caught.value.kind is StoreProblem.TIMEOUT


def test_who_has_more_time_has_work_done_anew_that_ran_out_of_time() -> None:
    flights, boarded = Flights(), threading.Event()
    deadlines: list[float] = []

    def work(deadline: float) -> None:
        deadlines.append(deadline)
        if len(deadlines) == 1:
            boarded.wait()
            raise StoreError(StoreProblem.TIMEOUT, "no time")

    early, late = soon(10), soon(20)
    raised: list[Exception] = []

    def first() -> None:
        with pytest.raises(StoreError):
            flights.run("key", work, early)
        raised.append(ValueError())

    leader = threading.Thread(target=first)
    leader.start()
    while not deadlines:
        time.sleep(0.001)
    follower = threading.Thread(target=flights.run, args=("key", work, late))
    follower.start()
    boarded.set()
    leader.join()
    follower.join()
    assert deadlines == [early, late]
    assert len(raised) == 1
