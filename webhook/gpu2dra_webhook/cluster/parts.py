"""The cluster side of the webhook in one piece: built from settings, started and stopped together."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu2dra import Object
from gpu2dra.policy import Policy
from gpu2dra_webhook.cluster.events import EventRecorder
from gpu2dra_webhook.cluster.janitor import Janitor
from gpu2dra_webhook.cluster.leader import Leader
from gpu2dra_webhook.cluster.ledger import SETTLE, Ledger
from gpu2dra_webhook.cluster.origin import may_be_ours
from gpu2dra_webhook.cluster.provision import Provider
from gpu2dra_webhook.cluster.repair import Repair
from gpu2dra_webhook.cluster.sweep import Sweep
from gpu2dra_webhook.cluster.template_api import TemplateApi
from gpu2dra_webhook.cluster.templates import ClusterStore
from gpu2dra_webhook.cluster.unstick import Unstick
from gpu2dra_webhook.cluster.view import ClusterView
from gpu2dra_webhook.ports import NamespaceState

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.client import Api
    from gpu2dra_webhook.metrics import Metrics
    from gpu2dra_webhook.settings import Settings

_JANITOR = "janitor"
Serves = Callable[[NamespaceState], bool]
"""Whether pods of a namespace are converted at all."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What admission uses of the cluster, and what runs behind it; `leader` is None without a janitor."""

    view: ClusterView
    store: ClusterStore
    recorder: EventRecorder
    leader: Leader | None

    def start(self) -> None:
        """Begin to fill caches, write Events and run for leader, in threads; returns at once."""
        self.view.start()
        self.recorder.start()
        if self.leader:
            self.leader.start()

    def stop(self) -> None:
        """Give the lead back and end all threads."""
        if self.leader:
            self.leader.stop()
        self.recorder.stop()
        self.view.stop()


def build(settings: Settings, api: Api, metrics: Metrics, policy: Callable[[], Policy], serves: Serves) -> Cluster:
    """Return the cluster side for these settings; nothing is sent before `start`.

    `policy` returns the policy in use. `serves` is what admission asks of a namespace, so that the janitor puts back
    nothing that admission would not have made.
    """
    view = ClusterView(api, settings.drivers, metrics)
    ledger = Ledger(view.templates, settle=min(SETTLE, settings.template_grace))
    templates = TemplateApi(api, view.discovery, metrics)
    provider = Provider(templates, ledger, view.discovery, settings.max_templates_per_namespace)
    store = ClusterStore(ledger, provider, metrics)
    leader = None
    if settings.janitor:

        def allowed(namespace: str, name: str, spec: Object) -> bool:
            state = view.namespace(namespace)
            return state is not None and serves(state) and may_be_ours(name, spec, policy())

        repair = Repair(api, templates, ledger, store, view.discovery, metrics, allowed)
        sweep = Sweep(templates, ledger, metrics, settings.template_grace)
        janitor = Janitor(api, ledger, sweep, repair, Unstick(api, view.discovery), settings.template_grace)
        identity = f"{settings.pod_name}_{uuid.uuid4()}"
        metrics.may_fail(_JANITOR)
        leader = Leader(
            api, settings.namespace, f"{settings.service_name}-{_JANITOR}", identity, janitor.work,
            on_bug=lambda: metrics.failed(_JANITOR),
        )  # fmt: skip
    return Cluster(view, store, EventRecorder(api, metrics, settings.pod_name), leader)
