"""What all tests share: the tree under test, the folder of real-world test data, and hypothesis profiles."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import settings

from controlplane import rule_table

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("dev", deadline=None)
# The same examples in every run, so that a red build is red for a reason of its own; and more of them.
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=300, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def _shared_folder() -> Path | None:
    """Return the folder of shared test data; None where there is none.

    It is no part of the repository: `GPU2DRA_SHARED` names it, else it stands beside the clone. A name that leads
    nowhere is an error, since whoever set it meant these tests to run.
    """
    named = os.environ.get("GPU2DRA_SHARED")
    folder = Path(named) if named else ROOT.parent / "shared"
    if (folder / "corpus").is_dir():
        return folder
    if named:
        msg = f"GPU2DRA_SHARED={named}: no folder that holds a corpus/"
        raise pytest.UsageError(msg)
    return None


def _needs_shared(item: pytest.Item) -> bool:
    return "shared" in getattr(item, "fixturenames", ()) or item.get_closest_marker("shared") is not None


@pytest.fixture(scope="session")
def root() -> Path:
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def repo_files(root: Path) -> tuple[Path, ...]:
    """Return the files that git tracks or would track, relative to the root."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout.split("\0")
    return tuple(Path(name) for name in names if name and (root / name).is_file())


@pytest.fixture(scope="session")
def source_tree(root: Path, repo_files: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of these files, for what builds or commits them: the tree under test stays as it is."""
    tree = tmp_path_factory.mktemp("source") / "gpu2dra"
    for name in repo_files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, tree / name)
    return tree


@pytest.fixture(scope="session")
def shared() -> Path:
    """Return the folder of shared test data; tests that ask for it are deselected where it does not exist."""
    folder = _shared_folder()
    assert folder is not None, "deselected by pytest_collection_modifyitems"
    return folder


def pytest_configure() -> None:
    """Refuse a GPU2DRA_SHARED that leads nowhere, before anything runs."""
    _shared_folder()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the tests that need the shared folder where it is absent."""
    if _shared_folder() is not None:
        return
    absent = [item for item in items if _needs_shared(item)]
    items[:] = [item for item in items if not _needs_shared(item)]
    config.hook.pytest_deselected(items=absent)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the figures that tests recorded, and say in one line when the tests of the corpus did not run."""
    reports = [*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")]
    for report in reports:
        for name, text in report.user_properties:
            if name == "figures" and report.when == "call":
                terminalreporter.write_line(f"{report.nodeid}\n{text}")
    rules = rule_table.recorded(
        entry for report in reports if report.when == "call" for entry in report.user_properties
    )
    for line in rule_table.lines(rules) if rules else ():
        terminalreporter.write_line(line)
    if _shared_folder() is None:
        terminalreporter.write_line(
            "The tests of the public corpus did not run: no folder 'shared' beside this clone (or at GPU2DRA_SHARED).",
            yellow=True,
        )
