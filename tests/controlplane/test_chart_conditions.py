"""The chart's matchConditions and selectors on the real API server, while nobody answers and failures refuse pods.

Whatever the API server would send to the webhook is refused here, and the message names the webhook; whatever it keeps
to itself is created as ever. A condition that fails to evaluate would refuse as well, with another message.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from controlplane import build
from controlplane.client import MERGE_PATCH, Answer, Client, Object, wait_for
from controlplane.helm import NAMESPACE, Helm, one
from controlplane.testbed import add_namespace, remove_namespace
from controlplane.workloads import GPU, container, one_gpu, pod
from gpu2dra.converted import ANNOTATION
from gpu2dra.devices import device_for
from gpu2dra.resources import legacy_resource
from gpu2dra.skips import CONVERT_ANNOTATION, SYSTEM_NAMESPACES

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.cluster import ControlPlane

CREATE, UPDATE = "pods.create.gpu2dra.dev", "pods.update.gpu2dra.dev"
ON, OFF = {CONVERT_ANNOTATION: "true"}, {CONVERT_ANNOTATION: "false"}
MIG = "nvidia.com/mig-1g.5gb"
_numbers = itertools.count(1)


def annotated(obj: Object, **annotations: str) -> Object:
    """Return a copy of an object with annotations of gpu2dra.dev."""
    named = {f"gpu2dra.dev/{key}": text for key, text in annotations.items()}
    return obj | {"metadata": obj["metadata"] | {"annotations": named}}


def with_resources(resources: Any, **spec: Any) -> Object:
    """Return a Pod whose only container has these resources."""
    return pod("p", container("main", resources=resources), **spec)


def wide(containers: int, keys: int) -> Object:
    """Return a Pod with many containers, each with many resources that are no GPU."""
    limits = {f"example.com/resource-{key}": 1 for key in range(keys)}
    return pod("p", *(container(f"c{number}", resources={"limits": limits}) for number in range(containers)))


ASKED: dict[str, Object] = {
    "a limit": one_gpu("p"),
    "another spelling of a number": one_gpu("p", "2000m"),
    "requests alone": with_resources({"requests": {GPU: 1}}),
    "limits and requests": with_resources({"limits": {GPU: 1}, "requests": {GPU: 1}}),
    "a MIG slice": pod("p", container("main", 1, MIG)),
    "a MIG slice with media engines": pod("p", container("main", 1, "nvidia.com/mig-1g.10gb.me")),
    "an init container alone": pod("p", container("main"), init=[container("init", 1)]),
    "a sidecar alone": pod("p", container("main"), init=[container("side", 1, sidecar=True)]),
    "the last of many containers": pod("p", *(container(f"c{index}") for index in range(40)), container("main", 1)),
    "a zero beside a one": pod("p", container("a", 0), container("b", 1)),
    "beside other resources": with_resources({"limits": {"cpu": 1, "example.com/a": 1, GPU: 1}}),
    "beside a share": with_resources({"limits": {"nvidia.com/gpu.shared": 1, GPU: 1}}),
    "an annotation that does not opt out": annotated(one_gpu("p"), convert="true"),
}
CREATED: dict[str, Object] = {
    "no resources": pod("p", container("main")),
    "null resources": with_resources(None),
    "empty resources": with_resources({}),
    "empty limits and requests": with_resources({"limits": {}, "requests": {}}),
    "null limits": with_resources({"limits": None}),
    "cpu and memory": with_resources({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": "10m"}}),
    "limits on the pod": pod("p", container("main"), resources={"limits": {"cpu": 1}}),
    "claims of its own": pod("p", container("main"), resourceClaims=[{"name": "c", "resourceClaimName": "mine"}]),
    "empty init containers": pod("p", container("main"), initContainers=[]),
    "null init containers": pod("p", container("main"), initContainers=None),
    "an init container without resources": pod("p", container("main"), init=[container("init")]),
    "zero": one_gpu("p", 0),
    "zero in another spelling": one_gpu("p", "0m"),
    "zero in requests, too": with_resources({"limits": {GPU: 0}, "requests": {GPU: "0"}}),
    "a share": pod("p", container("main", 1, "nvidia.com/gpu.shared")),
    "a share of a MIG slice": pod("p", container("main", 1, f"{MIG}.shared")),
    "a fraction of another system": pod("p", container("main", 1, "nvidia.com/gpumem")),
    "a vGPU of Volcano": pod("p", container("main", 1, "volcano.sh/vgpu-number")),
    "a device of KubeVirt": pod("p", container("main", 1, "nvidia.com/GA102GL_A10")),
    "another device of the vendor": pod("p", container("main", 1, "nvidia.com/rdma_shared_device_a")),
    "a GPU of somebody else": pod("p", container("main", 1, "amd.com/gpu")),
    "opted out": annotated(one_gpu("p"), convert="false"),
    "opted out in other letters": annotated(one_gpu("p"), convert="False"),
    "2,000 containers": wide(2000, 1),
    "400 containers with 25 resources": wide(400, 25),
}
"""Pods that must be created while the webhook is down."""
INVALID: dict[str, tuple[Object, str]] = {
    "no containers": (pod("p"), "spec.containers: Required value"),
    "null containers": (pod("p", containers=None), "spec.containers: Required value"),
    "null for a spec": (pod("p") | {"spec": None}, "spec.containers: Required value"),
    "no spec": ({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "spec.containers: Required value"),
    "an ephemeral container at creation": (
        pod("p", container("main"), ephemeralContainers=[container("debug", 1)]),
        "spec.ephemeralContainers",
    ),
    "a container without a name": (pod("p", {"image": "i"}), "spec.containers[0].name: Required value"),
}
"""Pods that the API server refuses by itself, and with what words: no condition may fail on them before."""


@contextlib.contextmanager
def unanswered(client: Client, values: Object, home: Path) -> Iterator[None]:
    """Have the chart's configuration in force without its Service, and have every failure count."""
    configuration = one(Helm(build.ensure("helm-4") / "helm", home).render(values), "MutatingWebhookConfiguration")
    for webhook in configuration["webhooks"]:
        webhook["failurePolicy"] = "Fail"
    client.create(configuration)
    try:
        with namespace(client, ON) as place:
            wait_for("the configuration is in force", lambda: asked(create(client, place, one_gpu("probe"))))
        yield
    finally:
        client.delete(configuration)


