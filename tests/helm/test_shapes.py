"""Charts of every shape that templates have: afterwards they render claims, and nothing else has changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.helm.convert import convert_chart, verify_chart
from gpu2dra_migrate.helm.edits import carry_out
from gpu2dra_migrate.helm.outcome import Choices
from helm.charts import convert, tree

if TYPE_CHECKING:
    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow

SHAPES = Path(__file__).parent / "shapes"
# What each chart renders afterwards; RCT is a ResourceClaimTemplate.
KINDS = {
    "claims": "Deployment RCT",
    "define": "Pod RCT",
    "documents": "ConfigMap ConfigMap Deployment RCT",
    "folder": "Deployment RCT",
    "helper": "Deployment RCT",
    "hook": "Pod RCT",
    "init": "Deployment RCT",
    "literal": "Deployment RCT",
    "name-as-value": "Deployment RCT",
    "namespace": "Deployment RCT",
    "paths": "ConfigMap ConfigMap Deployment RCT",
    "range": "Pod Pod Pod RCT RCT RCT",
    "ray": "RCT RCT RCT RayCluster",
    "text-count": "Deployment RCT",
    "tpl": "Pod RCT",
    "values": "Deployment RCT",
    "workloads": "CronJob Deployment RCT RCT StatefulSet",
}
# Charts that render something else each time, or nothing without values that they demand.
UNSTABLE = ("random", "required")


def test_every_shape_is_tried() -> None:
    assert sorted(folder.name for folder in SHAPES.iterdir()) == sorted((*KINDS, *UNSTABLE, "zero"))


@pytest.mark.parametrize("shape", [*KINDS, *UNSTABLE])
def test_the_square_commutes_and_only_what_has_to_changes(helm: Helm, tmp_path: Path, shape: str) -> None:
    folder = Path(shutil.copytree(SHAPES / shape, tmp_path / "app"))
    done = convert(folder, helm, judge=shape in KINDS)
    (name,) = done.names
    moved = str(Path(name).with_name(f"_{Path(name).name}"))
    after = tree(folder)
    assert after[moved] == done.files[name]
    assert after[name].count(b"\n") == 1
    assert {path for path in after if after[path] != done.files.get(path)} == {
        name, moved, "templates/_gpu2dra.tpl", "values.yaml",
    }  # fmt: skip
    if shape in KINDS:
        assert sorted(done.kinds()) == sorted(KINDS[shape].replace("RCT", "ResourceClaimTemplate").split())
    assert (done.reasons, done.outcome.squares, done.outcome.requests > 0) == ([], 1, True)
    again = convert(folder, helm, judge=False)
    assert (again.outcome.edits, again.reasons, again.names) == ([], [], done.names)


def test_zero_is_no_request(helm: Helm, tmp_path: Path) -> None:
    done = convert(Path(shutil.copytree(SHAPES / "zero", tmp_path / "app")), helm)
    assert (done.outcome.edits, done.reasons, done.kinds()) == ([], [], ["Deployment"])


@pytest.mark.parametrize("shape", [shape for shape in (*KINDS, *UNSTABLE) if shape != "claims"])
def test_what_converts_without_a_render_is_proven_by_one(helm: Helm, tmp_path: Path, shape: str) -> None:
    folder = Path(shutil.copytree(SHAPES / shape, tmp_path / "app"))
    done = convert_chart(folder, Choices(), None)
    carry_out(*done.edits)
    proven = verify_chart(folder, Choices(), helm)
    assert (proven.notes, proven.squares, proven.converted) == ([], 1, done.converted)
    assert len(done.converted) == 1
    again = convert(folder, helm, judge=False)
    assert (again.outcome.edits, again.reasons) == ([], [])


def test_without_a_render_nobody_knows_whose_the_claims_of_a_chart_are(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(SHAPES / "claims", tmp_path / "app"))
    done = convert_chart(folder, Choices(), None)
    assert ([note.reason.value for note in done.notes], done.edits) == (["no-helm"], [])
