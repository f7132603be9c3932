"""Frees pods that Kubernetes before 1.37 leaves pending for ever (kubernetes#138407).

Should the claim controller have to make one of a pod's claims again, it applies a status with that one alone, whereby
the others, its own too, are dropped; so it adds those and drops the first, and goes on like this. A status with all of
them that somebody else owns as well ends it: the controller cannot drop what is not its own alone, and finds all there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.client import APPLY_PATCH, Api, path
from gpu2dra_webhook.cluster.objects import STUCK, Pod
from gpu2dra_webhook.cluster.template_api import MANAGER

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.discovery import Discovery

_log = logging.getLogger(__name__)

_PATIENCE = 3.0
"""Seconds for which a pod has to be seen with some of its claims before anything is done about it."""
_AGAIN = 30.0
_TIMEOUT = 10.0


class Unstick:
    """One look at all stuck pods at a time, by the leader."""

    def __init__(self, api: Api, discovery: Discovery) -> None:
        self._api = api
        self._discovery = discovery
        self._due: dict[str, float] = {}
        self._claims: dict[str, dict[str, str]] = {}

    def run(self, pods: Cache[Pod], holds: Callable[[], bool]) -> None:
        """Write the status of those that have been stuck for a while."""
        now = time.monotonic()
        stuck = pods.group(STUCK).items()
        self._due = {pod.uid: self._due.get(pod.uid, now + _PATIENCE) for _, pod in stuck}
        # The status names one claim now and another then: what was seen of it is put together.
        self._claims = {pod.uid: self._claims.get(pod.uid, {}) | dict(pod.made) for _, pod in stuck}
        for key, pod in stuck:
            claims = self._claims[pod.uid]
            if self._due[pod.uid] > now or claims.keys() != pod.entries or not holds():
                continue
            self._due[pod.uid] = now + _AGAIN
            try:
                self._free(key, pod, claims)
            except errors.NotFound:
                # The controller remembers for a minute what it made, and names a claim again that is gone meanwhile.
                self._due[pod.uid] = now + _PATIENCE
                self._claims.pop(pod.uid)
            except errors.ApiError as error:
                _log.info("a stuck pod was not freed: %s", error)

    def _free(self, key: Key, pod: Pod, claims: Mapping[str, str]) -> None:
        for claim in claims.values():
            if not self._is_for(key.namespace, claim, pod.uid):
                return
        statuses = [{"name": entry, "resourceClaimName": claims[entry]} for entry in sorted(claims)]
        body = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": key.name, "uid": pod.uid},
            "status": {"resourceClaimStatuses": statuses},
        }  # fmt: skip
        self._api.call(
            "PATCH", path("/api/v1/namespaces", key.namespace, "pods", key.name, "status"), body,
            content_type=APPLY_PATCH, query={"fieldManager": MANAGER, "force": "true"}, timeout=_TIMEOUT,
        )  # fmt: skip
        _log.info("freed a pod of namespace %s that kubernetes#138407 kept pending", key.namespace)

    def _is_for(self, namespace: str, claim: str, owner: str) -> bool:
        where = path(f"/apis/{self._discovery.version}/namespaces", namespace, "resourceclaims", claim)
        metadata = self._api.read("GET", where, timeout=_TIMEOUT)["metadata"]
        return any(reference["uid"] == owner for reference in metadata.get("ownerReferences", ()))
