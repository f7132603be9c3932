"""Background turns come when due and when woken, and outlive their errors; complaints are not repeated at once."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from controlplane.client import wait_for
from gpu2dra_webhook.certificates import turns
from gpu2dra_webhook.certificates.turns import Complaints, Turns
from gpu2dra_webhook.metrics import Metrics

if TYPE_CHECKING:
    import pytest

FOREVER = 3600.0


class Counted(Turns):
    """Counts its turns; some of them fail."""

    def __init__(self, pause: float, errors: int = 0) -> None:
        super().__init__("counted", Metrics())
        self.pause = pause
        self.errors = errors
        self.turns = 0

    def turn(self) -> float:
        """Take a turn."""
        self.turns += 1
        if self.turns <= self.errors:
            raise ValueError("a bug")
        return self.pause


def test_turns_come_when_due() -> None:
    tested = Counted(0.001)
    tested.start()
    wait_for("ten turns", lambda: tested.turns >= 10)
    tested.stop()
    after = tested.turns
    assert "counted" not in {thread.name for thread in threading.enumerate()}
    assert tested.turns == after


def test_a_turn_comes_at_once_when_woken() -> None:
    tested = Counted(FOREVER)
    tested.start()
    wait_for("the first turn", lambda: tested.turns == 1)
    tested.wake()
    wait_for("the second turn", lambda: tested.turns == 2)
    tested.stop()


def test_a_bug_is_logged_and_counted_and_turns_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(turns, "_AFTER_A_BUG", 0.001)
    tested = Counted(FOREVER, errors=2)
    assert 'gpu2dra_errors_total{where="counted"} 0.0' in tested._metrics.render().decode()
    tested.start()
    wait_for("a turn after two bugs", lambda: tested.turns == 3)
    tested.stop()
    assert [record.getMessage() for record in caplog.records] == ["counted: a bug"] * 2
    assert 'gpu2dra_errors_total{where="counted"} 2.0' in tested._metrics.render().decode()


def test_a_complaint_is_logged_when_it_is_new_and_after_a_while(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    complaints = Complaints(logging.getLogger("test"), repeat=300)
    told = [complaints.tell(text, now) for text, now in [("x", 0), ("x", 10), ("y", 20), ("y", 319), ("y", 320)]]
    assert told == [True, False, True, False, True]
    assert complaints.current == "y"
    complaints.clear()
    complaints.clear()
    assert complaints.current == ""
    assert [record.getMessage() for record in caplog.records] == ["x", "y", "y", "All is well again; before: y"]
