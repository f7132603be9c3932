"""Which files of a run go to charts and kustomizations, and that nobody else pays for the question."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import pytest

from gpu2dra import Options
from gpu2dra_migrate import finders
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.finders import find_groups
from gpu2dra_migrate.groups import Group
from gpu2dra_migrate.worker import FileResult, Job, Mode, Settings

if TYPE_CHECKING:
    from pathlib import Path


def jobs(*paths: Path) -> list[Job]:
    settings = Settings(mode=Mode.CHECK, options=Options(), max_size=MAX_SIZE)
    return [Job(path, settings) for path in paths]


class Some:
    """A group of these files."""

    def __init__(self, *files: Path) -> None:
        self.files = frozenset(files)

    def results(self) -> Iterator[FileResult]:
        """Yield nothing."""
        yield from ()


def test_what_a_chart_has_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def finder(*files: Path) -> finders.Finder:
        def find(found: Sequence[Job]) -> Iterator[Group]:
            asked.append([job.path.name for job in found])
            yield Some(*files)

        return find

    a, b, c = (tmp_path / name for name in "abc")
    monkeypatch.setattr(finders, "_any_chart", lambda _: True)
    monkeypatch.setattr(finders, "_any_kustomization", lambda _: True)
    monkeypatch.setattr(finders, "_charts", finder(a))
    monkeypatch.setattr(finders, "_kustomizations", finder(b))
    assert [group.files for group in find_groups(jobs(a, b, c))] == [{a}, {b}]
    assert asked == [["a", "b", "c"], ["b", "c"]]
    asked.clear()
    assert find_groups([]) == []
    assert asked == []


@pytest.mark.parametrize(
    ("marks", "chart"),
    [
        ((), False), (("Chart.yaml",), True), (("x/Chart.yaml",), True), (("x/y/Chart.yaml",), True),
        (("z/Chart.yaml",), False), (("Chart.yaml", "x/.git"), False), (("x/Chart.yaml", "x/.git"), True),
        (("x/chart.yaml",), False),
    ],
)  # fmt: skip
def test_a_chart_is_a_folder_above_with_a_chart_yaml(tmp_path: Path, marks: tuple[str, ...], chart: bool) -> None:
    for name in ("x/y/file.yaml", *marks):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".git").touch()
    assert finders._any_chart(jobs(tmp_path / "x/y/file.yaml")) == chart
