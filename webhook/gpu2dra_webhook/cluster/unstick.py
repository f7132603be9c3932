"""Frees pods that Kubernetes before 1.37 leaves pending for ever (kubernetes#138407).

Should the claim controller have to make one of a pod's claims again, it applies a status with that one alone, whereby
the others, its own too, are dropped; so it adds those and drops the first, and goes on like this. A status with all of
them that somebody else owns as well ends it: the controller cannot drop what is not its own alone, and finds all there.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.client import APPLY_PATCH, Api, path
from gpu2dra_webhook.cluster.objects import Pod
from gpu2dra_webhook.cluster.template_api import MANAGER

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.discovery import Discovery

_log = logging.getLogger(__name__)

_PATIENCE = 3.0
"""Seconds for which a pod has to be seen with some of its claims before anything is done about it."""
_AGAIN = 30.0
_TIMEOUT = 10.0
_CLAIM_OF = "resource.kubernetes.io/pod-claim-name"
"""On a generated claim: the entry of the pod that it is for (resourceapi.PodResourceClaimAnnotation)."""


class _Owner(msgspec.Struct):
    uid: str = ""


class _Metadata(msgspec.Struct):
    name: str = ""
    annotations: dict[str, str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - the API's own spelling


class _Claim(msgspec.Struct):
    metadata: _Metadata


class _Claims(msgspec.Struct):
    items: list[_Claim] | None = None


class Unstick:
    """One look at all stuck pods at a time, by the leader."""

    def __init__(self, api: Api, discovery: Discovery) -> None:
        self._api = api
        self._discovery = discovery
        self._due: dict[str, float] = {}

    def run(self, pods: Cache[Pod], holds: Callable[[], bool]) -> None:
        """Write the status of those that have been stuck for a while."""
        now = time.monotonic()
        stuck = [(key, pod) for key, pod in pods.items() if pod.stuck]
        self._due = {pod.uid: self._due.get(pod.uid, now + _PATIENCE) for _, pod in stuck}
        for key, pod in stuck:
            if self._due[pod.uid] > now or not holds():
                continue
            self._due[pod.uid] = now + _AGAIN
            try:
                self._free(key, pod)
            except errors.ApiError as error:
                _log.info("a stuck pod was not freed: %s", error)

    def _free(self, key: Key, pod: Pod) -> None:
        claims = self._claims(key.namespace, pod.uid)
        if not pod.entries <= claims.keys():
            return  # one was never made, so this is something else
        statuses = [{"name": entry, "resourceClaimName": claims[entry]} for entry in sorted(pod.entries)]
        body = {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": key.name, "uid": pod.uid},
            "status": {"resourceClaimStatuses": statuses},
        }  # fmt: skip
        self._api.call(
            "PATCH", path("/api/v1/namespaces", key.namespace, "pods", key.name, "status"), body,
            content_type=APPLY_PATCH, query={"fieldManager": MANAGER, "force": "true"}, timeout=_TIMEOUT,
        )  # fmt: skip
        _log.info("freed a pod of namespace %s that kubernetes#138407 kept pending", key.namespace)

    def _claims(self, namespace: str, owner: str) -> dict[str, str]:
        """Return the names of the claims that were made for a pod, by its entry."""
        where = path(f"/apis/{self._discovery.version}/namespaces", namespace, "resourceclaims")
        claims = msgspec.json.decode(self._api.call("GET", where, timeout=_TIMEOUT), type=_Claims)
        return {
            entry: claim.metadata.name
            for claim in claims.items or ()
            if (entry := (claim.metadata.annotations or {}).get(_CLAIM_OF))
            and any(reference.uid == owner for reference in claim.metadata.ownerReferences or ())
        }
