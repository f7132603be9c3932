"""Keeps the caBundle of the MutatingWebhookConfiguration right: what API servers trust when they call the webhook.

The configuration is read before the Secret that says what has to be in it, and written only as it was read. So nobody
can put back what a colleague has replaced in between: the colleague's write makes ours a conflict.
"""

from __future__ import annotations

import base64
import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from gpu2dra import Object
from gpu2dra_webhook.certificates.authority import CertificateError, parse, to_pem
from gpu2dra_webhook.certificates.rotation import Authorities, fingerprints
from gpu2dra_webhook.certificates.watching import Changes
from gpu2dra_webhook.cluster.client import Api, path
from gpu2dra_webhook.cluster.errors import ApiError, NotFound
from gpu2dra_webhook.cluster.template_api import MANAGER
from gpu2dra_webhook.metrics import Metrics

_log = logging.getLogger(__name__)

_COLLECTION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
_TIMEOUT = 5.0
# Somebody else may want it otherwise, a GitOps tool for one: then we neither give up nor fight without end.
_PATCHES = 5
_PATCHES_WITHIN = 60.0


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was read of the webhook configuration: whom each entry trusts, by the entry's name."""

    resource_version: str
    entries: Mapping[str, Authorities]
    writers: tuple[str, ...] = field(default=(), compare=False)
    """Field managers of the object, beside ourselves."""

    @property
    def found(self) -> Authorities:
        """Whom any entry trusts."""
        return tuple(dict.fromkeys(one for entry in self.entries.values() for one in entry))

    @property
    def trusted(self) -> frozenset[str]:
        """Fingerprints of those that every entry trusts."""
        each = [fingerprints(entry) for entry in self.entries.values()]
        return frozenset.intersection(*each) if each else frozenset()


class BundleKeeper:
    """Reads and patches one configuration. What goes over the network may raise ApiError."""

    def __init__(self, api: Api, name: str, metrics: Metrics, clock: Callable[[], float]) -> None:
        self.title = f"MutatingWebhookConfiguration {name}"
        self._name = name
        self._api = api
        self._path = path(_COLLECTION, name)
        self._metrics = metrics
        self._clock = clock
        self._patched: deque[float] = deque(maxlen=_PATCHES)

    def watch(self, changed: Callable[[], None]) -> Changes:
        """Return a watch, not yet started, that calls `changed` whenever somebody has written the configuration."""
        return Changes(self._api, _COLLECTION, self._name, self._metrics, changed)

    def read(self) -> Configuration | None:
        """Return the configuration as it is now; None when it does not exist, or calls nobody."""
        try:
            found = self._api.read("GET", self._path, timeout=_TIMEOUT)
        except NotFound:
            return None
        return _configuration(found) if found.get("webhooks") else None

    def put(self, before: Configuration, authorities: Authorities, *, exact: bool) -> Configuration:
        """Have every entry trust these authorities, and return the configuration as the API server gives it back.

        `exact`: and nobody else; otherwise unexpired certificates that are there stay. Conflict when somebody else has
        written meanwhile. When it has been changed again and again, it is left for a while and returned as it is.
        """
        now = self._clock()
        wanted = {
            name: authorities if exact else (*authorities, *(one for one in entry if one.usable(now)))
            for name, entry in before.entries.items()
        }
        wrong = {name: new for name, new in wanted.items() if set(new) != set(before.entries[name])}
        if not wrong:
            return before
        if len(self._patched) == _PATCHES and now - self._patched[0] < _PATCHES_WITHIN:
            _log.warning(
                "%s: the caBundle was put right %d times in a minute, waiting; others who write this object: %s. "
                "Tell the one that resets it to ignore /webhooks/*/clientConfig/caBundle",
                self.title, _PATCHES, ", ".join(before.writers),
            )  # fmt: skip
            self._metrics.ca_bundle_patched("error")
            return before
        return self._patch(before, wrong, now)

    def _patch(self, before: Configuration, entries: Mapping[str, Authorities], now: float) -> Configuration:
        patch = {
            "metadata": {"resourceVersion": before.resource_version},
            "webhooks": [
                {"name": name, "clientConfig": {"caBundle": _encoded(authorities)}}
                for name, authorities in entries.items()
            ],
        }
        try:
            patched = self._api.read(
                "PATCH", self._path, patch, content_type=_STRATEGIC_MERGE_PATCH, query={"fieldManager": MANAGER},
                timeout=_TIMEOUT,
            )  # fmt: skip
        except ApiError:
            self._metrics.ca_bundle_patched("error")
            raise
        self._patched.append(now)
        self._metrics.ca_bundle_patched("ok")
        after = _configuration(patched)
        _log.info("%s: caBundle set to %s", self.title, ", ".join(sorted(name[:8] for name in after.trusted)))
        return after


def _configuration(found: Object) -> Configuration:
    metadata = found["metadata"]
    managers = {str(entry.get("manager", "")) for entry in metadata.get("managedFields") or ()}
    return Configuration(
        metadata["resourceVersion"],
        {entry["name"]: _decoded(entry["clientConfig"].get("caBundle") or "") for entry in found["webhooks"]},
        tuple(sorted(managers - {MANAGER})),
    )


def _encoded(authorities: Authorities) -> str:
    return base64.b64encode(to_pem(tuple(dict.fromkeys(authorities)))[0]).decode()


def _decoded(bundle: str) -> Authorities:
    """Return whom a caBundle trusts; nobody when an API server could not read it either."""
    try:
        return parse(base64.b64decode(bundle), b"")
    except CertificateError:
        return ()
