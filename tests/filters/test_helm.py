"""`gpu2dra render-filter` as a post-renderer of real Helm: version 3 by its path, version 4 as an installed plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from filters.callers import Caller
from gpu2dra_migrate import __version__
from gpu2dra_migrate.manifest import objects

pytestmark = pytest.mark.slow

CONFIG = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-config\ndata:\n  # a comment\n  a: '1'\n"
)
SERVER = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-server
spec:
  selector: {matchLabels: {app: server}}
  template:
    metadata: {labels: {app: server}}
    spec:
      containers:
      - name: server
        image: registry.example.com/server:1
        resources: {{- toYaml .Values.resources | nindent 10 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}-server
spec:
  selector: {app: server}
"""
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-warm-up
  annotations:
    helm.sh/hook: post-install
    helm.sh/hook-weight: "3"
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: warm-up
        image: registry.example.com/warm-up:1
        resources: {limits: {nvidia.com/gpu: 1}}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """Return a chart with a workload, a hook and a document without a GPU."""
    folder = tmp_path / "app"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: app\nversion: 0.1.0\n")
    (folder / "values.yaml").write_text("resources: {limits: {nvidia.com/gpu: 2}}\n")
    for name, text in (("config", CONFIG), ("server", SERVER), ("warm-up", HOOK)):
        (folder / "templates" / f"{name}.yaml").write_text(text)
    return folder


def documents(text: str) -> list[tuple[str, Any]]:
    """Return template file and object of each document that Helm printed."""
    found = []
    for piece in text.removeprefix("---\n").split("\n---\n"):
        source = piece.partition("# Source: ")[2].partition("\n")[0]
        found += [(source, obj) for obj in objects(piece)]
    return found


def check_converted(text: str, *, hooks: bool = True) -> None:
    """Check that workloads have claims, and templates in their file and hook; `hooks`: those of hooks as well."""
    found = documents(text)
    kinds = [
        ("app/templates/config.yaml", "ConfigMap"), ("app/templates/server.yaml", "Service"),
        ("app/templates/server.yaml", "ResourceClaimTemplate"), ("app/templates/server.yaml", "Deployment"),
        ("app/templates/warm-up.yaml", "Job"),
    ]  # fmt: skip
    kinds += [("app/templates/warm-up.yaml", "ResourceClaimTemplate")] * hooks
    assert sorted((source, obj["kind"]) for source, obj in found) == sorted(kinds)
    by_kind = {(source, obj["kind"]): obj for source, obj in found}
    converted = [("server", "Deployment", None, None)] + [("warm-up", "Job", "post-install", "2")] * hooks
    for file, kind, hook, weight in converted:
        template = by_kind[f"app/templates/{file}.yaml", "ResourceClaimTemplate"]
        user = by_kind[f"app/templates/{file}.yaml", kind]
        assert user["spec"]["template"]["spec"]["resourceClaims"] == [
            {"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}
        ]
        annotations = template["metadata"]["annotations"]
        assert annotations["helm.sh/resource-policy"] == "keep"
        assert (annotations.get("helm.sh/hook"), annotations.get("helm.sh/hook-weight")) == (hook, weight)
        assert "postrenderer.helm.sh/postrender-filename" not in annotations
    assert text.count("nvidia.com/gpu: ") == (not hooks)


def test_helm_3_runs_it_by_its_path(helm_3: Caller, chart: Path) -> None:
    plain = helm_3.run("template", "release", chart)
    done = helm_3.run(
        "template", "release", chart, "--post-renderer", "gpu2dra", "--post-renderer-args", "render-filter"
    )
    assert done.returncode == 0, done.stderr
    check_converted(done.stdout, hooks=False)  # Helm 3 hands none to a post-renderer
    assert documents(plain.stdout)[0] in documents(done.stdout)


def test_helm_4_runs_it_as_an_installed_plugin(helm_4: Caller, chart: Path, root: Path) -> None:
    installed = helm_4.run("plugin", "install", root / "migrate/plugins/helm")
    assert installed.returncode == 0, installed.stderr
    listed = helm_4.run("plugin", "list").stdout.splitlines()[1].split()
    assert listed[:3] == ["gpu2dra", __version__, "postrenderer/v1"]
    done = helm_4.run("template", "release", chart, "--post-renderer", "gpu2dra")
    assert done.returncode == 0, done.stderr
    check_converted(done.stdout)
    older = helm_4.run("template", "release", chart, "--post-renderer", "gpu2dra", "--post-renderer-args=--target=1.33")
    assert older.stdout.count("apiVersion: resource.k8s.io/v1beta2") == 2


@pytest.mark.parametrize("version", ["helm_3", "helm_4"])
def test_what_helm_prints_can_be_piped(version: str, request: pytest.FixtureRequest, chart: Path) -> None:
    helm: Caller = request.getfixturevalue(version)
    plain = helm.run("template", "release", chart)
    piped = Caller(Path("sh"), helm.environment).run(
        "-c", f"{helm.program} template release {chart} | gpu2dra render-filter"
    )
    assert (piped.returncode, piped.stderr) == (0, "")
    check_converted(piped.stdout)
    config = next(piece for piece in plain.stdout.split("---\n") if "ConfigMap" in piece)
    assert f"---\n{config}---\n" in piped.stdout


def test_a_failure_stops_helm_with_its_message(helm_3: Caller, chart: Path) -> None:
    (chart / "values.yaml").write_text("resources: {limits: {nvidia.com/gpu: 500m}}\n")
    arguments = ("--post-renderer", "gpu2dra", "--post-renderer-args", "render-filter")
    passed = helm_3.run("template", "release", chart, *arguments)
    assert (passed.returncode, passed.stdout.count("nvidia.com/gpu: 500m")) == (0, 1)
    done = helm_3.run("template", "release", chart, *arguments, "--post-renderer-args", "--strict")
    assert done.returncode != 0
    assert "DRA301" in done.stderr
    assert done.stdout.strip() == ""