@contextlib.contextmanager
def namespace(client: Client, labels: dict[str, str]) -> Iterator[str]:
    """Have a namespace with labels while the block runs."""
    name = f"chart-{os.getpid()}-{next(_numbers)}"
    add_namespace(client, name, labels)
    yield name
    remove_namespace(client, name)


@contextlib.contextmanager
def labelled(client: Client, name: str, labels: dict[str, str | None]) -> Iterator[None]:
    """Have a namespace carry labels while the block runs; it is made if it is not there."""
    there = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    if client.call("GET", client.path_of(there)).status == 404:
        add_namespace(client, name)
    client.patch(there, {"metadata": {"labels": labels}}, MERGE_PATCH)
    yield
    client.patch(there, {"metadata": {"labels": dict.fromkeys(labels)}}, MERGE_PATCH)


def create(client: Client, place: str, obj: Object) -> Answer:
    """Have the API server look at a new Pod in a namespace, as far as storing it."""
    return client.try_create(obj | {"metadata": obj["metadata"] | {"namespace": place}}, dryRun="All")


def asked(answer: Answer, webhook: str = CREATE) -> bool:
    """Whether the API server wanted to ask the webhook; nothing else may be wrong."""
    if answer.accepted:
        return False
    message = answer.object["message"]
    assert f'failed calling webhook "{webhook}"' in message, message
    return True


