"""What the webhook counts, for Prometheus: one table of all metrics, and a method for each thing that happens.

Labels come from closed sets (outcomes, reasons, names in the policy). A pod's or namespace's name is never one.
"""

from __future__ import annotations

import contextlib
import itertools
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
_PREFIX = "gpu2dra_"
# Below 1 ms nothing interesting happens; 10 s is the longest that an API server waits by default.
_BUCKETS = (0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.125, 0.25, 0.5, 1, 2.5, 5, 10)

Result = Literal["ok", "error"]
_RESULTS: tuple[Result, ...] = ("ok", "error")

_COUNTERS: Mapping[str, tuple[str, Sequence[str]]] = {
    "admission_requests": ("Admission reviews answered", ("operation", "outcome", "reason")),
    "errors": ("Exceptions in the webhook's own code; the log has the traceback", ("where",)),
    "template_operations": ("Calls to the API for ResourceClaimTemplates", ("operation", "result")),
    "template_cache_hits": ("Templates handed out without a call to the API", ()),
    "certificate_reloads": ("Times that the served certificate was exchanged", ("result",)),
    "ca_bundle_patches": ("Patches of the caBundle in the webhook configuration", ("result",)),
    "policy_reloads": ("Times that the policy file was read again", ("result",)),
    "events_dropped": ("Events that were not recorded, because they were too many or the API refused them", ()),
    "connection_deadlines": ("Connections cut off because a client was too slow, by what it was in", ("kind",)),
    "connections_closed": ("Connections closed to make room for others, or for want of memory", ("kind",)),
    "http_errors": ("Requests refused before admission, by HTTP status", ("status",)),
}
_FROM_THE_START: Mapping[str, Sequence[Sequence[str]]] = {
    "errors": [("admission",)],
    "template_operations": [
        ("create", "get", "mark", "unmark", "delete", "restore"),
        ("ok", "exists", "conflict", "not_found", "refused", "timeout", "unreachable", "overloaded"),
    ],
    "certificate_reloads": [_RESULTS],
    "ca_bundle_patches": [_RESULTS],
    "policy_reloads": [_RESULTS],
    "connection_deadlines": [("handshake", "idle", "header", "body", "write", "linger")],
    "connections_closed": [("crowded", "memory")],
    "http_errors": [("400", "408", "413", "500", "503")],
}
"""The values of each label that are there as 0 before anything happens: a series that begins at 1 has, for Prometheus,
never risen, and no alert on its rate comes. Those of admission_requests are too many."""
_GAUGES: Mapping[str, tuple[str, Sequence[str]]] = {
    "admission_in_flight": ("Admission reviews being answered", ()),
    "templates": ("ResourceClaimTemplates made by the webhook, by state; the leader tells", ("state",)),
    "certificate_expiry_timestamp_seconds": ("When the served certificate ends", ()),
    "informer_synced": ("Whether a cache of the cluster is filled and fresh", ("cache",)),
    "mixed_nodes": ("Nodes that hand out GPUs by device plugin and DRA driver at once", ()),
    "device_class_missing": ("DeviceClasses that the policy names and the cluster lacks", ("device_class",)),
    "api_up": ("Whether the last call to the API server was answered", ()),
    "policy_problems": ("What is wrong with the policy file as it is now; an earlier content goes on holding", ()),
    "policy_loaded": ("The policy in use, by the digest of its file", ("digest",)),
    "open_connections": ("Open connections to the admission port", ()),
    "build_info": ("What is running", ("version", "python", "kubernetes_client")),
}


