"""An API server that answers as it is told, for what a real one cannot be made to do on demand."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from gpu2dra_webhook.cluster import client
from gpu2dra_webhook.cluster.client import Api

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: objects go out a line each, in a chunk each, as in a watch; a text as it is."""

    body: Sequence[object] | str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


Script = Callable[[str], Answer]
"""From the request's path with its query to the answer."""


@dataclass(slots=True)
class Server:
    """What was asked, oldest first, and the API to ask through."""

    api: Api
    requests: list[str]
    authorizations: list[str]


@contextmanager
def serving(folder: Path, script: Script) -> Iterator[Server]:
    """Serve a script on the loopback interface for as long as the context lasts."""
    asked: list[str] = []
    authorizations: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked.append(f"{self.command} {self.path}")
            authorizations.append(self.headers.get("Authorization", ""))
            answer = script(self.path)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            parts = [answer.body] if isinstance(answer.body, str) else [f"{json.dumps(part)}\n" for part in answer.body]
            for part in [part.encode() for part in parts if part] + [b""]:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = answer  # noqa: N815 - the base class calls them so

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    api = client.connect(kubeconfig(folder, f"http://127.0.0.1:{server.server_port}"))
    try:
        yield Server(api, asked, authorizations)
    finally:
        api.close()
        server.shutdown()
        server.server_close()
        thread.join()


def kubeconfig(folder: Path, server: str) -> Path:
    """Write a kubeconfig with a token."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "a-token"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
    }
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def status(code: int, reason: str, message: str, **details: object) -> Answer:
    """Return a refusal as the API server words it."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return Answer([body], code)
