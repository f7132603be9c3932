"""Processes that run for a test session: started with a log file, watched, and stopped whatever happens."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from controlplane.leash import leashed

if TYPE_CHECKING:
    from pathlib import Path

_POLL = 0.02
_GRACE = 3.0  # seconds between SIGTERM and SIGKILL: nothing that these processes hold is worth more
_TAIL = 30


class DaemonError(Exception):
    """A process ended by itself, or did not become ready in time; the message holds the end of its log."""


class Daemons:
    """A group of processes that live and die together; each writes to `<folder>/<name>.log`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._told_to_end: set[str] = set()

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        """Start a process in a session of its own, so that Ctrl-C reaches it only through `stop`."""
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                leashed(command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | (environment or {}),
                start_new_session=True,
            )

    def log(self, name: str) -> Path:
        """Return where a process writes."""
        return self.folder / f"{name}.log"

    def tail(self, name: str) -> str:
        """Return the last lines of a log."""
        return "\n".join(self.log(name).read_text(errors="replace").splitlines()[-_TAIL:])

    def check(self) -> None:
        """Raise DaemonError when a process has ended that nobody told to."""
        for name, process in self._running.items():
            if process.poll() is not None and name not in self._told_to_end:
                msg = f"{name} ended with {process.returncode}; {self.log(name)} ends with\n{self.tail(name)}"
                raise DaemonError(msg)

    def wait_until(self, what: str, ready: Callable[[], bool], deadline: float = 60.0) -> None:
        """Poll until something is ready; DaemonError when a process ends first or the seconds have passed."""
        ends = time.monotonic() + deadline
        while not ready():
            self.check()
            if time.monotonic() > ends:
                tails = "\n".join(f"--- {self.log(name)}\n{self.tail(name)}" for name in self._running)
                msg = f"{what}: not within {deadline:.0f} s; the logs end with\n{tails}"
                raise DaemonError(msg)
            time.sleep(_POLL)

    def stop(self, *names: str) -> None:
        """Stop these processes, or all: SIGTERM in the opposite order of their start, SIGKILL after a short grace."""
        chosen = [name for name in reversed(self._running) if not names or name in names]
        processes = [self._running.pop(name) for name in chosen]
        for process in processes:
            _signal(process, signal.SIGTERM)
        ends = time.monotonic() + _GRACE
        for process in processes:
            try:
                process.wait(max(0.0, ends - time.monotonic()))
            except subprocess.TimeoutExpired:
                _signal(process, signal.SIGKILL)
                process.wait()

    def terminate(self, name: str) -> None:
        """Send SIGTERM to a process, but not to its children, and do not wait."""
        self._told_to_end.add(name)
        self._running[name].send_signal(signal.SIGTERM)

    def wait_until_ended(self, name: str, deadline: float) -> int:
        """Return the exit code of a process that was told to end; TimeoutError when it runs on."""
        try:
            return self._running[name].wait(deadline)
        except subprocess.TimeoutExpired:
            msg = f"{name} has not ended within {deadline:g} s; its log ends with\n{self.tail(name)}"
            raise TimeoutError(msg) from None

    def kill(self, name: str) -> None:
        """End a process and its children at once."""
        _signal(self._running[name], signal.SIGKILL)
        self._running.pop(name).wait()

    @contextlib.contextmanager
    def paused(self, name: str) -> Iterator[None]:
        """Stop a process with SIGSTOP, as a machine does that is suspended, and let it go on at the end."""
        _signal(self._running[name], signal.SIGSTOP)
        try:
            yield
        finally:
            _signal(self._running[name], signal.SIGCONT)

    def pids(self) -> dict[str, int]:
        """Return the process ids by name."""
        return {name: process.pid for name, process in self._running.items()}


def free_port() -> int:
    """Return a TCP port of the loopback interface that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)
