"""Programs that call a filter of ours."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Caller:
    """A program with `gpu2dra` on its PATH and a home of its own."""

    program: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def run(self, *arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run the program; what it prints is text."""
        command: Sequence[str] = [str(self.program), *map(str, arguments)]
        return subprocess.run(command, check=False, capture_output=True, text=True, env=self.environment, cwd=cwd)
