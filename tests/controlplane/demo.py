"""What `make demo-cluster` shows: a legacy Deployment goes into a real control plane, its pods come out converted.

The API server, the controllers and the scheduler are the real ones, and so are chart and webhook. Nodes and devices are
objects in the shape that NVIDIA's driver publishes; there is no kubelet, so no container starts.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from controlplane import gpus, scheduling
from controlplane.client import Client, Object, wait_for
from controlplane.cluster import ControlPlane
from controlplane.installation import CONVERTED, TEMPLATES, installed
from controlplane.testbed import add_namespace
from controlplane.workloads import GPU, deployment
from gpu2dra.converted import ANNOTATION

NAMESPACE = "team-a"
NAME = "chat"
SIZES = {"nv6ads-a10-v5": gpus.A10_4Q, "nv12ads-a10-v5": gpus.A10_8Q, "nv18ads-a10-v5": gpus.A10_12Q}
"""AKS' sizes of NVadsA10_v5, each with one slice of an A10."""


def run(plane: ControlPlane) -> None:
    """Show it in a control plane that holds nothing but the DeviceClasses of NVIDIA's driver."""
    _say(f"A cluster with {len(SIZES)} nodes as AKS has them. Each has one vGPU, published by NVIDIA's DRA driver")
    for name, product in SIZES.items():
        for obj in gpus.Machine(name, gpus.whole(product)).objects():
            plane.client.create(obj)
        print(f"   {name}: {product.name}, {product.memory // 1024} GiB")
    with tempfile.TemporaryDirectory(prefix="gpu2dra-") as home, installed(plane, {}, Path(home)) as installation:
        _say("The webhook: two replicas, with the arguments and the rights that the chart gives them")
        with installation.replicas() as replicas:
            for replica in replicas.start(2):
                print(f"   {replica.name} is ready")
            _convert(plane.client)
    _say("That was all; everything that was started ends now")


def _convert(client: Client) -> None:
    add_namespace(client, NAMESPACE, CONVERTED)
    _say(f'Namespace {NAMESPACE} is labelled gpu2dra.dev/convert: "true", and a Deployment goes in as it always was')
    legacy = deployment(NAME, 1, replicas=len(SIZES))
    _show(_part(legacy["spec"]["template"]["spec"]))
    client.create(legacy | {"metadata": {"name": NAME, "namespace": NAMESPACE}})
    pods = wait_for("the pods are bound to nodes", lambda: _bound(client), 60)

    _say("What was stored of each of its pods")
    annotations = {ANNOTATION: pods[0]["metadata"]["annotations"][ANNOTATION]}
    _show({"metadata": {"annotations": annotations}, "spec": _part(pods[0]["spec"])})
    _say("The template that the webhook made for them, before it answered the API server")
    (template,) = client.list(*TEMPLATES, NAMESPACE)
    _show({"metadata": {"name": template["metadata"]["name"]}, "spec": {"spec": template["spec"]["spec"]}})

    _say("Where the scheduler put them, and what their containers find there")
    for pod in pods:
        if GPU in str(pod["spec"]["containers"]):
            message = f"{pod['metadata']['name']} still asks for {GPU}"
            raise SystemExit(message)
        node = pod["spec"]["nodeName"]
        devices = ", ".join(device.name for device in scheduling.devices_by_container(client, pod)["main"])
        print(f"   {pod['metadata']['name']} on {node}: {devices} ({SIZES[node].name})")


def _bound(client: Client) -> list[Object]:
    pods = client.list("v1", "Pod", NAMESPACE)
    return pods if len(pods) == len(SIZES) and all(pod["spec"].get("nodeName") for pod in pods) else []


def _part(spec: Object) -> Object:
    """Return what of a PodSpec has to do with devices."""
    containers = [{"name": each["name"], "resources": each["resources"]} for each in spec["containers"]]
    claims = {key: spec[key] for key in ("resourceClaims",) if key in spec}
    return {"containers": containers, **claims}


def _say(text: str) -> None:
    print(f"\n=== {text}\n", flush=True)


def _show(obj: Object) -> None:
    text = yaml.safe_dump(obj, sort_keys=False, width=100).rstrip()
    print("   " + text.replace("\n", "\n   "), flush=True)
