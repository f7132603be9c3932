"""The leader's work: looks after the templates of the whole cluster, by the pods that were converted."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.cluster.ledger import TRUSTED_FOR
from gpu2dra_webhook.cluster.reflector import Reflector
from gpu2dra_webhook.cluster.sources import CONVERTED_PODS

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.ledger import Ledger
    from gpu2dra_webhook.cluster.repair import Repair
    from gpu2dra_webhook.cluster.sweep import Sweep
    from gpu2dra_webhook.cluster.unstick import Unstick

_log = logging.getLogger(__name__)

_TICK = 0.5
"""Seconds between two looks at most and at least: `holds` is asked as often, and changes come in crowds."""
_SWEEPS_PER_GRACE = 4
_SWEEP_EVERY = 60.0


class Janitor:
    """`work` is what `Leader` runs. Pods are watched only while this replica leads."""

    def __init__(self, api: Api, ledger: Ledger, sweep: Sweep, repair: Repair, unstick: Unstick, grace: float) -> None:
        self._api = api
        self._ledger = ledger
        self._sweep = sweep
        self._repair = repair
        self._unstick = unstick
        self._every = min(_SWEEP_EVERY, grace / _SWEEPS_PER_GRACE)

    def work(self, holds: Callable[[], bool]) -> None:
        """Tidy up and repair until `holds` turns false."""
        pods = Reflector(self._api, CONVERTED_PODS)
        pods.start()
        pause = threading.Event()  # nobody sets it: a wait that works with and without gevent
        seen, sweep_at = (-1, -1), 0.0
        try:
            while holds():
                if pods.fresh(TRUSTED_FOR) and self._ledger.trusted:
                    versions = pods.cache.version, self._ledger.cache.version
                    if versions != seen or time.monotonic() >= sweep_at:
                        seen = versions
                        self._repair.run(pods.cache, holds)
                    self._unstick.run(pods.cache, holds)
                    if time.monotonic() >= sweep_at:
                        self._sweep.run(pods.cache, holds)
                        sweep_at = time.monotonic() + self._every
                pause.wait(_TICK)
        finally:
            pods.stop()
