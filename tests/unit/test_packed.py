"""Packed charts are recognised by what is in them, and no archive can make the search fail or take long."""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.search import packed
from gpu2dra_migrate.search.packed import holds

if TYPE_CHECKING:
    from pathlib import Path

TERMS = (b"nvidia.com/",)
CHART = {"x/Chart.yaml": "name: x\n"}
ASKS = {"x/templates/a.yaml": "nvidia.com/gpu: 1\n"}


def archive(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as out:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            out.addfile(member, io.BytesIO(text.encode()))
    return path


@pytest.mark.parametrize(
    ("files", "expected"),
    [({**CHART, **ASKS}, True), ({**ASKS, **CHART}, True), (CHART, False), (ASKS, False), ({}, False)],
)
def test_a_chart_that_holds_a_term(tmp_path: Path, files: dict[str, str], *, expected: bool) -> None:
    assert holds(archive(tmp_path / "x.tgz", files), TERMS) is expected


@pytest.mark.parametrize("cut", [0, 5, 60])
def test_what_is_no_archive_holds_nothing(tmp_path: Path, cut: int) -> None:
    file = archive(tmp_path / "x.tgz", {**CHART, **ASKS})
    file.write_bytes(file.read_bytes()[:cut])
    assert not holds(file, TERMS)
    file.write_bytes(b"nvidia.com/ Chart.yaml" * 9)
    assert not holds(file, TERMS)


def test_no_more_is_unpacked_than_a_chart_can_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = archive(tmp_path / "x.tgz", {"x/large": "0" * 5000, **CHART, **ASKS})
    assert holds(file, TERMS)
    monkeypatch.setattr(packed, "_LARGEST", 4000)
    assert not holds(file, TERMS)


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="missing"):
        holds(tmp_path / "missing.tgz", TERMS)
