"""Real public manifests: each file converts with all checks or is reported; never a crash, silence or a stray byte.

The judges here share no code with the converter: PyYAML reads the files, and line by line comparison says what changed.
"""

from __future__ import annotations

import difflib
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from corpus.tree import Corpus, settings
from gpu2dra import CODES, Severity
from gpu2dra_migrate.manifest import CONVERSIONS
from gpu2dra_migrate.runner import run
from gpu2dra_migrate.search.discover import may_hold_legacy

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("corpus")]

LEGACY = re.compile(
    r"(?:requests\.|limits\.)?nvidia\.com/(?:gpu|mig-[\w.]+|gpu\.shared|gpumem|gpucores|gpumem-percentage)"
)
LOOK_ALIKES = frozenset(
    {"tolerations", "taints", "nodeSelector", "labels", "matchLabels", "annotations", "matchExpressions"}
)
BY_RULE = {
    "DRA203": "spec.nodeName bypasses the scheduler (R10)",
    "DRA205": "namespaces of the cluster and of GPU operators stay (R10)",
    "DRA206": "another scheduler is named (R10)",
    "DRA305": "another system's fraction or choice of a GPU (R10)",
    "DRA306": "a share, or nodes that hand out shares or slices (R10)",
}
"""Codes by which the design itself forbids a conversion, whatever the converter could do."""
BY_OVERLAY = {"DRA410": "an overlay that stays as it is takes in the object (see kustomizations)"}
LEFT = frozenset(
    code
    for code in CODES
    if (code.startswith("DRA3") and code != "DRA312") or code in {"DRA505", "DRA506", "DRA507", "DRA508", "DRA511"}
)
"""Codes of a request in a PodSpec of a known kind that was not converted."""
OPERATOR = {"DRA315": "the kind's operator reads the limit and has no other field for it (R11)"}


REASONS = {**BY_RULE, **BY_OVERLAY, **OPERATOR}


