"""Legacy in, converted out, one folder per shape of text: every byte and every finding.

A folder holds `input.*`; `expected.*` where the tool changes it, `expected-gpu-template.*` where templates go into a
file of their own; and `findings.txt`, with `line:column code` of each finding. Run as a script (`make examples`), this
file writes what is expected anew: read the difference before you believe it.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from gpu2dra import Options
from gpu2dra_migrate.config import Config
from gpu2dra_migrate.runner import FileResult, Mode, Settings, run

SHAPES = Path(__file__).resolve().parent / "shapes"
NAMES = sorted(path.name for path in SHAPES.iterdir())
FINDINGS = "findings.txt"


def run_on(path: Path, mode: Mode) -> FileResult:
    """Run over one file, with the built-in settings."""
    (result,) = run([path], Settings(mode=mode, options=Options(), max_size=Config().max_size))
    return result


def outcome(shape: str, folder: Path) -> dict[str, bytes]:
    """Return what the folder of a shape should hold beside its input, worked out in an empty folder."""
    (source,) = (SHAPES / shape).glob("input.*")
    path = folder / source.name
    shutil.copy(source, path)
    found = run_on(path, Mode.CHECK)
    assert path.read_bytes() == source.read_bytes()
    result = run_on(path, Mode.CONVERT)
    assert result.changed == found.changed, shape
    assert [item.finding for item in result.findings] == [item.finding for item in found.findings]
    lines = [f"{item.line}:{item.column} {item.finding.code}\n" for item in found.findings]
    files = {FINDINGS: "".join(lines).encode()}
    for written in folder.iterdir():
        if result.changed or written != path:
            files[written.name.replace("input", "expected", 1)] = written.read_bytes()
    if result.changed:
        again = run_on(path, Mode.CONVERT)
        assert not again.changed, "converted input must give an empty plan"
    else:
        assert path.read_bytes() == source.read_bytes()
    return files


def expected(shape: str) -> dict[str, bytes]:
    """Return what the folder of a shape holds beside its input."""
    return {path.name: path.read_bytes() for path in (SHAPES / shape).iterdir() if not path.name.startswith("input.")}


@pytest.mark.parametrize("shape", NAMES)
def test_a_shape_becomes_what_is_expected(shape: str, tmp_path: Path) -> None:
    assert outcome(shape, tmp_path) == expected(shape)


@pytest.mark.parametrize("shape", NAMES)
def test_a_shape_is_converted_or_reported(shape: str) -> None:
    files = expected(shape)
    changed = any(name.startswith("expected.") for name in files)
    codes = set(files[FINDINGS].decode().split()[1::2])
    assert changed == bool(codes & {"DRA001", "DRA002"})
    assert changed or codes or shape in {"look-alikes", "only-commented-out"}


def main() -> None:
    """Write what the tool does to every shape."""
    for shape in NAMES:
        for name in expected(shape):
            (SHAPES / shape / name).unlink()
        with tempfile.TemporaryDirectory() as folder:
            for name, data in outcome(shape, Path(folder)).items():
                (SHAPES / shape / name).write_bytes(data)


if __name__ == "__main__":
    main()
