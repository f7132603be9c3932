"""Open connections: what each waits for and until when, which one is late, and which one has to go for another.

A client can be late, silent or greedy; it then loses its own connection and nobody else's. A deadline is a number that
one sweep compares, since a timer for each step of each request would cost more than the step.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum

from gevent.socket import socket as GeventSocket  # noqa: N812 - a class, whatever its name

from gpu2dra_webhook.settings import MEBIBYTE, Settings


class Phase(StrEnum):
    """What a connection waits for."""

    HANDSHAKE = "handshake"
    IDLE = "idle"  # the first byte of a request
    HEADER = "header"
    BODY = "body"
    ANSWER = "answer"  # our own work, which is no client's fault
    WRITE = "write"
    LINGER = "linger"  # the end of what a client sends although it was told that it is too much


class Cut(StrEnum):
    """Why a connection was cut off."""

    DEADLINE = "deadline"
    CROWDED = "crowded"  # others needed the room
    MEMORY = "memory"  # its request was the largest when all together were too large
    STOPPED = "stopped"  # the server ends


WRITE_TIMEOUT = 10.0
LINGER_TIMEOUT = 2.0
BUFFERED = 64 * MEBIBYTE
"""All requests together that are being received or answered. A review takes some 10 KiB, and at most 7 MiB."""


def limits(settings: Settings) -> Mapping[Phase, float]:
    """Return how many seconds each phase may last."""
    return {
        Phase.HANDSHAKE: settings.handshake_timeout,
        Phase.IDLE: settings.idle_timeout,
        Phase.HEADER: settings.header_timeout,
        Phase.BODY: settings.body_timeout,
        Phase.ANSWER: float("inf"),
        Phase.WRITE: WRITE_TIMEOUT,
        Phase.LINGER: LINGER_TIMEOUT,
    }


class Connection:
    """One connection. `cut` says why it was cut off, `received` counts the bytes of its current request."""

    __slots__ = ("_limits", "_since", "cut", "phase", "received", "socket")

    def __init__(self, client: GeventSocket, limits: Mapping[Phase, float]) -> None:
        self.socket = client
        self.phase = Phase.HANDSHAKE
        self.cut: Cut | None = None
        self.received = 0
        self._limits = limits
        self._since = time.monotonic()

    def enter(self, phase: Phase) -> None:
        """Begin a phase, and its time."""
        self.phase = phase
        self._since = time.monotonic()

    def used(self, now: float) -> float:
        """Return the share of the phase's time that is over: above 1 it is late."""
        return (now - self._since) / self._limits[self.phase]

    def cut_off(self, why: Cut) -> None:
        """End what the connection waits for, which then reads an end of file or an error.

        Only the receiving half is shut, so that the client can still be told why; unless it does not read.
        """
        self.cut = why
        half = socket.SHUT_RDWR if self.phase is Phase.WRITE else socket.SHUT_RD
        with contextlib.suppress(OSError):
            # The method of the plain socket: that of TLS would forget the session under the one who waits for it.
            GeventSocket.shutdown(self.socket, half)


class Connections:
    """All connections to one port: at most `capacity` of them, together with at most `buffered` bytes of requests."""

    def __init__(
        self,
        limits: Mapping[Phase, float],
        capacity: int,
        on_cut: Callable[[Cut, Phase], None],
        buffered: int = BUFFERED,
    ) -> None:
        self._limits = limits
        self._capacity = capacity
        self._on_cut = on_cut
        self._buffered = buffered
        self._open: set[Connection] = set()
        self._received = 0

    def __len__(self) -> int:
        return len(self._open)

    @contextlib.contextmanager
    def hold(self, client: GeventSocket) -> Iterator[Connection | None]:
        """Count a connection while the block runs; None when there is no room, since all are being answered."""
        if len(self._open) >= self._capacity and not self._make_room():
            self._on_cut(Cut.CROWDED, Phase.HANDSHAKE)
            yield None
            return
        connection = Connection(client, self._limits)
        self._open.add(connection)
        try:
            yield connection
        finally:
            self.answered(connection)
            self._open.discard(connection)

    def receive(self, connection: Connection, size: int) -> None:
        """Count bytes of a request. When all together are too many, the largest one is cut off."""
        connection.received += size
        self._received += size
        if self._received > self._buffered:
            receiving = (each for each in self._open if each.phase in (Phase.HEADER, Phase.BODY) and not each.cut)
            if largest := max(receiving, key=lambda each: each.received, default=None):
                self._cut(largest, Cut.MEMORY)

    def answered(self, connection: Connection) -> None:
        """Count the bytes of the connection's request no more."""
        self._received -= connection.received
        connection.received = 0

    def sweep(self) -> None:
        """Cut off who is late."""
        now = time.monotonic()
        for connection in [each for each in self._open if each.used(now) > 1 and not each.cut]:
            self._cut(connection, Cut.DEADLINE)

    def end(self) -> None:
        """Cut off all."""
        for connection in self._open:
            connection.cut_off(Cut.STOPPED)

    def _make_room(self) -> bool:
        """Cut off who is nearest to its deadline; False when nobody has one."""
        now = time.monotonic()
        waiting = (each for each in self._open if each.phase is not Phase.ANSWER and not each.cut)
        first = max(waiting, key=lambda each: each.used(now), default=None)
        if first:
            self._cut(first, Cut.CROWDED)
        return first is not None

    def _cut(self, connection: Connection, why: Cut) -> None:
        self._on_cut(why, connection.phase)
        connection.cut_off(why)
