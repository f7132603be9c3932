"""Where all parts come together: built from the settings, wired, started and stopped. Nobody but the server imports it.

It is imported when gevent has put its sockets and threads in place of the standard ones, so that all libraries have
them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gpu2dra.devices import Device
from gpu2dra.policy import Policy
from gpu2dra.resources import legacy_resource
from gpu2dra.skips import SYSTEM_NAMESPACES
from gpu2dra_webhook import certificates as sources
from gpu2dra_webhook.admission import opted_in
from gpu2dra_webhook.app import create_app, create_side_app
from gpu2dra_webhook.certificates import CertificateError, Certificates
from gpu2dra_webhook.certificates.serving import server_names
from gpu2dra_webhook.cluster import parts as cluster_parts
from gpu2dra_webhook.cluster.client import connect
from gpu2dra_webhook.memory import FixedView, MemoryStore, NoRecorder
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.mutate import Mutator
from gpu2dra_webhook.policyfile import PolicyFile
from gpu2dra_webhook.ports import NamespaceState, Recorder, TemplateStore, View
from gpu2dra_webhook.readiness import Check, Readiness, SelfProbe
from gpu2dra_webhook.settings import Settings, SettingsError

if TYPE_CHECKING:
    import ssl

    from flask import Flask

    from gpu2dra_webhook.cluster.client import Api

_GPU = "nvidia.com/gpu"


class Background(Protocol):
    """What goes on beside the requests."""

    def start(self) -> None:
        """Begin; returns at once."""

    def stop(self) -> None:
        """End."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The webhook in one piece. `probe` is given the address once it is known."""

    app: Flask
    side_app: Flask
    metrics: Metrics
    readiness: Readiness
    background: Sequence[Background]
    ssl_context: Callable[[], ssl.SSLContext]
    probe: SelfProbe

    def start(self) -> None:
        """Begin all that goes on in the background; returns at once."""
        for part in self.background:
            part.start()

    def serving(self, port: int) -> None:
        """Hear that requests are answered at `port`."""
        self.probe.start(port)

    def draining(self) -> None:
        """Hear that the end is near: no new clients, please."""
        self.readiness.stop()
        self.probe.stop()

    def stop(self) -> None:
        """End all that goes on in the background."""
        for part in reversed(self.background):
            part.stop()


def compose(settings: Settings) -> Parts:
    """Return all parts; nothing goes on before `start`. SettingsError when a choice cannot be kept."""
    metrics = Metrics()
    policy_file = PolicyFile(settings.policy_file, metrics)
    policy = policy_file.policy
    background: list[Background] = [policy_file]
    api = None if settings.store == "memory" else connect(settings.kubeconfig)
    view: View = FixedView()
    store: TemplateStore = MemoryStore()
    recorder: Recorder = NoRecorder()
    if api:
        cluster = cluster_parts.build(settings, api, metrics, policy, functools.partial(_serves, settings))
        view, store, recorder = cluster.view, cluster.store, cluster.recorder
        background.append(cluster)
    served = _certificates(settings, api, metrics)
    background.append(served)
    probe = SelfProbe(settings.bind_address, server_names(settings)[0], served.trust, asks=not settings.client_ca_file)
    checks: dict[str, Check] = {"certificate": served.problems, "caches": view.synced, "port": probe.found}
    readiness = Readiness(checks, {"policy": policy_file.problems, **_details(view, policy)})
    metrics.before_render(functools.partial(_tell, metrics, view, served, policy))
    mutator = Mutator(settings, view, store, recorder, metrics, policy)
    return Parts(
        app=create_app(mutator, readiness, settings.body_limit, metrics.http_error),
        side_app=create_side_app(metrics.render, readiness),
        metrics=metrics,
        readiness=readiness,
        background=background,
        ssl_context=served.ssl_context,
        probe=probe,
    )


def _certificates(settings: Settings, api: Api | None, metrics: Metrics) -> Certificates:
    try:
        if settings.certificates == "files":
            return sources.from_files(settings, api, metrics)
        if api is None:
            names = (*server_names(settings), "localhost", "127.0.0.1")
            return sources.ephemeral(names, sources.client_check(settings))
        return sources.self_managed(settings, api, metrics)
    except CertificateError as error:
        raise SettingsError(str(error)) from error


def _serves(settings: Settings, namespace: NamespaceState) -> bool:
    """Whether pods of a namespace are converted at all."""
    if namespace.name in SYSTEM_NAMESPACES | settings.excluded_namespaces | {settings.namespace}:
        return False
    return opted_in(settings, namespace.labels)


def _details(view: View, policy: Callable[[], Policy]) -> dict[str, Check]:
    """Return what does not hinder the webhook from answering, but pods from being converted."""
    return {
        "dra": lambda: () if view.api_version() else ("the API server does not serve resource.k8s.io",),
        "device-classes": lambda: [f"DeviceClass {name} is missing" for name in _missing_classes(view, policy())],
        "mixed-nodes": lambda: [
            f"device plugin and DRA driver both hand out the GPUs of node {name}" for name in view.mixed_nodes()
        ],
        "resource-slices": lambda: () if view.has_slices() else ("no node offers devices yet",),
    }


def _missing_classes(view: View, policy: Policy) -> list[str]:
    return [name for name in _classes(policy) if view.device_class(name) is None]


def _classes(policy: Policy) -> list[str]:
    """Return the DeviceClasses that the policy needs, with the one that a whole GPU becomes."""
    resource = legacy_resource(_GPU)
    device = policy.outcome(resource, "") if resource else None
    whole = {device.device_class} if isinstance(device, Device) else set()
    return sorted(policy.device_classes | whole)


def _tell(metrics: Metrics, view: View, served: Certificates, policy: Callable[[], Policy]) -> None:
    """Put into the metrics what the parts know and do not tell by themselves."""
    metrics.certificate_expires(served.expires_at())
    missing = _missing_classes(view, policy())
    for name in _classes(policy()):
        metrics.device_class_missing(name, missing=name in missing)
