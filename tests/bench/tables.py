"""The README's tables of figures, each made from the results of one bench."""

from __future__ import annotations

import json
import re

from bench.figures import RESULTS, ROOT

BENCHES = ("cli", "webhook", "creations")


def table(bench: str) -> list[str]:
    """Return the lines of the table of a bench: what it wrote when it ran last, and on what machine."""
    results = json.loads((RESULTS / f"{bench}.json").read_text(encoding="utf-8"))
    rows = [
        f"| {row['what']} | {row['value']:.4g} {row['unit']} | {row['bar']} | {row['baseline']}: "
        f"{row['baselineValue']:.4g} {row['unit']} |"
        for row in results["rows"]
    ]
    return [
        "| what | measured | bar | baseline in the same run |",
        "| --- | --- | --- | --- |",
        *rows,
        "",
        results["machine"] + ".",
    ]


def put_into_readme() -> None:
    """Write each table in the README anew."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for bench in BENCHES:
        marks = re.compile(rf"(<!-- bench {bench}: begin.*?-->\n).*?(<!-- bench {bench}: end -->)", re.DOTALL)
        lines = "".join(f"{line}\n" for line in table(bench))
        text = marks.sub(lambda found: found[1] + lines + found[2], text)  # noqa: B023 - called at once
    readme.write_text(text, encoding="utf-8")
