"""Shows the life of an installation: the chart goes into a real control plane, pods are converted and run, it goes.

`make chart-demo` runs it. Needs no GPU, no container engine and no cluster: see tests/controlplane/chart_walk.py for
what is real and what is played.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import yaml

from chart import generate
from controlplane import build, gpus
from controlplane.chart_walk import SIZES, Walk
from controlplane.client import Object
from controlplane.cluster import ControlPlane
from controlplane.daemons import DaemonError
from controlplane.helm import NAMESPACE, Helm
from controlplane.workloads import GPU, deployment

_RELEASE = os.environ.get("VERSION", "1.37")


def say(text: str) -> None:
    """Print a step."""
    print(f"\n== {text}", flush=True)


def show(obj: Object) -> None:
    """Print an object, or a part of one."""
    print("   " + yaml.safe_dump(obj, sort_keys=False).rstrip().replace("\n", "\n   "), flush=True)


def shape(pod: Object) -> Object:
    """Return what of a pod has to do with devices."""
    main = pod["spec"]["containers"][0]
    claims = {"resourceClaims": pod["spec"]["resourceClaims"]} if "resourceClaims" in pod["spec"] else {}
    return {"containers": [{"name": main["name"], "resources": main["resources"]}], **claims}


def look(walk: Walk, app: str, count: int) -> None:
    """Wait for the pods of a Deployment and print where each runs and what it finds there."""
    for pod in walk.running(app, count):
        devices = ", ".join(walk.devices(pod)["main"])
        print(f"   {pod['metadata']['name']} runs on {pod['spec']['nodeName']} and finds {devices}", flush=True)


def tell(walk: Walk) -> None:
    """Go through all steps in a cluster with machines."""
    values = generate.cluster_values()["aks"]
    say(f"helm install gpu2dra charts/gpu2dra --namespace {NAMESPACE} --values examples/clusters/aks/values.yaml")
    walk.install(values)
    with walk.replicas() as replicas:
        say("Two replicas start, under the chart's ServiceAccount; `helm test` asks one of them")
        print("   " + walk.test(replicas.start(2)[0]).stdout.strip())

        say(f"kubectl label namespace {walk.namespace} gpu2dra.dev/convert=true")
        walk.opt_in()
        legacy = deployment("model", 1, replicas=2)
        say(f"A Deployment as it always was: its pods ask for {GPU}")
        show(shape({"spec": legacy["spec"]["template"]["spec"]}))
        walk.create(legacy)
        say("Its pods as they were created")
        show(shape(walk.running("model", 2)[0]))
        look(walk, "model", 2)
        print(f"   templates in the namespace: {', '.join(walk.templates())}")

        say("helm upgrade: another timeout; the replicas make room for their successors")
        walk.upgrade(values | {"webhook": values["webhook"] | {"timeoutSeconds": 7}})
        with walk.replicas() as successors:
            successors.start(2)
            for replica in replicas.serving:
                replica.terminate()
            walk.create(deployment("second", 1))
            look(walk, "second", 1)

    say("helm uninstall: running pods keep their devices, new ones are as they always were")
    walk.helm("uninstall")
    look(walk, "model", 2)
    walk.create(deployment("third", 1))
    third = walk.appeared("third")
    show(shape(third))


def main() -> None:
    """Run the control plane and the story in it."""
    planes = build.control_planes()
    if _RELEASE not in planes:
        sys.exit(f"no Kubernetes {_RELEASE} here; there is {', '.join(planes)}")
    try:
        binaries, helm = planes[_RELEASE](print), build.ensure("helm-4") / "helm"
        with tempfile.TemporaryDirectory() as home, ControlPlane(binaries) as plane:
            for device_class in gpus.device_classes():
                plane.client.create(device_class)
            walk = Walk(plane, Helm(helm, Path(home)))
            sizes = ", ".join(f"{size} with {product.memory // 1024} GiB" for size, product in SIZES.items())
            say(f"A cluster of Kubernetes {_RELEASE}. Two nodes of each size, one vGPU on each: {sizes}")
            walk.add_machines()
            tell(walk)
    except (build.BuildError, DaemonError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
