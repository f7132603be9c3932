"""Real public kustomizations: each that builds and holds a GPU commutes or is reported, and none is wrong.

The judge shares no code with the converter's own proof: it builds the trees before and after by itself, reads them
with PyYAML, and compares what Pods get.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controlplane import build
from gpu2dra import CODES, Options, Severity, plan
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.kustomize.files import Kustomization, find_kustomizations
from gpu2dra_migrate.kustomize.program import Kustomize
from gpu2dra_migrate.kustomize.standins import stand_ins
from gpu2dra_migrate.runner import FileResult, Mode, Settings, run
from kustomize.trees import build_all, judge

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("corpus")]


@dataclass(frozen=True)
class Built:
    """What each kustomization of the corpus builds before and after, and what was told about the files."""

    before: dict[str, list[Any]]
    after: dict[str, list[Any]]
    results: dict[str, FileResult]
    filled: int

    @property
    def holding(self) -> list[str]:
        """The kustomizations that build a workload with a request that converts, or waits for a person."""
        return [name for name, objects in self.before.items() if any(map(asks, objects))]

    @property
    def proven(self) -> list[str]:
        """Those that the converter says to have proven."""
        return [name for name in self.holding if "DRA423" in self.codes(name)]

    def codes(self, name: str) -> set[str]:
        """Return the codes told at the file of a kustomization."""
        return {
            located.finding.code
            for path, result in self.results.items()
            if Path(path).parent.as_posix() == name and Path(path).name.startswith(("kustomization", "Kustomization"))
            for located in result.findings
        }


def asks(obj: Any) -> bool:
    made = plan(obj, Options(elsewhere=False))
    return bool(made) or any(found.code.startswith("DRA3") for found in made.findings)


@pytest.fixture(scope="module")
def built(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    program = str(build.ensure("kustomize-5") / "kustomize")
    kustomize = Kustomize((program, "build"))
    trees = {}
    for name in ("before", "after"):
        trees[name] = tmp_path_factory.mktemp("kustomizations") / name
        shutil.copytree(shared / "corpus", trees[name])
        subprocess.run(["chmod", "-R", "u+w", str(trees[name])], check=True)
        subprocess.run(["git", "init", "-q", str(trees[name])], check=True)
    settings = Settings(mode=Mode.CONVERT, options=Options(), max_size=MAX_SIZE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPU2DRA_KUSTOMIZE", program)
        patch.setenv("GPU2DRA_HELM", "")
        results = {
            str(found.path.resolve().relative_to(trees["after"].resolve())): found
            for found in run([trees["after"]], settings)
        }
    filled = {name: fill(tree) for name, tree in trees.items()}
    assert filled["before"] == filled["after"]
    return Built(build_all(trees["before"], kustomize), build_all(trees["after"], kustomize), results, filled["after"])


def fill(tree: Path) -> int:
    """Write what stands in for files that generators read and the corpus lacks; return how many that are."""
    nodes = [Kustomization(file) for file in find_kustomizations(tree)]
    written = {path: text for _, path, text in stand_ins(nodes)}
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return len(written)


def test_none_is_wrong(built: Built) -> None:
    assert built.before.keys() == built.after.keys()
    wrong = {
        name: judge(built.before[name], built.after[name])[:2]
        for name in built.proven
        if judge(built.before[name], built.after[name])
    }
    assert wrong == {}


def test_the_others_stay_as_they_are_and_are_reported(built: Built) -> None:
    left = [name for name in built.holding if name not in built.proven]
    assert [name for name in left if not told(built, name)] == []
    changed = [name for name in built.before if name not in built.holding and built.before[name] != built.after[name]]
    assert changed == []


def told(built: Built, name: str) -> set[str]:
    """Return the codes of what waits for a person at a kustomization, or that the core has for what it builds."""
    made = [found.code for obj in built.before[name] for found in plan(obj, Options(elsewhere=False)).findings]
    own = {code for code in built.codes(name) if CODES[code].severity is not Severity.INFO}
    return own | {code for code in made if code.startswith("DRA3")}


def test_the_readme_states_the_figures(
    built: Built, root: Path, record_property: Callable[[str, object], None]
) -> None:
    left = [name for name in built.holding if name not in built.proven]
    codes = Counter(code for name in left for code in sorted(told(built, name))[:1])
    lines = [
        f"{len(built.before)} kustomizations build, {len(built.holding)} of them with a request for a GPU:",
        f"{len(built.proven)} commute, {len(left)} are reported, none is wrong",
        *(f"  reported: {number}, {code} {CODES[code].name}" for code, number in sorted(codes.items())),
    ]
    record_property("figures", "\n".join(lines))
    readme = (root / "README.md").read_text(encoding="utf-8")
    section = readme[readme.index("<!-- kustomizations: begin") : readme.index("<!-- kustomizations: end")]
    assert section.splitlines()[1:] == ["```text", *lines, "```"]
