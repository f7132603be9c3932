"""Overlays of every shape: afterwards they build claims, nothing else has changed, and a second run changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.kustomize.program import Kustomize
from gpu2dra_migrate.runner import Mode, run
from kustomize.shapes import SHAPES
from kustomize.trees import convert, judge, read, requests, settings, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SHAPES)
def test_the_square_commutes(kustomize: Kustomize, tmp_path: Path, name: str) -> None:
    shape = SHAPES[name]
    done = convert(write(tmp_path, shape.files), kustomize)
    told = {
        code
        for code in done.codes()
        if code not in {"DRA001", "DRA435", "DRA423", "DRA101", "DRA102", "DRA103", "DRA449"}
    }
    assert told - {"DRA105", "DRA111", "DRA106", "DRA107"} == set(), [done.messages(code) for code in told]
    for folder, (before, after) in done.built.items():
        assert judge(before, after) == [], folder
        assert folder not in shape.gets or requests(after) == shape.gets[folder]
    if shape.changed:
        assert done.changed == shape.changed
    assert "nvidia.com/gpu:" not in "".join(text for name, text in done.after.items() if name in done.changed).replace(
        "nvidia.com/gpu: 0", ""
    )
    assert [result.path for result in run([tmp_path], settings(Mode.CONVERT)) if result.changed] == []
    assert read(tmp_path) == done.after
