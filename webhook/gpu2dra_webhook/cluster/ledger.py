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
_TOLD_FOR = 2.0
_MOST = 10_000


class Ledger:
    """Shared by the store and the janitor of a replica; safe from any thread."""

    def __init__(self, reflector: Reflector[Template], settle: float = SETTLE) -> None:
        self.settle = settle
        self._reflector = reflector
        self._lock = threading.Lock()
        self._handed: dict[Key, float] = {}
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
                self._handed = {known: at for known, at in self._handed.items() if now - at < self.settle}
            self._handed[key] = now

    def handed_out(self, key: Key) -> bool:
        """Whether this replica has handed a template out lately."""
        at = self._handed.get(key)
        return at is not None and time.monotonic() - at < self.settle

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
