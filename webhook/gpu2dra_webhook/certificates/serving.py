"""The one TLS context that the server listens with, and the leaf in it, which is exchanged while connections go on.

The leaf is chosen anew in each handshake (OpenSSL calls back with the client's greeting), which gives three things that
`load_cert_chain` into a context in use does not: a pair that does not fit together never replaces one that does, a leaf
of another key type does not stay behind and goes on being offered, and no leaf is served after its end, even by a
process that was frozen over it. The call back must not switch greenlets, so nothing in it waits, locks or logs.
"""

from __future__ import annotations

import contextlib
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator

from gpu2dra_webhook.certificates.authority import CertificateError, Leaf
from gpu2dra_webhook.certificates.clients import ClientCheck
from gpu2dra_webhook.certificates.turns import Complaints
from gpu2dra_webhook.settings import Settings

_log = logging.getLogger(__name__)

_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""For TLS 1.2; those of 1.3 are all good."""

Renew = Callable[[float], Leaf | None]


def server_names(settings: Settings) -> tuple[str, ...]:
    """Return the names that clients may know the webhook by; API servers use the first."""
    service = f"{settings.service_name}.{settings.namespace}"
    return (f"{service}.svc", f"{service}.svc.cluster.local", service, *settings.server_names)


class Endpoint:
    """Holds the context and the leaf in use.

    `renew` returns a leaf that is valid at the time that it is given, or None; it is called in handshakes, so it has to
    be quick and to obey the rule above.
    """

    def __init__(self, clock: Callable[[], float], renew: Renew, clients: ClientCheck | None = None) -> None:
        self.leaf: Leaf | None = None
        self._clock = clock
        self._renew = renew
        self._clients = clients
        self._complaints = Complaints(_log)
        self._current: ssl.SSLContext | None = None
        self.context = self._new_context()
        self.context.sni_callback = self._greeted
        if clients:
            # Typeshed has the class as a plain attribute of the class; the documentation allows it on an instance.
            self.context.sslsocket_class = clients.socket_class()

    def use(self, leaf: Leaf) -> None:
        """Serve this leaf from the next handshake on; CertificateError, and no change, when it cannot be loaded."""
        context = self._new_context()
        with _private_file(leaf.chain) as path:
            try:
                context.load_cert_chain(path, password=_no_password)
            except (ssl.SSLError, ValueError) as error:
                raise CertificateError(f"certificate and key do not go together ({_reason(error)})") from error
        self.leaf, self._current = leaf, context

    def reload_clients(self) -> None:
        """Look whether the file of the client CA has changed; a broken one changes nothing and is logged."""
        try:
            if self._clients and self._clients.reload() and self.leaf:
                self.use(self.leaf)
        except CertificateError as error:
            self._complaints.tell(str(error), self._clock())
        else:
            self._complaints.clear()

    def _greeted(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        """Give a connection the leaf in use; without a valid one, the TLS alert that it ends with."""
        try:
            now = self._clock()
            if not (self.leaf and self.leaf.lasts(now)) and (leaf := self._renew(now)):
                self.use(leaf)
            if self.leaf is None or self._current is None:
                return ssl.ALERT_DESCRIPTION_CERTIFICATE_UNKNOWN
            if not self.leaf.valid(now):
                return ssl.ALERT_DESCRIPTION_CERTIFICATE_EXPIRED
            connection.context = self._current
        except Exception:  # noqa: BLE001 - it would be printed, and the client told nothing; the next turn logs the cause
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        return None

    def _new_context(self) -> ssl.SSLContext:
        # By the module's name: gevent puts classes of its own there.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers(_CIPHERS)
        # The API server keeps connections instead of sessions.
        context.num_tickets = 0
        if self._clients:
            self._clients.configure(context)
        return context


@contextlib.contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """Yield the path of a file that holds `content` for this process alone: in memory, where the system has that."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("gpu2dra-leaf", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:  # the demo on a laptop
        with tempfile.NamedTemporaryFile() as file:
            file.write(content)
            file.flush()
            yield file.name


def _no_password() -> str:
    """Answer in place of the terminal, where OpenSSL would ask for the password of an encrypted key."""
    raise ValueError("the key is encrypted")


def _reason(error: Exception) -> str:
    return (error.reason or str(error)).lower().replace("_", " ") if isinstance(error, ssl.SSLError) else str(error)
