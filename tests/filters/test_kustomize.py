"""`gpu2dra krm-function` and `render-filter` behind real kustomize."""

from __future__ import annotations

from pathlib import Path

import pytest

from filters.callers import Caller
from gpu2dra_migrate.manifest import objects

pytestmark = pytest.mark.slow

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: vllm
spec:
  selector: {matchLabels: {app: vllm}}
  template:
    metadata: {labels: {app: vllm}}
    spec:
      containers:
      - name: server
        image: registry.example.com/server:1
        resources: {limits: {nvidia.com/gpu: AMOUNT}}
"""
FUNCTION = """\
apiVersion: gpu2dra.dev/v1alpha1
kind: Config
metadata:
  name: gpu2dra
  annotations:
    config.kubernetes.io/function: |
      exec: {path: PROGRAM, args: [krm-function, --keep, flux]}
target: "1.33"
"""
OVERLAY = """\
namePrefix: prod-
namespace: ml
resources: [vllm.yaml, config.yaml]
TRANSFORMERS
"""


@pytest.fixture
def overlay(tmp_path: Path, environment: dict[str, str]) -> Path:
    """Return a folder with a kustomization that prefixes names; it runs the function as well."""
    folder = tmp_path / "overlay"
    folder.mkdir()
    program = f"{environment['PATH'].partition(':')[0]}/gpu2dra"
    (folder / "vllm.yaml").write_text(DEPLOYMENT.replace("AMOUNT", "2"))
    (folder / "config.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n")
    (folder / "gpu2dra.yaml").write_text(FUNCTION.replace("PROGRAM", program))
    (folder / "kustomization.yaml").write_text(OVERLAY.replace("TRANSFORMERS", "transformers: [gpu2dra.yaml]"))
    return folder


def check_converted(text: str) -> None:
    """Check that the Deployment has a claim from a template with the prefix, in its namespace."""
    found = {obj["kind"]: obj for obj in objects(text)}
    assert set(found) == {"ConfigMap", "ResourceClaimTemplate", "Deployment"}
    template, deployment = found["ResourceClaimTemplate"], found["Deployment"]
    name = template["metadata"]["name"]
    assert name.startswith("prod-vllm-gpu-")
    assert template["apiVersion"] == "resource.k8s.io/v1beta2"
    assert template["metadata"]["namespace"] == deployment["metadata"]["namespace"] == "ml"
    assert template["metadata"]["annotations"] == {
        "gpu2dra.dev/workload": "Deployment.apps/prod-vllm", "kustomize.toolkit.fluxcd.io/prune": "disabled",
    }  # fmt: skip
    pod = deployment["spec"]["template"]["spec"]
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": name}]
    assert pod["containers"][0]["resources"] == {"claims": [{"name": "gpu", "request": "server"}]}


def test_a_transformer(kustomize: Caller, overlay: Path) -> None:
    done = kustomize.run("build", "--enable-alpha-plugins", "--enable-exec", overlay)
    assert done.returncode == 0, done.stderr
    check_converted(done.stdout)


def test_an_error_stops_the_build_with_its_message(kustomize: Caller, overlay: Path) -> None:
    (overlay / "vllm.yaml").write_text(DEPLOYMENT.replace("AMOUNT", "500m"))
    done = kustomize.run("build", "--enable-alpha-plugins", "--enable-exec", overlay)
    assert done.returncode != 0
    assert "error DRA301 Deployment/prod-vllm: " in done.stderr


def test_what_kustomize_prints_can_be_piped(kustomize: Caller, overlay: Path) -> None:
    (overlay / "kustomization.yaml").write_text(OVERLAY.replace("TRANSFORMERS", ""))
    line = f"{kustomize.program} build {overlay} | gpu2dra render-filter --target 1.33 --keep flux"
    done = Caller(Path("sh"), kustomize.environment).run("-c", line)
    assert (done.returncode, done.stderr) == (0, "")
    check_converted(done.stdout)


def test_files_keep_their_comments_and_get_the_template(kustomize: Caller, overlay: Path) -> None:
    (overlay / "kustomization.yaml").unlink()
    text = DEPLOYMENT.replace("AMOUNT", "2").replace("name: vllm\n", "name: vllm # ours\n")
    (overlay / "vllm.yaml").write_text(text)
    (overlay / "config.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain} # as it is\n")
    done = kustomize.run("fn", "run", overlay, "--enable-exec")
    assert done.returncode == 0, done.stderr
    written = (overlay / "vllm.yaml").read_text()
    assert [obj["kind"] for obj in objects(written)] == ["ResourceClaimTemplate", "Deployment"]
    assert "name: vllm # ours\n" in written
    assert "internal.config" not in written
    assert (overlay / "config.yaml").read_text().endswith("metadata: {name: plain} # as it is\n")
