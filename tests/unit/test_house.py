"""The house: one version, a wheel with what belongs in it, a core that stands alone, locks that are whole."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import gpu2dra_migrate

if TYPE_CHECKING:
    from email.message import Message

# Import package: the folder that it stands in.
PACKAGES = {"gpu2dra": ".", "gpu2dra_migrate": "migrate", "gpu2dra_webhook": "webhook"}
LOCKS = {"base.txt": (), "webhook.txt": ("webhook",), "dev.txt": ("webhook", "test", "lint")}
# An absolute folder of one machine. Manifests are left out: containers mount what they like.
MACHINE_PATH = re.compile(r"(?<![\w.~$})-])/(?:work|root|tmp)/")
MANIFESTS = {".json", ".yaml", ".yml"}


@pytest.fixture(scope="session")
def project(root: Path) -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text("utf-8"))


@pytest.fixture(scope="session")
def wheel(source_tree: Path, tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Return the wheel that is built from the tree."""
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source_tree)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = out.glob("*.whl")
    return zipfile.ZipFile(built)


@pytest.fixture(scope="session")
def metadata(wheel: zipfile.ZipFile) -> Message:
    """Return the metadata of the wheel."""
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return message_from_bytes(wheel.read(name))


def read_lock(root: Path, lock: str) -> list[str]:
    """Return the entries of a lock: one string each, its continuation lines joined, comments left out."""
    text = (root / "requirements" / lock).read_text("utf-8").replace("\\\n", "")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pins(root: Path, lock: str) -> dict[str, str]:
    """Return the versions in a lock by canonical name."""
    found = (Requirement(entry.split(" --hash", maxsplit=1)[0]) for entry in read_lock(root, lock))
    return {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in found}


def test_the_version_stands_in_one_place(
    root: Path, repo_files: tuple[Path, ...], project: dict[str, Any], metadata: Message
) -> None:
    assert "version" in project["project"]["dynamic"]
    assert metadata["Version"] == gpu2dra_migrate.__version__
    spelled = re.compile(
        rf"""version\w*['"]?\s*[:=]\s*['"]{re.escape(gpu2dra_migrate.__version__)}['"]""", re.IGNORECASE
    )
    sources = [name for name in repo_files if name.suffix in {".py", ".toml", ".cfg"}]
    found = [name for name in sources if spelled.search((root / name).read_text("utf-8"))]
    assert found == [Path("migrate/gpu2dra_migrate/__init__.py")]
    assert f"## {gpu2dra_migrate.__version__} " in (root / "CHANGELOG.md").read_text("utf-8")


def test_the_wheel_holds_the_import_packages_and_nothing_else(
    repo_files: tuple[Path, ...], wheel: zipfile.ZipFile
) -> None:
    here = {
        name.relative_to(folder).as_posix()
        for package, folder in PACKAGES.items()
        for name in repo_files
        if name.is_relative_to(Path(folder, package)) and (name.suffix in {".py", ".tpl"} or name.name == "py.typed")
    }
    there = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert there == here
    assert {name.split("/")[0] for name in there} == set(PACKAGES)
    assert {f"{package}/py.typed" for package in PACKAGES} <= there


def test_the_wheel_brings_the_command_and_the_licence(wheel: zipfile.ZipFile, metadata: Message) -> None:
    info = next(name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name)
    assert "gpu2dra = gpu2dra_migrate.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    assert metadata["License-Expression"] == "Apache-2.0"
    assert b"Version 2.0, January 2004" in wheel.read(f"{info}/licenses/LICENSE")


def test_every_import_package_is_known_here(repo_files: tuple[Path, ...]) -> None:
    found = {name.parent.name for name in repo_files if name.name == "py.typed"}
    assert found == set(PACKAGES)


