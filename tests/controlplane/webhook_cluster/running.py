"""The cluster side of the webhook, running against a control plane with the rights of its chart and no others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonpatch

from controlplane.client import Client, Object, wait_for
from controlplane.testbed import Cluster
from gpu2dra import ApiVersion, Context, Options, Style, plan
from gpu2dra.policy import BUILT_IN
from gpu2dra_webhook.cluster import client, parts
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.ports import NamespaceState
from gpu2dra_webhook.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

USER = "gpu2dra-webhook"
CLAIMS = "resource.k8s.io/v1"
TEMPLATE = "ResourceClaimTemplate"
LABEL = "gpu2dra.dev/convert"
OPTED_IN = {LABEL: "true"}
UNUSED_SINCE = "gpu2dra.dev/unused-since"

_RBAC = "rbac.authorization.k8s.io"
_RULES: Sequence[tuple[str, str, str]] = (
    ("", "namespaces limitranges resourcequotas nodes", "list watch"),
    ("", "pods", "get list watch"),
    ("", "pods/status", "patch"),
    ("", "events", "create"),
    ("resource.k8s.io", "resourceslices deviceclasses", "list watch"),
    ("resource.k8s.io", "resourceclaimtemplates", "get list watch create patch delete"),
    ("resource.k8s.io", "resourceclaims", "get"),
    ("coordination.k8s.io", "leases", "create get update"),
)
"""Everything that the cluster side may do: API group, resources, verbs."""


@dataclass(slots=True)
class Running:
    """One replica's cluster side. `metrics` are its own."""

    api: Api
    parts: parts.Cluster
    metrics: Metrics

    def ensure(self, namespace: str, *templates: Object, timeout: float = 10, dry_run: bool = False) -> None:
        """Do what the webhook does before it answers."""
        self.parts.store.ensure(namespace, templates, timeout=timeout, dry_run=dry_run)

    def count(self, metric: str, **labels: str) -> float:
        """Return the value of a counter, 0 when it was never counted."""
        return self.metrics._registry.get_sample_value(f"gpu2dra_{metric}_total", labels or None) or 0.0

    def stop(self) -> None:
        """End it as the server does."""
        self.parts.stop()
        self.api.close()


Run = Callable[..., Running]


def run(kubeconfig: Path, *, wait: bool = True, **choices: Any) -> Running:
    """Start the cluster side with these settings and return it, once its caches are filled."""
    settings = Settings(kubeconfig=kubeconfig, namespace="default", **choices)
    api, metrics = client.connect(kubeconfig), Metrics()
    built = parts.build(settings, api, metrics, lambda: BUILT_IN, is_opted_in)
    built.start()
    running = Running(api, built, metrics)
    if wait:
        wait_for("the caches are filled", lambda: not built.view.synced())
    return running


def is_opted_in(state: NamespaceState) -> bool:
    """Return what admission says of a namespace by default."""
    return state.labels.get(LABEL) == "true"


def grant(admin: Client) -> None:
    """Give USER the rights of the chart, once for a control plane."""
    rules = [
        {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
        for group, resources, verbs in _RULES
    ]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": USER}, "rules": rules}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": USER},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": USER},
        "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": USER}],
    }
    admin.apply(role, force=True)
    admin.apply(binding, force=True)


def opt_in(cluster: Cluster) -> None:
    """Label the test's namespace."""
    patch = {"metadata": {"labels": OPTED_IN}}
    cluster.client.patch(namespace(cluster.namespace), patch, "application/merge-patch+json")


def namespace(name: str) -> Object:
    """Return a namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def converted(name: str, gpus: int = 1, version: ApiVersion = ApiVersion.V1) -> tuple[Object, Object]:
    """Return a pod as admission makes it of one that asks for GPUs, and the template that it names."""
    pod = legacy(name, gpus)
    options = Options(style=Style.ADMISSION, elsewhere=False, tolerations=False, api_version=version)
    made = plan(pod, options, Context(namespace="any"))
    changed: Object = jsonpatch.apply_patch(pod, list(made.operations))
    return changed, made.templates[0]


def legacy(name: str, gpus: int) -> Object:
    """Return a pod with one container that asks for GPUs by the legacy name."""
    container = {"name": "main", "image": "app", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def template(gpus: int = 1, version: ApiVersion = ApiVersion.V1) -> Object:
    """Return the template for a container named main that asks for so many GPUs."""
    return converted("any", gpus, version)[1]


def stored(cluster: Cluster, name: str) -> Object:
    """Return a template of the test's namespace as it is now."""
    return cluster.client.get(CLAIMS, TEMPLATE, name, cluster.namespace)


def names(cluster: Cluster) -> set[str]:
    """Return the names of the templates in the test's namespace."""
    return {item["metadata"]["name"] for item in cluster.client.list(CLAIMS, TEMPLATE, cluster.namespace)}


def name_of(obj: Object) -> str:
    """Return the name of an object."""
    return str(obj["metadata"]["name"])
