"""The webhook under the chart's ServiceAccount, from install to uninstall: it may do all that it does, and no more."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest

from chart import demo
from controlplane import build, scheduling, workloads
from controlplane.chart_walk import OPTED_IN, USER, Walk
from controlplane.client import Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.helm import NAMESPACE, RELEASE, Helm, one
from controlplane.testbed import add_namespace
from controlplane.workloads import GPU, container, deployment, names_a_gpu, one_gpu, pod
from gpu2dra.converted import ANNOTATION, LABEL

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = Options(audited_users=[USER])
TEMPLATE = ("resource.k8s.io/v1", "ResourceClaimTemplate")
# Lives that are over within the test; the schema wants longer ones of those who run it for real.
SHORT = ["--template-grace=3", "--ca-lifetime=45", "--leaf-lifetime=15"]
# Of every authenticated user, by the roles system:basic-user and system:discovery.
EVERYBODYS = {("create", "authentication.k8s.io", "selfsubjectreviews")}
Right = tuple[str, str, str]


@pytest.fixture(scope="module")
def walk(own_control_plane: ControlPlane, release: str, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    program = build.ensure("helm-3" if release == "1.34" else "helm-4") / "helm"
    walk = Walk(own_control_plane, Helm(program, tmp_path_factory.mktemp("helm")))
    walk.add_machines()
    return walk


def granted(manifest: list[Object]) -> set[Right]:
    """Return what the chart's roles allow: verb, group, resource."""
    rules = [rule for role in manifest if role["kind"] in ("Role", "ClusterRole") for rule in role["rules"]]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def used(events: list[Object]) -> set[Right]:
    """Return what was asked of the API server's resources."""
    found = set()
    for event in events:
        if target := event.get("objectRef"):
            resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            found.add((event["verb"], target.get("apiGroup", ""), resource))
    return found


def refused(events: list[Object]) -> list[str]:
    """Return the calls that RBAC refused."""
    return [
        f"{event['verb']} {event['requestURI']}" for event in events if event["responseStatus"]["code"] in (401, 403)
    ]


def test_from_install_to_uninstall_with_the_rights_of_the_chart(walk: Walk) -> None:
    client = walk.plane.client
    assert "Nothing is converted before you label a namespace" in walk.install({"extraArgs": SHORT})
    manifest = walk.manifest()
    walk.opt_in()
    with walk.replicas() as replicas:
        first, _ = replicas.start(2)
        tested = walk.test(first)
        assert (tested.returncode, '"ready":true' in tested.stdout) == (0, True), tested.stderr

        walk.create(deployment("model", 1, replicas=2))
        pods = walk.running("model", 2)
        assert [(is_converted(stored), names_a_gpu(stored)) for stored in pods] == [(True, False)] * 2
        devices = [walk.devices(stored)["main"] for stored in pods]
        assert [len(found) for found in devices] == [1, 1]
        assert devices[0] != devices[1]
        (template,) = walk.templates()
        wait_for("an Event tells of it", lambda: "GPUConverted" in reasons(walk))

        a_foreign_template_is_refused(walk, template)
        a_claim_of_the_pods_own_is_looked_at(walk)
        a_missing_template_comes_back(walk, pods[0], template)
        an_unused_template_goes(walk)
        the_authority_is_exchanged(walk)

        walk.upgrade({"webhook": {"timeoutSeconds": 7}, "extraArgs": [*SHORT, "--log-level=debug"]})
        with walk.replicas() as successors:
            successors.start(2)
            for replica in replicas.serving:
                replica.terminate()
            walk.create(deployment("after-the-upgrade", 1))
            assert [is_converted(stored) for stored in walk.running("after-the-upgrade", 1)] == [True]

    audited = walk.plane.audit_events(USER)
    assert refused(audited) == []
    assert used(audited) - EVERYBODYS == granted(manifest)

    walk.helm("uninstall")
    configurations = client.list("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")
    assert "zz-gpu2dra" not in {obj["metadata"]["name"] for obj in configurations}
    assert template in walk.templates()
    assert sorted(walk.devices(stored)["main"] for stored in walk.running("model", 2)) == sorted(devices)
    assert not is_converted(walk.create(one_gpu("legacy-again")))


def test_the_demo_tells_the_same_in_a_cluster_where_it_was_before(
    walk: Walk, capsys: pytest.CaptureFixture[str]
) -> None:
    client = walk.plane.client
    client.delete_all("apps/v1", "Deployment", walk.namespace)
    wait_for("nothing makes pods", lambda: not client.list("apps/v1", "ReplicaSet", walk.namespace))
    scheduling.free_devices(client, walk.namespace)
    demo.tell(Walk(walk.plane, walk.chart, namespace="team-demo"))
    told = capsys.readouterr().out
    assert len(re.findall(r" runs on nv\d+-\d and finds nv\d+-\d/gpu-0$", told, re.MULTILINE)) == 5
    before, after, at_last = re.findall(r"^   containers:\n(?:   .*\n)+", told, re.MULTILINE)
    assert [f"{GPU}: 1" in before, "resourceClaimTemplateName: gpu-" in after, f"{GPU}: '1'" in at_last] == [True] * 3


