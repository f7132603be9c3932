"""Figures of a bench: rows with a bar and a baseline of the same run, printed and written as JSON for the README."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).with_name("results")


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what was measured, the bar that the design sets, and the same for a baseline in the same run."""

    what: str
    bar: str
    value: float
    unit: str
    baseline: str
    baseline_value: float
    met: bool

    def __str__(self) -> str:
        measured = f"{self.value:.4g} {self.unit} (bar: {self.bar}; {self.baseline}: {self.baseline_value:.4g})"
        return f"{self.what}: {measured} {'met' if self.met else 'MISSED'}"

    def document(self) -> dict[str, Any]:
        """Return the row as it is written."""
        return {
            "what": self.what, "bar": self.bar, "value": round(self.value, 4), "unit": self.unit,
            "baseline": self.baseline, "baselineValue": round(self.baseline_value, 4), "met": self.met,
        }  # fmt: skip


def write(name: str, rows: Sequence[Row], **more: Any) -> None:
    """Write the rows to `results/<name>.json`, with the commit, the machine and whatever else belongs to the run."""
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    machine = f"{platform.machine()}, {os.cpu_count()} cores, {system}"
    document = {
        "commit": commit.stdout.strip(), "machine": machine, **more, "rows": [row.document() for row in rows],
    }  # fmt: skip
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}")
