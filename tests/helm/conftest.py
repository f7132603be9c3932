"""Both versions of helm, built once into the cache, and a chart to run the helper in."""

from __future__ import annotations

import pytest

from controlplane import build
from gpu2dra_migrate.helm.program import Helm
from helm.bench import Bench, bench

VERSIONS = ("helm-3", "helm-4")


@pytest.fixture(scope="session", params=VERSIONS)
def helm(request: pytest.FixtureRequest) -> Helm:
    """Return each version of helm in turn."""
    return Helm(str(build.ensure(request.param) / "helm"))


@pytest.fixture(scope="session")
def workbench(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """Return a chart that gives the helper's results for texts."""
    return bench(tmp_path_factory.mktemp("bench") / "chart", helm)
