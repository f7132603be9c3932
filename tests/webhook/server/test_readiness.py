"""Readiness, and the call of our own port that is part of it."""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from controlplane.client import wait_for
from controlplane.pki import Authority
from gpu2dra_webhook.readiness import Readiness, SelfProbe
from webhook.server.running import SERVICE, Webhook

if TYPE_CHECKING:
    from pathlib import Path


def fail() -> list[str]:
    raise ZeroDivisionError


def test_what_is_missing_is_told_by_name() -> None:
    readiness = Readiness({"a": list, "b": lambda: ("x", "y")}, {"c": lambda: ["z"]})
    assert readiness.missing() == {"b": ["x", "y"]}
    assert readiness.details() == {"c": ["z"]}
    assert readiness.names() == ["a", "b", "c"]


def test_a_check_that_fails_is_missing_and_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    readiness = Readiness({"broken": fail, "b": lambda: ["x"]}, {})
    with caplog.at_level(logging.ERROR):
        assert readiness.missing() == {"broken": ["the check failed; see the log"], "b": ["x"]}
    assert "ZeroDivisionError" in caplog.text


def test_who_stops_is_not_ready_any_more() -> None:
    readiness = Readiness({}, {})
    assert readiness.missing() == {}
    readiness.stop()
    assert readiness.missing() == {"stopping": ["the server ends; others answer"]}


def test_the_probe_is_content_with_a_webhook_whose_certificate_it_can_verify(webhook: Webhook) -> None:
    probe = SelfProbe("0.0.0.0", SERVICE, webhook.authority.read_bytes, asks=True)  # noqa: S104 - not bound
    assert probe.probe(webhook.port) == ()


def test_a_port_at_every_address_is_called_at_one_that_is_there(webhook: Webhook) -> None:
    """This one listens at 127.0.0.1 alone, as where a pod has no IPv6."""
    assert SelfProbe("::", SERVICE, webhook.authority.read_bytes, asks=True).probe(webhook.port) == ()


def test_a_leaf_that_is_all_we_know_verifies_itself(webhook: Webhook) -> None:
    context = ssl._create_unverified_context()  # noqa: S323 - to see what is served
    with context.wrap_socket(webhook.plain()) as secure:
        leaf = ssl.DER_cert_to_PEM_cert(secure.getpeercert(binary_form=True) or b"").encode()
    assert SelfProbe("127.0.0.1", SERVICE, lambda: leaf, asks=True).probe(webhook.port) == ()


@pytest.mark.parametrize(
    ("name", "trusted", "reason"),
    [
        ("other.svc", True, "Hostname mismatch"),
        (SERVICE, False, "certificate verify failed"),
    ],
)
def test_the_probe_tells_why_clients_would_not_trust_us(
    webhook: Webhook, tmp_path: Path, name: str, trusted: bool, reason: str
) -> None:
    authority = webhook.authority if trusted else Authority(tmp_path).certificate
    [found] = SelfProbe("127.0.0.1", name, authority.read_bytes, asks=True).probe(webhook.port)
    assert reason in found


def test_the_probe_tells_that_nobody_is_there(webhook: Webhook) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    [found] = SelfProbe("127.0.0.1", SERVICE, webhook.authority.read_bytes, asks=True).probe(port)
    assert "Connection refused" in found


@contextlib.contextmanager
def silent_server(folder: Path, *, expects_certificate: bool = False, bare: bool = False) -> Iterator[tuple[int, Path]]:
    """Run a TLS server that never answers a request, if it does not end the connection before."""
    authority = Authority(folder, bare=bare)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.server("serving", [SERVICE]))
    if expects_certificate:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(authority.certificate)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                client, _ = listener.accept()
                with context.wrap_socket(client, server_side=True) as secure:
                    secure.recv(1000)
                    secure.sendall(b"HTTP/1.1 500 Internal Server Error\r\n\r\n")

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], authority.certificate
        thread.join()


def test_the_probe_tells_that_the_answer_is_wrong(tmp_path: Path) -> None:
    with silent_server(tmp_path) as (port, authority):
        probe = SelfProbe("127.0.0.1", SERVICE, authority.read_bytes, asks=True)
        assert probe.probe(port) == ("our own port does not answer",)


@pytest.mark.usefixtures("strict_python")
def test_the_probe_asks_no_more_of_a_certificate_than_other_clients_do(tmp_path: Path) -> None:
    with silent_server(tmp_path, bare=True) as (port, authority):
        assert SelfProbe("127.0.0.1", SERVICE, authority.read_bytes, asks=False).probe(port) == ()


def test_where_clients_need_a_certificate_the_handshake_has_to_do(tmp_path: Path) -> None:
    with silent_server(tmp_path, expects_certificate=True) as (port, authority):
        assert SelfProbe("127.0.0.1", SERVICE, authority.read_bytes, asks=False).probe(port) == ()


def test_the_webhook_becomes_ready_when_it_has_called_itself(webhook: Webhook) -> None:
    wait_for("it is ready", lambda: webhook.side("/readyz").status == 200)
    assert SelfProbe("127.0.0.1", SERVICE, webhook.authority.read_bytes, asks=True).found() == ("not tried yet",)
    with webhook.client() as client:
        found = client.get("/readyz?verbose").json
    assert found == {
        "ready": True,
        "missing": {},
        "checks": [
            "certificate", "caches", "port", "policy", "dra", "device-classes", "mixed-nodes", "resource-slices",
        ],
        "details": {},
    }  # fmt: skip
