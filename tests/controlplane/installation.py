"""The chart in a control plane: rendered by the real helm and created, but for what would need a kubelet.

The Deployment is not created: its pods would never run. Its arguments are those that `webhook_process` starts the
webhook with, under the ServiceAccount and so with the rights that the chart gives it.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from controlplane import build
from controlplane.client import Client, Object, wait_for
from controlplane.cluster import ControlPlane
from controlplane.helm import NAMESPACE, Helm, one
from controlplane.testbed import add_namespace
from controlplane.webhook_process import PROGRAM, Replicas, with_policy
from controlplane.workloads import names_a_gpu, one_gpu
from gpu2dra.converted import ANNOTATION

if TYPE_CHECKING:
    from pathlib import Path

CONVERTED = {"gpu2dra.dev/convert": "true"}
"""Labels of a namespace in which pods are converted."""
TEMPLATES = ("resource.k8s.io/v1", "ResourceClaimTemplate")
_HOOK = "helm.sh/hook"
_PROBED = "gpu2dra-probed"
_numbers = itertools.count()


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

    def configuration(self) -> Object:
        """Return the webhook configuration as it is stored now."""
        return self.plane.client.read(one(list(self.objects), "MutatingWebhookConfiguration"))

    def create(self) -> None:
        """Create everything that needs no kubelet."""
        for obj in self._created():
            self.plane.client.create(obj)

    def remove(self) -> None:
        """Delete all of it, as `helm uninstall` does."""
        for obj in reversed(self._created()):
            self.plane.client.delete(obj)

    def replicas(
        self, *arguments: str, program: str = PROGRAM, environment: Mapping[str, str] | None = None
    ) -> Replicas:
        """Return the replicas behind the Service, not yet started; `arguments` come after those of the chart.

        `program` is another module that runs the webhook, `environment` what that reads.
        """
        service = self.plane.client.get("v1", "Service", "gpu2dra", NAMESPACE)
        (port,) = service["spec"]["ports"]
        policy = one(list(self.objects), "ConfigMap", "gpu2dra-policy")
        return Replicas(
            self.plane,
            f"{service['spec']['clusterIP']}:{port['port']}",
            self.plane.service_account_kubeconfig(NAMESPACE, self.service_account),
            [*with_policy(self.plane, self.arguments, policy), *arguments],
            {"GPU2DRA_WEBHOOK_NAMESPACE": NAMESPACE, **(environment or {})},
            program,
        )

    def _created(self) -> list[Object]:
        return [
            obj for obj in self.objects
            if obj["kind"] != "Deployment" and _HOOK not in obj["metadata"].get("annotations", {})
        ]  # fmt: skip


@contextlib.contextmanager
def installed(
    plane: ControlPlane, values: Object, home: Path, report: Callable[[str], None] = print
) -> Iterator[Installation]:
    """Have the chart in a control plane while the block runs, and its API server know of it.

    `home` is where helm keeps its caches; `report` gets a line for each program that has to be built first.
    """
    helm = Helm(build.ensure("helm-4", report) / "helm", home)
    installation = Installation(plane, tuple(helm.render(values)))
    _ensure_namespace(plane.client, NAMESPACE)
    _ensure_namespace(plane.client, _PROBED, CONVERTED)
    installation.create()
    try:
        wait_for("the API server asks the webhook about pods", lambda: _asks(plane.client))
        yield installation
    finally:
        installation.remove()


def converting_namespace(plane: ControlPlane) -> str:
    """Return a new namespace in which pods are converted; it stays, since to remove thousands of pods takes long."""
    name = f"converting-{next(_numbers)}"
    add_namespace(plane.client, name, CONVERTED)
    return name


def templates(client: Client, namespace: str) -> set[str]:
    """Return the names of the ResourceClaimTemplates of a namespace."""
    return {each["metadata"]["name"] for each in client.list(*TEMPLATES, namespace)}


def is_converted(obj: Object) -> bool:
    """Whether a stored Pod carries our record and asks for no legacy resource."""
    return ANNOTATION in obj["metadata"].get("annotations", {}) and not names_a_gpu(obj)


def _ensure_namespace(client: Client, name: str, labels: Mapping[str, str] | None = None) -> None:
    """Create a namespace if an installation before has not left it; what is empty may stay."""
    if client.call("GET", f"/api/v1/namespaces/{name}").status == HTTPStatus.NOT_FOUND:
        add_namespace(client, name, labels)


def _asks(client: Client) -> bool:
    """Whether the API server has heard of the webhook: a legacy pod is refused for want of a replica."""
    pod = one_gpu("probe")
    answer = client.try_create(pod | {"metadata": {"name": "probe", "namespace": _PROBED}}, dryRun="All")
    return not answer.accepted
