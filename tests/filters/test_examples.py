"""The set-ups in examples/filters do what they say, run by the programs that they are for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from filters.callers import Caller
from gpu2dra_migrate.manifest import objects

pytestmark = pytest.mark.slow

TEMPLATE = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  template:
    spec:
      containers:
      - name: server
        resources: {{- toYaml .Values.resources | nindent 10 }}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Return a chart that takes its resources from the values."""
    folder = tmp_path / "vllm"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: vllm\nversion: 1.2.3\n")
    (folder / "values.yaml").write_text("resources: {limits: {nvidia.com/gpu: 2}}\n")
    (folder / "templates" / "all.yaml").write_text(TEMPLATE)
    return folder


def load(path: Path) -> Any:
    """Return the only document of a file."""
    return yaml.safe_load(path.read_text("utf-8"))


def template_of(text: str) -> Any:
    """Return the template of the only Deployment, which has a claim from it and no limit."""
    found = {obj["kind"]: obj for obj in objects(text)}
    assert set(found) == {"ResourceClaimTemplate", "Deployment"}
    pod = found["Deployment"]["spec"]["template"]["spec"]
    name = found["ResourceClaimTemplate"]["metadata"]["name"]
    assert pod["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": name}]
    assert "limits" not in pod["containers"][0]["resources"]
    return found["ResourceClaimTemplate"]


def test_the_plugin_of_argo_cd(helm_3: Caller, chart: Path, root: Path) -> None:
    generate = load(root / "examples/filters/argo-cd/plugin.yaml")["spec"]["generate"]
    environment = {
        **helm_3.environment, "ARGOCD_APP_NAME": "chat", "ARGOCD_APP_NAMESPACE": "ml", "KUBE_VERSION": "1.34.0",
        "PATH": f"{helm_3.program.parent}{os.pathsep}{helm_3.environment['PATH']}",
    }  # fmt: skip
    program, arguments = generate["command"][0], [*generate["command"][1:], *generate["args"]]
    done = Caller(Path(program), environment).run(*arguments, cwd=chart)
    assert (done.returncode, done.stderr) == (0, "")
    annotations = template_of(done.stdout)["metadata"]["annotations"]
    assert annotations == {
        "gpu2dra.dev/workload": "Deployment.apps/chat",
        "argocd.argoproj.io/sync-options": "Prune=false",
    }
    (chart / "templates" / "all.yaml").write_text("{{ fail `no` }}")
    assert Caller(Path(program), environment).run(*arguments, cwd=chart).returncode != 0


def test_the_helmfile(helm_3: Caller, chart: Path, root: Path, tmp_path: Path) -> None:
    (release,) = load(root / "examples/filters/helmfile/helmfile.yaml")["releases"]
    (chart / "values.yaml").write_text("resources: {}\n")
    values = tmp_path / "values.yaml"
    values.write_text(yaml.safe_dump(release["values"][0]))
    done = helm_3.run(
        "template", release["name"], chart, "--values", values, "--post-renderer", release["postRenderer"],
        *(word for each in release["postRendererArgs"] for word in ("--post-renderer-args", each)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert template_of(done.stdout)["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 2


def test_the_kustomization(kustomize: Caller, root: Path) -> None:
    done = kustomize.run("build", "--enable-alpha-plugins", "--enable-exec", root / "examples/filters/kustomize")
    assert done.returncode == 0, done.stderr
    assert template_of(done.stdout)["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