def requests_in(text: str) -> Iterator[str]:
    """Yield the legacy names that PyYAML sees as keys or values outside of look-alike places."""
    try:
        documents = list(yaml.load_all(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, ValueError, TypeError):
        yield "unparsed"  # the converter must say so
        return
    for document in documents:
        # What a DeviceClass offers by that name is DRA already, what a Node has is no request.
        if not isinstance(document, dict) or document.get("kind") not in {"DeviceClass", "Node", "ResourceSlice"}:
            yield from names_in(document)


def names_in(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in node.items():
            if key not in LOOK_ALIKES and not str(key).endswith("Tolerations"):
                yield from names_in(key)
                yield from names_in(value)
    elif isinstance(node, list):
        for item in node:
            yield from names_in(item)
    elif isinstance(node, str) and LEGACY.fullmatch(node):
        yield node


def test_nothing_is_silent(corpus: Corpus) -> None:
    silent = []
    for name, row in corpus.rows.items():
        if row["holds"] != "match":
            continue
        path = corpus.before / name
        found = sorted(set(requests_in(path.read_text(encoding="utf-8"))))
        result = corpus.results.get(name)
        if found and (result is None or not (result.findings or result.changed)):
            silent.append((str(name), found))
    assert silent == []


def test_nothing_fails(corpus: Corpus) -> None:
    broken = {"DRA505", "DRA510", "DRA511", "DRA599"}
    failed = [
        (str(name), located.finding.message)
        for name, result in corpus.results.items()
        for located in result.findings
        if located.finding.code in broken
    ]
    assert failed == []


def test_only_lines_that_had_to_change_changed(corpus: Corpus) -> None:
    may_go = re.compile(
        r"\s*(?:- )?(?:"
        r"[\"']?nvidia\.com/(?:gpu|mig-[\w.]+)[\"']?\s*:.*"  # the request itself
        r"|(?:limits|requests|resources):\s*(?:#.*)?"  # the maps that it leaves empty
        r"|rayStartParams:\s*\{\}\s*"  # an empty map that gets its first key
        r"|numProcPerNode:.*"
        r")"
    )
    stray = []
    for name, result in corpus.results.items():
        old = (corpus.before / name).read_bytes().decode("utf-8").split("\n")
        new = (corpus.after / name).read_bytes().decode("utf-8").split("\n")
        if not result.changed:
            assert old == new, name
            continue
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for operation, start, end, _, _ in matcher.get_opcodes():
            if operation in ("replace", "delete"):
                stray += [(str(name), line) for line in old[start:end] if not may_go.fullmatch(line.rstrip("\r"))]
    assert [(name, line) for name, line in stray if line.strip()] == []


def test_files_without_a_result_did_not_change(corpus: Corpus) -> None:
    for name in corpus.rows:
        if name not in corpus.results:
            assert (corpus.before / name).read_bytes() == (corpus.after / name).read_bytes(), name


def test_a_second_run_changes_nothing(corpus: Corpus) -> None:
    again = list(run([corpus.after], settings()))
    assert [str(result.path) for result in again if result.changed] == []
    still = {path.relative_to(corpus.after) for path in (result.path for result in again)}
    assert set(corpus.results) <= still | {name for name, result in corpus.results.items() if result.changed}


@dataclass(frozen=True)
class Share:
    """Files with a request in a PodSpec of a kind of the table, patches aside (issue 3)."""

    converted: list[Path]
    held_back: dict[str, list[Path]]
    other: list[tuple[str, list[str]]]

    @property
    def ratio(self) -> float:
        """Return the share that converts of what no rule holds back."""
        return len(self.converted) / (len(self.converted) + len(self.other))

    def lines(self) -> list[str]:
        """Return the figures for people."""
        files = len(self.converted) + len(self.other) + sum(map(len, self.held_back.values()))
        return [
            f"{len(self.converted)} of {files} files with a request in a PodSpec of a known kind converted,",
            f"{self.ratio:.1%} of those that no rule of the design holds back",
            *(
                f"  held back: {len(names)} files, {code} {REASONS[code]}"
                for code, names in sorted(self.held_back.items())
            ),
            *(f"  not converted: {name}: {', '.join(codes)}" for name, codes in self.other),
        ]


def share_of(corpus: Corpus) -> Share:
    share = Share([], defaultdict(list), [])
    for name, result in corpus.results.items():
        codes = {located.finding.code for located in result.findings if located.about}  # values are about no object
        kept = {code for code in codes if code in REASONS or code in LEFT}
        if result.requests:
            share.converted.append(name)
        elif kept & REASONS.keys():
            share.held_back[min(kept & REASONS.keys())].append(name)
        elif kept:
            share.other.append((str(name), sorted(kept)))
    return share


def figures_of(corpus: Corpus) -> list[str]:
    """By file and, since a few repositories hold most files, by repository."""
    holding = [name for name in corpus.results if may_hold_legacy((corpus.before / name).read_text("utf-8", "replace"))]
    converted = {name for name, result in corpus.results.items() if result.requests}
    told = [name for name, result in corpus.results.items() if result.findings and not result.changed]
    codes: dict[str, set[Path]] = defaultdict(set)
    for name, result in corpus.results.items():
        for located in result.findings:
            code = located.finding.code
            if CODES[code].severity is not Severity.INFO and code not in CONVERSIONS:
                codes[code].add(name)
    requests = sum(result.requests for result in corpus.results.values())
    return [
        f"{len(holding)} files of {repositories(holding)} repositories hold a search term,",
        f"{len(converted)} files of {repositories(converted)} repositories converted ({requests} requests),",
        f"{len(told)} files of {repositories(told)} repositories only reported; findings beside the conversions:",
        *(
            f"  {code} {CODES[code].name}: {len(names)} files, {repositories(names)} repositories"
            for code, names in sorted(codes.items())
        ),
    ]


def repositories(names: Iterable[Path]) -> int:
    return len({name.parts[0] for name in names})


def test_at_least_95_percent_convert(corpus: Corpus, record_property: Callable[[str, object], None]) -> None:
    share = share_of(corpus)
    record_property("figures", "\n".join(share.lines()))
    assert share.ratio >= 0.95, share.other
    assert len(share.converted) >= 200


def test_the_readme_states_the_figures(
    corpus: Corpus, root: Path, record_property: Callable[[str, object], None]
) -> None:
    lines = figures_of(corpus)
    record_property("figures", "\n".join(lines))
    readme = (root / "README.md").read_text(encoding="utf-8")
    assert f"converts {len(corpus.rows):,} files of {repositories(corpus.rows)} public repositories" in readme
    section = readme[readme.index("<!-- corpus: begin") : readme.index("<!-- corpus: end")]
    assert section.splitlines()[1:] == ["```text", *share_of(corpus).lines(), *lines, "```"]
