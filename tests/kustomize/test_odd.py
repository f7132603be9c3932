"""Kustomizations that nobody would write: never a crash, never a build that is wrong."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.files import write_text
from gpu2dra_migrate.runner import Mode, run
from gpu2dra_migrate.session import Flags, execute
from kustomize.shapes import BASE, FOUR, ONE, inline, merge, op, over
from kustomize.trees import convert, judge, read, requests, settings, write

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.kustomize.program import Kustomize

pytestmark = pytest.mark.slow
P = "patches:\n- path: p.yaml\n"


@pytest.fixture(autouse=True)
def _errors_of_our_own_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU2DRA_DEBUG", "1")


@pytest.mark.parametrize(
    "text",
    [
        "patches: 1\n",
        "patches: [1, {path: 2}, {patch: {a: b}}, {}]\n",
        "patches: [{path: ../../../../../../etc/passwd}]\n",
        "patches: [{path: .}]\n",
        "patches: [{path: p.yaml, target: 1}]\n",
        "patchesStrategicMerge: {a: b}\n",
        "patchesStrategicMerge: ['']\n",
        "patchesJson6902: [{path: p.yaml}]\n",
        P + "replacements: 1\n",
        P + "replacements: [1, {source: 1, targets: 1}, {targets: [1, {select: 1}]}]\n",
        P + "replacements: [{path: gone.yaml}]\n",
        P + "components: {}\n",
        P + "components: [., ..]\n",
        P + "configurations: 5\n",
        P + "namePrefix: [x]\n",
        P + "namePrefix: a-\nconfigurations: [gone.yaml]\n",
        P + "configMapGenerator: [1, {files: 3}, {name: n, envs: [1, '']}]\n",
        P + "vars: [1, {objref: 1, fieldref: {fieldpath: 1}}]\n",
        P + "sortOptions: {order: legacy}\nnamePrefix: a-\n",
        P + "buildMetadata: [originAnnotations, transformerAnnotations]\nnameSuffix: -b\n",
        P + "resources: [1]\n",
        P + "...\n---\nresources: [../base]\n",
        P + "a: &x [1]\nb: *x\n",
        "patches:\n" + inline(op("move", None)) + "  target: {kind: Deployment}\n",
        "patches:\n" + inline("- op: replace\n- 1\n- {path: 5}\n") + "  target: {kind: Deployment}\n",
        "patches:\n" + inline("{{ template }}\n"),
        "patches:\n" + inline(merge(4) + "---\n" + merge(2)),
        "patches:\n" + inline(merge("-1")),
        "patches:\n" + inline(merge("1.5")),
        "patches:\n" + inline(merge(64)),
        "patches:\n" + inline(merge("'${GPUS}'")),
        "patches: [\n",
        "\t{{ x }}\n",
        "",
    ],
)
def test_nothing_breaks_and_nothing_is_wrong(kustomize: Kustomize, tmp_path: Path, text: str) -> None:
    done = convert(write(tmp_path, {**BASE, **over(text, p=merge(4))}), kustomize)
    for before, after in done.built.values():
        assert before == after or judge(before, after) == []
    assert [result.path for result in run([tmp_path], settings(Mode.CONVERT)) if result.changed] == []
    list(run([tmp_path], settings(Mode.CHECK)))
    list(run([tmp_path], settings(Mode.DIFF)))
    list(run([tmp_path], settings(Mode.VERIFY)))


def test_a_file_that_cannot_be_written_leaves_all_as_it_was(
    kustomize: Kustomize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, text: str) -> None:
        if path.name == "p.yaml":
            raise PermissionError(13, "Permission denied")
        write_text(path, text)

    monkeypatch.setattr("gpu2dra_migrate.files.write_text", refuse)
    done = convert(write(tmp_path, {**BASE, **over(P + "namePrefix: a-\n", p=merge(4))}), kustomize)
    assert done.changed == set()
    assert list(done.codes()) == ["DRA510"]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("problem", [KeyboardInterrupt(), SystemExit(143)])
@pytest.mark.parametrize("written", [False, True], ids=["before", "after"])
def test_what_is_interrupted_is_taken_back(
    kustomize: Kustomize, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, problem: BaseException,
    *, written: bool,
) -> None:  # fmt: skip
    count = 0

    def interrupted(path: Path, text: str) -> None:
        nonlocal count
        count += 1
        if written or count != number + 1:
            write_text(path, text)
        if count == number + 1:
            raise problem

    before = read(write(tmp_path, {**BASE, **over(P, p=merge(4))}))
    monkeypatch.setattr("gpu2dra_migrate.files.write_text", interrupted)
    with pytest.raises(type(problem)):
        list(run([tmp_path], settings(Mode.CONVERT)))
    assert read(tmp_path) == before
    assert count > number


@pytest.mark.parametrize("left_out", ["over/kustomization.yaml", "over/**", "base/**"])
def test_what_the_configuration_leaves_out_is_not_written(kustomize: Kustomize, tmp_path: Path, left_out: str) -> None:

    config = f"apiVersion: gpu2dra.dev/v1alpha1\nkind: Config\nexclude: ['{left_out}']\n"
    files = {**BASE, **over(P, p=merge(4)), ".gpu2dra.yaml": config}
    write(tmp_path, files)
    execute("convert", (tmp_path,), Flags())
    kept = {name for name, text in files.items() if (tmp_path / name).read_text() == text}
    if left_out == "base/**":  # the overlay can do without: it takes the limit of its base away
        assert kept == files.keys() - {"over/kustomization.yaml", "over/p.yaml"}
    else:
        assert kept == files.keys()
        assert not list(tmp_path.rglob("resourceclaimtemplates.yaml"))


def test_a_base_by_two_names_is_one(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {**BASE, **over(P, p=merge(4))}
    write(tmp_path, {name.replace("base/", "real/", 1): text for name, text in files.items()})
    (tmp_path / "base").symlink_to("real")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    done = convert(tmp_path, kustomize)
    assert {name: requests(built[1]) for name, built in done.built.items() if name != "base"} == {
        "over": FOUR, "real": ONE,
    }  # fmt: skip
    assert done.codes()["DRA423"] == 2
    assert not any(result.changed for result in run([tmp_path], settings(Mode.CONVERT)))


def test_a_patch_behind_a_link_is_written_where_it_is(kustomize: Kustomize, tmp_path: Path) -> None:
    write(tmp_path, {**BASE, **over(P), "over/own/p.yaml": merge(4)})
    (tmp_path / "over/p.yaml").symlink_to("own/p.yaml")
    done = convert(tmp_path, kustomize)
    assert requests(done.built["over"][1]) == FOUR
    assert (tmp_path / "over/p.yaml").is_symlink()
    assert "resourceClaims" in (tmp_path / "over/own/p.yaml").read_text()


@pytest.mark.parametrize("target", ["loop", ".", "..", "../..", "/etc", "gone"])
def test_a_link_to_nowhere_or_anywhere_is_no_crash(kustomize: Kustomize, tmp_path: Path, target: str) -> None:
    folder = write(tmp_path / "a", {**BASE, **over("- ../loop\n- ../loop/x\n" + P, p=merge(4))})
    (folder / "loop").symlink_to(target)
    for before, after in convert(folder, kustomize).built.values():
        assert before == after or judge(before, after) == []


APPLIED = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: "
SOURCE = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nspec: "


@pytest.mark.parametrize(
    "text",
    [
        APPLIED + "1\n",
        APPLIED + "{path: base, patches: 1, components: {a: b}, namePrefix: [1]}\n",
        APPLIED + "{path: base, patches: [1, {patch: 2}, {path: 3}, {}], targetNamespace: 1}\n",
        APPLIED + "{path: ., namePrefix: a-}\n",
        APPLIED + "{path: ../.., namePrefix: a-}\n",
        APPLIED + "{path: clusters, namePrefix: a-}\n",
        SOURCE + "{template: [1]}\n",
        SOURCE + "{template: {spec: {source: {kustomize: [x], path: base}}}}\n",
        SOURCE + "{template: {spec: {sources: [1, {kustomize: {patches: [{path: ../x}]}, path: base}]}}}\n",
        SOURCE + "{template: {spec: {source: {kustomize: {namePrefix: '{{a'}, path: '{{a}}/{{b'}}}}\n",
        SOURCE + "{template: {spec: {source: {kustomize: {namePrefix: '{{a}}'}, path: '{{a}}'}}}}\n",
    ],
)
def test_an_application_that_nobody_would_write_is_no_crash(kustomize: Kustomize, tmp_path: Path, text: str) -> None:
    write(tmp_path, {**BASE, "clusters/app.yaml": text})
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    for before, after in convert(tmp_path, kustomize).built.values():
        assert before == after or judge(before, after) == []
