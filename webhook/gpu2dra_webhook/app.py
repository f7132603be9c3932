"""The HTTP side of the webhook: Flask apps that know bodies, statuses and times, but neither pods nor clusters."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from gpu2dra_webhook.durations import seconds
from gpu2dra_webhook.logs import fault
from gpu2dra_webhook.metrics import CONTENT_TYPE as METRICS_CONTENT_TYPE
from gpu2dra_webhook.readiness import Readiness
from gpu2dra_webhook.reviews import BadReview

if TYPE_CHECKING:
    from collections.abc import Iterable

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_log = logging.getLogger(__name__)

_JSON = "application/json"

DEFAULT_TIMEOUT = 10.0
LONGEST_TIMEOUT = 30.0
"""The API's own bounds of timeoutSeconds (admissionregistration.k8s.io/v1)."""

Handle = Callable[[bytes, float], bytes]
"""Takes the body of a request and the seconds that there are, and returns the body of the answer. Raises BadReview."""


class _Refused(Exception):
    """A request that holds nothing for `Handle`: the HTTP status, and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class App(Flask):
    """A Flask app that answers a POST to /mutate before Flask's own work for a request begins.

    That work takes longer than decoding, deciding and encoding together, and a review needs nothing of it. All else
    (other methods, other paths) goes the usual way.
    """

    mutate: WSGIApplication

    def wsgi_app(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        if environ["PATH_INFO"] == "/mutate" and environ["REQUEST_METHOD"] == "POST":
            return self.mutate(environ, start_response)
        return super().wsgi_app(environ, start_response)


def create_app(
    handle: Handle,
    readiness: Readiness,
    body_limit: int,
    on_refusal: Callable[[int], None] = lambda status: None,
) -> Flask:
    """Return the app: POST /mutate, GET /livez and /readyz. `on_refusal` hears of each status of 400 and above."""
    app = App(__name__, static_folder=None)

    def refuse(error: Exception) -> Response:
        status, reason = _status(error)
        on_refusal(status)
        return _json({"error": reason}, status)

    def mutate(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            answer = handle(_body(environ, body_limit), _timeout(environ.get("QUERY_STRING", "")))
        except Exception as error:  # noqa: BLE001 - each becomes an answer, and is logged where it is a surprise
            return refuse(error)(environ, start_response)
        start_response("200 OK", [("Content-Type", _JSON), ("Content-Length", str(len(answer)))])
        return [answer]

    app.mutate = mutate
    app.errorhandler(Exception)(refuse)
    # Only for Flask to know that path and its method: see App.
    app.add_url_rule("/mutate", "mutate", lambda: mutate, methods=["POST"])
    _add_health(app, readiness)
    return app


def create_side_app(render_metrics: Callable[[], bytes], readiness: Readiness) -> Flask:
    """Return the app of the port without TLS, for probes and scrapes: GET /metrics, /livez and /readyz."""
    app = Flask(__name__, static_folder=None)
    app.errorhandler(HTTPException)(lambda error: _json({"error": error.name.lower()}, error.code))
    app.add_url_rule("/metrics", "metrics", lambda: Response(render_metrics(), content_type=METRICS_CONTENT_TYPE))
    _add_health(app, readiness)
    return app


def _add_health(app: Flask, readiness: Readiness) -> None:
    app.add_url_rule("/livez", "livez", lambda: _json({"alive": True}))
    app.add_url_rule("/readyz", "readyz", lambda: _readyz(readiness))


def _body(environ: WSGIEnvironment, limit: int) -> bytes:
    content_type: str = environ.get("CONTENT_TYPE", "")
    if content_type.partition(";")[0].strip().lower() != _JSON:
        raise _Refused(415, f"send {_JSON}")
    # A body without a length comes in chunks, whose end the server knows.
    length = int(environ.get("CONTENT_LENGTH") or 0)
    body: bytes = b"" if length > limit else environ["wsgi.input"].read(length or limit + 1)
    if max(length, len(body)) > limit:
        raise _Refused(413, "the body is too large")
    return body


@functools.lru_cache(maxsize=64)  # an API server asks with few different ones
def _timeout(query: str) -> float:
    """Return the seconds that the API server waits: `timeout=10s`."""
    values = parse_qs(query).get("timeout", [""])
    return min(seconds(values[0]) or DEFAULT_TIMEOUT, LONGEST_TIMEOUT)


def _status(error: Exception) -> tuple[int, str]:
    """Return the HTTP status and the reason that the client may know."""
    if isinstance(error, (BadReview, _Refused)):
        return error.status, error.message
    if isinstance(error, HTTPException):
        return error.code or 500, error.name.lower()
    _log.error("uncaught", extra=fault(error))
    return 500, "an error in the webhook; its log says more"


def _readyz(readiness: Readiness) -> Response:
    missing = readiness.missing()
    found: dict[str, Any] = {"ready": not missing, "missing": missing}
    if "verbose" in request.args:
        found |= {"checks": readiness.names(), "details": readiness.details()}
    return _json(found, 503 if missing else 200)


def _json(value: object, status: int | None = 200) -> Response:
    return Response(msgspec.json.encode(value), status, mimetype=_JSON)
