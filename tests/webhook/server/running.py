"""A webhook as a process of its own, without a cluster, and clients that speak to it as well or badly as they like."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from controlplane.daemons import Daemons
from controlplane.pki import Authority

if TYPE_CHECKING:
    from pathlib import Path

SERVICE = "gpu2dra.gpu2dra-system.svc"
JSON = {"Content-Type": "application/json"}
PATIENCE = 60.0
"""Seconds until a test gives up on an answer; nothing that is well takes a tenth of it."""


def certificate_folder(folder: Path) -> tuple[Path, Path]:
    """Return a folder with tls.crt and tls.key for the Service, and the file of the authority that signed them."""
    authority = Authority(folder)
    certificate, key = authority.server("serving", [SERVICE, "127.0.0.1"])
    served = folder / "served"
    served.mkdir()
    shutil.copy(certificate, served / "tls.crt")
    shutil.copy(key, served / "tls.key")
    return served, authority.certificate


@dataclass(slots=True)
class Answer:
    """An HTTP answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as data."""
        return json.loads(self.body)


class Client:
    """One connection, as an API server holds it. Closed at the end of a `with` block."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._file = sock.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self.socket.sendall(data)

    def post(self, body: bytes, path: str = "/mutate?timeout=10s", headers: Mapping[str, str] = JSON) -> Answer:
        """Send a POST with a Content-Length and return the answer."""
        self.send(request("POST", path, {**headers, "Content-Length": str(len(body))}) + body)
        return self.answer()

    def get(self, path: str) -> Answer:
        """Send a GET and return the answer."""
        self.send(request("GET", path))
        return self.answer()

    def answer(self) -> Answer:
        """Read one answer; EOFError when the connection ends instead."""
        line = self._file.readline()
        if not line:
            raise EOFError
        headers = {}
        while (header := self._file.readline().strip()) != b"":
            name, _, value = header.decode().partition(":")
            headers[name.lower()] = value.strip()
        return Answer(int(line.split()[1]), headers, self._file.read(int(headers["content-length"])))

    def ended(self) -> bool:
        """Wait until the server ends the connection; True when it has sent nothing before."""
        try:
            return self._file.read() == b""
        except OSError:
            return True


def request(method: str, path: str, headers: Mapping[str, str] | None = None) -> bytes:
    """Return the head of a request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {SERVICE}", *(f"{k}: {v}" for k, v in (headers or {}).items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass(slots=True)
class Webhook:
    """The process. `missing` tells what is not there yet while it starts."""

    daemons: Daemons
    name: str
    authority: Path
    port: int = 0
    metrics_port: int = 0
    _context: ssl.SSLContext = field(init=False)

    def __post_init__(self) -> None:
        self._context = ssl.create_default_context(cafile=str(self.authority))

    def plain(self) -> socket.socket:
        """Return a TCP connection without a handshake."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE)

    def client(self) -> Client:
        """Return a connection after its handshake, in which the certificate was verified."""
        return Client(self._context.wrap_socket(self.plain(), server_hostname=SERVICE))

    def side(self, path: str) -> Answer:
        """Ask the port without TLS."""
        with Client(socket.create_connection(("127.0.0.1", self.metrics_port), timeout=PATIENCE)) as client:
            return client.get(path)

    def metric(self, start: str) -> float:
        """Return the sum of all samples whose line begins so."""
        lines = self.side("/metrics").body.decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(start))

    def log(self) -> list[dict[str, Any]]:
        """Return what was logged."""
        found = []
        for line in self.daemons.log(self.name).read_text().splitlines():
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
        return found

    def wait_until_serving(self) -> None:
        """Wait for the line that tells the ports; DaemonError when the process ends instead."""

        def look() -> bool:
            for line in self.log():
                if line.get("msg") == "serving":
                    self.port, self.metrics_port = line["port"], line["metrics_port"]
            return self.port != 0

        self.daemons.wait_until(f"{self.name} serves", look, PATIENCE)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.daemons.terminate(self.name)

    def exit_code(self) -> int:
        """Wait for the end and return the exit code."""
        return self.daemons.wait_until_ended(self.name, PATIENCE)


class Webhooks:
    """Starts webhooks, each with a log in `folder`; all end with the `with` block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.served, self.authority = certificate_folder(folder)
        self._started: list[Daemons] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for daemons in self._started:
            daemons.stop()

    def launch(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Webhook:
        """Start one; `arguments` are added to those that every test needs."""
        name = f"webhook-{len(self._started)}"
        daemons = Daemons(self.folder)  # one for each: the end of one says nothing about another
        self._started.append(daemons)
        daemons.start(name, command(self.served, arguments), environment)
        return Webhook(daemons, name, self.authority)

    @contextlib.contextmanager
    def running(self, *arguments: str, environment: Mapping[str, str] | None = None) -> Iterator[Webhook]:
        """Start one and wait until it serves; it ends with the block."""
        webhook = self.launch(*arguments, environment=environment)
        try:
            webhook.wait_until_serving()
            yield webhook
        finally:
            webhook.daemons.stop()


def command(served: Path, arguments: Sequence[str]) -> list[str]:
    """Return the command line of a webhook without a cluster on free ports of this machine."""
    return [
        sys.executable, "-m", "gpu2dra_webhook", "--store=memory", "--bind-address=127.0.0.1", "--port=0",
        "--metrics-port=0", "--certificates=files", f"--certificate-dir={served}", *arguments,
    ]  # fmt: skip


def pod(name: str = "", **fields: Any) -> dict[str, Any]:
    """Return a pod with one container that asks for two GPUs; `fields` are added to its spec."""
    resources = {"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "2"}}
    spec = {"containers": [{"name": "server", "image": "server:1", "resources": resources}], **fields}
    metadata = {"name": name} if name else {"generateName": "server-"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def review(obj: Any = None, **fields: Any) -> dict[str, Any]:
    """Return the AdmissionReview of the creation of a pod; `fields` replace those of its request."""
    asked = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "team-a",
        "operation": "CREATE",
        "object": pod() if obj is None else obj,
        "dryRun": False,
        **fields,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": asked}


def body(obj: Any = None, **fields: Any) -> bytes:
    """Return the bytes of `review`."""
    return json.dumps(review(obj, **fields)).encode()
