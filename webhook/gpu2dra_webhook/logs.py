"""The log: one JSON object a line on standard error, or text for people; for our own code and for all libraries.

What is never logged: pods and other objects, keys, tokens. Names, kinds, reasons and counts say enough.
"""

from __future__ import annotations

import functools
import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gunicorn.glogging import Logger

if TYPE_CHECKING:
    import io

    from gunicorn.config import Config

    from gpu2dra_webhook.settings import LogFormat, LogLevel

_RECORD_FIELDS = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})

_AT_LEAST: Mapping[str, int] = {
    "kubernetes.client.rest": logging.INFO,  # at debug it logs the body of every answer: Secrets, too
    "urllib3": logging.INFO,
    "asyncio": logging.INFO,
    "werkzeug": logging.WARNING,
}
"""Loggers of libraries that stay this quiet, whatever level is chosen."""


def set_up(level: LogLevel, style: LogFormat, stream: io.TextIOBase | Any = None) -> None:
    """Send everything that is logged, warned of or not caught to `stream` (standard error), in one format."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name, least in _AT_LEAST.items():
        logging.getLogger(name).setLevel(max(least, root.level))
    logging.captureWarnings(capture=True)
    uncaught = logging.getLogger("gpu2dra_webhook.uncaught")
    sys.excepthook = lambda kind, error, trace: uncaught.critical("uncaught", exc_info=(kind, error, trace))
    sys.unraisablehook = functools.partial(_log_unraisable, uncaught)
    threading.excepthook = lambda event: uncaught.error(
        "uncaught in %s", event.thread and event.thread.name, exc_info=event.exc_value
    )


def _log_unraisable(log: logging.Logger, event: sys.UnraisableHookArgs) -> None:
    if not sys.is_finalizing():  # then nothing can be logged any more, and nobody is there to care
        log.error("unraisable", exc_info=event.exc_value)


def fault(error: BaseException) -> dict[str, str]:
    """Return the fields that tell of an error in our own code without its text, which may quote a pod."""
    return {"error": type(error).__name__, "trace": "".join(traceback.format_tb(error.__traceback__))}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """Return what the caller gave as `extra`."""
    return {key: value for key, value in vars(record).items() if key not in _RECORD_FIELDS}


class JsonFormatter(logging.Formatter):
    """`{"ts", "level", "logger", "msg"}`, then the fields given as `extra`, then `exc` with a traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry: dict[str, Any] = {
            "ts": f"{stamp}.{int(record.msecs):03}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        entry |= {key: value for key, value in _fields(record).items() if key not in entry}
        if record.exc_info:
            entry["exc"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


class TextFormatter(logging.Formatter):
    """`16:40:01 warning mutate: message key=value`, and a traceback on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line, and a traceback below it."""
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        name = record.name.removeprefix("gpu2dra_webhook.")
        fields = "".join(f" {key}={value}" for key, value in _fields(record).items())
        # What a client sent may be part of the message: it cannot begin a line of its own, nor command a terminal.
        line = "".join(
            character if character.isprintable() else ascii(character)[1:-1]
            for character in f"{record.getMessage()}{fields}"
        )
        text = f"{stamp} {record.levelname.lower()} {name}: {line}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class GunicornLogger(Logger):
    """gunicorn's log, written as all else is. Its news (booting, listening) are for debugging."""

    def setup(self, cfg: Config) -> None:
        """Leave handlers and levels to `set_up`."""
        self.cfg = cfg
        self.error_log.propagate = True
        self.access_log.disabled = True

    def info(self, msg: object, *args: Any, **kwargs: Any) -> None:
        """Log for debugging."""
        super().debug(msg, *args, **kwargs)
