"""Kustomizations that do not convert, or only in part: nothing of them changes, and the reason is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.runner import Mode, run
from kustomize.shapes import BASE, COMPONENT, ONE, SHAPES, TARGET, inline, merge, op, over, workload
from kustomize.trees import convert, judge, read, requests, settings, write

if TYPE_CHECKING:
    from gpu2dra_migrate.kustomize.program import Kustomize

pytestmark = pytest.mark.slow

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""
REPLACEMENT = """\
configMapGenerator:
- {name: settings, literals: [gpus=4]}
replacements:
- source: {kind: ConfigMap, name: settings, fieldPath: data.gpus}
  targets:
  - select: {kind: Deployment}
    fieldPaths: ['spec.template.spec.containers.0.resources.limits.[nvidia.com/gpu]']
"""
RESOURCES = "/spec/template/spec/containers/0/resources"
SCHEDULER = "/spec/template/spec/schedulerName"
FOLDED = inline(op("replace", 4), "- patch: >-").replace("\n      ", "\n\n      ")
LEFT = {
    "remote-base": ({**BASE, **over("- https://example.com/base?ref=v1\npatches:\n- path: p.yaml\n", p=merge(4))},
                    {"DRA439", "DRA409", "DRA410"}),
    "plugin": ({**BASE, **over("transformers: [t.yaml]\npatches:\n- path: p.yaml\n", p=merge(4), t="{}\n")},
               {"DRA442", "DRA409", "DRA410"}),
    "helm-chart": ({**BASE, **over("helmCharts: [{name: c}]\npatches:\n- path: p.yaml\n", p=merge(4))},
                   {"DRA443", "DRA409", "DRA410"}),
    "does-not-build": ({**BASE, **over("patches:\n- path: p.yaml\n- path: q.yaml\n", p=merge(4), q=merge(4, name="x"))},
                       {"DRA438", "DRA409", "DRA410"}),
    "replaced-amount": ({**BASE, **over(REPLACEMENT)}, {"DRA437", "DRA441", "DRA410"}),
    "another-scheduler": ({**BASE, **over("patches:\n" + inline(op("add", "volcano", SCHEDULER)) + TARGET)},
                          {"DRA437", "DRA410"}),
    "system-namespace": ({**BASE, **over("namespace: kube-system\n")}, {"DRA437", "DRA410"}),
    "folded-patch": ({**BASE, **over("patches:\n" + FOLDED + TARGET)}, {"DRA445", "DRA409", "DRA410"}),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT)
def test_nothing_changes_and_the_reason_is_told(kustomize: Kustomize, tmp_path: Path, name: str) -> None:
    files, codes = LEFT[name]
    done = convert(write(tmp_path, files), kustomize)
    assert done.changed == set()
    assert set(done.codes()) - {"DRA449", "DRA423"} == codes


def test_one_overlay_that_stays_does_not_hold_back_another_application(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {f"{top}/{name}": text for top in ("x", "y") for name, text in SHAPES["merge-file"].files.items()}
    files["x/over/kustomization.yaml"] += "namespace: kube-system\n"
    done = convert(write(tmp_path, files), kustomize)
    assert {name.partition("/")[0] for name in done.changed} == {"y"}
    assert judge(*done.built["y/over"]) == []
    assert done.built["x/over"][0] == done.built["x/over"][1]


def test_overlays_that_only_bring_gpus_do_not_hold_back_each_other(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {**BASE, "base/deploy.yaml": workload(None), **over("patches:\n- path: p.yaml\n", p=merge(4))}
    files |= {"bad/kustomization.yaml": "resources: [../base]\nnamespace: kube-system\npatches: [{path: p.yaml}]\n"}
    done = convert(write(tmp_path, {**files, "bad/p.yaml": merge(2)}), kustomize)
    assert requests(done.built["over"][1]) == ["Deployment/vllm server 4"]
    assert done.built["bad"][0] == done.built["bad"][1]
    assert {name for name in done.changed if name.startswith(("bad", "base"))} == set()
    (message,) = done.messages("DRA409")
    assert "kube-system" in message


def test_a_file_beside_a_kustomization_holds_nothing_back(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {**BASE, "near/kustomization.yaml": "resources: [../base/deploy.yaml]\nnamePrefix: near-\n"}
    done = convert(write(tmp_path, files), kustomize)
    assert set(done.codes()) == {"DRA001", "DRA423"}
    assert requests(done.built["base"][1]) == ONE
    built = kustomize.build(tmp_path / "near", anywhere=True)
    assert requests(built) == ["Deployment/near-vllm server 1"]
    assert [result.path for result in run([tmp_path], settings(Mode.CONVERT)) if result.changed] == []


def test_a_base_outside_of_the_repository_is_told(kustomize: Kustomize, tmp_path: Path) -> None:
    write(tmp_path, {**BASE, "repo/over/deploy.yaml": workload(name="own")})
    write(tmp_path, {"repo/over/kustomization.yaml": "resources: [../../base, deploy.yaml]\n"})
    (tmp_path / "repo" / ".git").mkdir()
    before = (tmp_path / "base" / "deploy.yaml").read_text()
    done = convert(tmp_path, kustomize, "repo")
    (message,) = done.messages("DRA439")
    assert "../../base/deploy.yaml" in message
    assert (tmp_path / "base" / "deploy.yaml").read_text() == before
    told = [each.finding.code for result in run([tmp_path / "repo"], settings(Mode.VERIFY)) for each in result.findings]
    assert told == ["DRA439"]
    list(run([tmp_path / "base"], settings(Mode.CONVERT)))
    results = list(run([tmp_path / "repo"], settings(Mode.VERIFY)))
    assert [each.finding.code for result in results for each in result.findings] == ["DRA423"]


@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.DIFF, Mode.CONVERT])
def test_a_patch_that_takes_the_request_away_is_not_told_as_zero(
    kustomize: Kustomize, tmp_path: Path, mode: Mode
) -> None:
    write(tmp_path, {**BASE, **over("patches: [{path: p.yaml}]\n", p=merge("null"))})
    told = [each.finding.code for result in run([tmp_path], settings(mode)) for each in result.findings]
    assert kustomize.command
    assert "DRA101" not in told


@pytest.mark.parametrize("shape", ["prefix", "merge-file"])
def test_new_files_have_the_line_ends_of_the_kustomization_that_lists_them(
    kustomize: Kustomize, tmp_path: Path, shape: str
) -> None:
    files = {name: text.replace("\n", "\r\n") for name, text in SHAPES[shape].files.items()}
    done = convert(write(tmp_path, files), kustomize)
    assert done.after.keys() > files.keys()
    assert {name for name, text in done.after.items() if text.count("\r\n") != text.count("\n")} == set()


def test_values_of_a_chart_that_is_here_lead_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kustomization = "helmCharts: [{name: c, valuesFile: v.yaml}, {name: d, valuesFile: w.yaml}]\n"
    values = "resources: {limits: {nvidia.com/gpu: 2}}\n"
    files = {"app/kustomization.yaml": kustomization, "app/v.yaml": values, "app/w.yaml": values}
    write(tmp_path, {**files, "app/charts/c/Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"})
    results = {result.path: result.findings for result in run([Path()], settings(Mode.CHECK))}
    (here,), (elsewhere,) = results[Path("app/v.yaml")], results[Path("app/w.yaml")]
    assert here.finding.code == elsewhere.finding.code == "DRA403"
    assert "`gpu2dra convert app/charts/c --values app/v.yaml`" in here.finding.message
    assert "gpu2dra convert" not in elsewhere.finding.message


def test_a_share_waits_for_a_choice(kustomize: Kustomize, tmp_path: Path) -> None:
    shared = merge("null, nvidia.com/gpu.shared: 1")
    done = convert(write(tmp_path, {**BASE, **over("patches:\n- path: p.yaml\n", p=shared)}), kustomize)
    assert done.changed == set()
    assert any("shared" in message for message in done.messages("DRA437"))


def test_content_of_config_maps_is_never_edited(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {**BASE, **over("configMapGenerator:\n- {name: pods, files: [pod.yaml]}\n", pod=POD)}
    done = convert(write(tmp_path, files), kustomize)
    assert done.changed == {"base/deploy.yaml"}
    assert requests(done.built["over"][1]) == ONE
    assert "DRA440" in done.codes()
    assert "ConfigMap" in done.messages("DRA440")[0]


@pytest.mark.parametrize("comment", ["# gpu2dra: ignore[DRA435] on purpose", "# gpu2dra: ignore"])
def test_a_patch_that_is_ignored_stays(kustomize: Kustomize, tmp_path: Path, comment: str) -> None:
    patch = merge(4).replace("{limits: {nvidia.com/gpu: 4}}", f"{{limits: {{nvidia.com/gpu: 4}}}} {comment}")
    done = convert(write(tmp_path, {**BASE, **over("patches:\n- path: p.yaml\n", p=patch)}), kustomize)
    assert done.changed == set()


def test_an_object_that_is_ignored_stays_in_every_build(kustomize: Kustomize, tmp_path: Path) -> None:
    ignored = workload().replace("gpu: 1}}", "gpu: 1}} # gpu2dra: ignore")
    files = {"base/kustomization.yaml": "resources: [deploy.yaml, two.yaml]\n", "base/deploy.yaml": ignored}
    done = convert(
        write(tmp_path, {**files, "base/two.yaml": workload(name="two"), **over("namePrefix: a-\n")}), kustomize
    )
    assert "base/deploy.yaml" not in done.changed
    assert requests(done.built["over"][1]) == ["Deployment/a-two server 1"]


def test_a_component_that_two_overlays_need_differently_stays(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {
        **BASE, **over("components: [../big]\n"),
        "big/kustomization.yaml": COMPONENT + "patches:\n- path: p.yaml\n  target: {kind: Deployment}\n",
        "big/p.yaml": op("replace", 4),
        "more/kustomization.yaml": "resources: [deploy.yaml]\ncomponents: [../big]\n",
        "more/deploy.yaml": workload(name="other").replace("server", "main"),
    }  # fmt: skip
    done = convert(write(tmp_path, files), kustomize)
    for before, after in done.built.values():
        assert judge(before, after) == [] or before == after


@pytest.mark.parametrize(
    ("patch", "held"),
    [
        (merge(4), {"base"}),
        (merge(4, name="another"), set()),
        (op("replace", 4), {"base"}),
        (merge(4).replace("nvidia.com/gpu", "memory"), set()),
    ],
)
@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.CONVERT])
def test_what_a_component_without_a_user_is_about_stays(
    kustomize: Kustomize, tmp_path: Path, patch: str, held: set[str], mode: Mode
) -> None:
    target = "  target: {kind: Deployment}\n" if patch.startswith("- op") else ""
    files = {"big/kustomization.yaml": COMPONENT + "patches:\n- path: p.yaml\n" + target, "big/p.yaml": patch}
    write(tmp_path, {**BASE, **files, "far/kustomization.yaml": "namePrefix: a-\n"})
    results = list(run([tmp_path], settings(mode)))
    told = {result.path.parent.name for result in results for each in result.findings if each.finding.code == "DRA437"}
    assert told == held
    assert ("base" in {result.path.parent.name for result in results if result.changed}) is not bool(held)


def test_the_patch_of_a_component_that_nobody_uses_stays(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {"big/kustomization.yaml": COMPONENT + "patches: [{path: p.yaml}]\n", "big/p.yaml": merge(4)}
    done = convert(write(tmp_path, files), kustomize)
    assert done.changed == set()
    assert set(done.codes()) == {"DRA409"}


@pytest.mark.parametrize(
    ("text", "builds"),
    [
        ("# https://example.com/licence\nnamePrefix: a-\n", True),
        ("commonAnnotations: {docs: 'https://example.com'}\n", True),
        ("patches:\n- path: https://example.com/p.yaml\n", False),
        ("configMapGenerator:\n- {name: c, files: ['a=https://example.com/c.txt']}\n", False),
    ],
)
def test_where_the_network_cannot_be_taken_away_nothing_that_fetches_is_built(
    kustomize: Kustomize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, builds: bool
) -> None:
    monkeypatch.setattr("gpu2dra_migrate.kustomize.unproven.isolated", lambda: False)
    write(tmp_path, {**BASE, **over(text)})
    results = list(run([tmp_path], settings(Mode.VERIFY)))
    told = {
        located.finding.code for result in results for located in result.findings if result.path.parent.name == "over"
    }
    assert told == ({"DRA423"} if builds else {"DRA438"})


def test_a_part_of_an_application_alone_stays(kustomize: Kustomize, tmp_path: Path) -> None:
    done = convert(write(tmp_path, SHAPES["merge-file"].files), kustomize, "base")
    assert done.changed == set()
    assert set(done.codes()) == {"DRA410", "DRA437"}


@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.CONVERT])
def test_without_kustomize_what_is_right_by_construction_converts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", "")
    patched = {f"p/{name}": text for name, text in SHAPES["merge-file"].files.items()}
    renamed = {f"r/{name}": text for name, text in SHAPES["prefix"].files.items()}
    plain = {f"n/{name}": text for name, text in SHAPES["nothing-patched"].files.items()}
    labels = {f"l/{name}": text for name, text in {**BASE, **over("patches:\n- path: p.yaml\n", p=LABEL)}.items()}
    write(tmp_path, patched | renamed | plain | labels)
    results = list(run([tmp_path], settings(mode)))
    changed = {result.path.relative_to(tmp_path).as_posix() for result in results if result.changed}
    assert changed == {"n/base/deploy.yaml", "l/base/deploy.yaml"}
    codes = [located.finding.code for result in results for located in result.findings]
    assert codes.count("DRA436") == 1
    assert (codes.count("DRA409"), codes.count("DRA410")) == (1, 2)


OVERLAYS = {
    "adds-resources": "patches:\n" + inline(op("add", "{limits: {cpu: 1}}", RESOURCES)) + TARGET,
    "removes-resources": "patches:\n" + inline(op("remove", None, RESOURCES)) + TARGET,
    "takes-resources-away": "patches:\n" + inline(workload(None) + "        resources: null\n"),
    "json-with-a-comma": "patches:\n" + inline(f'[{{"path": "{RESOURCES}", "op": "remove"}}]\n') + TARGET,
    "moves-one": "patches:\n" + inline(op("add", "x", "/metadata/namespace")) + TARGET,
    "names-everything": "patches:\n" + inline(op("add", "{}", "/metadata/annotations")) + "  target: {name: '.*'}\n",
    "names-templates": "patches:\n" + inline(op("replace", "z", "/metadata/name"))
    + "  target: {kind: ResourceClaimTemplate}\n",
    "replaces-a-namespace": "replacements:\n- source: {kind: Deployment, fieldPath: metadata.name}\n"
    "  targets: [{select: {kind: Deployment}, fieldPaths: [metadata.namespace]}]\n",
    "transformers": "transformers: [t.yaml]\n",
}  # fmt: skip


@pytest.mark.parametrize("name", OVERLAYS)
def test_without_kustomize_what_an_overlay_may_undo_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", "")
    files = {**BASE, **over(OVERLAYS[name])}
    list(run([write(tmp_path, files)], settings(Mode.CONVERT)))
    assert read(tmp_path) == files


def test_without_kustomize_what_only_stands_beside_a_chart_converts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", "")
    files = {**BASE, **over("helmCharts: [{name: c}]\nimages: [{name: vllm, newTag: v2}]\n")}
    list(run([write(tmp_path, files)], settings(Mode.CONVERT)))
    assert "nvidia.com/gpu:" not in (tmp_path / "base" / "deploy.yaml").read_text()


def test_every_file_that_stays_without_kustomize_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", "")
    write(tmp_path, {f"{top}/{name}": text for top in "xy" for name, text in SHAPES["prefix"].files.items()})
    results = list(run([tmp_path], settings(Mode.CONVERT)))
    told = [each.finding for result in results for each in result.findings]
    assert [each.code for each in told if each.code == "DRA436"] == ["DRA436"]
    left = [each.message for each in told if each.code == "DRA410"]
    assert ["kustomize is not on PATH" in message for message in left] == [True, True]


LABEL = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: vllm, labels: {a: b}}\n"


def test_check_runs_no_program_and_says_what_would_convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\ntouch " + str(tmp_path / "ran") + "\n")
    program.chmod(0o755)
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", str(program))
    write(tmp_path / "tree", SHAPES["merge-file"].files)
    results = list(run([tmp_path / "tree"], settings(Mode.CHECK)))
    assert not (tmp_path / "ran").exists()
    assert {result.path.name for result in results if result.changed} == {"deploy.yaml", "p.yaml"}
    assert [located.finding.code for result in results for located in result.findings] == ["DRA001", "DRA435"]
    assert read(tmp_path / "tree") == SHAPES["merge-file"].files


def test_a_program_that_prints_nonsense_proves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "kustomize"
    program.write_text("#!/bin/sh\necho 'a: [\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", str(program))
    write(tmp_path / "tree", SHAPES["merge-file"].files)
    assert [result for result in run([tmp_path / "tree"], settings(Mode.CONVERT)) if result.changed] == []
    assert read(tmp_path / "tree") == SHAPES["merge-file"].files
