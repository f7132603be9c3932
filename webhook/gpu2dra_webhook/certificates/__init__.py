"""The certificate that the webhook serves, where it comes from, and who trusts it.

Three sources, one interface: made by the webhook itself and kept in a Secret (`self_managed`), put into a folder by
cert-manager or an administrator (`from_files`), or made for this process alone (`ephemeral`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Protocol

from gpu2dra_webhook.certificates.authority import CertificateError
from gpu2dra_webhook.certificates.clients import ClientCheck, client_check
from gpu2dra_webhook.certificates.ephemeral import Ephemeral
from gpu2dra_webhook.certificates.files import FromFiles
from gpu2dra_webhook.certificates.selfmanaged import SelfManaged
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import Settings

if TYPE_CHECKING:
    import ssl

__all__ = ["CertificateError", "Certificates", "client_check", "ephemeral", "from_files", "self_managed"]


class Certificates(Protocol):
    """What the server asks of its certificates. Everything but `start` and `stop` is cheap and never blocks."""

    def start(self) -> None:
        """Begin background work, in threads; returns at once."""

    def stop(self) -> None:
        """End it."""

    def ssl_context(self) -> ssl.SSLContext:
        """Return the one context to listen with; its leaf changes while it is in use.

        While there is no leaf, as before the API server was reached for the first time, handshakes are refused.
        """

    def problems(self) -> tuple[str, ...]:
        """Return what keeps API servers from accepting the leaf, in words; nothing when all is well."""

    def trust(self) -> bytes:
        """Return certificates, as PEM, that verify the leaf: for a probe of ourselves.

        Where only the chain is known it holds the leaf itself, so verify with VERIFY_X509_PARTIAL_CHAIN.
        """

    def expires_at(self) -> float:
        """Return when the served leaf ends, in seconds since the epoch; 0 without one."""


def self_managed(
    settings: Settings, api: Api, metrics: Metrics | None = None, clock: Callable[[], float] = time.time
) -> Certificates:
    """Return certificates that the webhook makes itself; CertificateError when the client CA cannot be read."""
    return SelfManaged(settings, api, metrics or Metrics(), clock)


def from_files(settings: Settings, api: Api | None = None, metrics: Metrics | None = None) -> Certificates:
    """Return certificates of `settings.certificate_dir`; CertificateError when they cannot be used.

    With an `api`, and if `settings.manage_ca_bundle` says so, `ca.crt` is kept in the caBundle as well.
    """
    return FromFiles(settings, metrics or Metrics(), api)


def ephemeral(names: Iterable[str], clients: ClientCheck | None = None) -> Certificates:
    """Return certificates for these DNS names and IP addresses, of an authority that ends with this process."""
    return Ephemeral(names, clients)
