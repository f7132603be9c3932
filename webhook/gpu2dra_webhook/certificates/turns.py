"""Background work in turns: one thread that does a thing now and then, at once when woken, and survives its errors."""

from __future__ import annotations

import logging
import random
import threading
from abc import ABC, abstractmethod

from gpu2dra_webhook.metrics import Metrics

_log = logging.getLogger(__name__)

_AFTER_A_BUG = 10.0
_SPREAD = 0.25
_JOIN = 10.0


class Turns(ABC):
    """Runs `turn` again and again in a daemon thread, between `start` and `stop`."""

    def __init__(self, name: str, metrics: Metrics) -> None:
        self._name = name
        self._metrics = metrics
        metrics.may_fail(name)
        self._woken = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def turn(self) -> float:
        """Do what is to be done now; return the seconds until the next turn."""

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread, after the turn that it is in."""
        self._stopped.set()
        self._woken.set()
        if self._thread:
            self._thread.join(_JOIN)

    def wake(self) -> None:
        """Have the next turn begin soon; callable from any thread."""
        self._woken.set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._woken.clear()
            try:
                pause = self.turn()
            except Exception:  # noqa: BLE001 - it is logged, and without this thread no certificate is renewed
                _log.exception("%s: a bug", self._name)
                self._metrics.failed(self._name)
                pause = _AFTER_A_BUG
            # Replicas that were started, or are woken, by one event shall not act in one instant.
            if self._woken.wait(pause * random.uniform(0.8, 1.2)):  # noqa: S311 - no secret depends on it
                self._stopped.wait(random.uniform(0, _SPREAD))  # noqa: S311


class Complaints:
    """What stands in the way now: logged when it is new, and again after some minutes of it."""

    def __init__(self, log: logging.Logger, repeat: float = 300.0) -> None:
        self.current = ""
        self._log = log
        self._repeat = repeat
        self._logged = 0.0

    def tell(self, message: str, now: float) -> bool:
        """Take a complaint down; return whether it was logged."""
        fresh = message != self.current or not 0 <= now - self._logged < self._repeat
        self.current = message
        if fresh:
            self._log.warning("%s", message)
            self._logged = now
        return fresh

    def clear(self) -> None:
        """Take down that all is well."""
        if self.current:
            self._log.info("All is well again; before: %s", self.current)
        self.current = ""
