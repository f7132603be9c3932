"""The overlays among the examples: their converted twins are what the tool prints, and build what they should."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from kustomize.trees import convert, judge, read, requests

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.kustomize.program import Kustomize

pytestmark = pytest.mark.slow


def test_the_twins_are_what_the_tool_prints(kustomize: Kustomize, root: Path, tmp_path: Path) -> None:
    folder = root / "examples" / "kustomize"
    done = convert(shutil.copytree(folder / "legacy", tmp_path / "tree"), kustomize)
    assert done.after == read(folder / "converted")
    assert done.before != done.after
    assert {name: requests(after) for name, (_, after) in done.built.items()} == {
        "vllm/base": ["Deployment/vllm server 1"],
        "vllm/overlays/dev": ["Deployment/vllm-dev server 1"],
        "vllm/overlays/prod": ["Deployment/prod-vllm server 4"],
    }
    for before, after in done.built.values():
        assert judge(before, after) == []
