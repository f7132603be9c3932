"""`gpu2dra verify` for kustomizations: proves, writes nothing, and looks at what is converted already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra_migrate.runner import Mode, run
from kustomize.shapes import BASE, NAMES, SHAPES, TEMPLATES, merge, over
from kustomize.trees import convert, read, requests, settings, write

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.kustomize.program import Kustomize

pytestmark = pytest.mark.slow
SHAPE = SHAPES["two-amounts"]


def verify(folder: Path) -> dict[str, list[str]]:
    """Return the codes that `verify` tells, by the folder of the kustomization; nothing may have been written."""
    before = read(folder)
    results = list(run([folder], settings(Mode.VERIFY)))
    assert read(folder) == before
    assert not any(result.changed for result in results)
    told: dict[str, list[str]] = {}
    for result in results:
        told.setdefault(result.path.parent.name, []).extend(located.finding.code for located in result.findings)
    return told


def test_what_would_commute_is_proven(kustomize: Kustomize, tmp_path: Path) -> None:
    assert verify(write(tmp_path, SHAPE.files)) == {key: ["DRA423"] for key in ("base", "over", "top")}


def test_what_is_converted_is_proven(kustomize: Kustomize, tmp_path: Path) -> None:
    convert(write(tmp_path, SHAPE.files), kustomize)
    assert verify(tmp_path) == {key: ["DRA423"] for key in ("base", "over", "top")}


def test_what_would_not_commute_is_told(kustomize: Kustomize, tmp_path: Path) -> None:
    files = {
        **SHAPE.files,
        "top/kustomization.yaml": SHAPE.files["top/kustomization.yaml"] + "namespace: kube-system\n",
    }
    assert verify(write(tmp_path, files))["top"] == ["DRA437"]


def test_a_limit_that_comes_back_is_told(kustomize: Kustomize, tmp_path: Path) -> None:
    convert(write(tmp_path, SHAPE.files), kustomize)
    write(tmp_path, {"top/p.yaml": (tmp_path / "top/p.yaml").read_text() + "---\n" + merge(2)})
    assert "DRA446" in verify(tmp_path)["top"]


def test_a_template_that_is_not_listed_is_told(kustomize: Kustomize, tmp_path: Path) -> None:
    convert(write(tmp_path, SHAPE.files), kustomize)
    file = tmp_path / "over/kustomization.yaml"
    file.write_text(file.read_text().replace(f"- {TEMPLATES}\n", ""))
    assert verify(tmp_path)["over"] == ["DRA447"]


def test_a_name_that_is_not_followed_is_told(kustomize: Kustomize, tmp_path: Path) -> None:
    convert(write(tmp_path, SHAPES["prefix"].files), kustomize)
    file = tmp_path / "base/kustomization.yaml"
    file.write_text(file.read_text().replace(f"configurations:\n- {NAMES}\n", ""))
    assert verify(tmp_path) == {"base": ["DRA423"], "over": ["DRA447"]}


@pytest.mark.parametrize("shape", ["two-amounts", "prefix", "merge-inline", "namespace-replaced-and-patched"])
def test_a_template_that_was_edited_gets_another_name_and_patches_follow(
    kustomize: Kustomize, tmp_path: Path, shape: str
) -> None:
    convert(write(tmp_path, SHAPES[shape].files), kustomize)
    for file in tmp_path.rglob("*.yaml"):
        file.write_text(file.read_text().replace("count: 4", "count: 5").replace("count: 1", "count: 2"))
    done = convert(tmp_path, kustomize)
    assert set(done.codes()) <= {"DRA002", "DRA423"}
    counts = {"1": "2", "4": "5", "8": "8"}
    for before, after in done.built.values():
        assert {line.split()[-1] for line in requests(after)} <= set(counts.values())
        assert len(requests(after)) == len(workloads(before))
    assert set(verify(tmp_path).popitem()[1]) == {"DRA423"}


def workloads(objects: list[Any]) -> list[Any]:
    return [obj for obj in objects if obj["kind"] == "Deployment"]


def test_a_template_that_was_edited_is_told(kustomize: Kustomize, tmp_path: Path) -> None:
    convert(write(tmp_path, SHAPE.files), kustomize)
    file = tmp_path / "over" / TEMPLATES
    file.write_text(file.read_text().replace("count: 4", "count: 5"))
    assert "DRA448" in verify(tmp_path)["over"]


@pytest.mark.parametrize(
    ("mode", "codes"), [(Mode.CHECK, {"DRA409"}), *[(mode, {"DRA409", "DRA446"}) for mode in (Mode.DIFF, Mode.CONVERT)]]
)
def test_a_limit_over_a_base_with_a_claim_is_told_in_every_mode(
    kustomize: Kustomize, tmp_path: Path, mode: Mode, codes: set[str]
) -> None:
    convert(write(tmp_path, BASE), kustomize)
    write(tmp_path, over("patches: [{path: p.yaml}]\n", p=merge(4)))
    before = read(tmp_path)
    results = list(run([tmp_path], settings(mode)))
    assert not any(result.changed for result in results)
    assert read(tmp_path) == before
    assert {
        located.finding.code for result in results for located in result.findings if result.path.parent.name == "over"
    } == codes


def test_a_limit_on_another_container_than_the_one_with_a_claim_converts(kustomize: Kustomize, tmp_path: Path) -> None:
    convert(write(tmp_path, BASE), kustomize)
    write(tmp_path, over("patches: [{path: p.yaml}]\n", p=merge(4).replace("name: server", "name: other")))
    assert {result.path.name for result in run([tmp_path], settings(Mode.CHECK)) if result.changed} == {"p.yaml"}
