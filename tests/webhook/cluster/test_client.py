"""Calls: what goes out, how refusals and silence come back, what is repeated."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from controlplane.pki import Authority
from gpu2dra_webhook.cluster import client, errors
from gpu2dra_webhook.settings import SettingsError
from webhook.cluster.scripted import Answer, kubeconfig, serving, status

if TYPE_CHECKING:
    from pathlib import Path


def test_a_call_says_who_it_is_and_gives_the_body_back(tmp_path: Path) -> None:
    with serving(tmp_path, lambda path: Answer([{"kind": "Thing"}])) as server:
        assert server.api.read("GET", "/api/v1/things", query={"limit": 5, "fieldSelector": "a=b,c"}) == {
            "kind": "Thing"
        }
    assert server.requests == ["GET /api/v1/things?limit=5&fieldSelector=a%3Db%2Cc"]
    assert server.authorizations == ["Bearer a-token"]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(409, "AlreadyExists", "there is one"), errors.AlreadyExists),
        (status(409, "Conflict", "changed"), errors.Conflict),
        (status(404, "NotFound", "none"), errors.NotFound),
        (Answer("404 page not found\n", 404), errors.NotFound),
        (status(403, "Forbidden", "no"), errors.Forbidden),
        (status(410, "Expired", "too old"), errors.Expired),
        (status(422, "Invalid", "bad"), errors.Invalid),
        (status(400, "BadRequest", "bad"), errors.Invalid),
        (status(429, "TooManyRequests", "wait"), errors.Overloaded),
        (status(500, "InternalError", "etcdserver: request timed out"), errors.Overloaded),
        (Answer("<html>\nbad gateway", 502), errors.Overloaded),
        (status(401, "Unauthorized", "who are you"), errors.Refused),
    ],
)
def test_a_refusal_becomes_an_error_of_its_kind(tmp_path: Path, answer: Answer, expected: type[Exception]) -> None:
    with serving(tmp_path, lambda path: answer) as server, pytest.raises(errors.ApiError) as caught:
        server.api.call("GET", "/x")
    assert type(caught.value) is expected


def test_a_refusal_keeps_what_the_server_said(tmp_path: Path) -> None:
    answer = status(
        403, "Forbidden", "it goes", kind="namespaces", causes=[{"reason": "NamespaceTerminating"}], retryAfterSeconds=7
    )
    with serving(tmp_path, lambda path: answer) as server, pytest.raises(errors.Refused) as caught:
        server.api.call("POST", "/x", {})
    error = caught.value
    assert (error.status, error.reason, error.message, error.kind) == (403, "Forbidden", "it goes", "namespaces")
    assert (error.causes, error.retry_after) == (frozenset({"NamespaceTerminating"}), 7)
    assert str(error) == "POST /x: it goes"


def test_retry_after_of_the_header_counts(tmp_path: Path) -> None:
    answer = Answer("overloaded", 429, {"Retry-After": "3"})
    with serving(tmp_path, lambda path: answer) as server, pytest.raises(errors.Refused) as caught:
        server.api.call("GET", "/x")
    assert (caught.value.retry_after, caught.value.message) == (3, "overloaded")


def test_an_answer_that_is_no_object_is_an_error(tmp_path: Path) -> None:
    with (
        serving(tmp_path, lambda path: Answer("hello")) as server,
        pytest.raises(errors.ApiError, match="no JSON object"),
    ):
        server.api.read("GET", "/x")


@contextlib.contextmanager
def secure_server(folder: Path, *, bare: bool) -> Iterator[tuple[Authority, str]]:
    """Run an API server that answers `{}` to clients with a certificate of the authority that has signed its own."""
    authority = Authority(folder, bare=bare)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server("serving", ["127.0.0.1"]))
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(authority.certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    with contextlib.suppress(ssl.SSLError), context.wrap_socket(client, server_side=True) as secure:
                        secure.recv(10_000)
                        secure.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield authority, f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.usefixtures("strict_python")
@pytest.mark.parametrize("bare", [False, True])
def test_certificates_that_other_clients_accept_are_accepted_and_our_own_is_shown(tmp_path: Path, bare: bool) -> None:
    with secure_server(tmp_path, bare=bare) as (authority, server):
        api = client.connect(authority.kubeconfig(server, "me"))
        assert api.call("GET", "/x") == b"{}"
        api.close()


def test_no_two_connections_share_a_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """urllib3 loads certificates into it: changed under the handshake of another thread it ends the process."""
    used: list[ssl.SSLContext] = []
    real = ssl.SSLContext.wrap_socket

    def wrap_socket(self: ssl.SSLContext, *arguments: Any, **options: Any) -> ssl.SSLSocket:
        if not options.get("server_side"):
            used.append(self)
        return real(self, *arguments, **options)

    monkeypatch.setattr(ssl.SSLContext, "wrap_socket", wrap_socket)
    with secure_server(tmp_path, bare=False) as (authority, server):
        api = client.connect(authority.kubeconfig(server, "me"))
        for _ in range(3):  # the server closes each
            assert api.call("GET", "/x") == b"{}"
        api.close()
    assert len({id(context) for context in used}) == 3


def kubeconfig_with(authority: Authority, server: str, **cluster: Any) -> Path:
    """Write a kubeconfig whose cluster has these fields besides its server, and no certificate-authority-data."""
    path = authority.kubeconfig(server, "me")
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"] = {"server": server, **cluster}
    path.write_text(json.dumps(config))
    return path


def test_a_server_of_an_unknown_authority_is_not_talked_to_unless_told_so(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stranger = Authority(tmp_path / "other").certificate
    with secure_server(tmp_path, bare=False) as (authority, server):
        for fields in ({}, {"certificate-authority": str(stranger)}):
            api = client.connect(kubeconfig_with(authority, server, **fields))
            with pytest.raises(errors.Unreachable, match="certificate verify failed"):
                api.call("GET", "/x")
            api.close()
        api = client.connect(kubeconfig_with(authority, server, **{"insecure-skip-tls-verify": True}))
        with pytest.warns(urllib3.exceptions.InsecureRequestWarning):
            assert api.call("GET", "/x") == b"{}"
        api.close()


def test_a_server_under_another_name_is_not_talked_to(tmp_path: Path) -> None:
    with secure_server(tmp_path, bare=False) as (authority, server):
        api = client.connect(authority.kubeconfig(server.replace("127.0.0.1", "localhost"), "me"))
        with pytest.raises(errors.Unreachable, match="Hostname mismatch"):
            api.call("GET", "/x")
        api.close()


class Listener:
    """A server that takes connections, reads, and hangs up or says nothing."""

    def __init__(self, folder: Path) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.api = client.connect(kubeconfig(folder, f"http://127.0.0.1:{self.socket.getsockname()[1]}"))


def test_nobody_there_is_said_in_one_line(tmp_path: Path) -> None:
    listener = Listener(tmp_path)
    listener.socket.close()
    with pytest.raises(errors.Unreachable) as caught:
        listener.api.call("GET", "/x")
    assert type(caught.value) is errors.Unreachable
    assert caught.value.message == "the API server cannot be reached ([Errno 111] Connection refused)"
    assert not listener.api.up


def test_silence_ends_with_the_timeout(tmp_path: Path) -> None:
    listener = Listener(tmp_path)
    with pytest.raises(errors.TimedOut) as caught:
        listener.api.call("GET", "/x", timeout=0.2)
    assert str(caught.value) == "GET /x: no answer in time"
    listener.socket.close()
    listener.api.close()


@pytest.mark.parametrize(("method", "tries"), [("GET", 2), ("PATCH", 2), ("DELETE", 2), ("POST", 1)])
def test_a_connection_that_breaks_is_replaced_once_unless_the_call_may_have_created(
    tmp_path: Path, method: str, tries: int
) -> None:
    listener = Listener(tmp_path)
    listener.socket.settimeout(5)
    seen: list[bytes] = []

    def hang_up() -> None:
        for _ in range(tries):
            connection, _ = listener.socket.accept()
            seen.append(connection.recv(65536))
            connection.close()

    thread = threading.Thread(target=hang_up)
    thread.start()
    with pytest.raises(errors.Unreachable):
        listener.api.call(method, "/x", {} if method != "GET" else None)
    thread.join()
    assert len(seen) == tries
    listener.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        listener.socket.accept()
    listener.socket.close()
    listener.api.close()


def test_names_are_quoted_and_cannot_lead_elsewhere() -> None:
    assert client.path("/api/v1/namespaces", "a b", "x/y") == "/api/v1/namespaces/a%20b/x%2Fy"
    for name in ("", ".", ".."):
        with pytest.raises(ValueError, match="is no name"):
            client.path("/api/v1/namespaces", name, "pods")


def test_outside_of_a_cluster_a_kubeconfig_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(SettingsError) as caught:
        client.connect()
    assert str(caught.value) == (
        "No API server to talk to: Service host/port is not set. (outside of a cluster, name a kubeconfig)."
    )


@pytest.mark.parametrize("text", ["", "- no\n- mapping\n", "clusters: []\n", "{", None])
def test_a_kubeconfig_that_is_none_is_named(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SettingsError, match="No API server to talk to") as caught:
        client.connect(path)
    assert str(path) in str(caught.value)
