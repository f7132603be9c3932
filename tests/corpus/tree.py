"""The corpus before and after one conversion of all of it, and what was told about its files."""

from __future__ import annotations

import csv
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from gpu2dra import Options
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.runner import FileResult, Mode, Settings, run


@dataclass(frozen=True)
class Corpus:
    """The tree before, the same tree after one `convert`, and what was told about it."""

    before: Path
    after: Path
    results: dict[Path, FileResult]
    rows: dict[Path, dict[str, str]]


def settings() -> Settings:
    """Return the settings of every conversion of the corpus."""
    return Settings(mode=Mode.CONVERT, options=Options(), max_size=MAX_SIZE)


def copy(tree: Path, to: Path) -> Path:
    """Return a copy of a tree that may be written, as a repository."""
    shutil.copytree(tree, to, ignore=shutil.ignore_patterns(".git"))
    for path in (to, *to.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    subprocess.run(["git", "init", "-q", str(to)], check=True)
    return to


def convert(before: Path, to: Path) -> Corpus:
    """Convert a copy of the corpus at `to`."""
    after = copy(before, to)
    results = {result.path.relative_to(after): result for result in run([after], settings())}
    with (before / "INDEX.tsv").open(encoding="utf-8") as file:
        rows = {Path(row["file"]): row for row in csv.DictReader(file, delimiter="\t")}
    return Corpus(before, after, results, rows)