def test_the_core_needs_no_other_distribution_and_loads_no_io(root: Path) -> None:
    strict = {"gpu2dra.policy.load", "gpu2dra.policy.schema"}  # msgspec reads a policy; without one nobody loads it
    files = [path.relative_to(root).with_suffix("") for path in (root / "gpu2dra").rglob("*.py")]
    modules = sorted({".".join(path.parts).removesuffix(".__init__") for path in files} - strict)
    assert "gpu2dra.policy.model" in modules
    code = f"""
import sys
sys.path.insert(0, ".")
before = set(sys.modules)
import gpu2dra, {", ".join(modules)}
print(*(set(sys.modules) - before))
"""
    # -S: no site-packages; -E and -P: nothing on the path but the folder that the code puts there.
    command = [sys.executable, "-S", "-E", "-P", "-c", code]
    done = subprocess.run(command, cwd=root, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert "gpu2dra" in loaded
    assert loaded - {"gpu2dra"} <= sys.stdlib_module_names
    assert not loaded & {"asyncio", "datetime", "http", "logging", "random", "socket", "subprocess", "tempfile"}


def test_the_metadata_claims_the_versions_that_the_tests_run_on(root: Path, project: dict[str, Any]) -> None:
    (tested,) = re.findall(r"^PYTHONS := (.*)$", (root / "Makefile").read_text("utf-8"), re.MULTILINE)
    classifier = re.compile(r"Programming Language :: Python :: (3\.\d+)")
    claimed = [match[1] for line in project["project"]["classifiers"] if (match := classifier.fullmatch(line))]
    assert claimed == tested.split()
    assert project["project"]["requires-python"] == f">={claimed[0]}"


def test_every_dependency_has_a_lower_bound_and_no_upper_one(project: dict[str, Any]) -> None:
    bounds = [Requirement(line) for line in project["project"]["dependencies"]]
    assert [[bound.operator for bound in one.specifier] for one in bounds] == [[">="]] * len(bounds)


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_file_by_hash_and_names_no_index(root: Path, lock: str) -> None:
    entry = re.compile(r"[A-Za-z0-9][\w.-]*==[^ ;]+( ; [^-]+)?( +--hash=sha256:[0-9a-f]{64})+")
    entries = read_lock(root, lock)
    assert entries
    assert [line for line in entries if not entry.fullmatch(line)] == []
    assert "://" not in (root / "requirements" / lock).read_text("utf-8")


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_is_up_to_date(root: Path, project: dict[str, Any], lock: str) -> None:
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    for extra in LOCKS[lock]:
        wanted += [
            line for line in project["project"]["optional-dependencies"][extra] if not line.startswith("gpu2dra[")
        ]
    locked = pins(root, lock)
    stale = [
        line
        for line, one in ((line, Requirement(line)) for line in wanted)
        if not one.specifier.contains(locked.get(canonicalize_name(one.name), "0"))
        or canonicalize_name(one.name) not in locked
    ]
    assert not stale, f"requirements/{lock} is not what pyproject.toml asks for: run make lock"


def test_the_locks_agree(root: Path) -> None:
    assert pins(root, "base.txt").items() <= pins(root, "webhook.txt").items() <= pins(root, "dev.txt").items()


def test_ci_runs_what_the_readme_tells(root: Path) -> None:
    script = root / ".ci/run"
    ignored = ("#", "set ", "cd ")
    commands = [line for line in script.read_text("utf-8").splitlines() if line and not line.startswith(ignored)]
    assert commands
    for command in [*commands, "make demo", "make test"]:
        assert re.search(rf"^{re.escape(command)}\b", (root / "README.md").read_text("utf-8"), re.MULTILINE), command
    assert os.access(script, os.X_OK)


def test_the_makefile_lists_its_targets(root: Path) -> None:
    targets = set(re.findall(r"^\.PHONY: (.*)$", (root / "Makefile").read_text("utf-8"), re.MULTILINE))
    done = subprocess.run(["make", "help"], cwd=root, check=True, capture_output=True, text=True)
    assert set(re.findall(r"^  make ([a-z-]+) +\S", done.stdout, re.MULTILINE)) == targets - {"check-pythons"}
    assert {"demo", "test", "test-fast", "lint", "format", "bench", "lock", "clean"} <= targets


def test_no_file_names_a_folder_of_one_machine(root: Path, repo_files: tuple[Path, ...]) -> None:
    hits = [
        f"{name}:{number}: {line.strip()[:100]}"
        for name in repo_files
        if name.suffix not in MANIFESTS
        for number, line in enumerate((root / name).read_text("utf-8", "replace").splitlines(), start=1)
        if MACHINE_PATH.search(line)
    ]
    assert not hits


@pytest.mark.parametrize("folder", ["work", "root", "tmp"])
@pytest.mark.parametrize(
    ("line", "expected"),
    [("cd /{}/x", True), ('"/{}/x"', True), ("=/{}/", True), ("a/{}/x", False), ("./{}/x", False), ("/{}s/x", False)],
)
def test_a_folder_of_one_machine_is_recognised(line: str, folder: str, *, expected: bool) -> None:
    assert bool(MACHINE_PATH.search(line.format(folder))) is expected
