"""The chart among the examples: its twin is what the tool makes of it, and renders the devices that stand here."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from gpu2dra_migrate.cli import cli
from gpu2dra_migrate.helm.reach import reach
from helm.charts import rendered, tree

if TYPE_CHECKING:
    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow

CHARTS = Path(__file__).resolve().parents[2] / "examples" / "charts"
SLICE = "'profile' in device.attributes['gpu.nvidia.com'] && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'"
# Written by hand: with which values which container reaches what.
DEVICES = {
    (): {
        ("CronJob", "release-benchmark", "measure"): Counter({("gpu.nvidia.com",): 1}),
        ("Deployment", "release-chat", "server"): Counter({("gpu.nvidia.com",): 2}),
    },
    ("values-small.yaml",): {("Deployment", "release-chat", "server"): Counter({("mig.nvidia.com", SLICE): 1})},
}


def call(*arguments: str, exit_code: int) -> None:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == exit_code, result.output


@pytest.mark.parametrize("with_helm", [True, False])
def test_the_twin_is_what_the_tool_makes(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_helm: bool
) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", helm.program if with_helm else "")
    folder = shutil.copytree(CHARTS / "legacy" / "chat", tmp_path / "chat")
    call("convert", str(folder), exit_code=1)
    assert tree(Path(folder)) == tree(CHARTS / "converted" / "chat")


def test_the_twin_is_proven_and_done(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", helm.program)
    for command in ("verify", "check"):
        call(command, str(CHARTS / "converted"), exit_code=0)


@pytest.mark.parametrize("values", DEVICES)
def test_the_devices_are_those_that_stand_here(helm: Helm, values: tuple[str, ...]) -> None:
    folder = CHARTS / "converted" / "chat"
    objects = rendered(helm, folder, [folder / name for name in values])
    found = {(kind, name, container): devices for (kind, name, _, container), devices in reach(objects).items()}
    assert found == DEVICES[values]
