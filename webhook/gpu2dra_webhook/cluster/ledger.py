"""What this replica knows of templates: what the cache shows, what it has handed out, what it was told a moment ago."""

from __future__ import annotations

import threading
import time

from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.objects import Template
from gpu2dra_webhook.cluster.reflector import Reflector

TRUSTED_FOR = 150.0
"""Seconds without a sign of life after which the cache is no longer believed: two watches' time."""
SETTLE = 300.0
"""Seconds for which a template that was made or handed out counts as used, whatever pods say."""
NAMED_WITHIN = 30.0
"""Seconds in which a pod for which a template was handed out is there and names it, or never will: an admission takes
no longer."""
_TOLD_FOR = 2.0
_MOST = 10_000


class Ledger:
    """Shared by the store and the janitor of a replica; safe from any thread."""

    def __init__(self, reflector: Reflector[Template], settle: float = SETTLE) -> None:
        self.settle = settle
        self._reflector = reflector
        self._lock = threading.Lock()
        self._handed: dict[Key, tuple[float, float]] = {}
        """When a template was handed out, first and last, without a pause as long as `settle` in between."""
        self._told: dict[tuple[Key, bytes], float] = {}

    @property
    def cache(self) -> Cache[Template]:
        """The templates that the webhook manages, as last seen."""
        return self._reflector.cache

    @property
    def trusted(self) -> bool:
        """Whether the cache is filled and alive."""
        return self._reflector.fresh(TRUSTED_FOR)

    def cached(self, key: Key) -> Template | None:
        """Return what the cache holds of a template, while it can be believed."""
        return self.cache.get(*key) if self.trusted else None

    def hand_out(self, key: Key) -> None:
        """Note that a pod is about to name a template."""
        now = time.monotonic()
        with self._lock:
            if len(self._handed) >= _MOST:
                self._handed = {known: times for known, times in self._handed.items() if now - times[1] < self.settle}
            first, last = self._handed.get(key, (now, now))
            self._handed[key] = (first if now - last < self.settle else now), now

    def handed_out(self, key: Key) -> bool:
        """Whether this replica has handed a template out lately."""
        _, last = self._handed.get(key, (0.0, -self.settle))
        return time.monotonic() - last < self.settle

    def may_be_named_soon(self, key: Key) -> bool:
        """Whether this replica began so short a time ago to hand a template out that no pod need name it yet."""
        first, _ = self._handed.get(key, (-NAMED_WITHIN, 0.0))
        return time.monotonic() - first < min(NAMED_WITHIN, self.settle)

    def last_handed_out(self, key: Key) -> float:
        """Return when this replica has handed a template out for the last time; 0 for never."""
        return self._handed.get(key, (0.0, 0.0))[1]

    def tell(self, key: Key, content: bytes) -> None:
        """Note that the API server itself has just said that a template is there: the cache takes a moment longer."""
        now = time.monotonic()
        with self._lock:
            self._told = {known: until for known, until in self._told.items() if until > now}
            self._told[key, content] = now + _TOLD_FOR

    def told(self, key: Key, content: bytes) -> bool:
        """Whether the API server has said so a moment ago."""
        return self._told.get((key, content), 0.0) > time.monotonic()

    def forget(self, key: Key) -> None:
        """Note that the API server has just said that there is no such template."""
        with self._lock:
            self._told = {known: until for known, until in self._told.items() if known[0] != key}
