"""What the pod of `helm test` runs: it prints what the webhook says, and fails when that is not ready or not there."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from controlplane.daemons import free_port
from controlplane.helm import CHART

SAID = b'{"ready":false,"missing":{"caches":["templates"]}}'


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(int(self.path.strip("/")))
        self.send_header("Content-Length", str(len(SAID)))
        self.end_headers()
        self.wfile.write(SAID)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        """Say nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Return the address of a server that answers with the status in the path."""
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def run(url: str) -> tuple[int, str]:
    """Run the script; return its exit code and what it printed."""
    command = [sys.executable, "-c", (CHART / "files/readiness.py").read_text("utf-8"), url]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (404, 1)])
def test_the_answer_decides_and_is_printed(address: str, status: int, code: int) -> None:
    ended, printed = run(f"{address}/{status}")
    assert ended == code
    assert SAID.decode() in printed


def test_a_webhook_that_cannot_be_reached_fails_without_a_traceback() -> None:
    url = f"http://127.0.0.1:{free_port()}/200"
    ended, printed = run(url)
    assert ended == 1
    assert printed.startswith(f"{url} cannot be reached: ")
    assert "Traceback" not in printed
