"""Where a run tells what it found: streams that nothing in a manifest can steer and that may close at any time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

import click

_DELAY, _INTERVAL = 0.5, 0.1
"""Seconds until progress is shown, and between two pictures of it."""
_ERASE_LINE = "\r\x1b[2K"


def printable(text: str) -> str:
    """Return `text` on one line without control characters: what stands in a manifest must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


class Terminal:
    """Standard output and standard error of one run.

    When the reader of standard output has gone (`| head -1`), the rest is dropped and `gone` says so; a run that
    writes files goes on to its end. Other errors of writing are raised as OSError.
    """

    def __init__(self, *, color: bool, progress: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.gone = False
        self._color = color
        self._clock = clock
        self._done = 0
        self._next = clock() + _DELAY if progress and _is_terminal(sys.stderr) else float("inf")
        self._shown = False

    def colors(self, *, err: bool = False) -> bool:
        """Whether a stream shows colours."""
        return self._color and _is_terminal(sys.stderr if err else sys.stdout)

    def style(self, text: str, color: str | None = None, *, bold: bool = False, err: bool = False) -> str:
        """Return `text` styled where the stream shows it."""
        return click.style(text, fg=color, bold=bold or None) if self.colors(err=err) else text

    def line(self, text: str, *, err: bool = False) -> None:
        """Print a line to standard output, or with `err` to standard error."""
        self._clear()
        self._write(sys.stderr if err else sys.stdout, f"{text}\n")

    def raw(self, data: bytes) -> None:
        """Write bytes to standard output, as they are."""
        self._clear()
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            self._lose(sys.stdout)

    def advance(self) -> None:
        """Count one more file, and show the count now and then on a terminal."""
        self._done += 1
        if self._clock() >= self._next:
            self._next = self._clock() + _INTERVAL
            self._shown = True
            sys.stderr.write(f"{_ERASE_LINE}{self._done} files looked at")
            sys.stderr.flush()

    def close(self) -> None:
        """Take the progress away and hand on what is buffered."""
        self._clear()
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            self._lose(sys.stdout)

    def _write(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
        except BrokenPipeError:
            self._lose(stream)

    def _lose(self, stream: TextIO) -> None:
        self.gone = True
        discard(stream)

    def _clear(self) -> None:
        if self._shown:
            self._shown = False
            sys.stderr.write(_ERASE_LINE)
            sys.stderr.flush()


def _is_terminal(stream: TextIO) -> bool:
    return not stream.closed and stream.isatty()


def discard(stream: TextIO) -> None:
    """Let what is still in `stream` go nowhere: the interpreter flushes it once more at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def prepare_streams() -> None:
    """Make standard output and error take any text, whatever their encoding, even where they are closed.

    To be called before any file is opened, since that would get the number of a closed stream.
    """
    for name in ("stdin", "stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            mode = "r" if name == "stdin" else "w"
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - lives as long as we do
        elif name != "stdin" and hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
