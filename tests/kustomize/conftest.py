"""The real kustomize, built once into the cache."""

from __future__ import annotations

import pytest

from controlplane import build
from gpu2dra_migrate.kustomize.program import Kustomize


@pytest.fixture
def kustomize(monkeypatch: pytest.MonkeyPatch) -> Kustomize:
    """Return kustomize, which is what the converter finds as well."""
    program = str(build.ensure("kustomize-5") / "kustomize")
    monkeypatch.setenv("GPU2DRA_KUSTOMIZE", program)
    return Kustomize((program, "build"))
