"""Events on the owners of pods: queued, said once in a while, and never in the way of an admission."""

from __future__ import annotations

import logging
import queue
import threading
import time
import uuid
from typing import TYPE_CHECKING

from gpu2dra import Object
from gpu2dra.names import SUBDOMAIN_LENGTH
from gpu2dra_webhook.cluster.client import Api, path
from gpu2dra_webhook.cluster.errors import ApiError
from gpu2dra_webhook.cluster.stamps import stamp

if TYPE_CHECKING:
    from gpu2dra_webhook.metrics import Metrics
    from gpu2dra_webhook.ports import OwnerReference

_log = logging.getLogger(__name__)

_WAITING = 1000
_QUIET = 600.0
"""Seconds for which the same reason is not told again of the same owner."""
_REMEMBERED = 4096
_BURST = 100
_PER_SECOND = 1.0
"""So many at once, and so many in the long run: an Event is kept for an hour, and uids of owners can be made up."""
_TIMEOUT = 5.0
_LAST_WORDS = 2.0
_TICK = 0.5
_COMPONENT = "gpu2dra-webhook"
# Longer ones are refused (validateEvent in pkg/apis/core/validation: NoteLengthLimit).
_LONGEST_MESSAGE = 1024
# The name of an Event is a DNS subdomain: what it is about, a dot, and 32 digits.
_LONGEST_OWNER = SUBDOMAIN_LENGTH - 33


class EventRecorder:
    """Fulfils `ports.Recorder`: a bounded queue, and a thread that writes from it."""

    def __init__(self, api: Api, metrics: Metrics, pod_name: str, quiet: float = _QUIET, burst: int = _BURST) -> None:
        """`pod_name` is what the Events name as their source's instance."""
        self._api = api
        self._metrics = metrics
        self._instance = pod_name
        self._quiet = quiet
        self._queue: queue.Queue[tuple[str, Object]] = queue.Queue(_WAITING)
        self._ends: float | None = None
        self._told: dict[tuple[str, str], float] = {}
        self._burst = burst
        self._allowed = float(burst)
        self._counted_at = time.monotonic()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to write, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Write what waits, as far as that is a matter of seconds, then end."""
        self._ends = time.monotonic() + _LAST_WORDS
        if self._thread:
            self._thread.join()

    def record(self, namespace: str, owner: OwnerReference | None, reason: str, message: str, *, warning: bool) -> None:
        """Record an Event on `owner` (nothing without one). Returns at once and never raises."""
        if owner is None:
            return
        with self._lock:
            if not self._is_news(owner.uid, reason):
                return
            if not self._may_write(owner.uid, reason):
                self._metrics.event_dropped()
                return
        try:
            self._queue.put_nowait((namespace, self._event(namespace, owner, reason, message, warning=warning)))
        except queue.Full:
            self._metrics.event_dropped()

    def _is_news(self, uid: str, reason: str) -> bool:
        return self._told.get((uid, reason), -self._quiet) + self._quiet <= time.monotonic()

    def _may_write(self, uid: str, reason: str) -> bool:
        """Take one of the Events that may be written now, and note whom it tells; False when there is none."""
        now = time.monotonic()
        self._allowed = min(self._burst, self._allowed + (now - self._counted_at) * _PER_SECOND)
        self._counted_at = now
        if self._allowed < 1:
            return False
        self._allowed -= 1
        if len(self._told) >= _REMEMBERED:  # more than may be written in the time for which they are remembered
            self._told = {key: at for key, at in self._told.items() if at + self._quiet > now}
        self._told[uid, reason] = now
        return True

    def _event(self, namespace: str, owner: OwnerReference, reason: str, message: str, *, warning: bool) -> Object:
        now = stamp(time.time())
        return {
            "metadata": {"name": f"{owner.name[:_LONGEST_OWNER].rstrip('-.')}.{uuid.uuid4().hex}"},
            "involvedObject": {
                "apiVersion": owner.api_version,
                "kind": owner.kind,
                "name": owner.name,
                "namespace": namespace,
                "uid": owner.uid,
            },
            "type": "Warning" if warning else "Normal",
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "source": {"component": _COMPONENT},
            "reportingComponent": _COMPONENT,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    def _is_over(self) -> bool:
        ends = self._ends
        return ends is not None and (self._queue.empty() or time.monotonic() > ends)

    def _run(self) -> None:
        while not self._is_over():
            try:
                namespace, event = self._queue.get(timeout=_TICK)
            except queue.Empty:
                continue
            try:
                self._api.call("POST", path("/api/v1/namespaces", namespace, "events"), event, timeout=_TIMEOUT)
            except (ApiError, ValueError) as error:
                self._metrics.event_dropped()
                _log.info("an Event was not recorded: %s", error)
