"""The log: one line for each event, in one format for all loggers; nothing secret, and no line that a client wrote."""

from __future__ import annotations

import io
import json
import logging
import re
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from gpu2dra_webhook import logs


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Give logging and the hooks of the interpreter back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    levels = {name: logging.getLogger(name).level for name in logs._AT_LEAST}
    hooks = sys.excepthook, sys.unraisablehook, threading.excepthook
    yield
    logging.captureWarnings(capture=False)
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def fail() -> None:
    raise ZeroDivisionError


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_object_with_its_fields(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    logging.getLogger("gpu2dra_webhook.mutate").warning("not %s", "converted", extra={"reason": "quota", "count": 2})
    [entry] = lines(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", entry.pop("ts"))
    assert entry == {
        "level": "warning",
        "logger": "gpu2dra_webhook.mutate",
        "msg": "not converted",
        "reason": "quota",
        "count": 2,
    }


def test_a_field_cannot_take_the_place_of_what_the_log_says_itself(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    logging.getLogger("x").info("said", extra={"level": "forged", "logger": "forged", "ts": "forged"})
    [entry] = lines(stream)
    assert (entry["level"], entry["logger"], "forged" in entry["ts"]) == ("info", "x", False)


def test_a_field_that_is_no_json_is_told_as_text(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    logging.getLogger("x").info("said", extra={"kinds": {1}, "half": "\ud800"})
    [entry] = lines(stream)
    assert (entry["kinds"], entry["half"]) == ("{1}", "\ud800")


def test_a_traceback_is_part_of_the_line(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    try:
        fail()
    except ZeroDivisionError:
        logging.getLogger("x").exception("failed")
    [entry] = lines(stream)
    assert entry["exc"].splitlines()[0] == "Traceback (most recent call last):"
    assert entry["exc"].splitlines()[-1] == "ZeroDivisionError"


@pytest.mark.parametrize("style", ["json", "text"])
def test_nobody_can_write_lines_or_commands_of_a_terminal(stream: io.StringIO, style: Any) -> None:
    logs.set_up("info", style, stream)
    logging.getLogger("x").info("name %s", "a\nforged line\r\x1b[2J", extra={"field": "b\n\x07"})
    assert stream.getvalue().count("\n") == 1
    assert not any(character in stream.getvalue() for character in "\r\x1b\x07")


def test_the_text_is_for_people(stream: io.StringIO) -> None:
    logs.set_up("info", "text", stream)
    logging.getLogger("gpu2dra_webhook.server").info("serving", extra={"port": 9443})
    logging.getLogger("kubernetes").info("déjà vu")
    own, other = stream.getvalue().splitlines()
    assert re.fullmatch(r"\d\d:\d\d:\d\d info server: serving port=9443", own)
    assert other.endswith(" info kubernetes: déjà vu")


def test_the_text_has_tracebacks_too(stream: io.StringIO) -> None:
    logs.set_up("info", "text", stream)
    try:
        fail()
    except ZeroDivisionError:
        logging.getLogger("x").exception("failed")
    assert stream.getvalue().splitlines()[-1] == "ZeroDivisionError"


def test_the_level_holds_for_all_loggers(stream: io.StringIO) -> None:
    logs.set_up("warning", "json", stream)
    for name in ("gpu2dra_webhook", "kubernetes", "gunicorn.error"):
        logging.getLogger(name).info("quiet")
        logging.getLogger(name).warning("loud")
    assert [entry["msg"] for entry in lines(stream)] == ["loud", "loud", "loud"]


def test_the_bodies_that_the_api_client_logs_when_debugging_are_never_there(stream: io.StringIO) -> None:
    logs.set_up("debug", "json", stream)
    logging.getLogger("kubernetes.client.rest").debug("response body: %s", "the key of our CA")
    logging.getLogger("urllib3.connectionpool").debug("GET /api/v1/secrets")
    logging.getLogger("gpu2dra_webhook").debug("said")
    assert [entry["msg"] for entry in lines(stream)] == ["said"]


def test_what_nobody_catches_is_logged(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    thread = threading.Thread(target=fail, name="worker")
    thread.start()
    thread.join()
    try:
        fail()
    except ZeroDivisionError as error:
        sys.excepthook(type(error), error, error.__traceback__)
    found = [(entry["level"], entry["msg"], "ZeroDivisionError" in entry["exc"]) for entry in lines(stream)]
    assert found == [("error", "uncaught in worker", True), ("critical", "uncaught", True)]


def test_what_cannot_be_raised_is_logged(stream: io.StringIO) -> None:
    class Spoilt:
        def __del__(self) -> None:
            fail()

    logs.set_up("info", "json", stream)
    Spoilt()
    [entry] = lines(stream)
    assert (entry["level"], entry["msg"], "ZeroDivisionError" in entry["exc"]) == ("error", "unraisable", True)


def test_warnings_are_logged(stream: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logs.set_up("info", "json", stream)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.captureWarnings(capture=False)
    [entry] = lines(stream)
    assert (entry["logger"], entry["level"], "DeprecationWarning: old" in entry["msg"]) == (
        "py.warnings",
        "warning",
        True,
    )


def test_setting_up_twice_does_not_log_twice(stream: io.StringIO) -> None:
    logs.set_up("info", "json", stream)
    logs.set_up("info", "json", stream)
    logging.getLogger("x").info("once")
    assert [entry["msg"] for entry in lines(stream)] == ["once"]
