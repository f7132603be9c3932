"""README.md of this folder: its rows are the tests that exist, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from controlplane import rule_table

if TYPE_CHECKING:
    from pathlib import Path

ROOT = rule_table.HERE.parent.parent
REPORTS = {1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25}
"""The public reports to try, by number."""
_REPORT = re.compile(r"\| (\d+) \|(.*)\|")
_NAMED = re.compile(r"`(?:(tests/\S+\.py)::)?(test_\w+)`")


def functions(path: Path) -> set[str]:
    """Return the names of the test functions in a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def reports() -> dict[int, str]:
    """Return the rows of the table of reports by number."""
    text = rule_table.README.read_text(encoding="utf-8")
    return {int(found[1]): found[2] for found in map(_REPORT.fullmatch, text.splitlines()) if found}


def test_every_test_of_a_rule_has_its_row() -> None:
    kept = {row.test: (row.rule, row.tried) for row in rule_table.kept().values()}
    assert kept == {row.test: (row.rule, row.tried) for row in rule_table.tests()}


def test_every_rule_has_a_row_and_every_row_its_answers() -> None:
    rows = rule_table.kept().values()
    assert {row.rule for row in rows} == {f"R{number}" for number in range(1, 16)}
    assert [row.test for row in rows if not all(row.answers[release] for release in rule_table.RELEASES)] == []


def test_the_rows_are_in_the_form_that_the_run_prints() -> None:
    text = rule_table.README.read_text(encoding="utf-8")
    assert "\n".join(rule_table.lines(rule_table.kept().values())) in text


def test_every_report_has_a_test_or_a_reason() -> None:
    rows = reports()
    assert set(rows) == REPORTS
    without_test = [number for number, row in rows.items() if not _NAMED.search(row)]
    assert [number for number in without_test if "does not exist yet" not in rows[number]] == []


def test_the_tests_that_reports_name_exist() -> None:
    here = {row.test for row in rule_table.tests()}
    for row in reports().values():
        for path, name in _NAMED.findall(row):
            assert name in (functions(ROOT / path) if path else here), name
