"""The chart in a cluster by the real Helm 3 and 4: valid objects, upgrades without drift, an uninstall without a trap.

No kubelet runs, so nothing waits for pods; what the webhook does at run time (its CA in a Secret, the caBundle, a
Lease, templates) is done here by hand.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from chart import generate
from controlplane import build
from controlplane.client import MERGE_PATCH, STRATEGIC_MERGE_PATCH, Client, Object, wait_for
from controlplane.helm import CHART, NAMESPACE, RELEASE, Helm, HelmError, objects, one
from controlplane.testbed import Cluster, add_namespace

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.cluster import ControlPlane

FOREIGN_KINDS = {"ServiceMonitor", "PrometheusRule", "Certificate", "Issuer"}
"""Of operators whose CRDs are not here: the goldens keep their shape, and promtool reads the rules."""
VALUES = generate.value_sets() | generate.cluster_values()
BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nb3Vycw==\n-----END CERTIFICATE-----\n").decode()
CONFIGURATION = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "MutatingWebhookConfiguration",
    "metadata": {"name": "zz-gpu2dra"},
}
WEBHOOKS = ("pods.create.gpu2dra.dev", "pods.update.gpu2dra.dev")
# What the server itself writes in passing.
_OWN_TO_THE_SERVER = ("managedFields", "resourceVersion")


@pytest.fixture(params=["helm-3", "helm-4"])  # of the session it would have each release started twice
def chart(request: pytest.FixtureRequest, tmp_path: Path) -> Helm:
    """Return both versions of Helm in turn."""
    return Helm(build.ensure(request.param) / "helm", tmp_path)


@pytest.fixture
def newest(tmp_path: Path) -> Helm:
    """Return Helm 4 alone, where only what is rendered matters: both render the same (tests/chart)."""
    return Helm(build.ensure("helm-4") / "helm", tmp_path)


@pytest.fixture
def namespaced(control_plane: ControlPlane) -> Client:
    """Return a client of a cluster that has the chart's namespace."""
    client = control_plane.client
    if client.call("GET", f"/api/v1/namespaces/{NAMESPACE}").status == 404:
        add_namespace(client, NAMESPACE)
    return client


@pytest.fixture
def plane(control_plane: ControlPlane, namespaced: Client, chart: Helm) -> Iterator[ControlPlane]:
    """Return a cluster that nothing of the chart is left in after the test."""
    yield control_plane
    if f'"{RELEASE}"' in chart.run("list", "--output=json", *_place(control_plane)):
        chart.run("uninstall", RELEASE, *_place(control_plane))
    for kind, version in (("Secret", "v1"), ("Lease", "coordination.k8s.io/v1"), ("Pod", "v1")):
        namespaced.delete_all(version, kind, NAMESPACE)


def _place(plane: ControlPlane) -> tuple[str, ...]:
    return (f"--namespace={NAMESPACE}", f"--kubeconfig={plane.admin_kubeconfig}")


def install(chart: Helm, plane: ControlPlane, values: Object | None = None) -> None:
    """Install the chart."""
    chart.run("install", RELEASE, CHART, *_place(plane), values=values or {})


def upgrade(chart: Helm, plane: ControlPlane, values: Object | None = None) -> None:
    """Upgrade to the same chart with these values."""
    chart.run("upgrade", RELEASE, CHART, *_place(plane), "--reset-values", values=values or {})


def installed(chart: Helm, plane: ControlPlane) -> list[Object]:
    """Return the objects of the release as helm remembers them."""
    return objects(chart.run("get", "manifest", RELEASE, *_place(plane)))


