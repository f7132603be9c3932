"""The webhook's own certificates: authorities in a Secret, a leaf in memory, the caBundle kept right. No leader.

Each replica takes turns of its own. In a turn it reads the webhook configuration, then the Secret (in this order, see
`bundle`), takes the steps that `rotation` decides on, each guarded by what was read, and serves a leaf of an authority
that the API servers trust. When the API server is away it goes on with what it has.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from gpu2dra_webhook.certificates import rotation
from gpu2dra_webhook.certificates.authority import BACKDATE, CertificateError, Leaf, create, issue, to_pem
from gpu2dra_webhook.certificates.bundle import BundleKeeper, Configuration
from gpu2dra_webhook.certificates.clients import client_check
from gpu2dra_webhook.certificates.rotation import Since, Situation
from gpu2dra_webhook.certificates.secret import AuthoritySecret, Stored
from gpu2dra_webhook.certificates.serving import Endpoint, server_names
from gpu2dra_webhook.certificates.turns import Complaints, Turns
from gpu2dra_webhook.cluster.backoff import Backoff
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.cluster.errors import AlreadyExists, ApiError, Conflict, Refused
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import Settings

if TYPE_CHECKING:
    import ssl

_log = logging.getLogger(__name__)

_POLL = 10.0
_PROPAGATION = 300.0
"""Seconds until every API server surely knows a caBundle. They watch it, so it is far less."""
_CONFLICT = (0.05, 0.5)
_CLOCK_CHECKED = 300.0
_CLOCK_TOLERANCE = BACKDATE / 2


class SelfManaged(Turns):
    """Certificates that need nothing but the API server. See the protocol `Certificates`."""

    def __init__(
        self,
        settings: Settings,
        api: Api,
        metrics: Metrics,
        clock: Callable[[], float] = time.time,
        propagation: float | None = None,
    ) -> None:
        """Send nothing yet; CertificateError when the client CA cannot be read."""
        super().__init__("certificates", metrics)
        self._settings = settings
        self._clock = clock
        self._names = server_names(settings)
        self._endpoint = Endpoint(clock, self._issue, client_check(settings))
        self._secret = AuthoritySecret(api, settings.namespace, f"{settings.service_name}-ca")
        self._bundle = BundleKeeper(api, settings.webhook_configuration, metrics, clock)
        self._changes = self._bundle.watch(self.wake)
        # Authorities that live for minutes, as in tests, cannot wait as long as those that live for a year.
        self._propagation = propagation or min(_PROPAGATION, settings.ca_lifetime / 20)
        self._poll = min(_POLL, self._propagation)
        # A colleague that still signs with an old authority was silent for no longer than this, or begins anew.
        self._silence = self._propagation + 3 * self._poll
        self._retirement = 2 * settings.leaf_lifetime + self._silence + self._propagation
        self._in_bundle, self._without_key = Since(), Since()
        self._situation = Situation(now=clock())
        self._configuration: Configuration | None = None
        self._confirmed = clock()
        self._clock_checked = float("-inf")
        self._ahead = 0.0
        self._told: Leaf | None = None
        self._complaints = Complaints(_log)
        self._backoff = Backoff(0.5, self._poll)

    def start(self) -> None:
        """Begin; returns at once."""
        super().start()
        self._changes.start()

    def stop(self) -> None:
        """End what `start` began."""
        self._changes.stop()
        super().stop()

    def ssl_context(self) -> ssl.SSLContext:
        """Return the one context; handshakes are refused until there is a leaf."""
        return self._endpoint.context

    def trust(self) -> bytes:
        """Return the certificates, as PEM, that verify our own leaf."""
        return to_pem(self._situation.known)[0]

    def expires_at(self) -> float:
        """Return when the served leaf ends, in seconds since the epoch; 0 without one."""
        return self._endpoint.leaf.ends if self._endpoint.leaf else 0.0

    def problems(self) -> tuple[str, ...]:
        """Return why API servers would not accept our leaf now, or soon."""
        leaf, configuration, now = self._endpoint.leaf, self._configuration, self._clock()
        found = []
        if leaf is None or not (leaf.valid(now) or self._issue(now)):
            found.append(f"no valid certificate: {self._complaints.current or 'it is being made'}")
        elif configuration and leaf.issuer not in configuration.trusted:
            found.append(f"{self._bundle.title} does not hold our CA in every caBundle: {self._complaints.current}")
        # From then on the others may take away the authority that we still sign with.
        if now - self._confirmed > self._settings.leaf_lifetime:
            found.append(f"{self._secret.title} was not read for too long: {self._complaints.current}")
        if abs(self._ahead) > _CLOCK_TOLERANCE:
            found.append(self._clock_is_off())
        return tuple(found)

    def turn(self) -> float:
        """Bring Secret, caBundle and leaf up to date, as far as the API server lets us."""
        now = self._clock()
        try:
            self._reconcile(now)
        except (AlreadyExists, Conflict):
            pause = random.uniform(*_CONFLICT)  # noqa: S311 - no secret depends on it
        except (ApiError, CertificateError) as error:
            self._complaints.tell(str(error), now)
            pause = self._backoff.next()
        else:
            self._complaints.clear()
            self._backoff.reset()
            pause = self._poll
        self._renew(now)
        return pause

    def _reconcile(self, now: float) -> None:
        configuration = self._bundle.read()
        try:
            stored = self._secret.read()
        except (ApiError, CertificateError):
            # Others may know better what has to be in there, so add what our own leaf needs and take nothing away.
            self._put(configuration, now, exact=False)
            raise
        self._observe(configuration, now)
        signer = self._situation.signer if now - self._confirmed <= self._silence else None
        self._situation = replace(self._situation, stored=stored.authorities, signer=signer)
        self._check_clock(now, at_least_every=_CLOCK_CHECKED)
        self._step(stored, now)
        self._confirmed = now
        self._put(configuration, now, exact=True)

    def _step(self, stored: Stored, now: float) -> None:
        """Take the next step of the rotation, if one is due; Conflict or AlreadyExists when somebody was faster."""
        held = rotation.plan(self._situation, lambda: create(now, self._settings.ca_lifetime))
        if not rotation.same(held, stored.authorities):
            self._check_clock(now, at_least_every=0)
            if abs(self._ahead) > _CLOCK_TOLERANCE:
                raise CertificateError(f"{self._clock_is_off()}, so {self._secret.title} is left as it is.")
            self._secret.write(stored, held)
            _log.info("%s: %s", self._secret.title, "; ".join(rotation.changes(stored.authorities, held)))
        self._without_key.look({one.fingerprint for one in held if not one.key}, now)
        self._situation = replace(self._situation, known=held)

    def _put(self, configuration: Configuration | None, now: float, *, exact: bool) -> None:
        if configuration and self._situation.known and self._settings.manage_ca_bundle:
            configuration = self._bundle.put(configuration, self._situation.known, exact=exact)
        self._observe(configuration, now)

    def _observe(self, configuration: Configuration | None, now: float) -> None:
        """Take down what the API servers trust, as read just now."""
        bundled = configuration.trusted if configuration else frozenset()
        found = tuple(one for one in configuration.found if one.usable(now)) if configuration else ()
        self._configuration = configuration
        self._in_bundle.look(bundled, now)
        self._situation = replace(
            self._situation,
            now=now,
            found=found,
            bundled=bundled,
            trusted=self._in_bundle.for_at_least(self._propagation, now),
            retired=self._without_key.for_at_least(self._retirement, now),
        )

    def _renew(self, now: float) -> None:
        """Serve a leaf of the right authority, a new one when two thirds of its life are over."""
        situation = replace(self._situation, now=now)
        signer = rotation.choose(situation.known, situation)
        self._situation = replace(situation, signer=signer or situation.signer)
        leaf = self._endpoint.leaf
        if signer and (
            leaf is None
            or leaf.issuer != signer.fingerprint
            or not leaf.valid(now)
            or (now >= leaf.renew_at and leaf.ends < signer.ends)
        ):
            self._endpoint.use(issue(signer, self._names, now, self._settings.leaf_lifetime))
        self._endpoint.reload_clients()
        self._tell()

    def _issue(self, now: float) -> Leaf | None:
        """Sign a leaf in a handshake, so without a look at the API server; None when that cannot be done."""
        signer = self._situation.signer
        if signer is None or signer.key is None or not signer.usable(now):
            return None
        return issue(signer, self._names, now, self._settings.leaf_lifetime)

    def _tell(self) -> None:
        leaf = self._endpoint.leaf
        if leaf and leaf is not self._told:
            until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(leaf.ends))
            _log.info("Serving a certificate signed by %s, valid until %s", leaf.issuer[:8], until)
            self._metrics.certificate_reloaded("ok")
            self._metrics.certificate_expires(leaf.ends)
            self._told = leaf

    def _check_clock(self, now: float, *, at_least_every: float) -> None:
        if not 0 <= now - self._clock_checked < at_least_every:
            with contextlib.suppress(Refused):  # who is not allowed to ask is not stopped by that
                self._ahead = now - self._secret.server_time()
            self._clock_checked = now

    def _clock_is_off(self) -> str:
        return f"The clock of this machine is {self._ahead:+.0f} s from the API server's"
