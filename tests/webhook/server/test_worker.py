"""The worker's room: as many connections as wanted, if the system lets it open so many files."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import json, resource, sys
from gpu2dra_webhook.worker import _room
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(json.dumps([_room(wanted), *resource.getrlimit(resource.RLIMIT_NOFILE)]))
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "expected"),
    [
        (300, 2_000, 1_000, [1_000, 1_256, 2_000]),  # raised as far as needed
        (300, 1_000, 4_096, [744, 1_000, 1_000]),  # raised as far as allowed: some are for other purposes
        (1_500, 2_000, 1_000, [1_000, 1_500, 2_000]),  # left alone
    ],
)
def test_the_limit_of_open_files_is_raised_or_heeded(soft: int, hard: int, wanted: int, expected: list[int]) -> None:
    command = [sys.executable, "-c", PROGRAM, *map(str, (soft, hard, wanted))]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert json.loads(done.stdout) == expected
