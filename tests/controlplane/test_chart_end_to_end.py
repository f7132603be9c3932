"""The webhook under the chart's ServiceAccount, from install to uninstall: it may do all that it does, and no more."""

from __future__ import annotations

import re

import pytest

from chart import demo
from controlplane import chart_steps, rights, scheduling
from controlplane.chart_steps import is_converted
from controlplane.chart_walk import USER, Walk, prepared
from controlplane.client import wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.helm import one
from controlplane.workloads import GPU, deployment, names_a_gpu, one_gpu

OPTIONS = Options(audited_users=[USER])
# Lives that are over within the test; the schema wants longer ones of those who run it for real.
SHORT = ["--template-grace=3", "--ca-lifetime=45", "--leaf-lifetime=15"]


@pytest.fixture(scope="module")
def walk(own_control_plane: ControlPlane, release: str, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    return prepared(own_control_plane, release, tmp_path_factory.mktemp("helm"))


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
        wait_for("an Event tells of it", lambda: "GPUConverted" in chart_steps.reasons(walk))

        chart_steps.a_foreign_template_is_refused(walk, template)
        chart_steps.a_claim_of_the_pods_own_is_looked_at(walk)
        chart_steps.a_missing_template_comes_back(walk, pods[0], template)
        chart_steps.an_unused_template_goes(walk)
        chart_steps.a_policy_is_taken_and_given_up(walk, {"extraArgs": SHORT})
        the_authority_is_exchanged(walk)

        walk.upgrade({"webhook": {"timeoutSeconds": 7}, "extraArgs": [*SHORT, "--log-level=debug"]})
        with walk.replicas() as successors:
            successors.start(2)
            for replica in replicas.serving:
                replica.terminate()
            walk.create(deployment("after-the-upgrade", 1))
            assert [is_converted(stored) for stored in walk.running("after-the-upgrade", 1)] == [True]

    audited = walk.plane.audit_events(USER)
    assert rights.refused(audited) == []
    assert rights.used(audited) == rights.granted(manifest)

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


def the_authority_is_exchanged(walk: Walk) -> None:
    """Wait until the caBundle has changed, and pods are converted as before."""
    client = walk.plane.client
    configuration = one(walk.manifest(), "MutatingWebhookConfiguration")

    def bundle() -> str:
        return str(client.read(configuration)["webhooks"][0]["clientConfig"]["caBundle"])

    before = bundle()
    wait_for("the caBundle has another authority", lambda: bundle() != before, deadline=120)
    assert is_converted(walk.create(one_gpu("after-the-exchange")))
