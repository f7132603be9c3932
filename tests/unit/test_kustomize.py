"""Which files are Kustomize patches on a GPU request, and which objects of which files such patches touch."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpu2dra_migrate import kustomize
from gpu2dra_migrate.kustomize import Target, find_roles, lazy_roles, roles_of

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: vllm}
spec: {template: {spec: {containers: [{name: a, resources: {limits: {nvidia.com/gpu: 1}}}]}}}
"""
STRATEGIC = DEPLOYMENT.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 4")
STRATEGIC_PLAIN = DEPLOYMENT.replace("nvidia.com/gpu: 1", "cpu: 4")
JSON6902 = "- {op: replace, path: /spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu, value: 2}\n"
JSON6902_PLAIN = "- {op: replace, path: /spec/replicas, value: 2}\n"


def inline(text: str, head: str) -> str:
    return f"{head}|-\n" + "".join(f"    {line}\n" for line in text.splitlines())


def tree(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


BASE = {"base/kustomization.yaml": "resources: [deploy.yaml]\n", "base/deploy.yaml": DEPLOYMENT}
TARGET = "  target: {kind: Deployment, name: vllm}\n"


@pytest.mark.parametrize(
    ("overlay", "more", "patch"),
    [
        pytest.param("patches: [{path: p.yaml}]\n", {"p.yaml": STRATEGIC}, "p.yaml", id="strategic"),
        pytest.param("patches:\n- path: p.yaml\n" + TARGET, {"p.yaml": JSON6902}, "p.yaml", id="json6902"),
        pytest.param("patches:\n- path: p.json\n" + TARGET,
                     {"p.json": '[{"op": "remove", "path": "/x/nvidia.com~1gpu"}]'}, "p.json", id="json-file"),
        pytest.param("patchesStrategicMerge: [p.yaml]\n", {"p.yaml": STRATEGIC}, "p.yaml", id="deprecated-strategic"),
        pytest.param("patchesStrategicMerge:\n- " + inline(STRATEGIC, "").lstrip(), {}, None, id="deprecated-inline"),
        pytest.param("patchesJson6902:\n- path: p.yaml\n" + TARGET, {"p.yaml": JSON6902}, "p.yaml",
                     id="deprecated-json"),
        pytest.param("patches:\n- " + inline(STRATEGIC, "patch: "), {}, None, id="inline-strategic"),
        pytest.param("patches:\n-" + TARGET[1:] + inline(JSON6902, "  patch: "), {}, None, id="inline-json6902"),
        pytest.param("patches:\n- patch: '[{op: remove, path: /a/nvidia.com~1gpu}]'\n" + TARGET, {}, None,
                     id="one-line"),
        pytest.param("components: [../c]\n", {"../c/kustomization.yaml": "kind: Component\npatches: [{path: p.yaml}]\n",
                                             "../c/p.yaml": STRATEGIC}, "../c/p.yaml", id="component"),
        pytest.param("replacements:\n- source: {kind: ConfigMap, name: n}\n  targets:\n  - select: {kind: Deployment}\n"
                     "    fieldPaths: ['spec.template.spec.containers.0.resources.limits.[nvidia.com/gpu]']\n",
                     {}, None, id="replacements"),
        pytest.param("vars:\n- name: N\n  objref: {kind: Deployment, name: vllm}\n"
                     "  fieldref: {fieldpath: 'x.limits[nvidia.com/gpu]'}\n", {}, None, id="vars"),
        pytest.param("namePrefix: team-\npatches:\n- path: p.yaml\n  target: {kind: Deployment, name: team-vllm}\n",
                     {"p.yaml": JSON6902}, "p.yaml", id="prefixed"),
        pytest.param("patches:\n- path: p.yaml\n  target: {kind: Deploy.*, name: v.*}\n",
                     {"p.yaml": JSON6902}, "p.yaml", id="expression"),
        pytest.param("patches:\n- path: p.yaml\n  target: {labelSelector: app=vllm}\n", {"p.yaml": JSON6902}, "p.yaml",
                     id="by-label"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("layers", ["resources: [../base]\n", "bases: [../base/]\n", "resources: [../middle]\n"])
def test_what_touches_the_base(
    tmp_path: Path, layers: str, overlay: str, more: dict[str, str], patch: str | None
) -> None:
    files = {f"overlay/{name}": text for name, text in more.items()}
    tree(tmp_path, {**BASE, "middle/kustomization.yml": "resources: [../base]\nnamePrefix: m-\n"})
    tree(tmp_path, {"overlay/kustomization.yaml": layers + overlay, **files})
    roles = find_roles(tmp_path)
    source = roles.patched_by(tmp_path / "base" / "deploy.yaml", "Deployment", "vllm")
    assert source is not None
    assert roles.patched_by(tmp_path / "base" / "deploy.yaml", "Service", "vllm") == (
        source if "labelSelector" in overlay or overlay.startswith(("vars", "replacements")) else None
    )
    wanted = {} if patch is None else {(tmp_path / "overlay" / patch).resolve(): source}
    assert {path.resolve(): by for path, by in roles.patches.items()} == wanted


@pytest.mark.parametrize(
    ("overlay", "more"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("images: [{name: a, newTag: b}]\n", {}, id="no-patch"),
        pytest.param("patches: [{path: p.yaml}]\n", {"p.yaml": STRATEGIC_PLAIN}, id="strategic-without-gpu"),
        pytest.param("patches:\n- path: p.yaml\n" + TARGET, {"p.yaml": JSON6902_PLAIN}, id="json6902-without-gpu"),
        pytest.param("patches: [{path: gone.yaml}]\n", {}, id="missing-patch"),
        pytest.param("patches: [{path: p.yaml, target: {kind: Job}}]\n", {"p.yaml": JSON6902}, id="another-kind"),
        pytest.param("patches: [{path: p.yaml, target: {kind: Deployment, name: other}}]\n", {"p.yaml": JSON6902},
                     id="another-name"),
    ],
)  # fmt: skip
def test_what_does_not_touch_the_base(tmp_path: Path, overlay: str, more: dict[str, str]) -> None:
    tree(tmp_path, {**BASE, "overlay/kustomization.yaml": "resources: [../base]\n" + overlay})
    tree(tmp_path / "overlay", more)
    assert find_roles(tmp_path).patched_by(tmp_path / "base" / "deploy.yaml", "Deployment", "vllm") is None


def test_a_base_that_the_overlay_does_not_reach(tmp_path: Path) -> None:
    tree(tmp_path, {**BASE, "other/kustomization.yaml": "resources: [deploy.yaml]\n", "other/deploy.yaml": DEPLOYMENT})
    tree(
        tmp_path / "overlay",
        {"kustomization.yaml": "resources: [../base]\npatches: [{path: p.yaml}]\n", "p.yaml": STRATEGIC},
    )
    roles = find_roles(tmp_path)
    assert roles.patched_by(tmp_path / "base" / "deploy.yaml", "Deployment", "vllm")
    assert roles.patched_by(tmp_path / "other" / "deploy.yaml", "Deployment", "vllm") is None


@pytest.mark.parametrize(
    "broken",
    ["patches: [\n", "patches: 1\n", "patches: [1, {path: 2}, {patch: {a: b}}]\n", "- patches\n", "",
     "patch: \t{{ x }}\n",
     "resources: {a: b}\npatches: [{path: ../../../../../../../etc/passwd}]\n",
     "components: [.]\nresources: [.]\npatch: 1\n",
     "resources: ['https://example.com/x?ref=v1', 'git@example.com:x']\npatches: []\n"],
)  # fmt: skip
def test_broken_kustomizations_break_nothing(tmp_path: Path, broken: str) -> None:
    tree(tmp_path, {**BASE, "overlay/kustomization.yaml": broken})
    assert find_roles(tmp_path).touched == {}


def test_circles_end(tmp_path: Path) -> None:
    circle = "resources: [../b, deploy.yaml]\ncomponents: [../b]\npatches: [{path: p.yaml}]\n"
    tree(tmp_path, {"a/kustomization.yaml": circle, "a/p.yaml": STRATEGIC, "a/deploy.yaml": DEPLOYMENT})
    tree(tmp_path, {"b/kustomization.yaml": "resources: [../a]\ncomponents: [../a]\n"})
    assert find_roles(tmp_path).patched_by(tmp_path / "a" / "deploy.yaml", "Deployment", "vllm")


def test_long_chains_are_no_recursion(tmp_path: Path) -> None:
    for number in range(1200):
        tree(tmp_path, {f"d{number}/kustomization.yaml": f"resources: [../d{number + 1}]\n"})
    tree(tmp_path / "d1200", {"kustomization.yaml": "resources: [deploy.yaml]\n", "deploy.yaml": DEPLOYMENT})
    tree(
        tmp_path / "top", {"kustomization.yaml": "resources: [../d0]\npatches: [{path: p.yaml}]\n", "p.yaml": STRATEGIC}
    )
    assert find_roles(tmp_path).patched_by(tmp_path / "d1200" / "deploy.yaml", "Deployment", "vllm")


def test_only_what_rewrites_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, {f"d{number}/kustomization.yaml": "resources: [x.yaml]\n" for number in range(50)})

    def parsed(_: object) -> list[object]:
        pytest.fail("a kustomization without patches was parsed")

    monkeypatch.setattr("yaml12.parse_yaml", parsed)
    monkeypatch.setattr(kustomize, "objects", parsed)
    assert roles_of(kustomize.kustomizations(tmp_path)).touched == {}


@pytest.mark.parametrize(
    ("target", "kind", "name", "expected"),
    [
        (("", ""), "Pod", "a", True), (("Pod", ""), "Pod", "a", True), (("Pod", ""), "Job", "a", False),
        (("", "a"), "Pod", "a", True), (("", "a"), "Pod", "b", False), (("", "pre-a-post"), "Pod", "a", True),
        (("", "pre-a"), "Pod", "", False), (("P.d", "a|b"), "Pod", "b", True), (("(", "a"), "Pod", "a", False),
        (("Po", ""), "Pod", "", False),
    ],
)  # fmt: skip
def test_targets(target: tuple[str, str], kind: str, name: str, expected: bool) -> None:
    assert Target(*target, Path()).matches(kind, name) is expected


OVERLAID = {
    **BASE,
    "overlays/prod/kustomization.yaml": "resources: [../../base]\npatches: [{path: p.yaml}]\n",
    "overlays/prod/p.yaml": STRATEGIC,
}


def test_in_a_repository_the_whole_of_it_counts(tmp_path: Path) -> None:
    tree(tmp_path, {"clusters/app/" + name: text for name, text in OVERLAID.items()})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    base = tmp_path / "clusters/app/base/deploy.yaml"
    assert lazy_roles()(base).patched_by(base, "Deployment", "vllm")


@pytest.mark.parametrize("here", [".", "app", "app/base", "elsewhere"])
def test_outside_a_repository_the_neighbourhood_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str
) -> None:
    tree(tmp_path, {"app/" + name: text for name, text in OVERLAID.items()})
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / here)
    base = tmp_path / "app/base/deploy.yaml"
    assert lazy_roles()(base).patched_by(base, "Deployment", "vllm")


def test_without_a_kustomization_above_nothing_is_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, {"x.yaml": DEPLOYMENT})
    monkeypatch.setattr(kustomize, "find_roles", lambda _: pytest.fail("the folder was walked"))
    assert lazy_roles()(tmp_path / "x.yaml").touched == {}


def test_a_repository_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, OVERLAID)
    (tmp_path / ".git").mkdir()
    asked: list[Path] = []
    real = kustomize.find_roles

    def find(folder: Path) -> kustomize.Roles:
        asked.append(folder)
        return real(folder)

    monkeypatch.setattr(kustomize, "find_roles", find)
    roles = lazy_roles()
    for name in ("base/deploy.yaml", "overlays/prod/p.yaml"):
        roles(tmp_path / name)
    assert asked == [tmp_path]
