"""README.md of this folder: its rows are the tests that exist, and the tests that it names exist."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from controlplane import rule_table

if TYPE_CHECKING:
    from pathlib import Path

ROOT = rule_table.HERE.parent.parent
REPORTS = {"conversion": {*range(1, 26, 2)}, "the webhook": {*range(1, 28, 2)}}
"""The public reports to try, by number, in the tables of README.md."""
_REPORT = re.compile(r"\| (\d+) \|(.*)\|")
_NAMED = re.compile(r"`(?:(tests/\S+\.py)::)?(test_\w+)`")


def functions(path: Path) -> set[str]:
    """Return the names of the test functions in a file."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return {node.name for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


def reports(about: str) -> dict[int, str]:
    """Return the rows of a table of reports by number."""
    text = rule_table.README.read_text(encoding="utf-8")
    section = text.partition(f"## Public reports and wishes: {about}\n")[2].partition("\n## ")[0]
    return {int(found[1]): found[2] for found in map(_REPORT.fullmatch, section.splitlines()) if found}


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


@pytest.mark.parametrize("about", REPORTS)
def test_every_report_has_a_test_or_a_reason(about: str) -> None:
    rows = reports(about)
    assert set(rows) == REPORTS[about]
    without_test = [number for number, row in rows.items() if not _NAMED.search(row)]
    assert [number for number in without_test if "does not exist yet" not in rows[number]] == []


@pytest.mark.parametrize("about", REPORTS)
def test_the_tests_that_reports_name_exist(about: str) -> None:
    here = {row.test for row in rule_table.tests()}
    for row in reports(about).values():
        for path, name in _NAMED.findall(row):
            assert name in (functions(ROOT / path) if path else here), name
