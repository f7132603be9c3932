"""Slow and silent clients: each step of a connection has its time, and whoever is late loses only that connection."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Iterator

import pytest

from webhook.server.running import JSON, PATIENCE, SERVICE, Client, Webhook, Webhooks, body, request

STEP = 0.6
"""Seconds for each step, in place of 5 and 10."""
PAUSE = 0.1
"""Between two bytes of a client that never stops sending, and never comes to an end."""


@pytest.fixture(scope="module")
def impatient(webhooks: Webhooks) -> Iterator[Webhook]:
    """Return a webhook that waits for nobody."""
    steps = [f"--{name}-timeout={STEP}s" for name in ("header", "body")]
    with webhooks.running(*steps, "--handshake-timeout=2s", "--idle-timeout=2s") as running:
        yield running


@contextlib.contextmanager
def dripping(client: Client, data: bytes) -> Iterator[None]:
    """Send one byte after the other while the block runs."""
    done = threading.Event()

    def drip() -> None:
        with contextlib.suppress(OSError):
            for byte in data:
                if done.wait(PAUSE):
                    return
                client.send(bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def test_a_connection_without_a_handshake_is_closed(impatient: Webhook) -> None:
    with Client(impatient.plain()) as client:
        assert client.ended()
    assert impatient.metric('gpu2dra_connection_deadlines_total{kind="handshake"}') >= 1


def test_a_handshake_that_comes_byte_by_byte_is_cut_off(impatient: Webhook) -> None:
    context = ssl.create_default_context(cafile=str(impatient.authority))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    secure = context.wrap_bio(incoming, outgoing, server_hostname=SERVICE)
    with contextlib.suppress(ssl.SSLWantReadError):
        secure.do_handshake()
    with Client(impatient.plain()) as client, dripping(client, outgoing.read()):
        assert client.ended()


@pytest.mark.parametrize("sent", [b"P", b"POST /mutate HTTP/1.1\r\nHost: x\r\n"])
def test_a_header_that_does_not_end_is_refused(impatient: Webhook, sent: bytes) -> None:
    with impatient.client() as client:
        client.send(sent)
        assert client.answer().status == 408
        assert client.ended()
    assert impatient.metric('gpu2dra_connection_deadlines_total{kind="header"}') >= 1


def test_a_header_that_comes_byte_by_byte_is_refused(impatient: Webhook) -> None:
    with impatient.client() as client, dripping(client, request("GET", "/livez", {"X": "x" * 1_000})):
        assert client.answer().status == 408


def test_a_body_that_does_not_end_is_refused(impatient: Webhook) -> None:
    with impatient.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": "1000"}) + b"{")
        answer = client.answer()
        assert (answer.status, answer.body) == (408, b"the request came too slowly\n")
        assert client.ended()
    assert impatient.metric('gpu2dra_connection_deadlines_total{kind="body"}') >= 1


@pytest.mark.parametrize("head", [{"Content-Length": "1000"}, {"Transfer-Encoding": "chunked"}])
def test_a_body_that_comes_byte_by_byte_is_refused(impatient: Webhook, head: dict[str, str]) -> None:
    with impatient.client() as client:
        client.send(request("POST", "/mutate", {**JSON, **head}))
        with dripping(client, b"3e8\r\n" + b" " * 1_000):
            assert client.answer().status == 408


def test_a_record_that_does_not_end_counts_as_silence(impatient: Webhook) -> None:
    with impatient.client() as client:
        assert client.get("/livez").status == 200
        # The head of a TLS record of 16 KiB: what is in it never comes.
        under = socket.socket(fileno=client.socket.detach())
        under.settimeout(PATIENCE)
        with Client(under) as plain:
            plain.send(b"\x17\x03\x03\x40\x00")
            assert plain.ended()


def test_an_idle_connection_is_closed_without_a_word(impatient: Webhook) -> None:
    with impatient.client() as client:
        assert client.get("/livez").status == 200
        assert client.ended()
    with impatient.client() as client:
        assert client.ended()
    assert impatient.metric('gpu2dra_connection_deadlines_total{kind="idle"}') >= 2


def test_a_client_that_pauses_between_requests_is_answered_each_time(impatient: Webhook) -> None:
    with impatient.client() as client:
        for _ in range(3):
            time.sleep(2 * STEP)  # longer than any step may take, shorter than a connection may be idle
            assert client.post(body()).json["response"]["allowed"] is True


def test_a_client_that_takes_its_time_within_the_limits_is_answered(webhook: Webhook) -> None:
    content = body()
    sent = request("POST", "/mutate", {**JSON, "Content-Length": str(len(content))}) + content
    with webhook.client() as client:
        for place in range(0, len(sent), 200):
            client.send(sent[place : place + 200])
            time.sleep(PAUSE)
        assert client.answer().status == 200
