"""The same under gevent, as in production: its own TLS sockets, and greenlets for threads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_PATCHED = "from gevent import monkey; monkey.patch_all(); import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
_TESTS = ("test_serving.py", "test_clients.py", "test_files.py", "test_turns.py")


def test_all_holds_with_everything_patched(root: Path) -> None:
    tests = [str(Path(__file__).with_name(name)) for name in _TESTS]
    command = [sys.executable, "-c", _PATCHED, "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed" in run.stdout
