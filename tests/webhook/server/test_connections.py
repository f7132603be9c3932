"""Which connection is cut off, when, and in whose place; with real sockets, and without a server."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import gevent
import pytest
from gevent import socket

from gpu2dra_webhook.connections import Connection, Connections, Cut, Phase, limits
from gpu2dra_webhook.settings import Settings

PATIENT = dict.fromkeys(Phase, math.inf)


class Book:
    """Takes down what was cut off."""

    def __init__(self) -> None:
        self.cuts: list[tuple[Cut, Phase]] = []

    def __call__(self, why: Cut, phase: Phase) -> None:
        """Write a line."""
        self.cuts.append((why, phase))


@pytest.fixture
def book() -> Book:
    return Book()


@pytest.fixture
def stack() -> Iterator[contextlib.ExitStack]:
    """Close all sockets at the end."""
    with contextlib.ExitStack() as opened:
        yield opened


def joined(connections: Connections, stack: contextlib.ExitStack) -> tuple[Connection, socket.socket]:
    """Return a connection that is held, and the client's end of it."""
    ours, theirs = (stack.enter_context(contextlib.closing(end)) for end in socket.socketpair())
    connection = stack.enter_context(connections.hold(ours))
    assert connection is not None
    return connection, theirs


@pytest.mark.parametrize(
    ("phase", "expected"),
    [
        (Phase.HANDSHAKE, 5), (Phase.IDLE, 95), (Phase.HEADER, 10), (Phase.BODY, 10), (Phase.ANSWER, math.inf),
        (Phase.WRITE, 10), (Phase.LINGER, 2),
    ],
)  # fmt: skip
def test_each_phase_has_its_time(phase: Phase, expected: float) -> None:
    assert limits(Settings())[phase] == expected
    assert set(limits(Settings())) == set(Phase)


@pytest.mark.parametrize("phase", [Phase.HANDSHAKE, Phase.IDLE, Phase.HEADER, Phase.BODY, Phase.LINGER])
def test_who_is_late_is_cut_off_and_nobody_else(book: Book, stack: contextlib.ExitStack, phase: Phase) -> None:
    connections = Connections(PATIENT | {phase: 1e-9}, 10, book)
    late, client = joined(connections, stack)
    others = [joined(connections, stack)[0] for _ in Phase]
    for other, another in zip(others, Phase, strict=True):
        other.enter(another if another is not phase else Phase.ANSWER)
    late.enter(phase)
    waiting = gevent.spawn(late.socket.recv, 1)
    gevent.sleep(0)
    connections.sweep()
    with pytest.raises(OSError, match="closed"):
        waiting.get(timeout=10)
    assert book.cuts == [(Cut.DEADLINE, phase)]
    assert late.cut is Cut.DEADLINE
    # What it is told now still reaches the client.
    late.socket.sendall(b"why")
    assert client.recv(10) == b"why"
    connections.sweep()
    assert len(book.cuts) == 1
    assert [other.cut for other in others] == [None] * len(others)


def test_our_own_work_may_take_as_long_as_it_does(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(dict.fromkeys(Phase, 1e-9) | {Phase.ANSWER: math.inf}, 10, book)
    connection, _ = joined(connections, stack)
    connection.enter(Phase.ANSWER)
    connections.sweep()
    assert book.cuts == []


def test_a_client_that_does_not_read_is_cut_off(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT | {Phase.WRITE: 1e-9}, 10, book)
    connection, _ = joined(connections, stack)
    connection.enter(Phase.WRITE)
    writing = gevent.spawn(connection.socket.sendall, b"x" * 10_000_000)
    gevent.sleep(0)
    assert not writing.ready()
    connections.sweep()
    with pytest.raises(OSError, match="closed"):
        writing.get(timeout=10)
    assert book.cuts == [(Cut.DEADLINE, Phase.WRITE)]


def test_at_the_limit_whoever_is_nearest_to_its_deadline_goes(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT | {Phase.IDLE: 1000.0, Phase.HANDSHAKE: 10.0}, 3, book)
    idle, fresh, busy = (joined(connections, stack)[0] for _ in range(3))
    idle.enter(Phase.IDLE)
    idle._since -= 900
    fresh._since -= 5  # shakes hands for longer than most do, and has still half of its time
    busy.enter(Phase.ANSWER)
    joined(connections, stack)
    assert [each.cut for each in (idle, fresh, busy)] == [Cut.CROWDED, None, None]
    joined(connections, stack)
    assert [each.cut for each in (idle, fresh, busy)] == [Cut.CROWDED, Cut.CROWDED, None]
    assert book.cuts == [(Cut.CROWDED, Phase.IDLE), (Cut.CROWDED, Phase.HANDSHAKE)]


def test_a_connection_that_is_being_answered_is_never_in_the_way(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT, 2, book)
    for connection, _ in [joined(connections, stack), joined(connections, stack)]:
        connection.enter(Phase.ANSWER)
    ours, _theirs = (stack.enter_context(contextlib.closing(end)) for end in socket.socketpair())
    assert stack.enter_context(connections.hold(ours)) is None
    assert len(connections) == 2


def test_who_leaves_makes_room(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT, 1, book)
    for _ in range(3):
        with contextlib.suppress(ZeroDivisionError), contextlib.ExitStack() as own:
            joined(connections, own)
            assert len(connections) == 1
            raise ZeroDivisionError
    assert len(connections) == 0
    joined(connections, stack)
    assert book.cuts == []


def test_when_all_requests_together_are_too_large_the_largest_goes(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT, 10, book, buffered=100)
    answered, small, large = (joined(connections, stack)[0] for _ in range(3))
    for connection, size, phase in ((answered, 60, Phase.ANSWER), (small, 10, Phase.BODY), (large, 30, Phase.HEADER)):
        connection.enter(phase)
        connections.receive(connection, size)
    assert book.cuts == []
    connections.receive(small, 1)
    assert book.cuts == [(Cut.MEMORY, Phase.HEADER)]
    assert [each.cut for each in (answered, small, large)] == [None, None, Cut.MEMORY]


def test_what_was_answered_takes_no_room_any_more(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT, 10, book, buffered=100)
    connection, _ = joined(connections, stack)
    for _ in range(5):
        connection.enter(Phase.BODY)
        connections.receive(connection, 90)
        connections.answered(connection)
    with contextlib.ExitStack() as own:
        gone, _ = joined(connections, own)
        connections.receive(gone, 90)
    connection.enter(Phase.BODY)
    connections.receive(connection, 90)
    assert book.cuts == []
    connections.receive(connection, 11)
    assert book.cuts == [(Cut.MEMORY, Phase.BODY)]


def test_the_end_cuts_off_all(book: Book, stack: contextlib.ExitStack) -> None:
    connections = Connections(PATIENT, 10, book)
    connection, _ = joined(connections, stack)
    waiting = gevent.spawn(connection.socket.recv, 1)
    gevent.sleep(0)
    connections.end()
    with pytest.raises(OSError, match="closed"):
        waiting.get(timeout=10)
    assert connection.cut is Cut.STOPPED
