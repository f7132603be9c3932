"""The table of rules in README.md: each test of a rule adds a row, and holds it to what the servers answer.

A row is a test. Its name begins with its rule (`test_r04_...`), the first line of its docstring says what was tried,
and what it hands to the fixture `answer` stands in the column of the release.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

PROPERTY = "answer"
"""The property of a test report that holds rule, what was tried, test, release and answer."""
HERE = Path(__file__).resolve().parent
README = HERE / "README.md"
RELEASES = ("1.34", "1.37")
_HEAD = ("rule", "what was tried", *(f"{release} answered" for release in RELEASES), "test")
_TEST = re.compile(r"test_r(\d\d)_")


@dataclass(slots=True)
class Row:
    """One row; `answers` by release."""

    rule: str
    tried: str
    test: str
    answers: dict[str, str] = field(default_factory=dict)

    def line(self) -> str:
        """Return the row in Markdown."""
        cells = (self.rule, self.tried, *(self.answers.get(release, "") for release in RELEASES), f"`{self.test}`")
        return f"| {' | '.join(cells)} |"


def row_of(test: str, docstring: str | None) -> Row:
    """Return the row of a test, without answers; ValueError when its name or docstring gives none."""
    found = _TEST.match(test)
    if not found or not docstring:
        msg = f"{test}: a test of a rule is named test_r<two digits>_..., and its docstring says what is tried"
        raise ValueError(msg)
    return Row(f"R{int(found[1])}", docstring.strip().partition("\n")[0].rstrip("."), test)


def lines(rows: Iterable[Row]) -> list[str]:
    """Return the table in Markdown, by rule; rows of one test become one."""
    merged: dict[str, Row] = {}
    for row in rows:
        merged.setdefault(row.test, Row(row.rule, row.tried, row.test)).answers.update(row.answers)
    ordered = sorted(merged.values(), key=lambda row: int(row.rule[1:]))
    return [f"| {' | '.join(_HEAD)} |", "| --- " * len(_HEAD) + "|", *(row.line() for row in ordered)]


def recorded(properties: Iterable[tuple[str, object]]) -> list[Row]:
    """Return the rows in the properties of test reports."""
    found = (value for name, value in properties if name == PROPERTY and isinstance(value, list))
    return [Row(rule, tried, test, {release: text}) for rule, tried, test, release, text in found]


def kept() -> dict[str, Row]:
    """Return the rows of README.md by test."""
    rows: dict[str, Row] = {}
    for line in README.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        if len(cells) == len(_HEAD) and _TEST.match(cells[-1].strip("`")):
            test = cells[-1].strip("`")
            rows[test] = Row(cells[0], cells[1], test, dict(zip(RELEASES, cells[2:-1], strict=True)))
    return rows


def tests() -> Iterator[Row]:
    """Yield a row without answers for each test of a rule, in the order of files and lines."""
    for path in sorted(HERE.glob("test_rules_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                yield row_of(node.name, ast.get_docstring(node))
