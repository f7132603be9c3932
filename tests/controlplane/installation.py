"""The chart in a control plane: rendered by the real helm and created, but for what would need a kubelet.

The Deployment is not created: its pods would never run. Its arguments are those that `webhook_process` starts the
webhook with, under the ServiceAccount and so with the rights that the chart gives it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controlplane import build
from controlplane.client import Client, Object
from controlplane.cluster import ControlPlane
from controlplane.helm import NAMESPACE, Helm, one
from controlplane.testbed import add_namespace
from controlplane.webhook_process import Replicas

if TYPE_CHECKING:
    from pathlib import Path

CONVERTED = {"gpu2dra.dev/convert": "true"}
"""Labels of a namespace in which pods are converted."""
_HOOK = "helm.sh/hook"


@dataclass(frozen=True, slots=True)
class Installation:
    """What the chart renders to for some values."""

    plane: ControlPlane
    objects: tuple[Object, ...]

    @property
    def arguments(self) -> list[str]:
        """The arguments of the container."""
        pod = one(list(self.objects), "Deployment")["spec"]["template"]["spec"]
        return [str(argument) for argument in pod["containers"][0]["args"]]

    @property
    def service_account(self) -> str:
        """The name of the account that the pods run under."""
        return str(one(list(self.objects), "ServiceAccount")["metadata"]["name"])

    @property
    def user(self) -> str:
        """That account as the API server's authentication calls it."""
        return f"system:serviceaccount:{NAMESPACE}:{self.service_account}"

    def create(self) -> None:
        """Create everything that needs no kubelet."""
        for obj in self._created():
            self.plane.client.create(obj)

    def remove(self) -> None:
        """Delete all of it, as `helm uninstall` does."""
        for obj in reversed(self._created()):
            self.plane.client.delete(obj)

    def replicas(self, *arguments: str) -> Replicas:
        """Return the replicas behind the Service, not yet started; `arguments` come after those of the chart."""
        service = self.plane.client.get("v1", "Service", "gpu2dra", NAMESPACE)
        (port,) = service["spec"]["ports"]
        return Replicas(
            self.plane,
            f"{service['spec']['clusterIP']}:{port['port']}",
            self.plane.service_account_kubeconfig(NAMESPACE, self.service_account),
            [*self.arguments, *arguments],
            {"GPU2DRA_WEBHOOK_NAMESPACE": NAMESPACE},
        )

    def _created(self) -> list[Object]:
        return [
            obj for obj in self.objects
            if obj["kind"] != "Deployment" and _HOOK not in obj["metadata"].get("annotations", {})
        ]  # fmt: skip


@contextlib.contextmanager
def installed(plane: ControlPlane, values: Object, home: Path) -> Iterator[Installation]:
    """Have the chart in a control plane while the block runs; `home` is where helm keeps its caches."""
    helm = Helm(build.ensure("helm-4") / "helm", home)
    installation = Installation(plane, tuple(helm.render(values)))
    _ensure_namespace(plane.client)
    installation.create()
    try:
        yield installation
    finally:
        installation.remove()


def _ensure_namespace(client: Client) -> None:
    """Create the namespace of the webhook, which may be there from a test before or still be going away."""
    path = f"/api/v1/namespaces/{NAMESPACE}"
    if client.call("GET", path).status == 404:
        add_namespace(client, NAMESPACE)
