"""Many clients at once, most of them useless: those that ask are answered all the same."""

from __future__ import annotations

import contextlib
import resource
import select
import ssl
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from controlplane.client import wait_for
from gpu2dra_webhook.readiness import PROBE_INTERVAL
from webhook.server.running import JSON, PATIENCE, Client, Webhook, Webhooks, body, request

IDLE, HALF, SILENT = 1_000, 200, 100
API_SERVERS = 25
REQUESTS = 40
WHOLE = 'gpu2dra_admission_requests_total{operation="CREATE",outcome="converted"'


@pytest.fixture(autouse=True)
def _many_files() -> Iterator[None]:
    """Allow this process the descriptors that it takes to play so many clients."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def crowd(webhook: Webhook, stack: contextlib.ExitStack) -> None:
    """Open connections of all the useless kinds; they stay open, as far as the webhook lets them."""

    def idle(number: int) -> Client:
        client = webhook.client()
        if number % 2:
            assert client.get("/livez").status == 200
        return client

    def half(number: int) -> Client:
        client = webhook.client()
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": "5000"})[: 40 + number])
        return client

    with ThreadPoolExecutor(8) as pool:
        jobs = [(idle, IDLE), (half, HALF), (lambda _: Client(webhook.plain()), SILENT)]
        for kind, count in jobs:
            for client in pool.map(kind, range(count)):
                stack.enter_context(client)


@pytest.mark.slow
def test_api_servers_are_answered_beside_1300_useless_connections(webhooks: Webhooks) -> None:
    answered: list[int] = []
    lock = threading.Lock()
    start = threading.Barrier(API_SERVERS)

    def api_server(_: int) -> None:
        with running.client() as client:
            start.wait()
            for _request in range(REQUESTS):
                allowed = client.post(body()).json["response"]["allowed"]
                with lock:
                    answered.append(allowed)

    # However long the machine takes to open them all, they are there when it matters.
    with (
        webhooks.running(*(f"--{phase}-timeout=24h" for phase in ("header", "handshake", "body", "idle"))) as running,
        contextlib.ExitStack() as stack,
    ):
        crowd(running, stack)
        everybody = IDLE + HALF + SILENT
        wait_for("all are connected", lambda: running.metric("gpu2dra_open_connections") == everybody)
        with ThreadPoolExecutor(API_SERVERS) as pool:
            list(pool.map(api_server, range(API_SERVERS)))
        assert answered == [True] * API_SERVERS * REQUESTS
        assert running.metric(WHOLE) == API_SERVERS * REQUESTS
        wait_for("only the useless are left", lambda: running.metric("gpu2dra_open_connections") == everybody)
        assert running.side("/livez").status == 200


def test_at_the_limit_one_connection_goes_for_another(webhooks: Webhooks) -> None:
    """Which one goes is test_connections' matter: here the server's looks at itself take places, too."""
    began = time.monotonic()
    with webhooks.running("--max-connections=10") as running, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(running.client()) for _ in range(11)]
        assert clients[-1].get("/livez").status == 200
        answered = sum(map(_is_answered, clients))
        looks = 1 + int((time.monotonic() - began) / PROBE_INTERVAL)
        assert 10 - looks <= answered <= 10
        assert running.metric('gpu2dra_connections_closed_total{kind="crowded"}') >= 1


def _is_answered(client: Client) -> bool:
    try:
        return client.get("/livez").status == 200
    except (EOFError, OSError):
        return False


def test_whoever_comes_is_answered_however_many_were_there_before(webhooks: Webhooks) -> None:
    with webhooks.running("--max-connections=10") as running, contextlib.ExitStack() as stack:
        for _ in range(100):
            client = stack.enter_context(running.client())
            assert client.post(body()).json["response"]["allowed"] is True
        assert running.metric("gpu2dra_open_connections") <= 10


def test_large_bodies_cannot_take_all_memory(webhooks: Webhooks) -> None:
    size = 7 * 2**20
    head = request("POST", "/mutate", {**JSON, "Content-Length": str(size)})
    with webhooks.running("--body-timeout=24h") as running, contextlib.ExitStack() as stack:

        def hold(_: int) -> Client:
            client = running.client()
            with contextlib.suppress(OSError):  # cut off while it sends
                client.send(head + b" " * (size - 1))
            return client

        with ThreadPoolExecutor(4) as pool:
            clients = [stack.enter_context(client) for client in pool.map(hold, range(12))]
        with running.client() as client:
            assert client.post(body()).json["response"]["allowed"] is True
        assert running.metric('gpu2dra_connections_closed_total{kind="memory"}') >= 2
        told = []
        readable, _, _ = select.select([client.socket for client in clients], [], [], PATIENCE)
        for client in clients:
            if client.socket in readable:
                with contextlib.suppress(OSError, EOFError):  # in the middle of a record TLS itself says that it ends
                    told.append(client.answer().status)
        assert set(told) <= {503}


def test_handshakes_that_fail_leave_nothing_behind(webhook: Webhook) -> None:
    before = webhook.metric("process_open_fds")
    stranger = ssl.create_default_context()  # does not know our authority
    for _ in range(50):
        with contextlib.suppress(ssl.SSLError), stranger.wrap_socket(webhook.plain(), server_hostname="localhost"):
            pass
    with webhook.client() as client:
        assert client.get("/livez").status == 200
    assert webhook.metric("process_open_fds") <= before + 5
