"""What admission is told of the cluster, and how soon it is told of changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from controlplane import gpus
from controlplane.client import MERGE_PATCH, Object, wait_for
from controlplane.cluster import Options
from controlplane.testbed import AddMachines, Cluster, StartControlPlane, add_namespace
from controlplane.webhook_cluster import running
from controlplane.webhook_cluster.gate import Gate
from controlplane.webhook_cluster.running import LABEL, OPTED_IN, Run, name_of, namespace, template
from gpu2dra import ApiVersion
from gpu2dra_webhook.ports import NO_QUOTA, DeviceClassState, NamespaceState, QuotaState


def is_opted_in(labels: Mapping[str, str]) -> bool:
    return labels.get(LABEL) == "true"


def test_a_namespace_is_known_by_its_labels_and_its_end(cluster: Cluster, run: Run) -> None:
    view = run().parts.view
    name = f"{cluster.namespace}-labels"
    assert view.namespace(name) is None
    cluster.client.create(namespace(name) | {"metadata": {"name": name, "labels": {"team": "a"}}})
    state = wait_for("it is known", lambda: view.namespace(name))
    assert state.labels == {"team": "a", "kubernetes.io/metadata.name": name}
    assert (state.terminating, state.limit_range, state.quota) == (False, (), NO_QUOTA)
    keeper = {"name": "keeper", "namespace": name, "finalizers": ["example.com/wait"]}
    held = cluster.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": keeper})
    cluster.client.delete(namespace(name))
    wait_for("it is seen to go", lambda: (seen := view.namespace(name)) and seen.terminating)
    cluster.client.patch(held, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    wait_for("it is gone", lambda: view.namespace(name) is None)


def test_a_namespace_labelled_a_moment_ago_is_waited_for(cluster: Cluster, run: Run, gate: Gate) -> None:
    view = run(gate.kubeconfig).parts.view
    gate.hold()
    running.opt_in(cluster)
    found: list[NamespaceState | None] = []
    asked = threading.Thread(
        target=lambda: found.append(view.wait_for_namespace(cluster.namespace, is_opted_in, timeout=30))
    )
    asked.start()
    gate.release()
    asked.join()
    assert found[0] is not None
    assert found[0].labels[LABEL] == "true"


def test_a_namespace_made_a_moment_ago_is_waited_for(cluster: Cluster, run: Run, gate: Gate) -> None:
    view = run(gate.kubeconfig).parts.view
    gate.hold()
    name = f"{cluster.namespace}-new"
    made = cluster.client.create(namespace(name) | {"metadata": {"name": name, "labels": OPTED_IN}})
    found: list[NamespaceState | None] = []
    asked = threading.Thread(target=lambda: found.append(view.wait_for_namespace(name, is_opted_in, timeout=30)))
    asked.start()
    gate.release()
    asked.join()
    cluster.client.delete(made)
    assert found[0] is not None


def test_a_namespace_that_is_not_opted_in_is_not_waited_for_again_and_again(cluster: Cluster, run: Run) -> None:
    view = run().parts.view
    state = view.wait_for_namespace(cluster.namespace, is_opted_in, timeout=0.1)
    assert state is not None
    assert LABEL not in state.labels
    # Only a wait that does not happen comes back at once from a timeout of an hour.
    assert view.wait_for_namespace(cluster.namespace, is_opted_in, timeout=3600) == state
    assert view.wait_for_namespace("nowhere", is_opted_in, timeout=0.1) is None
    assert view.wait_for_namespace("nowhere", is_opted_in, timeout=3600) is None
    running.opt_in(cluster)
    wait_for("the label is seen", lambda: is_opted_in((view.namespace(cluster.namespace) or state).labels))
    assert view.wait_for_namespace(cluster.namespace, is_opted_in, timeout=0) != state


def test_a_label_that_comes_after_a_vain_wait_is_waited_for(cluster: Cluster, run: Run) -> None:
    view = run().parts.view
    view.wait_for_namespace(cluster.namespace, is_opted_in, timeout=0.05)
    patch = {"metadata": {"labels": {"other": "label"}}}
    cluster.client.patch(namespace(cluster.namespace), patch, MERGE_PATCH)
    wait_for("the other label is seen", lambda: "other" in (view.namespace(cluster.namespace) or _NOTHING).labels)
    threading.Timer(0.2, running.opt_in, [cluster]).start()
    state = view.wait_for_namespace(cluster.namespace, is_opted_in, timeout=30)
    assert state is not None
    assert is_opted_in(state.labels)


_NOTHING = NamespaceState("")


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ({"type": "Container", "default": {"nvidia.com/gpu": "1", "cpu": "1"}}, ("nvidia.com/gpu",)),
        ({"type": "Container", "defaultRequest": {"nvidia.com/mig-1g.5gb": "1"}}, ("nvidia.com/mig-1g.5gb",)),
        ({"type": "Container", "min": {"nvidia.com/gpu": "1"}}, ("nvidia.com/gpu",)),
        ({"type": "Pod", "max": {"nvidia.com/gpu": "4"}}, ("nvidia.com/gpu",)),
        ({"type": "Container", "default": {"cpu": "1"}}, ()),
        ({"type": "PersistentVolumeClaim", "max": {"storage": "1Gi"}}, ()),
    ],
    ids=["default", "defaultRequest", "min", "pod", "no gpu", "no container"],
)
def test_r12_a_limit_range_is_told_by_its_legacy_names(
    cluster: Cluster, run: Run, limit: Object, expected: tuple[str, ...]
) -> None:
    view = run().parts.view
    other = {"type": "Container", "max": {"nvidia.com/mig-7g.80gb": "8"}}
    for name, each in (("limits", limit), ("second", other)):
        cluster.client.create(cluster.object("v1", "LimitRange", name, spec={"limits": [each]}))
    wanted = (*expected, "nvidia.com/mig-7g.80gb")
    wait_for("it is known", lambda: (view.namespace(cluster.namespace) or _NOTHING).limit_range == wanted)
    cluster.client.delete(cluster.object("v1", "LimitRange", "limits"))
    wait_for("it is gone", lambda: (view.namespace(cluster.namespace) or _NOTHING).limit_range == wanted[-1:])


_DEVICES = "deviceclass.resource.k8s.io/devices"


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        ([{"hard": {"requests.nvidia.com/gpu": "4", "pods": "9"}}], QuotaState(("nvidia.com/gpu",))),
        (
            [{"hard": {"requests.nvidia.com/gpu": "4", f"gpu.nvidia.com.{_DEVICES}": "4"}}],
            QuotaState(("nvidia.com/gpu",), frozenset({"gpu.nvidia.com"})),
        ),
        (
            [{"hard": {"requests.nvidia.com/gpu": "4"}}, {"hard": {f"mig.nvidia.com.{_DEVICES}": "4"}}],
            QuotaState(("nvidia.com/gpu",), frozenset({"mig.nvidia.com"})),
        ),
        (
            [{"hard": {"requests.nvidia.com/gpu": "4"}, "scopes": ["NotTerminating"]}],
            QuotaState(("nvidia.com/gpu",), scoped=True),
        ),
        ([{"hard": {"requests.cpu": "4"}, "scopes": ["NotTerminating"]}], NO_QUOTA),
    ],
    ids=["legacy", "both", "two quotas", "scoped", "scoped without gpus"],
)
def test_r12_quotas_are_told_together(cluster: Cluster, run: Run, specs: list[Object], expected: QuotaState) -> None:
    view = run().parts.view
    for number, spec in enumerate(specs):
        cluster.client.create(cluster.object("v1", "ResourceQuota", f"quota-{number}", spec=spec))
    marker = cluster.object("v1", "ResourceQuota", "marker", spec={"hard": {f"marker.{_DEVICES}": "1"}})
    cluster.client.create(marker)  # the last one: when it is seen, so are the others
    wait_for("they are known", lambda: "marker" in (view.namespace(cluster.namespace) or _NOTHING).quota.class_keys)
    quota = (view.namespace(cluster.namespace) or _NOTHING).quota
    assert QuotaState(quota.legacy_names, quota.class_keys - {"marker"}, quota.scoped) == expected


def test_a_device_class_is_told_once_it_appears(cluster: Cluster, run: Run) -> None:
    view = run().parts.view
    assert view.device_class("gpu.nvidia.com") == DeviceClassState("gpu.nvidia.com")
    name = f"{cluster.namespace}.example.com"
    assert view.device_class(name) is None
    made = cluster.client.create(gpus.device_class(name, "gpu", "example.com/gpu"))
    state = wait_for("it is known", lambda: view.device_class(name))
    cluster.client.delete(made)
    # Servers before 1.36 drop the field (R12).
    assert state.extended_resource_name == ("example.com/gpu" if cluster.minor >= 36 else "")
    wait_for("it is gone", lambda: view.device_class(name) is None)


def test_mixed_nodes_are_those_that_hand_out_a_gpu_twice(cluster: Cluster, run: Run, machines: AddMachines) -> None:
    replica = run()
    view = replica.parts.view
    assert (view.mixed_nodes(), view.has_slices()) == ((), False)
    machines(
        [
            gpus.plugin("plugin-only", 2),
            gpus.Machine("driver-only", gpus.whole(gpus.H100, 1)),
            gpus.Machine("none-left", gpus.whole(gpus.H100, 1), resources={"nvidia.com/gpu": 0}),
            gpus.Machine("whole", gpus.whole(gpus.H100, 1), resources={"nvidia.com/gpu": 1}),
            gpus.Machine("sliced", gpus.whole(gpus.H100, 1), resources={"nvidia.com/mig-1g.10gb": 7}),
        ]
    )
    wait_for("they are known", lambda: view.mixed_nodes() == ("sliced", "whole"))
    assert view.has_slices()
    assert b"gpu2dra_mixed_nodes 2.0" in replica.metrics.render()
    off = {"status": {"allocatable": {"nvidia.com/gpu": "0"}, "capacity": {"nvidia.com/gpu": "0"}}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "whole"}}
    path = f"{cluster.client.path_of(node)}/status"
    cluster.client.call("PATCH", path, off, MERGE_PATCH).checked()
    wait_for("the plugin is off", lambda: view.mixed_nodes() == ("sliced",))


def test_slices_of_other_drivers_do_not_count(cluster: Cluster, run: Run, machines: AddMachines) -> None:
    ours = run(drivers=("gpu.nvidia.com", "other.example.com"))
    others = [run(drivers=("other.example.com",)), run(drivers=("other.example.com", "third.example.com"))]
    machines([gpus.Machine("whole", gpus.whole(gpus.H100, 1), resources={"nvidia.com/gpu": 1})])
    wait_for("it is known", lambda: ours.parts.view.mixed_nodes() == ("whole",))
    for other in others:
        wait_for("the node is known", lambda other=other: other.parts.view._nodes.cache.get("", "whole"))  # type: ignore[misc]
        assert not other.parts.view.has_slices()
        assert other.parts.view.mixed_nodes() == ()


def test_the_classes_behind_claims_are_asked_for(cluster: Cluster, run: Run, gate: Gate) -> None:
    view = run(gate.kubeconfig).parts.view
    cluster.client.create(cluster.here(template()))
    either = [{"name": "x", "deviceClassName": "one"}, {"name": "y", "deviceClassName": "two"}]
    requests = [
        {"name": "a", "exactly": {"deviceClassName": "mig.nvidia.com"}},
        {"name": "b", "firstAvailable": either},
    ]
    spec = {"devices": {"requests": requests}}
    cluster.client.create(cluster.object(running.CLAIMS, "ResourceClaim", "own", spec=spec))
    of_template, of_claim = ("ResourceClaimTemplate", name_of(template())), ("ResourceClaim", "own")
    refs = [of_template, of_claim, ("ResourceClaim", "missing"), ("ResourceClaim", "../../x")]
    assert view.claim_classes(cluster.namespace, refs, timeout=10) == {
        of_template: frozenset({"gpu.nvidia.com"}),
        of_claim: frozenset({"mig.nvidia.com", "one", "two"}),
    }
    gate.hold()
    began = time.monotonic()
    assert view.claim_classes(cluster.namespace, refs, timeout=0.5) == {}
    assert time.monotonic() - began < 5


@pytest.mark.slow
def test_r09_the_newest_served_version_is_used_and_none_means_no_dra(
    release: str, start_control_plane: StartControlPlane
) -> None:
    versions = ("v1", "v1beta2", "v1beta1")
    plane = start_control_plane(Options(runtime_config={f"resource.k8s.io/{version}": False for version in versions}))

    def serve(served: str) -> None:
        switches = ",".join(f"resource.k8s.io/{version}={version == served}".lower() for version in versions)
        kept = [flag for flag in plane._server_command if not flag.startswith("--runtime-config")]
        plane._server_command = [*kept, f"--runtime-config={switches}"]
        plane.restart_api_server()
        view.discovery.look_again()
        wait_for("it is discovered", lambda: view.api_version() == f"resource.k8s.io/{served}" and not view.synced())

    running.grant(plane.client)
    add_namespace(plane.client, "here")
    replica = running.run(plane.kubeconfig(running.USER), janitor=False)
    view, cache = replica.parts.view, replica.parts.view.templates.cache
    try:
        assert view.api_version() is None
        assert view.synced() == ()
        assert view.device_class("gpu.nvidia.com") is None
        serve("v1beta2")
        older = template(version=ApiVersion.V1BETA2)
        replica.ensure("here", older)
        assert cache.wait_for(lambda: cache.get("here", name_of(older)) is not None, 10)
        serve("v1")
        replica.ensure("here", template(version=ApiVersion.V1))
        assert replica.count("template_operations", operation="create", result="ok") == 1
    finally:
        replica.stop()
