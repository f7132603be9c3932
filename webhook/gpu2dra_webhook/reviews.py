"""Admission reviews on the wire (admission.k8s.io/v1): bytes to a Review, an Answer to bytes, and what is no review."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from gpu2dra import Operation
from gpu2dra.names import LABEL_LENGTH

API_VERSION = "admission.k8s.io/v1"
KIND = "AdmissionReview"
WARNING_LENGTH = 120
"""Longest warning that the API's documentation advises; kubectl prints each on a line of its own."""
_MOST_WARNINGS = 10
"""The API server cuts what all webhooks say off at 4 KiB."""
_OF_THE_PAST = "admission.k8s.io/v1beta1"


class BadReview(Exception):
    """The body is no admission review that can be answered; `message` may go to whoever sent it, with HTTP `status`."""

    status = 400

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class GroupVersionKind(msgspec.Struct, frozen=True):
    """A kind of the API, as the review names it."""

    version: str
    kind: str
    group: str = ""


class GroupVersionResource(msgspec.Struct, frozen=True):
    """A resource of the API, as the review names it."""

    version: str
    resource: str
    group: str = ""


class Review(msgspec.Struct, frozen=True, rename="camel"):
    """The request of a review, as far as it is of use here; objects are plain data, absent fields are empty."""

    uid: str
    kind: GroupVersionKind
    resource: GroupVersionResource
    operation: str
    sub_resource: str | None = None
    namespace: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None
    dry_run: bool | None = None


class _Body(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    request: msgspec.Raw = msgspec.Raw(b"null")


_LONGEST: Mapping[str, int] = MappingProxyType({"uid": 128, "namespace": LABEL_LENGTH, "operation": 16})
"""Most letters of what is kept or logged: an API server sends a UUID, a DNS label and one of four words."""

_body = msgspec.json.Decoder(_Body)
_review = msgspec.json.Decoder(Review)


class Status(TypedDict):
    """Why a request is denied, as the API server passes it on."""

    code: int
    reason: str
    message: str


class Response(TypedDict):
    """The response of an AdmissionReview."""

    uid: str
    allowed: bool
    status: NotRequired[Status]
    patchType: NotRequired[Literal["JSONPatch"]]
    patch: NotRequired[str]
    warnings: NotRequired[list[str]]
    auditAnnotations: NotRequired[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Denial:
    """Why a pod is refused: an HTTP status code with its reason in Kubernetes' words, and a sentence for the user."""

    code: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server is told: nothing but `allowed` for a pod that stays as it is."""

    denial: Denial | None = None
    operations: Sequence[Operation] = ()
    warnings: Sequence[str] = ()
    audit: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def decode(body: bytes) -> Review:
    """Return the review in `body`; raise BadReview, which says what is wrong with it, when there is none."""
    try:
        envelope = _body.decode(body)
        if envelope.kind != KIND or envelope.api_version != API_VERSION:
            raise BadReview(_other(envelope))
        review = _review.decode(envelope.request)
    except RecursionError as error:
        raise BadReview("The review is nested too deeply.") from error
    except msgspec.ValidationError as error:
        raise BadReview(f"No AdmissionReview: {shown(str(error))}.") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise BadReview(f"The body is no JSON: {_json_problem(body, error)}.") from error
    if not review.uid:
        raise BadReview("The review has no request.uid.")
    for name, most in _LONGEST.items():
        if len(getattr(review, name)) > most:
            raise BadReview(f"request.{name} has more than {most} letters.")
    return review


def _json_problem(body: bytes, error: Exception) -> str:
    """Return what is wrong with JSON, which releases of msgspec say in different words where it is no UTF-8."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return "it is not UTF-8"
    return shown(str(error))


def _other(envelope: _Body) -> str:
    if envelope.kind == KIND and envelope.api_version == _OF_THE_PAST:
        return (
            f"{_OF_THE_PAST} is not spoken here; list only v1 in admissionReviewVersions of the webhook configuration."
        )
    found = shown(f"{envelope.kind or 'no kind'} of {envelope.api_version or 'no apiVersion'}")
    return f"This is {found}, not an AdmissionReview of {API_VERSION}."


def encode(review: Review, answer: Answer) -> bytes:
    """Return the AdmissionReview that answers `review`."""
    response = Response(uid=review.uid, allowed=answer.denial is None)
    if answer.denial:
        denial = answer.denial
        response["status"] = Status(code=denial.code, reason=denial.reason, message=shown(denial.message, 1024))
    elif answer.operations:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.operations)).decode("ascii")
    if answer.warnings:
        response["warnings"] = [shown(warning) for warning in _foremost(answer.warnings)]
    if answer.audit:
        response["auditAnnotations"] = {key: shown(value, 1024) for key, value in answer.audit.items()}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _foremost(warnings: Sequence[str]) -> list[str]:
    """Return the warnings that are told, each once; of too many the first, and how many more there are."""
    told = list(dict.fromkeys(warnings))
    if len(told) > _MOST_WARNINGS:
        more = len(told) - _MOST_WARNINGS + 1
        told[-more:] = [f"gpu2dra: and {more} more; gpu2dra check tells them all"]
    return told


def shown(text: str, length: int = WARNING_LENGTH) -> str:
    """Return `text` in one line of at most `length` letters that a terminal can print.

    Names in a review may hold anything, and the API server drops a warning with a control character in it.
    """
    line = "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"
