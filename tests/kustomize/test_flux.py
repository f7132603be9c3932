"""Objects of Flux and Argo CD: their patches and names count in what their path builds, and convert with it."""

from __future__ import annotations

import subprocess
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpu2dra_migrate.runner import Mode, run
from kustomize.shapes import BASE, COMPONENT, FOUR, NAMES, ONE, TEMPLATES, merge, op
from kustomize.trees import judge, read, requests, settings, write

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.kustomize.program import Kustomize

pytestmark = pytest.mark.slow
HEAD = """\
# where the application comes from
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: app
  namespace: flux-system
spec:
  path: ./base
  sourceRef: {kind: GitRepository, name: flux-system}
"""
TARGET = "    target: {kind: Deployment, name: vllm}\n"


def patches(text: str) -> str:
    return "  patches:\n  - patch: |\n" + indent(text, "      ")


def build(folder: Path, kustomize: Kustomize) -> list[Any]:
    """Return what Flux builds and applies: its patches and names over the folder at its path."""
    *_, made = yaml.safe_load_all((folder / "clusters/app.yaml").read_text())
    spec = made["spec"]
    spec = spec.get("source", {}).get("kustomize") or spec
    over = {"resources": ["../base"]} | {
        key: spec[key] for key in ("patches", "namePrefix", "nameSuffix", "components") if key in spec
    }
    write(folder, {"made/kustomization.yaml": yaml.safe_dump(over)})
    text = subprocess.run([*kustomize.command, str(folder / "made")], check=True, capture_output=True, text=True).stdout
    (folder / "made/kustomization.yaml").unlink()
    return list(yaml.safe_load_all(text))


def convert(
    folder: Path, kustomize: Kustomize, files: dict[str, str]
) -> tuple[list[Any], list[Any], set[str], set[str]]:
    """Return what Flux builds before and after, the files that changed, and the codes that were told."""
    write(folder, files)
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    before, old = build(folder, kustomize), read(folder)
    results = list(run([folder], settings(Mode.CONVERT)))
    after, new = build(folder, kustomize), read(folder)
    assert [result for result in run([folder], settings(Mode.CONVERT)) if result.changed] == []
    changed = {name for name in old | new if old.get(name) != new.get(name)}
    return before, after, changed, {located.finding.code for result in results for located in result.findings}


@pytest.mark.parametrize("patch", [patches(merge(4)), patches(op("replace", 4)) + TARGET], ids=["merge", "operations"])
def test_a_patch_of_flux_converts_with_its_base(kustomize: Kustomize, tmp_path: Path, patch: str) -> None:
    files = {**BASE, "clusters/app.yaml": HEAD + patch}
    before, after, changed, codes = convert(tmp_path, kustomize, files)
    assert judge(before, after) == []
    assert requests(after) == FOUR
    assert changed == {"base/deploy.yaml", "base/kustomization.yaml", f"base/{TEMPLATES}", "clusters/app.yaml"}
    assert codes <= {"DRA001", "DRA435", "DRA423"}


