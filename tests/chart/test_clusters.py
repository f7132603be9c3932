"""examples/clusters: the commands work on this chart, the values are right for it, GitOps tools leave the CA alone."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import yaml

import gpu2dra_migrate
from chart import generate
from controlplane.client import Object
from controlplane.helm import CHART, Helm, objects, one

CHANGELOG = CHART.parents[1] / "CHANGELOG.md"
CLOUDS = ("aks", "eks", "gke")
LOOKS = ("PLUGIN:.status.allocatable", "get deviceclass gpu.nvidia.com", "get resourceslices", "helm test gpu2dra")
"""What shows that a step worked."""
STEPS = ["1. A node", "2. NVIDIA's DRA driver", "3. The webhook", "4. A namespace"]
_COMMANDS = re.compile(r"```console\n(.*?)```", re.DOTALL)
_LINKS = re.compile(r"\]\((?!https?:)([^)#]+)\)")


def text(*parts: str) -> str:
    """Return a file of examples/clusters."""
    return generate.CLUSTERS.joinpath(*parts).read_text("utf-8")


def commands(cloud: str) -> list[list[str]]:
    """Return the commands of a page, as a shell takes them apart."""
    blocks = _COMMANDS.findall(text(cloud, "README.md"))
    return [shlex.split(line) for block in blocks for line in block.replace("\\\n", "").splitlines()]


def manifests(*parts: str) -> list[Object]:
    """Return the objects in a file."""
    return objects(text(*parts))


def test_every_set_up_is_listed_and_every_link_leads_somewhere() -> None:
    folders = {path.name for path in generate.CLUSTERS.iterdir() if path.is_dir()}
    assert set(re.findall(r"\]\(([\w-]+)/README\.md\)", text("README.md"))) == folders
    for page in generate.CLUSTERS.rglob("README.md"):
        for link in _LINKS.findall(page.read_text("utf-8")):
            assert (page.parent / link).exists(), (page, link)


@pytest.mark.parametrize("cloud", CLOUDS)
def test_a_page_has_the_steps_in_order_and_says_how_to_see_that_each_worked(cloud: str) -> None:
    page = text(cloud, "README.md")
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert [heading.startswith(step) for heading, step in zip(headings, STEPS, strict=False)] == [True] * 4
    looks = [" ".join(command) for command in commands(cloud)]
    for looked_at in LOOKS:
        assert [look for look in looks if looked_at in look], looked_at


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_command_that_installs_the_webhook_works_on_this_chart(cloud: str, helm: Helm) -> None:
    (install,) = (command for command in commands(cloud) if command[3:5] == ["gpu2dra", "../../../charts/gpu2dra"])
    folder = generate.CLUSTERS / cloud
    assert (folder / install[4]).resolve() == CHART
    words = [word for word in install[5:] if word != "--create-namespace"]
    options = [str(folder / word) if word == "values.yaml" else word for word in words]
    rendered = objects(helm.run("template", "gpu2dra", CHART, *options))
    image = one(rendered, "Deployment")["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"REGISTRY/gpu2dra-webhook:{gpu2dra_migrate.__version__}"


@pytest.mark.parametrize("cloud", CLOUDS)
def test_the_driver_is_installed_with_the_values_beside_the_page(cloud: str) -> None:
    (install,) = (command for command in commands(cloud) if any(word.startswith("oci://") for word in command))
    assert "oci://registry.k8s.io/dra-driver-nvidia/charts/dra-driver-nvidia-gpu" in install
    assert install[install.index("--values") + 1] == "driver-values.yaml"
    values = yaml.safe_load(text(cloud, "driver-values.yaml"))
    assert values["gpuResourcesEnabledOverride"] is True
    assert values["resources"]["gpus"] == {"enabled": True}


def test_on_aks_the_enforcer_stays_away_and_the_gates_are_set() -> None:
    webhook = yaml.safe_load(text("aks", "values.yaml"))["webhook"]
    assert webhook["annotations"] == {"admissions.enforcer/disabled": "true"}
    assert yaml.safe_load(text("aks", "driver-values.yaml"))["featureGates"]["IMEXDaemonsWithDNSNames"] is False
    assert "--labels nvidia.com/gpu.present=true" in " ".join(commands("aks")[0])


def test_on_gke_the_pods_listen_where_the_control_plane_may_call() -> None:
    assert yaml.safe_load(text("gke", "values.yaml")) == {"server": {"port": 10250}}
    labels = " ".join(commands("gke")[0])
    assert "gke-no-default-nvidia-gpu-device-plugin=true" in labels


def test_what_gitops_installs_is_the_release_of_the_chart() -> None:
    (application,) = manifests("argo-cd", "application.yaml")
    repository = one(manifests("flux", "helmrelease.yaml"), "GitRepository")
    tag = f"v{gpu2dra_migrate.__version__}"
    assert [application["spec"]["source"]["targetRevision"], repository["spec"]["ref"]["tag"]] == [tag] * 2
    # As long as the changelog has it as unreleased, there is no such tag, and the pages say what to name.
    (date,) = re.findall(rf"^## {re.escape(tag[1:])} \((.*)\)$", CHANGELOG.read_text("utf-8"), re.MULTILINE)
    for page in (text("argo-cd", "README.md"), text("flux", "README.md")):
        assert f"the chart is of, {tag}" in page
        assert ("name a commit" in page) is (date == "unreleased")


def test_argo_cd_ignores_the_bundle_of_the_charts_configuration(helm: Helm) -> None:
    (application,) = manifests("argo-cd", "application.yaml")
    spec = application["spec"]
    rendered = helm.render(spec["source"]["helm"]["valuesObject"])
    (ignored,) = spec["ignoreDifferences"]
    assert ignored == {
        "group": "admissionregistration.k8s.io",
        "kind": "MutatingWebhookConfiguration",
        "name": one(rendered, "MutatingWebhookConfiguration")["metadata"]["name"],
        "jqPathExpressions": [".webhooks[]?.clientConfig.caBundle"],
    }
    assert "RespectIgnoreDifferences=true" in spec["syncPolicy"]["syncOptions"]
    assert Path(spec["source"]["path"]) == CHART.relative_to(CHART.parents[1])


def test_flux_ignores_the_bundle_of_every_entry(helm: Helm) -> None:
    release = one(manifests("flux", "helmrelease.yaml"), "HelmRelease")
    rendered = helm.render(release["spec"]["values"])
    configuration = one(rendered, "MutatingWebhookConfiguration")
    (ignored,) = release["spec"]["driftDetection"]["ignore"]
    entries = range(len(configuration["webhooks"]))
    assert ignored["paths"] == [f"/webhooks/{index}/clientConfig/caBundle" for index in entries]
    assert ignored["target"] == {"kind": configuration["kind"], "name": configuration["metadata"]["name"]}
    assert Path(release["spec"]["chart"]["spec"]["chart"]) == CHART.relative_to(CHART.parents[1])
