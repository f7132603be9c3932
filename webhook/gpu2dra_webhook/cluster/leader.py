"""One leader among the replicas, by a Lease.

Why not `kubernetes.leaderelection` (37.0): it tells time by the wall clock, so that a jump takes the Lease from a
leader who is alive; its calls have no timeout; an unreachable API server ends its loop; and the work is not told
between two renewals that the Lease is gone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpu2dra import Object
from gpu2dra_webhook.cluster.client import Api, path
from gpu2dra_webhook.cluster.errors import ApiError, NotFound

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease holds without renewal, when its holder gives up, and how often it is tried; client-go's own."""

    duration: float = 15.0
    give_up: float = 10.0
    retry: float = 2.0


class Leader:
    """Runs `work` while this replica holds the Lease.

    `work` gets `holds`, which says at any moment whether the Lease still is ours: it has to end soon after that turns
    false, and must not write anything then. Should it raise, the Lease is given back and the others have a go.
    """

    def __init__(
        self, api: Api, namespace: str, name: str, identity: str, work: Callable[[Callable[[], bool]], None],
        terms: Terms = Terms(), on_bug: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """`on_bug` hears of each time that `work` raises."""
        self._api = api
        self._leases = path("/apis/coordination.k8s.io/v1/namespaces", namespace, "leases")
        self._name = name
        self._identity = identity
        self._work = work
        self._terms = terms
        self._on_bug = on_bug
        self._observed: Object = {}
        self._observed_at = 0.0
        self._renewed_at: float | None = None
        self._worker: threading.Thread | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to try for the Lease, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="leader", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the work, then give the Lease back, so that another replica need not wait until it runs out."""
        self._stopped.set()
        if self._thread:
            self._thread.join()

    def holds(self) -> bool:
        """Whether this replica may act as the leader at this moment."""
        renewed = self._renewed_at
        in_time = renewed is not None and time.monotonic() - renewed < self._terms.give_up
        return in_time and not self._stopped.is_set()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._try()
            if self.holds() and self._worker is None:
                _log.info("this replica leads now")
                self._worker = threading.Thread(target=self._lead, name="leading", daemon=True)
                self._worker.start()
            elif self._worker is not None and not self._worker.is_alive():
                self._worker = None
                _log.info("this replica does not lead any more")
                self._give_back()
            self._stopped.wait(self._terms.retry)
        if self._worker is not None:
            self._worker.join()
            self._give_back()

    def _lead(self) -> None:
        try:
            self._work(self.holds)
        except Exception:  # noqa: BLE001 - its thread ends here; the Lease goes to who can do the work
            _log.exception("an error of ours in the leader's work")
            self._on_bug()

    def _try(self) -> None:
        began = time.monotonic()
        try:
            lease = self._read()
            if self._is_ours_to_take(lease):
                self._observed = self._write(lease)
                self._observed_at = self._renewed_at = began
        except ApiError as error:
            _log.info("the Lease was not renewed: %s", error)

    def _read(self) -> Object | None:
        try:
            return self._api.read("GET", path(self._leases, self._name), timeout=self._terms.retry)
        except NotFound:
            return None

    def _is_ours_to_take(self, lease: Object | None) -> bool:
        """Whether nobody else holds the Lease: by what was seen of it and since when, never by another's clock."""
        spec = (lease or {}).get("spec") or {}
        if spec != self._observed.get("spec"):
            self._observed, self._observed_at = lease or {}, time.monotonic()
        holder = spec.get("holderIdentity")
        if not holder or holder == self._identity:
            return True
        self._renewed_at = None
        return time.monotonic() - self._observed_at > (spec.get("leaseDurationSeconds") or self._terms.duration)

    def _write(self, lease: Object | None, *, holder: str | None = None) -> Object:
        """Create or replace the Lease; the resourceVersion in it makes the server refuse when somebody was faster."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        holder = self._identity if holder is None else holder
        before: dict[str, Any] = (lease or {}).get("spec") or {}
        same = before.get("holderIdentity") == holder
        spec = {
            "holderIdentity": holder,
            "leaseDurationSeconds": max(1, round(self._terms.duration)),
            "acquireTime": before.get("acquireTime") if same else now,
            "renewTime": now,
            "leaseTransitions": (before.get("leaseTransitions") or 0) + (not same),
        }
        if lease is None:
            return self._api.read(
                "POST", self._leases, {"metadata": {"name": self._name}, "spec": spec}, timeout=self._terms.retry
            )
        return self._api.read(
            "PUT", path(self._leases, self._name), {**lease, "spec": spec}, timeout=self._terms.retry
        )  # fmt: skip

    def _give_back(self) -> None:
        held, self._renewed_at = self._renewed_at is not None, None
        try:
            lease = self._read()
            if held and lease and (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                self._observed = self._write(lease, holder="")
        except ApiError as error:
            _log.info("the Lease was not given back, it runs out: %s", error)
