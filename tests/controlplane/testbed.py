"""What the fixtures of this folder hand to a test, and the namespaces that they make for it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from controlplane import gpus, scheduling
from controlplane.client import Client, Object, wait_for
from controlplane.cluster import ControlPlane, Options

StartControlPlane = Callable[[Options], ControlPlane]
AddMachines = Callable[[Iterable[gpus.Machine]], None]


@dataclass(frozen=True, slots=True)
class Cluster:
    """What a test needs of a cluster: a client with all rights, a namespace of its own, and the release."""

    release: str
    plane: ControlPlane
    namespace: str

    @property
    def client(self) -> Client:
        """A client with all rights."""
        return self.plane.client

    @property
    def minor(self) -> int:
        """The second number of the release."""
        return int(self.release.split(".")[1])

    def object(self, api_version: str, kind: str, name: str, **fields: object) -> Object:
        """Return an object in the test's namespace, not yet created."""
        metadata = {"name": name, "namespace": self.namespace}
        return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}

    def here(self, obj: Object) -> Object:
        """Return a copy of an object that lies in the test's namespace."""
        return obj | {"metadata": obj["metadata"] | {"namespace": self.namespace}}

    def outcome(self, pod: Object) -> scheduling.Outcome:
        """Create a pod in the test's namespace and return what the scheduler decides."""
        return self.outcomes([pod])[0]

    def outcomes(self, pods: Iterable[Object]) -> list[scheduling.Outcome]:
        """Create pods in the test's namespace, then return what the scheduler decides on each."""
        return scheduling.outcomes(self.client, [self.client.create(self.here(pod)) for pod in pods])

    def kubectl(self, *arguments: str, stdin: Object | None = None) -> subprocess.CompletedProcess[str]:
        """Run the kubectl of the release in the test's namespace, with an object on its standard input if given.

        A refusal is a result, not an exception: look at `returncode`, `stdout` and `stderr`.
        """
        program = str(self.plane.binaries / "kubectl")
        command = [program, f"--kubeconfig={self.plane.admin_kubeconfig}", f"--namespace={self.namespace}", *arguments]
        sent = None if stdin is None else json.dumps(stdin)
        # A home of its own keeps its discovery cache away from the user's.
        environment = os.environ | {"HOME": str(self.plane.folder)}
        return subprocess.run(
            command, input=sent, capture_output=True, text=True, check=False, timeout=60, env=environment
        )


def add_namespace(client: Client, name: str, labels: Mapping[str, str] | None = None) -> None:
    """Create a namespace and wait until pods can be created in it."""
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": dict(labels or {})}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    wait_for(f"namespace {name} has a service account", lambda: client.call("GET", account).accepted)


def remove_namespace(client: Client, name: str) -> None:
    """Delete a namespace, so that controllers make no more pods in it; then its pods, since no kubelet ends bound ones.

    What is being deleted already is fine.
    """
    answer = client.call("DELETE", f"/api/v1/namespaces/{name}")
    if answer.status not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
        answer.checked()
    client.delete_all("v1", "Pod", name)
