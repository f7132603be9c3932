"""Certificates that somebody else makes (cert-manager, an administrator) and the kubelet puts into a folder.

The folder holds `tls.crt` (the leaf first), `tls.key` and, if wanted, `ca.crt`. It is read again every few seconds;
what cannot be used is refused and the pair in use stays. Asked to keep the caBundle as well, a pair of a new authority
waits until the API servers trust that one.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509

from gpu2dra_webhook.certificates.authority import CertificateError, Leaf, parse
from gpu2dra_webhook.certificates.bundle import BundleKeeper, Configuration
from gpu2dra_webhook.certificates.clients import client_check
from gpu2dra_webhook.certificates.rotation import Authorities, Since, fingerprints
from gpu2dra_webhook.certificates.serving import Endpoint, server_names
from gpu2dra_webhook.certificates.turns import Complaints, Turns
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.cluster.errors import ApiError
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import Settings

if TYPE_CHECKING:
    import ssl

_log = logging.getLogger(__name__)

_POLL = 5.0
_PROPAGATION = 300.0


@dataclass(frozen=True, slots=True)
class Pair:
    """What a folder held: the leaf with chain and key, what verifies it, and the names that it is for."""

    leaf: Leaf
    authorities: Authorities
    trust: bytes
    names: tuple[str, ...]

    def covers(self, host: str) -> bool:
        """Whether the leaf is for this name; `*` stands for one label."""
        return host in self.names or f"*.{host.partition('.')[2]}" in self.names


def read_pair(folder: Path) -> Pair:
    """Read a folder as the kubelet fills it; CertificateError when something in it is missing or no certificate."""
    # The kubelet changes all files at once, by exchanging the link `..data`: all of them have to come from one side.
    linked = folder / "..data"
    source = linked.resolve() if linked.exists() else folder
    try:
        certificates, key = (source / "tls.crt").read_bytes(), (source / "tls.key").read_bytes()
        ca = (source / "ca.crt").read_bytes() if (source / "ca.crt").exists() else b""
    except OSError as error:
        raise CertificateError(f"{folder}: {error.strerror}: {Path(error.filename).name}") from error
    try:
        chain = x509.load_pem_x509_certificates(certificates)
        names = chain[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        authorities = parse(ca, b"")
    except (ValueError, CertificateError, x509.ExtensionNotFound) as error:
        raise CertificateError(f"{folder}: tls.crt or ca.crt is no certificate that can be used: {error}") from error
    begins, ends = chain[0].not_valid_before_utc.timestamp(), chain[0].not_valid_after_utc.timestamp()
    return Pair(
        Leaf(certificates + b"\n" + key, begins, ends),
        authorities,
        ca or certificates,
        (*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))),
    )


class FromFiles(Turns):
    """Certificates from a folder. See the protocol `Certificates`.

    With `api` and `settings.manage_ca_bundle` the caBundle is kept right, too; else that is cert-manager's work.
    """

    def __init__(
        self,
        settings: Settings,
        metrics: Metrics,
        api: Api | None = None,
        clock: Callable[[], float] = time.time,
        propagation: float = _PROPAGATION,
    ) -> None:
        """Load the pair; CertificateError when there is none to use, or the client CA cannot be read."""
        super().__init__("certificates", metrics)
        if settings.certificate_dir is None:
            raise CertificateError("Certificates from files need the folder that they are in (--certificate-dir).")
        self._folder = settings.certificate_dir
        self._clock = clock
        self._names = server_names(settings)
        self._propagation = propagation
        self._endpoint = Endpoint(clock, self._reread, client_check(settings))
        self._keeper = (
            BundleKeeper(api, settings.webhook_configuration, metrics, clock)
            if api and settings.manage_ca_bundle
            else None
        )
        self._changes = self._keeper.watch(self.wake) if self._keeper else None
        self._configuration: Configuration | None = None
        self._in_bundle = Since()
        self._complaints = Complaints(_log)
        self._pair = read_pair(self._folder)
        if self._keeper and not self._pair.authorities:
            raise CertificateError(f"{self._folder}: ca.crt is missing, and without it the caBundle cannot be kept.")
        self._use(self._pair)

    def start(self) -> None:
        """Begin; returns at once."""
        super().start()
        if self._changes:
            self._changes.start()

    def stop(self) -> None:
        """End what `start` began."""
        if self._changes:
            self._changes.stop()
        super().stop()

    def ssl_context(self) -> ssl.SSLContext:
        """Return the one context."""
        return self._endpoint.context

    def trust(self) -> bytes:
        """Return the certificates, as PEM, that verify our own leaf: `ca.crt`, else the chain itself."""
        return self._pair.trust

    def expires_at(self) -> float:
        """Return when the served leaf ends, in seconds since the epoch."""
        return self._pair.leaf.ends

    def problems(self) -> tuple[str, ...]:
        """Return why API servers would not accept our leaf."""
        pair, configuration = self._pair, self._configuration
        found = []
        if not pair.leaf.valid(self._clock()):
            found.append(f"{self._folder}: tls.crt has expired or is not valid yet")
        if not any(pair.covers(name) for name in self._names):
            found.append(f"{self._folder}: tls.crt is not for {self._names[0]}")
        if configuration and not fingerprints(pair.authorities) <= configuration.trusted:
            found.append("the caBundle does not hold ca.crt")
        return tuple(found)

    def turn(self) -> float:
        """Look at the folder, and at the caBundle if it is ours to keep."""
        now = self._clock()
        try:
            pair = read_pair(self._folder)
            if pair != self._pair and self._may_use(pair, now):
                self._use(pair)
            self._keep(pair, now)
        except (CertificateError, ApiError) as error:
            if self._complaints.tell(f"{error}; the certificate in use stays.", now):
                self._metrics.certificate_reloaded("error")
        else:
            self._complaints.clear()
        self._endpoint.reload_clients()
        return min(_POLL, self._propagation)

    def _may_use(self, pair: Pair, now: float) -> bool:
        """Whether the API servers trust a new pair; cert-manager, who keeps the caBundle otherwise, sees to that."""
        if self._configuration is None or not self._pair.leaf.valid(now):
            return True
        new = fingerprints(pair.authorities) - fingerprints(self._pair.authorities)
        return new <= self._in_bundle.for_at_least(self._propagation, now)

    def _keep(self, pair: Pair, now: float) -> None:
        """Keep the caBundle, for the pair in use and for the one that waits."""
        if self._keeper is None:
            return
        self._configuration = configuration = self._keeper.read()
        if configuration:
            both = tuple(dict.fromkeys((*self._pair.authorities, *pair.authorities)))
            # Replicas see a new folder up to minutes apart: what one has added another must not take away.
            self._configuration = configuration = self._keeper.put(configuration, both, exact=False)
            self._in_bundle.look(configuration.trusted, now)

    def _use(self, pair: Pair) -> None:
        try:
            self._endpoint.use(pair.leaf)
        except CertificateError as error:
            raise CertificateError(f"{self._folder}: {error}") from error
        self._pair = pair
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(pair.leaf.ends))
        _log.info("%s: serving a certificate that is valid until %s", self._folder, until)
        self._metrics.certificate_reloaded("ok")
        self._metrics.certificate_expires(pair.leaf.ends)

    def _reread(self, now: float) -> Leaf | None:
        """Look at the folder in a handshake, when the leaf in use has expired; None when there is nothing better."""
        try:
            pair = read_pair(self._folder)
        except CertificateError:
            return None
        return pair.leaf if pair.leaf.valid(now) else None
