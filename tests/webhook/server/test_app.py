"""The HTTP layer alone: statuses, the time that the API server gives, probes. No pod and no server is needed."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra_webhook.app import create_app, create_side_app
from gpu2dra_webhook.metrics import CONTENT_TYPE
from gpu2dra_webhook.readiness import Readiness
from gpu2dra_webhook.reviews import BadReview

if TYPE_CHECKING:
    from flask.testing import FlaskClient

LIMIT = 100


class Handler:
    """Takes down what it is asked; answers with what it got, or raises what it was given."""

    def __init__(self) -> None:
        self.asked: list[tuple[bytes, float]] = []
        self.error: Exception | None = None

    def __call__(self, body: bytes, timeout: float) -> bytes:
        """Handle one review."""
        self.asked.append((body, timeout))
        if self.error:
            raise self.error
        return b'{"answer":' + body + b"}"


@pytest.fixture
def handler() -> Handler:
    return Handler()


@pytest.fixture
def refusals() -> list[int]:
    return []


@pytest.fixture
def missing() -> list[str]:
    """Return what the check `cache` will say is missing."""
    return []


@pytest.fixture
def client(handler: Handler, missing: list[str], refusals: list[int]) -> FlaskClient:
    readiness = Readiness({"cache": lambda: missing}, {"classes": lambda: ["gpu.nvidia.com is missing"]})
    return create_app(handler, readiness, LIMIT, refusals.append).test_client()


@pytest.fixture
def asked(client: FlaskClient, handler: Handler, refusals: list[int]) -> tuple[FlaskClient, Handler, list[int]]:
    """Return the client with all that takes down what it does."""
    return client, handler, refusals


def test_the_body_goes_to_the_handler_and_its_answer_back(client: FlaskClient, handler: Handler) -> None:
    answer = client.post("/mutate", data=b"{}", content_type="application/json; charset=utf-8")
    assert (answer.status_code, answer.content_type, answer.data) == (200, "application/json", b'{"answer":{}}')
    assert handler.asked == [(b"{}", 10.0)]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", 10.0), ("?timeout=3s", 3.0), ("?timeout=1m0s", 30.0), ("?timeout=500ms", 0.5), ("?timeout=30s", 30.0),
        ("?timeout=24h", 30.0), ("?timeout=soon", 10.0), ("?timeout=-1s", 10.0), ("?timeout=0s", 10.0),
        ("?timeout=", 10.0), ("?timeout=5s&timeout=9s", 5.0), ("?other=1s", 10.0), ("?timeout=%00", 10.0),
    ],
)  # fmt: skip
def test_the_time_is_what_the_api_server_says(
    client: FlaskClient, handler: Handler, query: str, expected: float
) -> None:
    client.post(f"/mutate{query}", data=b"1", content_type="application/json")
    assert handler.asked == [(b"1", expected)]


@pytest.mark.parametrize(
    ("method", "path", "sent", "expected"),
    [
        ("POST", "/mutate", {"content_type": "text/plain", "data": b"1"}, (415, "send application/json")),
        ("POST", "/mutate", {"data": b"1"}, (415, "send application/json")),
        ("POST", "/mutate", {"json": "1" * LIMIT}, (413, "the body is too large")),
        ("GET", "/mutate", {}, (405, "method not allowed")),
        ("DELETE", "/mutate", {}, (405, "method not allowed")),
        ("POST", "/livez", {}, (405, "method not allowed")),
        ("GET", "/nothing", {}, (404, "not found")),
        ("GET", "/static/x", {}, (404, "not found")),
    ],
)
def test_what_cannot_be_a_review_does_not_reach_the_handler(
    asked: tuple[FlaskClient, Handler, list[int]],
    method: str,
    path: str,
    sent: dict[str, Any],
    expected: tuple[int, str],
) -> None:
    client, handler, refusals = asked
    answer = client.open(path, method=method, **sent)
    assert (answer.status_code, json.loads(answer.data)["error"]) == expected
    assert refusals == [expected[0]]
    assert handler.asked == []


def test_a_body_of_the_allowed_size_reaches_the_handler(client: FlaskClient, handler: Handler) -> None:
    assert client.post("/mutate", data=b"1" * LIMIT, content_type="application/json").status_code == 200
    assert len(handler.asked[0][0]) == LIMIT


def test_a_bad_review_is_answered_with_its_reason(client: FlaskClient, handler: Handler) -> None:
    handler.error = BadReview("The review has no uid.")
    answer = client.post("/mutate", data=b"1", content_type="application/json")
    assert (answer.status_code, json.loads(answer.data)) == (400, {"error": "The review has no uid."})


def test_an_error_of_ours_is_in_the_log_and_not_in_the_answer(
    client: FlaskClient, handler: Handler, caplog: pytest.LogCaptureFixture
) -> None:
    handler.error = ZeroDivisionError("secret")
    with caplog.at_level(logging.ERROR):
        answer = client.post("/mutate", data=b"1", content_type="application/json")
    assert (answer.status_code, json.loads(answer.data)) == (
        500,
        {"error": "an error in the webhook; its log says more"},
    )
    (record,) = caplog.records
    fields = vars(record)
    assert (fields["error"], "raise self.error" in fields["trace"]) == ("ZeroDivisionError", True)
    assert "secret" not in str(fields)


def test_it_is_alive_whatever_is_missing(client: FlaskClient, missing: list[str]) -> None:
    missing.append("templates")
    answer = client.get("/livez")
    assert (answer.status_code, json.loads(answer.data)) == (200, {"alive": True})


def test_readiness_says_what_is_missing(client: FlaskClient, missing: list[str]) -> None:
    ready = client.get("/readyz")
    assert (ready.status_code, json.loads(ready.data)) == (200, {"ready": True, "missing": {}})
    missing.append("templates")
    not_ready = client.get("/readyz")
    assert (not_ready.status_code, json.loads(not_ready.data)) == (
        503,
        {"ready": False, "missing": {"cache": ["templates"]}},
    )


def test_readiness_tells_details_to_who_asks_for_them(client: FlaskClient) -> None:
    assert json.loads(client.get("/readyz?verbose").data) == {
        "ready": True,
        "missing": {},
        "checks": ["cache", "classes"],
        "details": {"classes": ["gpu.nvidia.com is missing"]},
    }


def test_the_port_without_tls_takes_no_reviews() -> None:
    side = create_side_app(lambda: b"metric 1\n", Readiness({}, {})).test_client()
    metrics = side.get("/metrics")
    assert (metrics.data, metrics.content_type) == (b"metric 1\n", CONTENT_TYPE)
    assert side.get("/readyz").status_code == 200
    assert side.get("/livez").status_code == 200
    answer = side.post("/mutate", data=b"1", content_type="application/json")
    assert (answer.status_code, json.loads(answer.data)) == (404, {"error": "not found"})
