"""Fixtures for tests of the chart that need no cluster: both versions of Helm, and Prometheus' promtool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane import build
from controlplane.helm import Helm, HelmError


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what needs a program: the first time it is built, and each call of it costs a tenth of a second."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and {"helm", "newest", "promtool"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", params=["helm-3", "helm-4"])
def helm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return the real helm, of both major versions one after the other."""
    return Helm(build.ensure(request.param) / "helm", tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """Return Helm 4 alone, for what both versions were shown to do alike."""
    return Helm(build.ensure("helm-4") / "helm", tmp_path_factory.mktemp("newest"))


@pytest.fixture(scope="session")
def promtool() -> Path:
    """Return the real promtool."""
    return build.ensure("promtool-3") / "promtool"


@pytest.fixture(scope="session")
def fails() -> Callable[[Callable[[], object]], str]:
    """Return what runs a call that has to fail in Helm, and gives back Helm's message."""

    def run(call: Callable[[], object]) -> str:
        with pytest.raises(HelmError) as refused:
            call()
        return str(refused.value)

    return run
