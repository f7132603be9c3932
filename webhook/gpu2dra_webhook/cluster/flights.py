"""Work that several ask for at the same time is done once, and nobody waits for it longer than he can."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable

from gpu2dra_webhook.ports import StoreError, StoreProblem

_log = logging.getLogger(__name__)


class _Flight:
    def __init__(self) -> None:
        self.landed = threading.Event()
        self.error: Exception | None = None


class Flights:
    """Runs each piece of work in a thread of its own, so that a call that hangs holds nobody beyond his deadline."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight] = {}
        self._lock = threading.Lock()

    def run(self, key: Hashable, work: Callable[[float], None], deadline: float) -> None:
        """Have `work` done, or wait for whoever has begun it, until `deadline` (of time.monotonic).

        `work` gets the deadline of the one who began it. Raises what it raised; StoreError(TIMEOUT) when it is not
        done by then. Who has more time than the one that began it, and whose work ran out of time, has it done anew.
        """
        while True:
            flight, began = self._board(key, work, deadline)
            if not flight.landed.wait(max(0.0, deadline - time.monotonic())):
                raise StoreError(StoreProblem.TIMEOUT, "The API server did not answer in time.")
            error = flight.error
            if error is None:
                return
            if not isinstance(error, StoreError):
                raise error
            if began or error.kind is not StoreProblem.TIMEOUT or time.monotonic() >= deadline:
                raise StoreError(error.kind, error.message)

    def _board(self, key: Hashable, work: Callable[[float], None], deadline: float) -> tuple[_Flight, bool]:
        with self._lock:
            if (flight := self._flights.get(key)) is not None:
                return flight, False
            flight = self._flights[key] = _Flight()
        threading.Thread(target=self._fly, args=(key, flight, work, deadline), name="flight", daemon=True).start()
        return flight, True

    def _fly(self, key: Hashable, flight: _Flight, work: Callable[[float], None], deadline: float) -> None:
        try:
            work(deadline)
        except StoreError as error:
            flight.error = error
        except Exception as error:  # noqa: BLE001 - raised again, to those who wait
            _log.exception("an error of ours while a template was made")
            flight.error = error
        finally:
            with self._lock:
                del self._flights[key]
            flight.landed.set()
