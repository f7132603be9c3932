"""The store of ResourceClaimTemplates: named after their content, there before a pod's admission is answered (R8)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpu2dra import Object
from gpu2dra_webhook.cluster.cache import Key
from gpu2dra_webhook.cluster.flights import Flights
from gpu2dra_webhook.cluster.objects import content_of
from gpu2dra_webhook.cluster.provision import Provider, Wanted

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.ledger import Ledger
    from gpu2dra_webhook.metrics import Metrics

_MARGIN = 0.5
"""Seconds kept of the time that a request has, so that the answer still gets to the API server."""


class ClusterStore:
    """Fulfils `ports.TemplateStore`. Where the cache shows the template nothing is asked of the API server."""

    def __init__(self, ledger: Ledger, provider: Provider, metrics: Metrics) -> None:
        self._ledger = ledger
        self._provider = provider
        self._metrics = metrics
        self._flights = Flights()

    def ensure(self, namespace: str, templates: Sequence[Object], *, timeout: float, dry_run: bool) -> None:
        """Return when each of `templates` exists in `namespace` with an equal canonical spec.

        Nothing is written on `dry_run`, but what the API server would refuse is refused. Raises StoreError, at the
        latest when `timeout` seconds have passed.
        """
        deadline = time.monotonic() + max(timeout - _MARGIN, timeout / 2)
        for each in templates:
            key = Key(namespace, each["metadata"]["name"])
            wanted = Wanted(key, each, content_of(each["spec"]), dry_run)
            if not dry_run:
                self._ledger.hand_out(key)  # before the look: the janitor looks in the opposite order
            if self._is_there(wanted):
                self._metrics.template_cache_hit()
            else:
                flight = (key, wanted.content, dry_run)
                self._flights.run(flight, lambda ends, wanted=wanted: self._provider.provide(wanted, ends), deadline)  # type: ignore[misc]

    def _is_there(self, wanted: Wanted) -> bool:
        if self._ledger.told(wanted.key, wanted.content):
            return True
        seen = self._ledger.cached(wanted.key)
        return seen is not None and wanted.fits(seen) and not (seen.unused_since and not wanted.dry_run)
