"""webhook/Dockerfile: its build stage, run step by step without a container engine, gives a folder that starts alone.

Not run here: the base image, the layers and the user of the final stage; the checks on their text are below. The steps
run with a Python of the image's version where this machine has one (on PATH, or kept by pyenv), else with the Python of
the tests: then what only the image's version does has not been run. The names of the tests say which it was.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

DOCKERFILE = Path(__file__).resolve().parents[2] / "webhook/Dockerfile"
_JOINED = re.compile(r"\\\n")
_BASE = re.compile(r"^ARG PYTHON=docker\.io/library/python:(3\.\d+)-slim$", re.MULTILINE)


def interpreter() -> Path:
    """Return a Python of the version that the image has, or that of the tests where there is none with pip."""
    version = _BASE.findall(DOCKERFILE.read_text("utf-8"))[0]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = sorted((pyenv / "versions").glob(f"{version}.*/bin/python{version}"))
    for found in (shutil.which(f"python{version}"), *kept):
        # What stands on PATH may be pyenv's own program, which runs no version that is not chosen.
        if (
            found
            and subprocess.run([found, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
        ):
            return Path(found)
    return Path(sys.executable)


@dataclass(slots=True)
class Stage:
    """One stage of a Dockerfile: the instructions in their order, as (word, rest)."""

    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        """Return what follows each instruction of a kind."""
        return [rest for name, rest in self.instructions if name == word]


def stages(text: str) -> list[Stage]:
    """Return the stages of a Dockerfile; what stands before the first FROM is left out."""
    found: list[Stage] = []
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for line in _JOINED.sub(" ", lines).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append(Stage())
        if found and word:
            found[-1].instructions.append((word, rest.strip()))
    return found


@pytest.fixture(scope="module", params=[interpreter()], ids=lambda path: f"{path.parents[1].name}-{path.name}")
def python(request: pytest.FixtureRequest) -> Path:
    """Return the Python that plays the image's."""
    return Path(request.param)


@pytest.fixture(scope="module")
def dockerfile() -> str:
    """Return the Dockerfile."""
    return DOCKERFILE.read_text("utf-8")


@pytest.fixture(scope="module")
def context(root: Path, repo_files: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the build's context: the files that the ignore file lets through."""
    lines = (root / "webhook/Dockerfile.dockerignore").read_text("utf-8").splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    folder = tmp_path_factory.mktemp("context")
    for name in repo_files:
        if not _ignored(name, patterns):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, folder / name)
    return folder


def _ignored(name: Path, patterns: list[str]) -> bool:
    """Whether the last pattern that fits the file or a folder above it leaves it out, as Docker reads them."""
    ignored = False
    for pattern in patterns:
        glob = pattern.removeprefix("!").removeprefix("**/")
        anywhere = "**/" in pattern
        whole = [name.as_posix(), *(folder.as_posix() for folder in name.parents)]
        if any(fnmatch.fnmatchcase(Path(part).name if anywhere else part, glob) for part in whole):
            ignored = not pattern.startswith("!")
    return ignored


@pytest.fixture(scope="module")
def app(python: Path, dockerfile: str, context: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run the build stage with its folders moved below a scratch folder; return what it leaves in /app."""
    scratch = tmp_path_factory.mktemp("image")
    build = stages(dockerfile)[0]

    def moved(text: str) -> str:
        return re.sub(r"(?<=[ =])/(?=(?:app|src|wheel)\b)", f"{scratch}/", f" {text}").strip()

    programs = scratch / "bin"
    programs.mkdir()
    for name, module in (("python", ""), ("pip", " -m pip")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{python}"{module} "$@"\n', "utf-8")
        (programs / name).chmod(0o755)
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "HOME": str(scratch)}
    folder = scratch
    for word, rest in build.instructions:
        if word == "ENV":
            environment |= dict(part.split("=", 1) for part in rest.split())
        elif word == "WORKDIR":
            folder = Path(moved(rest))
            folder.mkdir()
        elif word == "COPY":
            source, target = rest.split()
            into = folder / target
            into.parent.mkdir(parents=True, exist_ok=True)
            if (context / source).is_dir():
                shutil.copytree(context / source, into, dirs_exist_ok=True)
            else:
                shutil.copy(context / source, into)
        elif word == "RUN":
            # As the shell form runs in the image: /bin/sh, no profile.
            done = subprocess.run(
                ["/bin/sh", "-c", moved(rest)], cwd=folder, env=environment, check=False, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{rest}\n{done.stdout}\n{done.stderr}"
    return scratch / "app"


def _python(python: Path, app: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # -S and an environment of its own: nothing but the folder is on the path, as in the image.
    environment = {
        "PYTHONPATH": str(app),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": "/nonexistent",
    }
    command = [str(python), "-S", "-s", *arguments]
    return subprocess.run(command, cwd="/", env=environment, check=False, capture_output=True, text=True)


@pytest.mark.slow
def test_the_folder_of_the_image_starts_the_webhook_alone(python: Path, app: Path) -> None:
    done = _python(python, app, "-m", "gpu2dra_webhook", "--help")
    assert done.returncode == 0, done.stderr
    assert "--namespace-mode" in done.stdout
    loaded = _python(python, app, "-c", "import gpu2dra_webhook.server as m, flask; print(m.__file__, flask.__file__)")
    assert [Path(path).is_relative_to(app) for path in loaded.stdout.split()] == [True, True], loaded.stderr


@pytest.mark.slow
def test_the_folder_of_the_image_holds_nothing_of_the_build(app: Path) -> None:
    names = {path.name.split("-")[0] for path in app.iterdir()}
    assert not names & {"bin", "setuptools", "_distutils_hack", "pip", "pytest", "mypy"}
    assert {"gpu2dra", "gpu2dra_webhook", "gunicorn", "gevent", "kubernetes"} <= names
    assert [path for path in app.rglob("tests") if path.is_dir()] == []


@pytest.mark.slow
def test_the_bytecode_of_the_image_does_not_depend_on_times(app: Path) -> None:
    compiled = [path for path in app.rglob("*.pyc") if "gpu2dra" in path.parts[-3]]
    assert compiled
    # PEP 552: bit 0 of the flags: by hash; bit 1: the source is looked at.
    assert {int.from_bytes(path.read_bytes()[4:8], "little") for path in compiled} == {0b01}


def test_the_context_holds_what_is_built_and_nothing_else(context: Path) -> None:
    there = {path.relative_to(context).as_posix() for path in context.rglob("*") if path.is_file()}
    assert {"pyproject.toml", "README.md", "LICENSE", "requirements/webhook.txt"} <= there
    assert {name.split("/")[0] for name in there if "/" in name} == {"gpu2dra", "migrate", "requirements", "webhook"}
    assert not {name for name in there if "Dockerfile" in name or "__pycache__" in name}


def test_the_image_runs_as_a_number_that_is_not_root(dockerfile: str) -> None:
    assert stages(dockerfile)[-1].all("USER") == ["65532:65532"]


def test_every_stage_starts_from_the_one_base_that_can_be_named_by_digest(dockerfile: str) -> None:
    assert [stage.all("FROM")[0].split()[0] for stage in stages(dockerfile)] == ["${PYTHON}", "${PYTHON}"]
    assert len(_BASE.findall(dockerfile)) == 1


def test_the_image_takes_nothing_that_the_lock_does_not_pin(dockerfile: str) -> None:
    installs = [step for step in stages(dockerfile)[0].all("RUN") if re.search(r"\bpip (install|wheel)\b", step)]
    assert len(installs) == 3
    assert [step for step in installs if "--require-hashes" not in step and "--no-index" not in step] == []
