"""Puts a template back that a waiting pod names, and wakes the pods that wait for it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from gpu2dra import Object
from gpu2dra.converted import read_record
from gpu2dra.templates import KIND, MANAGED_BY
from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.client import MERGE_PATCH, Api, path
from gpu2dra_webhook.cluster.objects import Pod
from gpu2dra_webhook.cluster.stamps import stamp
from gpu2dra_webhook.cluster.template_api import MANAGER, OUR_NAME, TemplateApi
from gpu2dra_webhook.ports import StoreError, TemplateStore

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.discovery import Discovery
    from gpu2dra_webhook.cluster.ledger import Ledger
    from gpu2dra_webhook.metrics import Metrics

_log = logging.getLogger(__name__)

WOKEN = "gpu2dra.dev/woken"
"""On a pod: when it was touched, so that the claim controller, which backs off for minutes, looks at it at once."""
_TIMEOUT = 10.0
_AGAIN = 30.0
"""Seconds until a template that could not be put back is tried again."""
_RECORDS_READ = 3
_REMEMBERED = 10_000

Allowed = Callable[[str, str, Object], bool]
"""Whether admission would make a template of this name and spec in this namespace: `(namespace, name, spec)`."""


class Repair:
    """One look at all waiting pods at a time, by the leader.

    What a template held is only known from the annotation of a pod, which is its user's text: it is put back only where
    its name is the digest of what it says, and the operator's policy leads to it.
    """

    def __init__(
        self,
        api: Api,
        templates: TemplateApi,
        ledger: Ledger,
        store: TemplateStore,
        discovery: Discovery,
        metrics: Metrics,
        allowed: Allowed,
    ) -> None:
        self._api = api
        self._templates = templates
        self._ledger = ledger
        self._store = store
        self._discovery = discovery
        self._metrics = metrics
        self._allowed = allowed
        self._not_before: dict[Key, float] = {}
        self._woken: set[tuple[str, str]] = set()

    def run(self, pods: Cache[Pod], holds: Callable[[], bool]) -> None:
        """Put back and wake what can be; ends early when `holds` turns false or the API server is away."""
        waiting = [key for key in pods.groups() if OUR_NAME.fullmatch(key.name)]
        self._forget(waiting)
        for key in waiting:
            if not holds():
                return
            try:
                self._look(key, pods.group(key))
            except errors.NotFound:  # the pod is gone
                continue
            except errors.ApiError as error:
                _log.warning("waiting pods cannot be helped now: %s", error)
                return

    def _forget(self, waiting: list[Key]) -> None:
        self._not_before = {key: self._not_before[key] for key in waiting if key in self._not_before}
        if len(self._woken) > _REMEMBERED:
            self._woken.clear()

    def _look(self, key: Key, waiting: Mapping[Key, Pod]) -> None:
        seen = self._ledger.cached(key)
        if seen is not None:
            # A pod that is younger than its template is being served this very moment.
            self._wake(seen.uid, {where: pod for where, pod in waiting.items() if pod.created < seen.created})
        elif time.monotonic() >= self._not_before.get(key, 0.0):
            self._not_before[key] = time.monotonic() + _AGAIN
            if self._put_back(key, waiting):
                self._not_before.pop(key)
                self._wake(f"put back {time.monotonic()}", waiting)

    def _put_back(self, key: Key, waiting: Mapping[Key, Pod]) -> bool:
        """Make a missing template from what a pod remembers of it; return whether it was missing and is there."""
        if self._templates.get(key, timeout=_TIMEOUT) is not None:  # the cache is late, or it is somebody else's
            return False
        self._ledger.forget(key)
        spec = next((spec for where in islice(waiting, _RECORDS_READ) if (spec := self._remembered(where, key))), None)
        if spec is None or self._discovery.version is None:
            self._metrics.template_operation("restore", "refused")
            _log.warning("template %s of namespace %s is missing and not put back: no waiting pod has a record that "
                         "the policy could have made", key.name, key.namespace)  # fmt: skip
            return False
        template = {
            "apiVersion": str(self._discovery.version), "kind": KIND,
            "metadata": {"name": key.name, "labels": dict(MANAGED_BY)}, "spec": spec,
        }  # fmt: skip
        try:
            self._store.ensure(key.namespace, [template], timeout=_TIMEOUT, dry_run=False)
        except StoreError as error:
            self._metrics.template_operation("restore", error.kind)
            _log.warning("a missing template was not put back: %s", error)
            return False
        self._metrics.template_operation("restore", "ok")
        _log.info("put template %s of namespace %s back", key.name, key.namespace)
        return True

    def _remembered(self, where: Key, key: Key) -> Object | None:
        pod = self._api.read("GET", path("/api/v1/namespaces", where.namespace, "pods", where.name), timeout=_TIMEOUT)
        spec = read_record(pod["metadata"], pod["spec"]).templates.get(key.name)
        return spec if spec is not None and self._allowed(key.namespace, key.name, spec) else None

    def _wake(self, cause: str, pods: Mapping[Key, Pod]) -> None:
        """Touch pods, once for each cause."""
        for where, pod in pods.items():
            if (pod.uid, cause) in self._woken:
                continue
            self._woken.add((pod.uid, cause))
            patch = {"metadata": {"annotations": {WOKEN: stamp(time.time())}}}
            # The status endpoint stores metadata, too, and the right to it is no right to change a pod's spec.
            self._api.call(
                "PATCH", path("/api/v1/namespaces", where.namespace, "pods", where.name, "status"), patch,
                content_type=MERGE_PATCH, query={"fieldManager": MANAGER}, timeout=_TIMEOUT,
            )  # fmt: skip
