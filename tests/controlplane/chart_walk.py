"""The life of an installation, step by step: helm install, pods that are converted and run, upgrade, uninstall.

`test_chart_end_to_end` takes these steps and looks at each; `make chart-demo` takes them to show them. No kubelet runs:
the container of the chart's Deployment is played by processes here, with its arguments and its ServiceAccount.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controlplane import build, gpus, scheduling
from controlplane.client import Object, wait_for
from controlplane.helm import CHART, NAMESPACE, RELEASE, Helm, objects, one
from controlplane.testbed import add_namespace
from controlplane.webhook_process import Replica, Replicas, with_policy

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.cluster import ControlPlane

USER = f"system:serviceaccount:{NAMESPACE}:{RELEASE}"
"""The account of the chart, as the API server's authentication calls it."""
OPTED_IN = {"gpu2dra.dev/convert": "true"}
SIZES = {"nv6": gpus.A10_4Q, "nv12": gpus.A10_8Q, "nv18": gpus.A10_12Q}
"""Nodes as AKS has them in its NVadsA10_v5 sizes: each with one vGPU, a slice of an A10."""


@dataclass(slots=True)
class Walk:
    """One installation in one cluster. `namespace` is where the workloads run."""

    plane: ControlPlane
    chart: Helm
    namespace: str = "team-a"
    machines: list[Object] = field(default_factory=list)

    def add_machines(self) -> None:
        """Have two nodes of each size, with what NVIDIA's DRA driver publishes for them."""
        for size, product in SIZES.items():
            for number in range(2):
                labels = {"nvidia.com/gpu.present": "true"}
                machine = gpus.Machine(f"{size}-{number}", gpus.whole(product), labels=labels)
                self.machines += [self.plane.client.create(obj) for obj in machine.objects()]

    def helm(self, command: str, *arguments: str, values: Object | None = None) -> str:
        """Run a helm command on the release."""
        chart = [str(CHART)] if command in ("install", "upgrade") else []
        place = (f"--namespace={NAMESPACE}", f"--kubeconfig={self.plane.admin_kubeconfig}")
        return self.chart.run(command, *arguments, RELEASE, *chart, *place, values=values)

    def install(self, values: Object) -> str:
        """Install the chart as a user would, and return what helm says."""
        return self.helm("install", "--create-namespace", values=values)

    def upgrade(self, values: Object) -> str:
        """Upgrade the release to these values."""
        return self.helm("upgrade", "--reset-values", values=values)

    def manifest(self) -> list[Object]:
        """Return the objects of the release."""
        return objects(self.helm("get", "manifest"))

    def replicas(self) -> Replicas:
        """Return what the Deployment would run, not yet started: arguments, account and Service are the cluster's."""
        for log in self.plane.logs.glob("webhook-*.log"):  # of the revision before, which may be writing still
            log.rename(log.with_suffix(f".{time.monotonic_ns()}"))
        client = self.plane.client
        spec = client.read(one(self.manifest(), "Deployment"))["spec"]["template"]["spec"]
        service = client.get("v1", "Service", RELEASE, NAMESPACE)["spec"]
        return Replicas(
            self.plane,
            f"{service['clusterIP']}:{service['ports'][0]['port']}",
            self.plane.service_account_kubeconfig(NAMESPACE, spec["serviceAccountName"]),
            self.mount_policy(spec["containers"][0]["args"]),
            {"GPU2DRA_WEBHOOK_NAMESPACE": NAMESPACE},
        )

    def mount_policy(self, arguments: Sequence[str] = ()) -> list[str]:
        """Do what a kubelet does with the policy's ConfigMap; return the arguments, which name the file, for it."""
        policy = self.plane.client.get("v1", "ConfigMap", f"{RELEASE}-policy", NAMESPACE)
        return with_policy(self.plane, arguments, policy)

    def test(self, replica: Replica) -> subprocess.CompletedProcess[str]:
        """Run what the pod of `helm test` runs, on a replica instead of the Service."""
        hook = objects(self.helm("get", "hooks"))
        script, url = one(hook, "Pod")["spec"]["containers"][0]["args"]
        here = f"https://127.0.0.1:{replica.port}/{url.split('/', 3)[3]}"
        return subprocess.run([sys.executable, "-c", script, here], capture_output=True, text=True, check=False)

    def opt_in(self) -> None:
        """Make the namespace of the workloads, with the label."""
        add_namespace(self.plane.client, self.namespace, OPTED_IN)

    def create(self, obj: Object) -> Object:
        """Create an object in that namespace and return it as stored."""
        return self.plane.client.create(obj | {"metadata": obj["metadata"] | {"namespace": self.namespace}})

    def pods(self, app: str) -> list[Object]:
        """Return the pods of a Deployment as they are now."""
        return self.plane.client.list("v1", "Pod", self.namespace, labelSelector=f"app={app}")

    def running(self, app: str, count: int) -> list[Object]:
        """Wait until a Deployment has so many pods and all are bound to nodes; return them."""

        def look() -> Sequence[Object]:
            found = self.pods(app)
            return found if len(found) == count and all(pod["spec"].get("nodeName") for pod in found) else ()

        return list(wait_for(f"{count} pods of {app} are bound", look, deadline=60))

    def appeared(self, app: str) -> Object:
        """Wait until a Deployment has made a pod, and return it."""
        return wait_for(f"{app} has a pod", lambda: self.pods(app))[0]

    def devices(self, pod: Object) -> dict[str, list[str]]:
        """Return the devices that each container of a pod finds, as `pool/device`."""
        found = scheduling.devices_by_container(self.plane.client, pod)
        return {name: [f"{device.pool}/{device.name}" for device in devices] for name, devices in found.items()}

    def templates(self) -> list[str]:
        """Return the names of the templates in the namespace."""
        found = self.plane.client.list("resource.k8s.io/v1", "ResourceClaimTemplate", self.namespace)
        return [obj["metadata"]["name"] for obj in found]


def prepared(plane: ControlPlane, release: str, home: Path) -> Walk:
    """Return a walk in a cluster that has machines, by the Helm that is as old as the release; `home` is Helm's."""
    program = build.ensure("helm-3" if release == "1.34" else "helm-4") / "helm"
    walk = Walk(plane, Helm(program, home))
    walk.add_machines()
    return walk
