"""Real public kustomizations: each that builds and holds a GPU commutes or is reported, and none is wrong.

The judge shares no code with the converter's own proof: it builds the trees before and after by itself, reads them
with PyYAML, and compares what Pods get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from controlplane import build
from corpus.tree import Corpus, copy
from gpu2dra import CODES, Options, Severity, plan
from gpu2dra_migrate.kustomize.files import Kustomization, find_kustomizations
from gpu2dra_migrate.kustomize.program import Kustomize
from gpu2dra_migrate.kustomize.standins import stand_ins
from gpu2dra_migrate.runner import FileResult
from kustomize.trees import NAMES, build_all, judge

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("corpus")]


@dataclass(frozen=True)
class Built:
    """What each kustomization of the corpus builds before and after, and what was told about the files."""

    before: dict[str, list[Any]]
    after: dict[str, list[Any]]
    results: dict[Path, FileResult]

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
            if path.parent.as_posix() == name and path.name in NAMES
            for located in result.findings
        }


def asks(obj: Any) -> bool:
    made = plan(obj, Options(elsewhere=False))
    return bool(made) or any(found.code.startswith("DRA3") for found in made.findings)


@pytest.fixture(scope="module")
def built(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Built:
    kustomize = Kustomize((str(build.ensure("kustomize-5") / "kustomize"), "build"))
    folder = tmp_path_factory.mktemp("kustomizations")
    before, after = copy(corpus.before, folder / "before"), copy(corpus.after, folder / "after")
    assert fill(before) == fill(after) > 0
    return Built(build_all(before, kustomize), build_all(after, kustomize), corpus.results)


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
    # A component brings the templates for what its patches ask for.
    changed = [
        name for name in built.before if name not in built.holding and judge(built.before[name], built.after[name])
    ]
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