class Metrics:
    """The metrics of one process, in a registry of their own. Cheap, thread-safe, never raises."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._counters = {
            name: Counter(_PREFIX + name, text, labels, registry=self._registry)
            for name, (text, labels) in _COUNTERS.items()
        }
        for name, values in _FROM_THE_START.items():
            for labels in itertools.product(*values):
                self._counters[name].labels(*labels)
        self._gauges = {
            name: Gauge(_PREFIX + name, text, labels, registry=self._registry)
            for name, (text, labels) in _GAUGES.items()
        }
        self._duration = Histogram(
            _PREFIX + "admission_duration_seconds",
            "Time to answer an admission review, without TLS and HTTP",
            buckets=_BUCKETS,
            registry=self._registry,
        )
        ProcessCollector(registry=self._registry)
        self._refresh: list[Callable[[], None]] = []
        build = (version("gpu2dra"), platform.python_version(), version("kubernetes"))
        self._gauges["build_info"].labels(*build).set(1)

    def before_render(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` whenever the metrics are read: for what others know and nobody tells."""
        self._refresh.append(refresh)

    def render(self) -> bytes:
        """Return all metrics in the text format that CONTENT_TYPE names."""
        for refresh in self._refresh:
            refresh()
        return generate_latest(self._registry)

    # Admission.

    def reviewed(self, operation: str, outcome: str, reason: str, seconds: float) -> None:
        """Count an answered review and the time that it took."""
        self._counters["admission_requests"].labels(operation, outcome, reason).inc()
        self._duration.observe(seconds)

    @contextlib.contextmanager
    def in_flight(self) -> Iterator[None]:
        """Hold a review as being answered."""
        self._gauges["admission_in_flight"].inc()
        try:
            yield
        finally:
            self._gauges["admission_in_flight"].dec()

    def may_fail(self, where: str) -> None:
        """Have the errors of a part be there, as 0, before there is one."""
        self._counters["errors"].labels(where)

    def failed(self, where: str) -> None:
        """Count an exception in our own code; `where` names the part."""
        self._counters["errors"].labels(where).inc()

    # Templates and the cluster.

    def template_operation(self, operation: str, result: str) -> None:
        """Count a call to the API for a template: create, get, mark, unmark, delete, restore; and how it ended."""
        self._counters["template_operations"].labels(operation, result).inc()

    def template_cache_hit(self) -> None:
        """Count a template that was there already."""
        self._counters["template_cache_hits"].inc()

    def templates(self, state: str, count: int) -> None:
        """Tell how many templates are in a state: used, unused."""
        self._gauges["templates"].labels(state).set(count)

    def informer_synced(self, cache: str, *, synced: bool) -> None:
        """Tell whether a cache is filled and fresh."""
        self._gauges["informer_synced"].labels(cache).set(synced)

    def mixed_nodes(self, count: int) -> None:
        """Tell how many nodes hand out the same GPU twice."""
        self._gauges["mixed_nodes"].set(count)

    def device_class_missing(self, name: str, *, missing: bool) -> None:
        """Tell whether a DeviceClass of the policy is missing."""
        self._gauges["device_class_missing"].labels(name).set(missing)

    def api_up(self, *, up: bool) -> None:
        """Tell whether the API server answered."""
        self._gauges["api_up"].set(up)

    def event_dropped(self) -> None:
        """Count an Event that was not recorded."""
        self._counters["events_dropped"].inc()

    # Policy and certificates.

    def policy_reloaded(self, result: Result) -> None:
        """Count a reading of the policy file."""
        self._counters["policy_reloads"].labels(result).inc()

    def policy_problems(self, count: int) -> None:
        """Tell how much is wrong with the policy file as it is now."""
        self._gauges["policy_problems"].set(count)

    def policy_loaded(self, digest: str) -> None:
        """Tell which policy is in use."""
        self._gauges["policy_loaded"].clear()
        self._gauges["policy_loaded"].labels(digest).set(1)

    def certificate_expires(self, at: float) -> None:
        """Tell when the served certificate ends, in seconds since the epoch."""
        self._gauges["certificate_expiry_timestamp_seconds"].set(at)

    def certificate_reloaded(self, result: Result) -> None:
        """Count an exchange of the served certificate, or a failed one."""
        self._counters["certificate_reloads"].labels(result).inc()

    def ca_bundle_patched(self, result: Result) -> None:
        """Count a patch of the webhook configuration."""
        self._counters["ca_bundle_patches"].labels(result).inc()

    # Connections.

    def open_connections(self, count: int) -> None:
        """Tell how many connections to the admission port are open."""
        self._gauges["open_connections"].set(count)

    def deadline_hit(self, kind: str) -> None:
        """Count a connection that was cut off in its handshake, header, body and so on."""
        self._counters["connection_deadlines"].labels(kind).inc()

    def connection_closed(self, kind: str) -> None:
        """Count a connection that had to go although its client was in time."""
        self._counters["connections_closed"].labels(kind).inc()

    def http_error(self, status: int) -> None:
        """Count a request that never reached admission."""
        self._counters["http_errors"].labels(str(status)).inc()
