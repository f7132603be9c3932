"""What a client may send to the port that is no review, or one that nobody would send: a short reason, and no harm."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gpu2dra_webhook.room import ROOM, weight
from webhook.server import hostile
from webhook.server.running import JSON, Answer, Client, Webhook, Webhooks, body, pod, request, review

MEBIBYTE = 2**20
LIMIT = 7 * MEBIBYTE


def chunked(*chunks: bytes) -> bytes:
    """Return a body in chunks, with its end."""
    return b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in (*chunks, b""))


def assert_refused(client: Client, status: int, reason: str) -> Answer:
    """Hold that the answer is this status and a short reason, in one line; return it."""
    answer = client.answer()
    text = answer.json["error"] if answer.headers["content-type"] == "application/json" else answer.body.decode()
    assert (status, reason) == (answer.status, text.strip())
    assert len(text) < 300
    return answer


def assert_well(webhook: Webhook) -> None:
    """Hold that a proper review is answered."""
    with webhook.client() as client:
        assert client.post(body()).json["response"]["allowed"] is True


@pytest.mark.parametrize(("content", "reason"), hostile.NO_REVIEWS)
def test_what_is_no_review_is_refused_with_a_reason(webhook: Webhook, content: bytes, reason: str) -> None:
    with webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": str(len(content))}) + content)
        assert_refused(client, 400, reason)
        # The connection is as good as before.
        assert client.post(body()).json["response"]["allowed"] is True


@pytest.mark.parametrize(
    ("head", "status", "reason"),
    [
        (request("GET", "/mutate"), 405, "method not allowed"),
        (request("PUT", "/mutate", {"Content-Length": "0"}), 405, "method not allowed"),
        (request("POST", "/livez", {"Content-Length": "0"}), 405, "method not allowed"),
        (request("GET", "/metrics"), 404, "not found"),
        (request("GET", "/"), 404, "not found"),
        (request("GET", "/mutate/../../etc/passwd"), 404, "not found"),
        (request("POST", "/mutate", {"Content-Length": "0"}), 415, "send application/json"),
        (
            request("POST", "/mutate", {"Content-Type": "text/plain", "Content-Length": "0"}),
            415,
            "send application/json",
        ),
        (
            request("POST", "/mutate", {"Content-Type": "application/x-www-form-urlencoded", "Content-Length": "0"}),
            415,
            "send application/json",
        ),
        (request("POST", "/mutate", {**JSON, "Content-Length": str(LIMIT + 1)}), 413, "the body is too large"),
        (request("POST", "/mutate", {**JSON, "Content-Length": str(10**15)}), 413, "the body is too large"),
        (request("POST", "/mutate", {**JSON, "Content-Length": "-1"}), 400, "this is no valid HTTP/1.1 request"),
        (request("POST", "/mutate", {**JSON, "Content-Length": "1e3"}), 400, "this is no valid HTTP/1.1 request"),
        (
            request("POST", "/mutate", {**JSON, "Content-Length": "2", "Transfer-Encoding": "chunked"}),
            400,
            "this is no valid HTTP/1.1 request",
        ),
        (
            request("POST", "/mutate", {**JSON, "Transfer-Encoding": "smoke"}),
            501,
            "this transfer coding is not supported",
        ),
        (
            request("POST", "/mutate", {**JSON, "Transfer-Encoding": "chunked"}) + b"zz\r\n",
            400,
            "this is no valid HTTP/1.1 request",
        ),
        (request("GET", "/" + "x" * 10_000), 414, "the request line is too long"),
        (request("GET", "/livez", {"X": "x" * 10_000}), 431, "the header is too large"),
        (request("GET", "/livez", {f"X-{number}": "x" for number in range(100)}), 431, "the header is too large"),
        (request("GET", "/livez", {"Expect": "a miracle"}), 417, "this expectation is not supported"),
        (b"GET /livez\r\n\r\n", 400, "this is no valid HTTP/1.1 request"),
        (b"GET /livez HTTP/9.9\r\n\r\n", 400, "this is no valid HTTP/1.1 request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, "this is no valid HTTP/1.1 request"),
        (b"GET /livez HTTP/1.1\r\nno colon\r\n\r\n", 400, "this is no valid HTTP/1.1 request"),
        (b"GET /livez HTTP/1.1\r\nX: \x00\r\n\r\n", 400, "this is no valid HTTP/1.1 request"),
        (b"\x00" * 64 + b"\r\n\r\n", 400, "this is no valid HTTP/1.1 request"),
    ],
)
def test_a_request_that_is_none_of_ours_gets_a_status_and_a_reason(
    webhook: Webhook, head: bytes, status: int, reason: str
) -> None:
    with webhook.client() as client:
        client.send(head)
        assert_refused(client, status, reason)
    assert_well(webhook)


@pytest.mark.parametrize("size", [LIMIT + 1, LIMIT + 1 + 3 * MEBIBYTE])
def test_a_body_that_is_too_large_is_refused_though_all_of_it_is_sent(webhook: Webhook, size: int) -> None:
    with webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": str(size)}) + b" " * size)
        assert assert_refused(client, 413, "the body is too large").headers["connection"] == "close"
        assert client.ended()


def test_a_body_that_is_too_large_is_refused_when_it_comes_in_chunks(webhook: Webhook) -> None:
    with webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Transfer-Encoding": "chunked"}))
        client.send(chunked(*[b" " * MEBIBYTE] * 10))
        assert_refused(client, 413, "the body is too large")
        assert client.ended()


@pytest.mark.parametrize("size", [LIMIT, LIMIT - 1])
def test_a_body_of_the_allowed_size_is_read(webhook: Webhook, size: int) -> None:
    content = body()
    with webhook.client() as client:
        assert client.post(content + b" " * (size - len(content))).json["response"]["allowed"] is True


def test_chunks_are_put_together(webhook: Webhook) -> None:
    content = body()
    with webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Transfer-Encoding": "chunked"}))
        client.send(chunked(*(content[place : place + 7] for place in range(0, len(content), 7))))
        assert client.answer().json["response"]["allowed"] is True
        assert client.post(content).json["response"]["allowed"] is True


def test_a_body_that_ends_too_early_is_none_though_it_is_a_review_so_far(webhook: Webhook) -> None:
    reviewed = webhook.metric("gpu2dra_admission_requests_total")
    content = body()
    with webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": str(len(content) + 1)}) + content)
        socket.socket.shutdown(client.socket, socket.SHUT_WR)  # the session goes on, to read
        assert client.ended()
    assert webhook.metric("gpu2dra_admission_requests_total") == reviewed


def test_a_client_that_asks_first_is_told_to_go_on(webhook: Webhook) -> None:
    content = body()
    head = request("POST", "/mutate", {**JSON, "Content-Length": str(len(content)), "Expect": "100-continue"})
    with webhook.client() as client:
        client.send(head)
        assert client.socket.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(content)
        assert client.answer().status == 200


def test_requests_that_are_sent_ahead_are_answered_in_order(webhook: Webhook) -> None:
    wanted = [f"uid-{number}" for number in range(50)]
    contents = [body(uid=uid) for uid in wanted]
    heads = [request("POST", "/mutate", {**JSON, "Content-Length": str(len(content))}) for content in contents]
    with webhook.client() as client:
        client.send(b"".join(head + content for head, content in zip(heads, contents, strict=True)))
        assert [client.answer().json["response"]["uid"] for _ in wanted] == wanted


def test_one_connection_that_never_pauses_does_not_stop_the_others(webhook: Webhook) -> None:
    done = threading.Event()

    def send(client: Client) -> None:
        with contextlib.suppress(OSError):
            while not done.is_set():
                client.send(request("GET", "/livez") * 500)

    def read(client: Client) -> None:
        with contextlib.suppress(OSError):
            while client.socket.recv(65536):
                pass

    with webhook.client() as greedy, ThreadPoolExecutor() as pool:
        pool.submit(send, greedy)
        pool.submit(read, greedy)
        for _ in range(3):
            assert_well(webhook)
        done.set()
        greedy.socket.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("sent", [b"GET /livez HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\xff" + b"\xff" * 300, b"\x00"])
def test_what_is_no_handshake_ends_the_connection(webhook: Webhook, sent: bytes) -> None:
    with Client(webhook.plain()) as client:
        with contextlib.suppress(OSError):  # it may be ended before we have said all
            client.send(sent)
            client.socket.shutdown(socket.SHUT_WR)
        client.ended()
    assert_well(webhook)


def response(webhook: Webhook, content: bytes) -> dict[str, Any]:
    with webhook.client() as client:
        answer = client.post(content)
    assert answer.status == 200
    found: dict[str, Any] = answer.json["response"]
    return found


@pytest.mark.parametrize(("fields", "reason"), hostile.NOTHING_FOR_US)
def test_what_is_no_creation_of_a_pod_of_ours_is_allowed_as_it_is(
    webhook: Webhook, fields: dict[str, Any], reason: str
) -> None:
    found = response(webhook, body(**fields))
    assert (True, None, reason) == (found["allowed"], found.get("patch"), found["auditAnnotations"]["reason"])


@pytest.mark.parametrize("name", hostile.STRANGE_NAMES)
def test_strange_names_come_back_as_data(webhook: Webhook, name: str) -> None:
    strange = pod(name) | {"metadata": {"name": name, "annotations": {name: name}, "labels": {name: name}}}
    strange["spec"]["containers"][0]["name"] = name
    with webhook.client() as client:
        answer = client.post(body(strange, uid=name[:128]))
    assert (200, name[:128]) == (answer.status, answer.json["response"]["uid"])
    assert not any(byte < ord(" ") or byte == 0x7F for byte in answer.body)


def test_half_a_character_is_no_text(webhook: Webhook) -> None:
    with webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": str(len(body(uid="\ud800")))}))
        client.send(body(uid="\ud800"))
        answer = client.answer()
    assert answer.status == 400
    assert answer.json["error"].startswith("The body is no JSON: JSON is malformed: unexpected end of hex escape")


@pytest.mark.parametrize("annotation", ["device", "min-memory", "selector", "convert", "converted"])
def test_annotations_cannot_bring_expressions_into_a_template(webhook: Webhook, annotation: str) -> None:
    hostile = pod()
    hostile["metadata"]["annotations"] = {f"gpu2dra.dev/{annotation}": "x') || device.driver == 'evil' || ('"}
    audit = response(webhook, body(hostile))["auditAnnotations"]
    # The name ends in a digest of the whole template: it is the one of a pod without the annotation.
    assert audit == {"outcome": "converted", "reason": "none", "templates": "gpu-e66e2886"}


def test_a_huge_pod_is_answered(webhook: Webhook) -> None:
    one = pod()["spec"]["containers"][0]
    huge = pod()
    huge["spec"]["containers"] = [{**one, "name": f"server-{number}"} for number in range(200)]
    assert "patch" in response(webhook, body(huge))


@pytest.mark.parametrize("where", ["containers", "initContainers"])
def test_a_pod_that_no_node_will_ever_run_keeps_nobody_waiting(webhook: Webhook, where: str) -> None:
    one = pod()["spec"]["containers"][0]
    huge = pod()
    huge["spec"][where] = [{**one, "name": f"server-{number}"} for number in range(20_000)]
    answer = response(webhook, body(huge))
    assert answer["allowed"] is True
    assert "patch" not in answer
    assert "asks for devices 20,00" in answer["warnings"][0]


def test_many_warnings_are_not_all_sent(webhook: Webhook) -> None:
    one = pod()["spec"]["containers"][0]
    huge = pod()
    huge["spec"]["containers"] = [
        {**one, "name": f"server-{number}", "resources": {"limits": {"nvidia.com/gpu": f"{number}m"}}}
        for number in range(1, 500)
    ]
    warnings = response(webhook, body(huge))["warnings"]
    assert len(warnings) == 10
    assert warnings[-1].startswith("gpu2dra: and 490 more")


def test_a_pod_with_large_fields_is_answered(webhook: Webhook) -> None:
    large = pod()
    large["spec"]["containers"][0]["args"] = ["x" * 6 * MEBIBYTE]
    assert "patch" in response(webhook, body(large))


CONTAINER_MEMORY = 256 * MEBIBYTE
"""What the chart allows a replica; above it the kernel ends the process."""


def peak(webhook: Webhook) -> int:
    """Return the most memory that the process has ever had, in bytes."""
    status = Path(f"/proc/{webhook.daemons.pids()[webhook.name]}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) * 1024


@pytest.mark.parametrize("value", hostile.SMALL_VALUES)
def test_many_small_values_are_refused_before_they_take_memory(webhooks: Webhooks, value: bytes) -> None:
    with webhooks.running() as webhook:
        with webhook.client() as client:
            content = hostile.filled(value, LIMIT)
            client.send(request("POST", "/mutate", {**JSON, "Content-Length": str(len(content))}) + content)
            assert_refused(client, 413, "The review holds too many values.")
            # One that just fits is answered, on a connection that is as good as before.
            fits = hostile.filled(value, int(0.99 * LIMIT * (ROOM // 2) / weight(content)))
            assert client.post(fits).json["response"]["allowed"] is True
        assert peak(webhook) < CONTAINER_MEMORY * 0.7


@pytest.mark.parametrize("text", ["x", "\N{FIRE}", "x" * 99 + "\N{FIRE}"])
def test_a_long_text_is_answered_within_the_memory_of_the_container(webhooks: Webhooks, text: str) -> None:
    note = pod(note=text * (3 * MEBIBYTE // len(text.encode())))
    content = json.dumps(review(note), ensure_ascii=False).encode()
    with webhooks.running() as webhook, webhook.client() as client:
        assert "patch" in client.post(content).json["response"]
        assert peak(webhook) < CONTAINER_MEMORY * 0.7