def live(client: Client, manifest: list[Object]) -> dict[str, Object]:
    """Return these objects as they are in the cluster, without status and what every write changes."""
    found = {}
    for obj in manifest:
        namespace = {"namespace": NAMESPACE} if obj["metadata"].get("namespace") else {}
        stored = client.read(obj | {"metadata": obj["metadata"] | namespace})
        metadata = {key: value for key, value in stored["metadata"].items() if key not in _OWN_TO_THE_SERVER}
        kept = {key: value for key, value in stored.items() if key != "status"} | {"metadata": metadata}
        found[f"{obj['kind']}/{obj['metadata']['name']}"] = kept
    return found


def run_for_the_first_time(client: Client) -> None:
    """Do what the webhook does at its start: store a CA, take the Lease, write the caBundle as its own field."""
    ours = {"name": "gpu2dra-ca", "namespace": NAMESPACE, "labels": {"app.kubernetes.io/managed-by": "gpu2dra"}}
    client.create({"apiVersion": "v1", "kind": "Secret", "metadata": ours})
    lease = {"name": "gpu2dra-janitor", "namespace": NAMESPACE}
    client.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": lease, "spec": {}})
    bundles = [{"name": name, "clientConfig": {"caBundle": BUNDLE}} for name in WEBHOOKS]
    client.patch(CONFIGURATION, {"webhooks": bundles}, STRATEGIC_MERGE_PATCH)


def bundles(client: Client) -> dict[str, str | None]:
    """Return the caBundle of each entry."""
    return {hook["name"]: hook["clientConfig"].get("caBundle") for hook in client.read(CONFIGURATION)["webhooks"]}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_the_api_server_takes_every_rendered_object(namespaced: Client, newest: Helm, name: str) -> None:
    rendered = [obj for obj in newest.render(VALUES[name]) if obj["kind"] not in FOREIGN_KINDS]
    assert len(rendered) > 6
    for obj in rendered:
        # Strict: a field that the server does not know is an error, not a warning.
        answer = namespaced.try_apply(obj, dryRun="All", fieldValidation="Strict", force=True)
        assert answer.accepted, (obj["kind"], answer.object)
        assert answer.warnings == ()


@pytest.mark.parametrize("name", ["default", "cert-manager", "provided"])
def test_the_pods_are_taken_where_the_restricted_standard_is_enforced(
    cluster: Cluster, newest: Helm, name: str
) -> None:
    enforced = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": cluster.namespace}}
    cluster.client.patch(namespace, {"metadata": {"labels": enforced}}, MERGE_PATCH)
    rendered = newest.render(generate.value_sets()[name])
    template = one(rendered, "Deployment")["spec"]["template"]
    for spec in (template["spec"], one(rendered, "Pod")["spec"]):
        pod = cluster.object("v1", "Pod", "p", spec=spec | {"serviceAccountName": "default"})
        answer = cluster.client.try_create(pod, dryRun="All")
        assert (answer.status, answer.warnings) == (201, ()), answer.object


def test_upgrades_change_nothing_that_did_not_change(plane: ControlPlane, chart: Helm) -> None:
    client = plane.client
    install(chart, plane)
    run_for_the_first_time(client)
    manifest = installed(chart, plane)
    before = live(client, manifest)
    for _ in range(2):
        upgrade(chart, plane)
        assert installed(chart, plane) == manifest
        assert live(client, manifest) == before
    assert bundles(client) == dict.fromkeys(WEBHOOKS, BUNDLE)


def test_an_upgrade_that_changes_the_webhook_keeps_what_it_wrote_itself(plane: ControlPlane, chart: Helm) -> None:
    client = plane.client
    install(chart, plane)
    run_for_the_first_time(client)
    changed = {"webhook": {"timeoutSeconds": 7, "failurePolicy": "Ignore", "annotations": {"a": "b"}}}
    upgrade(chart, plane, changed)
    stored = client.read(CONFIGURATION)
    assert [(hook["timeoutSeconds"], hook["failurePolicy"]) for hook in stored["webhooks"]] == [(7, "Ignore")] * 2
    assert stored["metadata"]["annotations"]["a"] == "b"
    assert bundles(client) == dict.fromkeys(WEBHOOKS, BUNDLE)
    chart.run("rollback", RELEASE, "1", *_place(plane))
    assert [hook["failurePolicy"] for hook in client.read(CONFIGURATION)["webhooks"]] == ["Fail", "Ignore"]
    assert bundles(client) == dict.fromkeys(WEBHOOKS, BUNDLE)


