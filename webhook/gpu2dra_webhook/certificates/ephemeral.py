"""Certificates of an authority that lives in this process only: for the demo and for tests. No cluster, no files."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gpu2dra_webhook.certificates.authority import Leaf, create, issue
from gpu2dra_webhook.certificates.clients import ClientCheck
from gpu2dra_webhook.certificates.serving import Endpoint

if TYPE_CHECKING:
    import ssl

_DAY = 86_400.0
_YEAR = 365 * _DAY


class Ephemeral:
    """Makes its leaf at once, and the next one in a handshake. See the protocol `Certificates`."""

    def __init__(
        self, names: Iterable[str], clients: ClientCheck | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._names = tuple(names)
        self._authority = create(clock(), _YEAR)
        self._endpoint = Endpoint(clock, self._issue, clients)
        self._endpoint.use(self._issue(clock()))

    def start(self) -> None:
        """Nothing has to go on in the background."""

    def stop(self) -> None:
        """Nothing goes on in the background."""

    def ssl_context(self) -> ssl.SSLContext:
        """Return the one context."""
        return self._endpoint.context

    def problems(self) -> tuple[str, ...]:
        """Return nothing: there is always a leaf."""
        return ()

    def trust(self) -> bytes:
        """Return the authority's certificate as PEM."""
        return self._authority.pem

    def expires_at(self) -> float:
        """Return when the served leaf ends, in seconds since the epoch."""
        return self._endpoint.leaf.ends if self._endpoint.leaf else 0.0

    def _issue(self, now: float) -> Leaf:
        return issue(self._authority, self._names, now, _DAY)