def test_names_that_flux_gives_are_followed(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {**BASE, "clusters/app.yaml": HEAD + "  namePrefix: a-\n" + patches(merge(4))}
    before, after, changed, _ = convert(tmp_path, kustomize, files)
    assert judge(before, after) == []
    assert requests(after) == ["Deployment/a-vllm server 4"]
    assert f"base/{NAMES}" in changed


@pytest.mark.parametrize("mode", [Mode.DIFF, Mode.CONVERT])
def test_a_folder_that_flux_lists_gets_the_templates(kustomize: Kustomize, tmp_path: Path, mode: Mode) -> None:
    other = BASE["base/deploy.yaml"].replace("vllm", "other")
    files = {"base/deploy.yaml": BASE["base/deploy.yaml"], "base/inner/other.yaml": other}
    files |= {"base/own/kustomization.yaml": "resources: [d.yaml]\n", "base/own/d.yaml": other.replace("other", "own")}
    write(tmp_path, {**files, "clusters/app.yaml": HEAD + patches(merge(4))})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    before = listed(tmp_path, kustomize)
    results = list(run([tmp_path], settings(mode)))
    assert {path.name for result in results for path in result.created} == {TEMPLATES}
    assert {result.path.name for result in results if result.changed} == {
        "deploy.yaml", "other.yaml", "d.yaml", "app.yaml",
    }  # fmt: skip
    if mode is Mode.CONVERT:
        after = listed(tmp_path, kustomize)
        assert judge(before, after) == []
        assert requests(after) == ["Deployment/other server 1", "Deployment/own server 1", *FOUR]
        assert not any(result.changed for result in run([tmp_path], settings(mode)))


def listed(folder: Path, kustomize: Kustomize) -> list[Any]:
    """Return what Flux builds of a folder without a kustomization: a list of what is in it, with its patches."""
    *_, made = yaml.safe_load_all((folder / "clusters/app.yaml").read_text())
    names = [path.relative_to(folder / "base").as_posix() for path in sorted((folder / "base").rglob("*.yaml"))]
    over = {"resources": [*(name for name in names if not name.startswith("own/")), "own"], **made["spec"]}
    file = folder / "base/kustomization.yaml"
    file.write_text(yaml.safe_dump({key: over[key] for key in ("resources", "patches")}))
    text = subprocess.run([*kustomize.command, str(file.parent)], check=True, capture_output=True, text=True).stdout
    file.unlink()
    return list(yaml.safe_load_all(text))


def test_a_namespace_of_the_cluster_keeps_the_request(kustomize: Kustomize, tmp_path: Path) -> None:
    over = "  targetNamespace: kube-system\n"
    write(tmp_path, {**BASE, "clusters/app.yaml": HEAD + over + patches(merge(4))})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    results = list(run([tmp_path], settings(Mode.CONVERT)))
    assert [result for result in results if result.changed] == []


def test_a_path_that_is_elsewhere_is_reported(kustomize: Kustomize, tmp_path: Path) -> None:
    text = (HEAD + patches(merge(4))).replace("./base", "./elsewhere")
    write(tmp_path, {**BASE, "clusters/app.yaml": text})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    results = {result.path.name: result for result in run([tmp_path], settings(Mode.CONVERT))}
    assert results["deploy.yaml"].changed
    assert [located.finding.code for located in results["app.yaml"].findings] == ["DRA409"]
    assert requests(objects_of(tmp_path / "base/deploy.yaml")) == ONE


ARGO = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: app, namespace: argocd}
spec:
  source:
    repoURL: https://git.example.com/apps
    path: base
    kustomize:
"""
SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps, namespace: argocd}
spec:
  template:
    spec:
      sources:
      - repoURL: https://git.example.com/apps
        path: '{{.path.path}}'
        kustomize: {namePrefix: '{{.cluster}}-'}
"""


@pytest.mark.parametrize(
    "text", [HEAD + "  namePrefix: a-\n", ARGO + "      namePrefix: a-\n", SET], ids=["flux", "argocd", "argocd-set"]
)
def test_names_are_followed_where_nothing_names_the_resource(kustomize: Kustomize, tmp_path: Path, text: str) -> None:
    write(tmp_path, {**BASE, "clusters/app.yaml": text})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    list(run([tmp_path], settings(Mode.CONVERT)))
    assert (tmp_path / "clusters/app.yaml").read_text() == text
    write(tmp_path, {"made/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\n"})
    built = subprocess.run([*kustomize.command, str(tmp_path / "made")], check=True, capture_output=True, text=True)
    assert requests(list(yaml.safe_load_all(built.stdout))) == ["Deployment/a-vllm server 1"]


@pytest.mark.parametrize("folder", ["base", "base/inner"])
def test_a_folder_without_a_kustomization_stays_where_flux_gives_other_names(
    kustomize: Kustomize, tmp_path: Path, folder: str
) -> None:
    write(tmp_path, {f"{folder}/deploy.yaml": BASE["base/deploy.yaml"], "app.yaml": HEAD + "  namePrefix: a-\n"})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    results = list(run([tmp_path], settings(Mode.CONVERT)))
    assert [result for result in results if result.changed] == []
    assert "DRA410" in {located.finding.code for result in results for located in result.findings}


def test_a_component_that_flux_adds_converts_with_its_base(kustomize: Kustomize, tmp_path: Path) -> None:
    big = COMPONENT + "patches: [{path: p.yaml}]\n"
    files = {**BASE, "big/kustomization.yaml": big, "big/p.yaml": merge(4)}
    files["clusters/app.yaml"] = HEAD + "  components: [../big]\n"
    before, after, changed, codes = convert(tmp_path, kustomize, files)
    assert judge(before, after) == []
    assert requests(after) == FOUR
    assert "big/p.yaml" in changed
    assert codes <= {"DRA001", "DRA435", "DRA423"}


def test_a_patch_of_argocd_converts_with_its_base(kustomize: Kustomize, tmp_path: Path) -> None:
    patch = indent(patches(op("replace", 4)) + TARGET, "    ")
    before, after, changed, codes = convert(tmp_path, kustomize, {**BASE, "clusters/app.yaml": ARGO + patch})
    assert judge(before, after) == []
    assert requests(after) == FOUR
    assert "clusters/app.yaml" in changed
    assert codes <= {"DRA001", "DRA435", "DRA423"}


def objects_of(path: Path) -> list[Any]:
    return list(yaml.safe_load_all(path.read_text()))