def test_an_upgrade_turns_it_on_again_after_it_was_turned_off_by_hand(plane: ControlPlane, chart: Helm) -> None:
    client = plane.client
    install(chart, plane)
    client.delete(CONFIGURATION)
    upgrade(chart, plane)
    assert [hook["name"] for hook in client.read(CONFIGURATION)["webhooks"]] == list(WEBHOOKS)


def test_an_uninstall_takes_it_well_that_the_configuration_is_gone(plane: ControlPlane, chart: Helm) -> None:
    install(chart, plane)
    plane.client.delete(CONFIGURATION)
    chart.run("uninstall", RELEASE, *_place(plane))
    # Where helm remembers releases, half removed ones as well.
    assert [obj["metadata"]["name"] for obj in plane.client.list("v1", "Secret", NAMESPACE)] == []


def test_a_change_of_the_policy_restarts_no_pod(plane: ControlPlane, chart: Helm) -> None:
    policy = {"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy"}
    install(chart, plane)
    deployment = one(installed(chart, plane), "Deployment")
    before = plane.client.read(deployment)["metadata"]["generation"]
    for values, shown in [
        ({"policy": policy | {"metadata": {"name": "first"}}}, ["first"]),
        ({"policy": policy | {"metadata": {"name": "second"}}}, ["second"]),
        ({}, []),
    ]:
        upgrade(chart, plane, values)
        assert plane.client.read(deployment)["metadata"]["generation"] == before
        stored = plane.client.get("v1", "ConfigMap", "gpu2dra-policy", NAMESPACE)
        assert re.findall(r"name: (\w+)", stored["data"]["policy.yaml"]) == shown


def test_a_second_release_is_refused_before_it_changes_anything(plane: ControlPlane, chart: Helm) -> None:
    install(chart, plane)
    before = live(plane.client, installed(chart, plane))
    with pytest.raises(HelmError, match="zz-gpu2dra"):
        chart.run("install", "another", CHART, *_place(plane), values={})
    assert live(plane.client, installed(chart, plane)) == before


def test_an_uninstall_leaves_no_webhook_behind_and_the_templates_in_place(
    plane: ControlPlane, chart: Helm, cluster: Cluster
) -> None:
    client = plane.client
    install(chart, plane)
    run_for_the_first_time(client)
    request = {"name": "main", "exactly": {"deviceClassName": "gpu.nvidia.com"}}
    spec = {"spec": {"devices": {"requests": [request]}}}
    template = cluster.object("resource.k8s.io/v1", "ResourceClaimTemplate", "gpu-00000000", spec=spec)
    client.create(template)
    manifest = installed(chart, plane)
    chart.run("uninstall", RELEASE, *_place(plane))

    def left() -> list[str]:
        return [
            f"{obj['kind']}/{obj['metadata']['name']}"
            for obj in manifest
            if client.call("GET", client.path_of(obj)).status != 404
        ]

    wait_for("everything of the chart is gone", lambda: not left())
    assert client.call("GET", client.path_of(CONFIGURATION)).status == 404
    assert client.read(template)["spec"]["spec"]["devices"]["requests"][0]["name"] == "main"
    # What README.md tells to remove by hand, and nothing else.
    secrets = [obj["metadata"]["name"] for obj in client.list("v1", "Secret", NAMESPACE)]
    leases = [obj["metadata"]["name"] for obj in client.list("coordination.k8s.io/v1", "Lease", NAMESPACE)]
    assert (secrets, leases) == (["gpu2dra-ca"], ["gpu2dra-janitor"])
