"""The harness itself: programs of the pinned versions run, and a scheduler that allocates what the tests publish."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from controlplane import build, gpus, scheduling
from controlplane import cluster as cluster_module
from controlplane.client import Object, wait_for
from controlplane.cluster import Options
from controlplane.daemons import free_port
from controlplane.testbed import AddMachines, Cluster, StartControlPlane

IMAGE = "registry.example/app:1"


def pod(name: str, **resources: object) -> Object:
    container = {"name": "main", "image": IMAGE, "resources": resources}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [container]}}


def claiming(name: str, template: str) -> Object:
    made = pod(name, claims=[{"name": "gpu", "request": "gpu"}])
    made["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    return made


def template(cluster: Cluster, name: str, device_class: str, count: int) -> Object:
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, "count": count}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    return cluster.object("resource.k8s.io/v1", "ResourceClaimTemplate", name, spec=spec)


def test_the_server_is_of_the_release_that_was_built(cluster: Cluster) -> None:
    version = cluster.client.call("GET", "/version").checked()
    assert version["gitVersion"].startswith(f"v{cluster.release}.")
    assert [version["major"], version["minor"]] == cluster.release.split(".")


def test_a_legacy_pod_fits_a_node_of_the_device_plugin(cluster: Cluster, machines: AddMachines) -> None:
    machines([gpus.plugin("plugin-1", 2)])
    assert cluster.outcome(pod("fits", limits={"nvidia.com/gpu": "2"})).node == "plugin-1"
    second = cluster.outcome(pod("full", limits={"nvidia.com/gpu": "1"}))
    assert not second.scheduled
    assert "Insufficient nvidia.com/gpu" in second.message


@pytest.mark.parametrize(
    ("device_class", "machine", "expected"),
    [
        ("gpu.nvidia.com", gpus.Machine("h100", gpus.whole(gpus.H100, 8)), {"gpu-0", "gpu-1"}),
        (
            "mig.nvidia.com",
            gpus.Machine("mig", gpus.sliced(gpus.H100, [gpus.H100_MIG["1g.10gb"], gpus.H100_MIG["1g.10gb+me"]])),
            {"gpu-0-mig-1g10gb-19-0", "gpu-0-mig-1g10gb-me-20-1"},
        ),
    ],
    ids=["H100", "MIG"],
)
def test_a_claim_is_allocated(
    cluster: Cluster, machines: AddMachines, device_class: str, machine: gpus.Machine, expected: set[str]
) -> None:
    machines([machine])
    cluster.client.create(template(cluster, "two", device_class, 2))
    claimant = cluster.here(claiming("claimant", "two"))
    assert cluster.outcome(claimant).node == machine.name
    devices = scheduling.devices_by_container(cluster.client, claimant)
    assert {device.name for device in devices["main"]} == expected
    assert len(devices["main"]) == 2


def test_every_vgpu_guest_has_one_device(cluster: Cluster, machines: AddMachines) -> None:
    products = [gpus.A10_4Q, gpus.A10_8Q, gpus.A10_12Q, gpus.G4_EIGHTH, gpus.G4_QUARTER, gpus.G4_HALF]
    machines(gpus.Machine(f"guest-{number}", gpus.whole(product)) for number, product in enumerate(products))
    cluster.client.create(template(cluster, "one", "gpu.nvidia.com", 1))
    outcomes = cluster.outcomes(claiming(f"pod-{number}", "one") for number in range(len(products) + 1))
    assert sum(each.scheduled for each in outcomes) == len(products)
    assert len({each.node for each in outcomes if each.scheduled}) == len(products)


def test_devices_come_back_when_a_pod_goes(cluster: Cluster, machines: AddMachines) -> None:
    machines([gpus.Machine("one-gpu", gpus.whole(gpus.A100))])
    cluster.client.create(template(cluster, "one", "gpu.nvidia.com", 1))
    assert cluster.outcome(claiming("first", "one")).scheduled
    assert "cannot allocate all claims" in cluster.outcome(claiming("second", "one")).message
    scheduling.free_devices(cluster.client, cluster.namespace)
    assert cluster.outcome(claiming("third", "one")).scheduled


def test_kubectl_applies_on_either_side(cluster: Cluster) -> None:
    for flags in ([], ["--server-side", "--force-conflicts"]):
        done = cluster.kubectl("apply", "-f-", *flags, stdin=pod("applied"))
        assert done.returncode == 0, done.stderr
    stored = cluster.client.get("v1", "Pod", "applied", cluster.namespace)
    assert {entry["manager"] for entry in stored["metadata"]["managedFields"]} >= {"kubectl"}
    refused = cluster.kubectl("apply", "-f-", stdin=pod("applied", limits={"nvidia.com/gpu": "1"}))
    assert refused.returncode == 1
    assert "Forbidden" in refused.stderr or "forbidden" in refused.stderr


def test_a_user_has_no_rights_until_somebody_gives_them(cluster: Cluster) -> None:
    developer = cluster.plane.client_as("developer", ["developers"])
    refused = developer.try_create(cluster.here(pod("not-allowed")))
    assert (refused.status, refused.object["reason"]) == (403, "Forbidden")


def test_what_was_written_is_in_the_audit_log(cluster: Cluster) -> None:
    cluster.client.create(cluster.here(pod("audited")))
    events = [event for event in cluster.plane.audit_events() if event["verb"] == "create"]
    named = [event for event in events if cluster.namespace in str(event["requestURI"])]
    assert [event["objectRef"]["name"] for event in named if event["objectRef"]["resource"] == "pods"] == ["audited"]


def test_a_plugin_that_is_off_by_default(start_control_plane: StartControlPlane) -> None:
    plane = start_control_plane(Options(admission_plugins=["ExtendedResourceToleration"]))
    legacy = pod("tolerant", limits={"nvidia.com/gpu": "1"})
    stored = plane.client.create(legacy | {"metadata": {"name": "tolerant", "namespace": "default"}})
    assert "nvidia.com/gpu" in [toleration["key"] for toleration in stored["spec"]["tolerations"]]


def test_a_port_that_was_taken_meanwhile(
    start_control_plane: StartControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter([taken.getsockname()[1], free_port()])
        monkeypatch.setattr(cluster_module, "free_port", lambda: next(ports))
        plane = start_control_plane(Options())
        assert plane.client.call("GET", "/version").accepted
        assert next(ports, None) is None


@pytest.mark.parametrize(("ended_by", "code"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_by_hand_until_it_is_ended(release: str, ended_by: signal.Signals, code: int, root: Path) -> None:
    """Ctrl-C does what SIGTERM does; a test run that is killed leaves no process either."""
    command = [sys.executable, "-m", "controlplane", "up", release]
    environment = os.environ | {"PYTHONPATH": str(root / "tests")}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as up:
        try:
            assert up.stdout
            printed = next(line for line in up.stdout if line.startswith("export KUBECONFIG="))
            children = Path(f"/proc/{up.pid}/task/{up.pid}/children").read_text().split()
            up.send_signal(ended_by)
            up.wait(30)
        finally:
            up.kill()
    kubeconfig = Path(printed.strip().partition("=")[2])
    assert len(children) == 4
    wait_for("the processes are gone", lambda: not [pid for pid in children if Path("/proc", pid).exists()])
    assert up.returncode == code
    assert kubeconfig.exists() == (ended_by == signal.SIGKILL)
    if kubeconfig.exists():
        shutil.rmtree(kubeconfig.parent.parent)


def test_helm_is_of_the_pinned_version(helm: Path) -> None:
    printed = subprocess.run([helm, "version", "--short"], check=True, capture_output=True, text=True).stdout
    assert printed.startswith(build.PINS[helm.parent.name.split("-v")[0]].version)


def test_kustomize_is_of_the_pinned_version(kustomize: Path) -> None:
    printed = subprocess.run([kustomize, "version"], check=True, capture_output=True, text=True).stdout
    assert printed.strip() == build.PINS["kustomize-5"].version
