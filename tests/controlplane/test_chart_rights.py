"""The rights of the chart where the certificate is another's: what the roles give is used, and is all that is used."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest

from controlplane import chart_steps, rights
from controlplane.chart_steps import is_converted
from controlplane.chart_walk import USER, Walk, prepared
from controlplane.client import STRATEGIC_MERGE_PATCH, Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.helm import NAMESPACE, RELEASE, one
from controlplane.testbed import add_namespace
from controlplane.workloads import deployment, one_gpu

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = Options(audited_users=[USER])
# A grace that is over within the test; the schema wants a longer one of those who run it for real.
SHORT = "--template-grace=3"
WEBHOOKS = ("pods.create.gpu2dra.dev", "pods.update.gpu2dra.dev")


@pytest.fixture(scope="module")
def walk(own_control_plane: ControlPlane, release: str, tmp_path_factory: pytest.TempPathFactory) -> Walk:
    return prepared(own_control_plane, release, tmp_path_factory.mktemp("helm"))


def in_files(plane: ControlPlane, folder: Path) -> Object:
    """Write a certificate for the Service where a kubelet would put a Secret's; return the Secret's data."""
    certificate, key = plane.serving_certificate(folder.name, [f"{RELEASE}.{NAMESPACE}.svc"])
    data = {}
    for name, source in (("tls.crt", certificate), ("tls.key", key), ("ca.crt", plane.certificate_authority)):
        (folder / name).write_bytes(source.read_bytes())
        data[name] = base64.b64encode(source.read_bytes()).decode()
    return data


def test_a_certificate_of_the_users_own_and_no_janitor(walk: Walk, tmp_path: Path) -> None:
    plane, before = walk.plane, len(walk.plane.audit_events(USER))
    in_files(plane, tmp_path)
    mine = Walk(plane, walk.chart, namespace="team-provided")
    add_namespace(plane.client, mine.namespace)
    mine.install(
        {
            "certificates": {"mode": "provided", "provided": {"secretName": "ours"}},
            "namespaces": {"mode": "opt-out"},
            "templates": {"janitor": False, "maxPerNamespace": 1},
            "extraArgs": [f"--certificate-dir={tmp_path}", SHORT],
        }
    )
    manifest = mine.manifest()
    with mine.replicas() as replicas:
        replicas.start(1)
        assert is_converted(mine.create(one_gpu("p")))
        (template,) = mine.templates()
        chart_steps.an_event_tells_of_a_conversion(mine)
        chart_steps.a_foreign_template_is_refused(mine, template)
        chart_steps.a_claim_of_the_pods_own_is_looked_at(mine)
        chart_steps.a_mark_of_a_template_is_taken_off(mine, template)
        chart_steps.the_last_template_makes_room(mine, template)
    mine.helm("uninstall")
    audited = plane.audit_events(USER)[before:]
    assert rights.refused(audited) == []
    assert rights.used(audited) == rights.granted(manifest)
    assert "Role" not in {obj["kind"] for obj in manifest}


def test_a_certificate_of_cert_managers(walk: Walk, tmp_path: Path) -> None:
    """What cert-manager does is done here: its kinds take anything, the Secret and the caBundle are the test's."""
    plane, client, before = walk.plane, walk.plane.client, len(walk.plane.audit_events(USER))
    for kind in ("Certificate", "Issuer"):
        client.create(_definition(kind))
        wait_for(f"{kind} is served", lambda kind=kind: client.serves("cert-manager.io/v1", kind))  # type: ignore[misc]
    data = in_files(plane, tmp_path)
    mine = Walk(plane, walk.chart, namespace="team-cert-manager")
    mine.opt_in()
    mine.install(
        {"certificates": {"mode": "certManager"}, "extraArgs": [f"--certificate-dir={tmp_path}", SHORT]},
    )
    manifest = mine.manifest()
    asked_for = one(manifest, "Certificate", RELEASE)["spec"]
    assert f"{RELEASE}.{NAMESPACE}.svc" in asked_for["dnsNames"]
    secret = {"name": asked_for["secretName"], "namespace": NAMESPACE}
    made = {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "type": "kubernetes.io/tls", "data": data}
    client.create(made)
    configuration = client.read(one(manifest, "MutatingWebhookConfiguration"))
    assert configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == f"{NAMESPACE}/{RELEASE}"
    bundles = [{"name": name, "clientConfig": {"caBundle": data["ca.crt"]}} for name in WEBHOOKS]
    client.patch(configuration, {"webhooks": bundles}, STRATEGIC_MERGE_PATCH)
    with mine.replicas() as replicas:
        replicas.start(1)
        mine.create(deployment("model", 1))
        (pod,) = mine.running("model", 1)
        assert is_converted(pod)
        wait_for("an Event tells of it", lambda: "GPUConverted" in chart_steps.reasons(mine))
        (template,) = mine.templates()
        chart_steps.a_foreign_template_is_refused(mine, template)
        chart_steps.a_claim_of_the_pods_own_is_looked_at(mine)
        chart_steps.a_missing_template_comes_back(mine, pod, template)
        chart_steps.an_unused_template_goes(mine)
    mine.helm("uninstall")
    audited = plane.audit_events(USER)[before:]
    assert rights.refused(audited) == []
    assert rights.used(audited) == rights.granted(manifest)
    kept = {resource for _, _, resource in rights.granted(manifest)}
    assert kept & {"secrets", "mutatingwebhookconfigurations"} == set()
    # What README.md tells to remove by hand; the other Secret is that of cert-manager's own CA.
    assert client.read(made)["metadata"]["name"] == "gpu2dra-tls"


def _definition(kind: str) -> Object:
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io",
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
        },
    }