@pytest.fixture(scope="module")
def client(control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Return a client of a cluster with the chart's default configuration, and nobody to answer."""
    with unanswered(control_plane.client, {}, tmp_path_factory.mktemp("helm")):
        yield control_plane.client


@pytest.fixture(scope="module")
def place(client: Client) -> Iterator[str]:
    """Return a namespace that is opted in."""
    with namespace(client, ON) as name:
        yield name


@pytest.mark.parametrize("shape", ASKED)
def test_a_pod_with_a_legacy_request_is_refused_and_told_why(client: Client, place: str, shape: str) -> None:
    answer = create(client, place, ASKED[shape])
    assert asked(answer)
    # What a person sees: which webhook, and what is wrong with it.
    assert f"https://gpu2dra.{NAMESPACE}.svc:443/mutate" in answer.object["message"]


@pytest.mark.parametrize("shape", CREATED)
def test_any_other_pod_is_created_as_ever(client: Client, place: str, shape: str) -> None:
    assert create(client, place, CREATED[shape]).checked()["metadata"]["name"] == "p"


@pytest.mark.parametrize("shape", INVALID)
def test_an_invalid_pod_gets_the_api_servers_own_answer(client: Client, place: str, shape: str) -> None:
    broken, said = INVALID[shape]
    message = create(client, place, broken).object["message"]
    assert said in message
    assert "webhook" not in message


@pytest.mark.parametrize(
    "name",
    [
        GPU, "nvidia.com/gpu.shared", "nvidia.com/gpus", "nvidia.com/gpu-a", "nvidia.com/gpumem", "nvidia.com/gpucores",
        "nvidia.com/gpumem-percentage", "nvidia.com/A100_X", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-2g.10gb",
        "nvidia.com/mig-7g.80gb", "nvidia.com/mig-1g.10gb.me", "nvidia.com/mig-1g.12gb.me.all", "nvidia.com/hostdev",
        "nvidia.com/mig-1g.24gb.gfx", "nvidia.com/mig-1g.5gb-me", "nvidia.com/mig-1c.3g.20gb", "volcano.sh/vgpu-cores",
        "nvidia.com/mig-2g.10gb.shared", "example.com/nvidia.com", "volcano.sh/gpu-memory", "nvidia.example.com/gpu",
    ],
)  # fmt: skip
def test_the_api_server_asks_about_what_the_core_converts_without_a_policy(
    client: Client, place: str, name: str
) -> None:
    known = legacy_resource(name)
    assert asked(create(client, place, pod("p", container("main", 1, name)))) is bool(known and device_for(known))


def test_namespaces_that_are_not_opted_in_are_not_touched(client: Client) -> None:
    for labels in ({}, OFF, {CONVERT_ANNOTATION: "TRUE"}, {CONVERT_ANNOTATION: ""}):
        with namespace(client, labels) as elsewhere:
            assert not asked(create(client, elsewhere, one_gpu("p"))), labels


@pytest.mark.parametrize("name", sorted({*SYSTEM_NAMESPACES, NAMESPACE}))
def test_system_namespaces_are_not_touched_whatever_their_labels(client: Client, name: str) -> None:
    with labelled(client, name, dict(ON)):
        assert not asked(create(client, name, one_gpu("p")))


def test_mirror_pods_are_not_touched(client: Client, place: str) -> None:
    mirror = one_gpu("p", nodeName="node", automountServiceAccountToken=False)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "1"}
    assert not asked(create(client, place, mirror))


def update(client: Client, obj: Object, change: Object) -> Answer:
    """Have the API server look at a change of a Pod, as far as storing it."""
    return client.try_patch(obj, change, MERGE_PATCH, dryRun="All")


