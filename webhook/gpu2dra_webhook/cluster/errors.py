"""The error tree of calls to the API server, by HTTP status and the API's own reason."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

import msgspec


class _Cause(msgspec.Struct):
    reason: str = ""
    message: str = ""


class _Details(msgspec.Struct):
    kind: str = ""
    causes: list[_Cause] | None = None
    retryAfterSeconds: int = 0  # noqa: N815 - the API's own spelling


class Status(msgspec.Struct):
    """What the API server answers with when it refuses (`kind: Status`), as far as it matters here."""

    reason: str = ""
    message: str = ""
    code: int = 0
    details: _Details | None = None


class ApiError(Exception):
    """A call did not do what it was to do; `message` is one sentence without the call itself."""

    def __init__(self, call: str, message: str) -> None:
        super().__init__(f"{call}: {message}")
        self.message = message


class Unreachable(ApiError):
    """Nobody answered: no connection, or a broken one. Whether the call has done its work is not known."""


class TimedOut(Unreachable):
    """No answer in the time that the call had."""


class Refused(ApiError):
    """The API server answered with a status of 400 or above."""

    def __init__(self, call: str, status: int, answer: Status, retry_after: float = 0) -> None:
        super().__init__(call, answer.message or f"HTTP status {status}")
        self.status = status
        self.reason = answer.reason
        details = answer.details or _Details()
        self.kind = details.kind
        self.causes = frozenset(cause.reason for cause in details.causes or ())
        self.retry_after = max(retry_after, float(details.retryAfterSeconds))


class Forbidden(Refused):
    """403: no right to do it, or an admission plugin (quota, a namespace that is being deleted) said no."""


class NotFound(Refused):
    """404: no such object, or the server does not serve such a path."""


class AlreadyExists(Refused):
    """409 on a create: the name is taken."""


class Conflict(Refused):
    """409 on a change: the object is not, or no longer, the one that was meant."""


class Expired(Refused):
    """410: the resourceVersion or the continue token is too old; list again."""


class Invalid(Refused):
    """400 or 422: the server does not take such an object."""


class Overloaded(Refused):
    """429 or 5xx: the server, or what it depends on, cannot do it now; `retry_after` is in seconds, 0 if not said."""


_BY_REASON: dict[tuple[int, str], type[Refused]] = {(HTTPStatus.CONFLICT, "AlreadyExists"): AlreadyExists}
_BY_STATUS: dict[int, type[Refused]] = {
    HTTPStatus.BAD_REQUEST: Invalid,
    HTTPStatus.FORBIDDEN: Forbidden,
    HTTPStatus.NOT_FOUND: NotFound,
    HTTPStatus.CONFLICT: Conflict,
    HTTPStatus.GONE: Expired,
    HTTPStatus.UNPROCESSABLE_ENTITY: Invalid,
    HTTPStatus.TOO_MANY_REQUESTS: Overloaded,
}


def refusal(call: str, status: int, body: bytes, retry_after: str | None = None) -> Refused:
    """Return the error for an answer with this HTTP status, body and `Retry-After` header."""
    try:
        answer = msgspec.json.decode(body, type=Status)
    except msgspec.DecodeError:  # a proxy's page, or the plain text of a filter in front of the API
        answer = Status(message=_first_line(body))
    kind = _BY_REASON.get((status, answer.reason)) or _BY_STATUS.get(status)
    if kind is None:
        kind = Overloaded if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Refused
    return kind(call, status, answer, _seconds(retry_after))


def _first_line(body: bytes) -> str:
    lines: list[Any] = body.decode(errors="replace").strip().splitlines()
    return lines[0][:200] if lines else ""


def _seconds(header: str | None) -> float:
    return float(header) if header and header.isascii() and header.isdigit() else 0.0
