"""The README says what the code does: its tables come from the data that the code runs on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from bench import tables
from gpu2dra.kinds import KINDS
from gpu2dra_migrate.cli import cli
from gpu2dra_migrate.elsewhere.table import CHARTS

if TYPE_CHECKING:
    from pathlib import Path


def section(root: Path, name: str) -> list[str]:
    text = (root / "README.md").read_text(encoding="utf-8")
    begin = text.index(f"<!-- {name}: begin")
    return text[begin : text.index(f"<!-- {name}: end")].splitlines()[1:]


def kinds_table() -> list[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for kind in KINDS.values():
        groups.setdefault((kind.group or "core", kind.since), []).append(f"{kind.kind} ({', '.join(kind.versions)})")
    rows = [f"| {group} | {', '.join(kinds)} | {since} |" for (group, since), kinds in groups.items()]
    return ["| group | kinds (versions) | since |", "| --- | --- | --- |", *rows]


def test_the_kinds_are_those_of_the_table(root: Path) -> None:
    assert section(root, "kinds") == kinds_table()


def test_the_charts_are_those_of_the_table(root: Path) -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in section(root, "charts")[2:]]
    told = {name.split("`")[1]: (since.split(";")[0], "patch" in since, where) for name, since, _, where in rows}
    assert told == {
        name: (
            ".".join(map(str, known.since)),
            known.patched,
            "Flux, k3s" + ", Argo CD, helmfile" * (not known.template),
        )
        for name, known in CHARTS.items()
    }


@pytest.mark.parametrize("bench", tables.BENCHES)
def test_the_figures_are_those_of_the_bench(root: Path, bench: str) -> None:
    assert section(root, f"bench {bench}") == tables.table(bench)


@pytest.mark.parametrize("command", ["check", "diff", "convert", "render-filter", "krm-function"])
def test_every_option_is_told(root: Path, command: str) -> None:
    readme = (root / "README.md").read_text(encoding="utf-8")
    help_text = CliRunner().invoke(cli, [command, "--help"]).output
    options = {word.strip(",") for word in help_text.split() if word.startswith("--")} - {"--help", "--tolerations"}
    assert {option for option in options if option.split("/")[-1] not in readme} == set()