def test_updates_of_unconverted_pods_never_depend_on_the_webhook(client: Client, place: str) -> None:
    legacy = annotated(one_gpu("legacy"), convert="false")  # created while the webhook is down
    stored = client.create(legacy | {"metadata": legacy["metadata"] | {"namespace": place}})
    assert not asked(update(client, stored, {"metadata": {"labels": {"a": "b"}}}), UPDATE)
    assert not asked(update(client, stored, {"metadata": {"finalizers": ["example.com/a"]}}), UPDATE)
    # Nor by claiming now to have been converted: what counts is the old object.
    assert not asked(update(client, stored, {"metadata": {"annotations": {ANNOTATION: "{}"}}}), UPDATE)


def test_a_converted_pod_depends_on_it_only_while_its_limit_comes_back(client: Client, place: str) -> None:
    converted = annotated(pod("converted", container("main")), converted="{}")
    stored = client.create(converted | {"metadata": converted["metadata"] | {"namespace": place}})
    assert not asked(update(client, stored, {"metadata": {"labels": {"a": "b"}}}), UPDATE)
    back = copy.deepcopy(stored["spec"]["containers"])
    back[0]["resources"] = {"limits": {GPU: "1"}}
    assert asked(update(client, stored, {"spec": {"containers": back}}), UPDATE)
    status = {"status": {"message": "from the kubelet"}}
    path = f"{client.path_of(stored)}/status"
    assert client.call("PATCH", path, status, MERGE_PATCH).accepted


def test_a_converted_pod_can_be_applied_again_where_nothing_is_converted_any_more(client: Client) -> None:
    with namespace(client, {}) as before:
        converted = annotated(pod("converted", container("main")), converted="{}")
        stored = client.create(converted | {"metadata": converted["metadata"] | {"namespace": before}})
        back = copy.deepcopy(stored["spec"]["containers"])
        back[0]["resources"] = {"limits": {GPU: "1"}}
        assert asked(update(client, stored, {"spec": {"containers": back}}), UPDATE)


def test_a_policy_brings_the_names_that_it_has_a_device_for(
    control_plane: ControlPlane, client: Client, place: str, tmp_path: Path
) -> None:
    policy = {
        "apiVersion": "gpu2dra.dev/v1alpha1",
        "kind": "ConversionPolicy",
        "devices": [{"name": "share", "deviceClassName": "share.example.com"}],
        "rules": [{"match": {"resources": ["nvidia.com/gpu.shared"]}, "device": "share"}],
    }
    values = {"policy": policy, "webhook": {"name": "zz-with-a-policy"}}
    shared = pod("p", container("main", 1, "nvidia.com/gpu.shared"))
    assert not asked(create(client, place, shared))
    with unanswered(client, values, tmp_path):
        wait_for("the rule is in force", lambda: asked(create(client, place, shared)))
        assert not asked(create(client, place, pod("p", container("main", 1, f"{MIG}.shared"))))


def test_opted_out_clusters_leave_what_says_so_and_come_up_from_nothing(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    client = control_plane.client
    chart = Helm(build.ensure("helm-4") / "helm", tmp_path)
    values = {"namespaces": {"mode": "opt-out", "excluded": ["kept-out"]}, "webhook": {"name": "zz-opt-out"}}
    template = one(chart.render(values), "Deployment")["spec"]["template"]
    own = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": template["spec"]}
    own["spec"]["serviceAccountName"] = "default"  # the chart's own is not installed here
    with unanswered(client, values, tmp_path), namespace(client, {}) as plain, namespace(client, OFF) as off:
        assert asked(create(client, plain, one_gpu("p")))
        assert not asked(create(client, off, one_gpu("p")))
        assert not asked(create(client, plain, pod("p", container("main"))))
        # The pods that end the outage, and those that a cluster starts with.
        for name in (NAMESPACE, "kube-system", "gpu-operator", "kept-out"):
            with labelled(client, name, {}):
                assert not asked(create(client, name, one_gpu("p"))), name
        assert not asked(create(client, NAMESPACE, own))