def test_a_certificate_of_the_users_own_needs_fewer_rights(walk: Walk, tmp_path: Path) -> None:
    plane, before = walk.plane, len(walk.plane.audit_events(USER))
    certificate, key = plane.serving_certificate("provided", [f"{RELEASE}.{NAMESPACE}.svc"])
    for name, source in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", plane.certificate_authority)):
        shutil.copy(source, tmp_path / name)
    provided = {"mode": "provided", "provided": {"secretName": "ours"}}
    # In place of the folder where a kubelet would put the Secret.
    folder = [f"--certificate-dir={tmp_path}"]
    values = {"certificates": provided, "namespaces": {"mode": "opt-out"}, "templates": {"janitor": False}}
    walk.install(values | {"extraArgs": folder})
    mine = Walk(plane, walk.chart, namespace="team-provided")
    add_namespace(plane.client, mine.namespace)
    with mine.replicas() as replicas:
        replicas.start(1)
        assert is_converted(mine.create(one_gpu("p")))
    walk.helm("uninstall")
    audited = plane.audit_events(USER)[before:]
    assert refused(audited) == []
    assert "Role" not in {obj["kind"] for obj in walk.chart.render(values)}
    assert {resource for _, _, resource in used(audited)} & {"secrets", "leases", "pods/status"} == set()


def is_converted(stored: Object) -> bool:
    """Whether a Pod carries the record of its conversion."""
    return ANNOTATION in stored["metadata"].get("annotations", {})


def reasons(walk: Walk) -> set[str]:
    """Return the reasons of the Events in the namespace."""
    return {event["reason"] for event in walk.plane.client.list("v1", "Event", walk.namespace)}


def a_foreign_template_is_refused(walk: Walk, template: str) -> None:
    """Take the name of a template in another namespace."""
    other = "team-foreign"
    client = walk.plane.client
    add_namespace(client, other, OPTED_IN)
    theirs = workloads.template(template, workloads.request("theirs"))
    client.create(theirs | {"metadata": {"name": template, "namespace": other}})
    answer = client.try_create(one_gpu("p") | {"metadata": {"name": "p", "namespace": other}})
    assert "another object has this name" in answer.object.get("message", "created")


def a_claim_of_the_pods_own_is_looked_at(walk: Walk) -> None:
    """Create a pod whose container has a claim of its own beside the limit."""
    request = {"name": "nic", "exactly": {"deviceClassName": "nic.example.com"}}
    claim = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "nic"}}
    walk.create(claim | {"spec": {"devices": {"requests": [request]}}})
    resources = {"limits": {GPU: 1}, "claims": [{"name": "nic"}]}
    entry = {"name": "nic", "resourceClaimName": "nic"}
    stored = walk.create(pod("own-claim", container("main", resources=resources), resourceClaims=[entry]))
    assert is_converted(stored)
    assert {claim["name"] for claim in stored["spec"]["resourceClaims"]} == {"nic", "gpu"}


def a_missing_template_comes_back(walk: Walk, converted: Object, template: str) -> None:
    """Delete a template, then have a pod name it that the webhook does not see again."""
    client = walk.plane.client
    client.delete(client.get(*TEMPLATE, template, walk.namespace))
    (main,) = converted["spec"]["containers"]
    containers = [{key: main[key] for key in ("name", "image", "resources")}]
    waiting = pod("waiting", *containers, resourceClaims=converted["spec"]["resourceClaims"])
    waiting["metadata"] |= {"labels": {LABEL: "true"}, "annotations": converted["metadata"]["annotations"]}
    stored = walk.create(waiting)
    wait_for("the template is back", lambda: template in walk.templates())
    wait_for("the pod is bound", lambda: client.read(stored)["spec"].get("nodeName"))


def an_unused_template_goes(walk: Walk) -> None:
    """Create a pod of another shape, then delete it."""
    before = set(walk.templates())
    stored = walk.create(one_gpu("short", 9))
    (unused,) = set(walk.templates()) - before
    walk.plane.client.delete(stored)
    wait_for("a template that no pod names is gone", lambda: unused not in walk.templates(), deadline=60)


def the_authority_is_exchanged(walk: Walk) -> None:
    """Wait until the caBundle has changed, and pods are converted as before."""
    client = walk.plane.client
    configuration = one(walk.manifest(), "MutatingWebhookConfiguration")

    def bundle() -> str:
        return str(client.read(configuration)["webhooks"][0]["clientConfig"]["caBundle"])

    before = bundle()
    wait_for("the caBundle has another authority", lambda: bundle() != before, deadline=120)
    assert is_converted(walk.create(one_gpu("after-the-exchange")))
