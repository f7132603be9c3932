"""Readiness: named questions to the other parts, and what is missing; one of them calls our own port as clients do."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence

from gpu2dra_webhook.settings import ANY_ADDRESS
from gpu2dra_webhook.tls import client_context

_log = logging.getLogger(__name__)

PROBE_INTERVAL, PROBE_RETRY, PROBE_TIMEOUT = 10.0, 1.0, 5.0

_LOOPBACK: Mapping[str, Sequence[str]] = {"0.0.0.0": ("127.0.0.1",), ANY_ADDRESS: ("::1", "127.0.0.1")}  # noqa: S104
"""Where one reaches a port that is open at every address; a machine may lack one of two."""

Check = Callable[[], Sequence[str]]
"""Returns what is missing; nothing when all is well."""


class Readiness:
    """What must hold before the API server may send reviews (`required`), and what is only worth knowing (`details`).

    A detail must not take replicas out of the Service: while a DeviceClass is missing, pods are answered, with the
    reason why they are not converted.
    """

    def __init__(self, required: Mapping[str, Check], details: Mapping[str, Check]) -> None:
        self._required = required
        self._details = details
        self._stopping = False

    def stop(self) -> None:
        """Be not ready any more, for good."""
        self._stopping = True

    def missing(self) -> dict[str, list[str]]:
        """Return what is missing, by the name of the check; nothing when ready."""
        found = _ask(self._required)
        return {"stopping": ["the server ends; others answer"]} | found if self._stopping else found

    def details(self) -> dict[str, list[str]]:
        """Return what is worth knowing, by name."""
        return _ask(self._details)

    def names(self) -> list[str]:
        """Return the names of all checks."""
        return [*self._required, *self._details]


def _ask(checks: Mapping[str, Check]) -> dict[str, list[str]]:
    answers = {}
    for name, check in checks.items():
        try:
            answers[name] = list(check())
        except Exception:  # noqa: BLE001 - one broken check must not hide what the others find
            _log.exception("readiness check failed", extra={"check": name})
            answers[name] = ["the check failed; see the log"]
    return {name: found for name, found in answers.items() if found}


class SelfProbe:
    """Calls /livez on our own port as an API server would: a handshake that verifies the certificate for `name`.

    A loop of its own does it, since anybody may ask for readiness and a handshake costs more than its answer.
    """

    def __init__(self, bind_address: str, name: str, trust: Callable[[], bytes], *, asks: bool) -> None:
        """`trust` gives the certificates that verify ours; `asks`: whether one may ask without a certificate."""
        self._hosts = _LOOPBACK.get(bind_address, (bind_address,))
        self._name = name
        self._trust = trust
        self._asks = asks
        self._stopped = threading.Event()
        self._found: tuple[str, ...] = ("not tried yet",)

    def found(self) -> tuple[str, ...]:
        """Return what was wrong when it was tried last."""
        return self._found

    def start(self, port: int) -> None:
        """Begin to call: every second until it works, then once in an interval."""
        threading.Thread(target=self._run, args=(port,), name="self-probe", daemon=True).start()

    def stop(self) -> None:
        """Call no more."""
        self._stopped.set()

    def _run(self, port: int) -> None:
        pause = 0.0
        while not self._stopped.wait(pause):
            self._found = self.probe(port)
            pause = PROBE_RETRY if self._found else PROBE_INTERVAL

    def probe(self, port: int) -> tuple[str, ...]:
        """Call once; return what is wrong."""
        request = f"GET /livez HTTP/1.1\r\nHost: {self._name}\r\nConnection: close\r\n\r\n"
        try:
            context = client_context()
            # Where we know only the chain that we serve, it has to do as its own authority.
            context.load_verify_locations(cadata=self._trust().decode("ascii"))
            with (
                self._connection(port) as plain,
                context.wrap_socket(plain, server_hostname=self._name) as secure,
            ):
                if not self._asks:
                    return ()
                secure.sendall(request.encode("ascii"))
                answer = secure.recv(64)
        except (OSError, ValueError) as error:
            return (f"no connection to our own port: {error}",)
        return () if answer.startswith(b"HTTP/1.1 200 ") else ("our own port does not answer",)

    def _connection(self, port: int) -> socket.socket:
        *others, last = self._hosts
        for host in others:
            with contextlib.suppress(OSError):
                return socket.create_connection((host, port), timeout=PROBE_TIMEOUT)
        return socket.create_connection((last, port), timeout=PROBE_TIMEOUT)
