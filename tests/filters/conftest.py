"""The programs that call the filters, built once into the cache, and a `gpu2dra` for them to find on PATH."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from controlplane import build
from filters.callers import Caller

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def environment(root: Path, tmp_path: Path) -> dict[str, str]:
    """Return an environment whose PATH has a `gpu2dra` and little else."""
    programs = tmp_path / "bin"
    programs.mkdir()
    tool = programs / "gpu2dra"
    tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m gpu2dra_migrate "$@"\n')
    tool.chmod(0o755)
    home = str(tmp_path / "home")
    homes = {f"HELM_{name}_HOME": f"{home}/{name.lower()}" for name in ("CACHE", "CONFIG", "DATA")}
    return {
        "PATH": f"{programs}{os.pathsep}{os.defpath}", "HOME": home, "KUBECONFIG": os.devnull, **homes,
        "PYTHONPATH": os.pathsep.join(str(root / name) for name in (".", "migrate")),
    }  # fmt: skip


@pytest.fixture
def helm_3(environment: dict[str, str]) -> Caller:
    """Return Helm 3."""
    return Caller(build.ensure("helm-3") / "helm", environment)


@pytest.fixture
def helm_4(environment: dict[str, str]) -> Caller:
    """Return Helm 4."""
    return Caller(build.ensure("helm-4") / "helm", environment)


@pytest.fixture
def kustomize(environment: dict[str, str]) -> Caller:
    """Return kustomize."""
    return Caller(build.ensure("kustomize-5") / "kustomize", environment)
