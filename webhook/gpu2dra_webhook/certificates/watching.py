"""A watch of one object that tells of its changes and holds nothing: whoever is told reads the object anew.

Not the caches' reflector: that one lists first, a right that is not needed here.
"""

from __future__ import annotations

import contextlib
import logging
import random
from collections.abc import Callable

from gpu2dra_webhook.certificates.turns import Turns
from gpu2dra_webhook.cluster.backoff import Backoff
from gpu2dra_webhook.cluster.client import Api, Query, Watch
from gpu2dra_webhook.cluster.errors import ApiError
from gpu2dra_webhook.metrics import Metrics

_log = logging.getLogger(__name__)

_SECONDS = 240
_QUIET_MARGIN = 15.0
_BETWEEN = 1.0
"""Seconds between two watches, lest a broken proxy that ends each at once makes this a hot loop."""


class Changes(Turns):
    """Calls `changed` after each change of an object, and whenever a watch begins."""

    def __init__(self, api: Api, collection: str, name: str, metrics: Metrics, changed: Callable[[], None]) -> None:
        super().__init__(f"watch-{name}", metrics)
        self._api = api
        self._collection = collection
        self._query = {"fieldSelector": f"metadata.name={name}"}
        self._changed = changed
        self._backoff = Backoff(_BETWEEN, 10.0)
        self._open: Watch | None = None

    def stop(self) -> None:
        """End the watch."""
        self._stopped.set()
        if watch := self._open:
            watch.end()
        super().stop()

    def turn(self) -> float:
        """Watch until the API server ends it."""
        seconds = random.randint(_SECONDS, _SECONDS + _SECONDS // 4)  # noqa: S311 - so that they do not end in step
        query: Query = {**self._query, "timeoutSeconds": seconds}
        try:
            with contextlib.closing(self._api.watch(self._collection, query, quiet=seconds + _QUIET_MARGIN)) as watch:
                self._open = watch
                lines = iter(watch)
                # Looked at after `_open` is set: `stop` sets the flag first and ends what it finds there.
                while not self._stopped.is_set() and next(lines, None) is not None:
                    self._changed()
        except ApiError as error:
            _log.debug("%s", error)  # whoever reads the object has the same trouble, and complains
            return self._backoff.next()
        finally:
            self._open = None
        self._backoff.reset()
        return _BETWEEN
