"""A mutating webhook of somebody else: answers each review with the patch that a test chooses, over TLS."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.client import Object

Patch = Callable[[Any], list[dict[str, Any]]]
"""Returns the JSON Patch for the object of a review; an empty one changes nothing."""


class OtherWebhook(ThreadingHTTPServer):
    """One process of it; `port` is where it listens, on the loopback interface."""

    daemon_threads = True

    def __init__(self, certificate: tuple[Path, Path], patch: Patch) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.patch = patch
        self.port = int(self.server_address[1])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self._thread.start()

    def end(self) -> None:
        """Stop listening; open connections go on."""
        self.shutdown()
        self.server_close()
        self._thread.join()


class _Answering(BaseHTTPRequestHandler):
    """Answers one review after the other on a connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment
    server: OtherWebhook

    def do_POST(self) -> None:
        """Answer a review."""
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        patch = self.server.patch(review["request"]["object"])
        encoded = base64.b64encode(json.dumps(patch).encode()).decode()
        change = {"patchType": "JSONPatch", "patch": encoded} if patch else {}
        response = {"uid": review["request"]["uid"], "allowed": True, **change}
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- http.server's own name for it
        """Say nothing."""


def service(name: str, namespace: str) -> Object:
    """Return the Service that a webhook configuration can name."""
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": [{"port": 443}]}}


def configuration(name: str, of: Object, authority: Path, resources: Iterable[str], namespace: str) -> Object:
    """Return a configuration that has the objects of a namespace reviewed by the webhook behind a Service."""
    reference = {key: of["metadata"][key] for key in ("name", "namespace")}
    ca_bundle = base64.b64encode(authority.read_bytes()).decode()
    webhook = {
        "name": f"{name}.example.com",
        "clientConfig": {"service": {**reference, "path": "/"}, "caBundle": ca_bundle},
        "rules": [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": list(resources)}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [webhook],
    }
