"""What admission asks of the cluster, answered from caches (see `ports.View`)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from gpu2dra import ApiVersion, Object
from gpu2dra.templates import canonical_spec
from gpu2dra_webhook.cluster import sources
from gpu2dra_webhook.cluster.client import Api, path
from gpu2dra_webhook.cluster.discovery import Discovery
from gpu2dra_webhook.cluster.errors import ApiError
from gpu2dra_webhook.cluster.reflector import Reflector
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.ports import DeviceClassState, NamespaceState, QuotaState

_log = logging.getLogger(__name__)

STALE_AFTER = 300.0
"""Seconds without a sign of life after which a cache counts as not synced. A watch gives one each 75 s at least; an API
server that is away for some minutes must not make every replica unready, or nobody answers it when it comes back."""
_FUTILE = 5.0
"""Seconds for which a namespace that was waited for in vain, and has not changed, is not waited for again."""
_FUTILE_MOST = 1024
_PLURALS = {"ResourceClaim": "resourceclaims", "ResourceClaimTemplate": "resourceclaimtemplates"}
_DISCOVERY = "discovery"


class ClusterView:
    """Caches of everything that admission looks at; `start` fills them, `stop` ends their threads."""

    def __init__(self, api: Api, drivers: tuple[str, ...], metrics: Metrics) -> None:
        """`drivers` are the DRA drivers whose slices count."""
        self._api = api
        self._metrics = metrics
        self.discovery = Discovery(api, self._turn)
        look = self.discovery.look_again
        self._namespaces = Reflector(api, sources.NAMESPACES)
        self._limit_ranges = Reflector(api, sources.LIMIT_RANGES)
        self._quotas = Reflector(api, sources.QUOTAS)
        self._nodes = Reflector(api, sources.NODES)
        self._slices = Reflector(api, sources.slices(self.discovery, drivers), look)
        self._classes = Reflector(api, sources.device_classes(self.discovery), look)
        self.templates = Reflector(api, sources.templates(self.discovery), look)
        self._reflectors: tuple[Reflector[Any], ...] = (
            self._namespaces, self._limit_ranges, self._quotas, self._nodes, self._slices, self._classes,
            self.templates,
        )  # fmt: skip
        self._mixed: tuple[tuple[int, int], tuple[str, ...]] = ((-1, -1), ())
        self._futile: dict[str, tuple[float, sources.Namespace | None]] = {}
        metrics.before_render(self._tell)

    def start(self) -> None:
        """Begin to fill the caches, in threads; returns at once."""
        self.discovery.start()
        for reflector in self._reflectors:
            reflector.start()

    def stop(self) -> None:
        """End the threads; the caches keep what they hold."""
        for reflector in self._reflectors:
            reflector.stop()
        self.discovery.stop()

    def namespace(self, name: str) -> NamespaceState | None:
        """Return the namespace, or None when it is not known (yet)."""
        held = self._namespaces.cache.get("", name)
        if held is None:
            return None
        ranges = self._limit_ranges.cache.within(name).values()
        names = tuple(sorted({legacy for limit_range in ranges for legacy in limit_range}))
        quotas = list(self._quotas.cache.within(name).values())
        return NamespaceState(name, held.labels, held.terminating, names, _together(quotas))

    def wait_for_namespace(
        self, name: str, opted_in: Callable[[Mapping[str, str]], bool], timeout: float
    ) -> NamespaceState | None:
        """Return the namespace once it is known and `opted_in` holds for its labels, else what is known in the end.

        The API server asks only about namespaces that it sees as opted in, so one that is not yet so here was labelled
        a moment ago, or somebody else is asking: it is waited for, but not again and again in vain.
        """
        cache = self._namespaces.cache

        def ready() -> bool:
            held = cache.get("", name)
            return held is not None and opted_in(held.labels)

        if not ready() and not self._is_futile(name) and not cache.wait_for(ready, timeout):
            self._note_futile(name)
        return self.namespace(name)

    def _is_futile(self, name: str) -> bool:
        at, held = self._futile.get(name, (-_FUTILE, None))
        return time.monotonic() - at < _FUTILE and held == self._namespaces.cache.get("", name)

    def _note_futile(self, name: str) -> None:
        if len(self._futile) >= _FUTILE_MOST:  # somebody makes names up
            self._futile.clear()
        self._futile[name] = time.monotonic(), self._namespaces.cache.get("", name)

    def api_version(self) -> ApiVersion | None:
        """Return the version of resource.k8s.io that the server serves, newest first; None: no DRA."""
        return self.discovery.version

    def device_class(self, name: str) -> DeviceClassState | None:
        """Return the DeviceClass, or None when it is missing."""
        return self._classes.cache.get("", name)

    def mixed_nodes(self) -> tuple[str, ...]:
        """Return the nodes that report a legacy resource allocatable and have slices of a driver of ours."""
        nodes, slices = self._nodes.cache, self._slices.cache
        versions = nodes.version, slices.version
        if self._mixed[0] != versions:
            published = {node for _, node in slices.items()}
            self._mixed = versions, tuple(sorted(key.name for key, _ in nodes.items() if key.name in published))
        return self._mixed[1]

    def has_slices(self) -> bool:
        """Whether there is any ResourceSlice of a driver of ours."""
        return bool(self._slices.cache)

    def synced(self) -> tuple[str, ...]:
        """Return the names of the caches that are not synced, or of which nothing was heard for long."""
        missing = [reflector.source.name for reflector in self._reflectors if not reflector.fresh(STALE_AFTER)]
        return (*missing, *([] if self.discovery.known else [_DISCOVERY]))

    def claim_classes(
        self, namespace: str, refs: Collection[tuple[str, str]], timeout: float
    ) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the DeviceClass names behind `(kind, name)` of ResourceClaims and ResourceClaimTemplates.

        Asks the API server for each; what could not be found out in `timeout` seconds is left out.
        """
        ends = time.monotonic() + timeout
        found: dict[tuple[str, str], frozenset[str]] = {}
        for kind, name in refs:
            left = ends - time.monotonic()
            if left <= 0 or self.discovery.version is None:
                break
            try:
                where = path(f"/apis/{self.discovery.version}/namespaces", namespace, _PLURALS[kind], name)
                found[kind, name] = _classes(self._api.read("GET", where, timeout=left))
            except (ApiError, KeyError, ValueError) as error:  # whose text has the claim's name, which the pod gives
                _log.info("cannot find out the DeviceClass of a claim", extra={"error": type(error).__name__})
        return found

    def _turn(self) -> None:
        for reflector in (self._slices, self._classes, self.templates):
            reflector.turn()

    def _tell(self) -> None:
        missing = set(self.synced())
        for reflector in self._reflectors:
            self._metrics.informer_synced(reflector.source.name, synced=reflector.source.name not in missing)
        self._metrics.informer_synced(_DISCOVERY, synced=_DISCOVERY not in missing)
        self._metrics.mixed_nodes(len(self.mixed_nodes()))
        self._metrics.api_up(up=self._api.up)


def _together(quotas: Collection[QuotaState]) -> QuotaState:
    return QuotaState(
        tuple(sorted({name for quota in quotas for name in quota.legacy_names})),
        frozenset(key for quota in quotas for key in quota.class_keys),
        any(quota.scoped for quota in quotas),
    )


def _classes(obj: Object) -> frozenset[str]:
    """Return the DeviceClasses that a ResourceClaim or ResourceClaimTemplate, in any version, asks for."""
    spec = obj.get("spec") or {}
    template = spec if "spec" in spec else {"spec": spec}
    requests = (canonical_spec(template)["spec"].get("devices") or {}).get("requests") or []
    parts = [part for request in requests for part in (request.get("exactly"), *(request.get("firstAvailable") or ()))]
    return frozenset(part["deviceClassName"] for part in parts if part)
