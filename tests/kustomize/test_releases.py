"""HelmReleases in kustomizations: their values convert with the build, and names of templates are followed in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra_migrate.kustomize.program import Kustomize
from gpu2dra_migrate.runner import Mode, run
from kustomize.trees import Done, convert, read, settings, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata:
  name: faces
  namespace: media
spec:
  chart:
    spec:
      chart: app-template
      version: VERSION
      sourceRef: {kind: HelmRepository, name: bjw-s}
  values:
    controllers:
      main:
        containers:
          app:
            image: {repository: ghcr.io/example/faces, tag: "1"}
            resources:
              limits:
                nvidia.com/gpu: 1
"""
PATCH = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: faces, namespace: media}
spec: {values: {controllers: {main: {containers: {app: {resources: {limits: {nvidia.com/gpu: 2}}}}}}}}
"""
BASE = {
    "base/kustomization.yaml": "resources:\n- release.yaml\n",
    "base/release.yaml": RELEASE.replace("VERSION", "5.1.0"),
}
TOP = "resources:\n- ../base\n"


def counts(done: Done, folder: str) -> list[int]:
    """Return the devices of the claims that the values of the release name, as it is built in the end."""
    built = done.built[folder][1]
    templates = {
        (obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj for obj in built if "Template" in obj["kind"]
    }
    (release,) = (obj for obj in built if obj["kind"] == "HelmRelease")
    pod: Any = release["spec"]["values"]["controllers"]["main"]["pod"]
    names = [each["resourceClaimTemplateName"] for each in pod["resourceClaims"]]
    specs = [templates[release["metadata"].get("namespace"), name]["spec"]["spec"] for name in names]
    return [each["exactly"]["count"] for spec in specs for each in spec["devices"]["requests"]]


@pytest.mark.parametrize(
    "top", ["", "namePrefix: prod-\nnameSuffix: -eu\n", "namespace: other\n", "labels:\n- pairs: {a: b}\n"]
)
def test_names_and_namespaces_are_followed(kustomize: Kustomize, tmp_path: Path, top: str) -> None:
    done = convert(write(tmp_path, {**BASE, "top/kustomization.yaml": TOP + top}), kustomize)
    assert (counts(done, "base"), counts(done, "top")) == ([1], [1])
    assert set(done.codes()) == {"DRA001", "DRA423"}
    assert [result.path for result in run([tmp_path], settings(Mode.CONVERT)) if result.changed] == []


def test_an_overlay_with_another_amount_gets_its_own_template(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {**BASE, "top/kustomization.yaml": TOP + "patches:\n- path: more.yaml\n", "top/more.yaml": PATCH}
    done = convert(write(tmp_path, files), kustomize)
    assert (counts(done, "base"), counts(done, "top")) == ([1], [2])
    assert "nvidia.com/gpu:" not in "".join(read(tmp_path).values())


@pytest.mark.parametrize("prefix", ["", "namePrefix: prod-\n"])
def test_a_patch_of_what_is_rendered_names_the_template(kustomize: Kustomize, tmp_path: Path, prefix: str) -> None:
    files = {"base/release.yaml": RELEASE.replace("VERSION", "4.1.1"), "top/kustomization.yaml": TOP + prefix}
    done = convert(write(tmp_path, BASE | files), kustomize)
    release, template = (
        next(obj for obj in done.built["top"][1] if obj["kind"] == kind)
        for kind in ("HelmRelease", "ResourceClaimTemplate")
    )
    (patch,) = release["spec"]["postRenderers"][0]["kustomize"]["patches"]
    name = template["metadata"]["name"]
    assert name.startswith("prod-faces-gpu-" if prefix else "faces-gpu-")
    assert f"resourceClaimTemplateName: {name}\n" in patch["patch"]
    assert set(done.codes()) == {"DRA001", "DRA423"}
