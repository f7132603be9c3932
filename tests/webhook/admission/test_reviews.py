"""Admission reviews on the wire: what is read, what is refused and why, what is written."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from gpu2dra_webhook.reviews import Answer, BadReview, Denial, decode, encode, shown
from unit.build import container, pod
from webhook.admission.asking import UID, body, request

V1 = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
V1_ONLY = "list only v1 in admissionReviewVersions of the webhook configuration."
REVIEW = decode(body(pod(container("main", 1))))


def refused(data: bytes) -> str:
    with pytest.raises(BadReview) as caught:
        decode(data)
    assert caught.value.status == 400
    assert str(caught.value) == caught.value.message
    return caught.value.message


def test_the_request_is_read_and_fields_of_the_future_are_no_error() -> None:
    obj = pod(container("main", 1), newField={"a": [1.5, None]})
    review = decode(body(obj, "UPDATE", old={"a": 1}, dryRun=True, subResource="status", newField=1))
    assert (review.uid, review.operation, review.namespace) == (UID, "UPDATE", "ml")
    assert (review.object, review.old_object, review.dry_run, review.sub_resource) == (obj, {"a": 1}, True, "status")
    assert (review.kind.group, review.kind.version, review.kind.kind) == ("", "v1", "Pod")
    assert (review.resource.group, review.resource.version, review.resource.resource) == ("", "v1", "pods")


def test_absent_and_null_fields_are_empty() -> None:
    short = {key: request(None)[key] for key in ("uid", "kind", "resource", "operation")}
    for more in ({}, {"object": None, "oldObject": None, "dryRun": None, "subResource": None}):
        review = decode(json.dumps(V1 | {"request": short | more}).encode())
        assert (review.namespace, review.object, review.old_object) == ("", None, None)
        assert not review.dry_run
        assert not review.sub_resource


def test_numbers_keep_their_value() -> None:
    spec = {"big": 2**70, "negative": -(2**63), "float": 0.1, "zero": 0}
    assert decode(body({"spec": spec})).object == {"spec": spec}


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "The body is no JSON: Input data was truncated."),
        (b"[]", "No AdmissionReview: Expected `object`, got `array`."),
        (b"null", "No AdmissionReview: Expected `object`, got `null`."),
        (b"{}", "This is no kind of no apiVersion, not an AdmissionReview of admission.k8s.io/v1."),
        (b'{"kind":"AdmissionReview"', "The body is no JSON: Input data was truncated."),
        (b"\xff\xfe{}", "The body is no JSON: it is not UTF-8."),
        (b'{"kind":"\xff"}', "The body is no JSON: it is not UTF-8."),
        (b"kind: AdmissionReview", "The body is no JSON: JSON is malformed: invalid character (byte 0)."),
        (json.dumps({"kind": "Pod", "apiVersion": "v1"}).encode(),
         "This is Pod of v1, not an AdmissionReview of admission.k8s.io/v1."),
        (json.dumps(V1 | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(),
         f"admission.k8s.io/v1beta1 is not spoken here; {V1_ONLY}"),
        (json.dumps(V1 | {"apiVersion": "admission.k8s.io/v2"}).encode(),
         "This is AdmissionReview of admission.k8s.io/v2, not an AdmissionReview of admission.k8s.io/v1."),
        (json.dumps(V1 | {"kind": "A\x1b[31m" + "x" * 500}).encode(),
         f"This is A\N{REPLACEMENT CHARACTER}[31m{'x' * 113}…, not an AdmissionReview of admission.k8s.io/v1."),
        (json.dumps(V1).encode(), "No AdmissionReview: Expected `object`, got `null`."),
        (json.dumps(V1 | {"request": []}).encode(), "No AdmissionReview: Expected `object`, got `array`."),
        (body({}, uid=""), "The review has no request.uid."),
        (body({}, uid=1), "No AdmissionReview: Expected `str`, got `int` - at `$.uid`."),
        (body({}, uid=None), "No AdmissionReview: Expected `str`, got `null` - at `$.uid`."),
        (body({}, kind="Pod"), "No AdmissionReview: Expected `object`, got `str` - at `$.kind`."),
        (body({}, dryRun=["CREATE"]), "No AdmissionReview: Expected `bool | null`, got `array` - at `$.dryRun`."),
        (body([]), "No AdmissionReview: Expected `object | null`, got `array` - at `$.object`."),
        (body("pod"), "No AdmissionReview: Expected `object | null`, got `str` - at `$.object`."),
        (body({}, dryRun="yes"), "No AdmissionReview: Expected `bool | null`, got `str` - at `$.dryRun`."),
        (body({}).replace(b'"object": {}', b'"object": ' + nested(100_000)), "The review is nested too deeply."),
        (b'{"request":' + b"[" * 1_000_000, "The review is nested too deeply."),
        (body({"a": 1}).replace(b'"a": 1', b'"a": ' + b"1" * 10_000),
         "No AdmissionReview: Integer value out of range - at `$.object[...]`."),
    ],
)  # fmt: skip
def test_what_is_no_review_is_refused_with_a_short_reason(data: bytes, message: str) -> None:
    assert refused(data) == message


@pytest.mark.parametrize(("field", "most"), [("uid", 128), ("namespace", 63), ("operation", 16)])
def test_what_is_kept_of_a_review_is_short(field: str, most: int) -> None:
    assert getattr(decode(body({}, **{field: "ü" * most})), field) == "ü" * most
    assert refused(body({}, **{field: "ü" * (most + 1)})) == f"request.{field} has more than {most} letters."


@pytest.mark.parametrize("missing", ["uid", "kind", "resource", "operation"])
def test_a_field_that_every_request_has_must_be_there(missing: str) -> None:
    data = request({})
    del data[missing]
    message = refused(json.dumps(V1 | {"request": data}).encode())
    assert message == f"No AdmissionReview: Object missing required field `{missing}`."


def response(answer: Answer) -> Any:
    data = json.loads(encode(REVIEW, answer))
    assert data.keys() == {"apiVersion", "kind", "response"}
    assert V1.items() <= data.items()
    return data["response"]


def test_an_answer_without_anything_only_allows() -> None:
    assert response(Answer()) == {"uid": UID, "allowed": True}


def test_operations_become_a_patch_in_base64() -> None:
    made = response(Answer(operations=[{"op": "add", "path": "/é~1", "value": {"ü": None}}]))
    assert made.keys() == {"uid", "allowed", "patchType", "patch"}
    assert made["patchType"] == "JSONPatch"
    assert json.loads(base64.b64decode(made["patch"], validate=True)) == [
        {"op": "add", "path": "/é~1", "value": {"ü": None}}
    ]


def test_a_denial_carries_a_status_and_no_patch() -> None:
    denial = Denial(503, "ServiceUnavailable", "line\none")
    made = response(Answer(denial=denial, operations=[{"op": "remove", "path": "/a"}], warnings=["careful"]))
    message = "line\N{REPLACEMENT CHARACTER}one"
    assert made == {
        "uid": UID,
        "allowed": False,
        "status": {"code": 503, "reason": "ServiceUnavailable", "message": message},
        "warnings": ["careful"],
    }


def test_warnings_are_short_printable_and_said_once() -> None:
    made = response(Answer(warnings=["a\tb", "x" * 121, "a\tb", "x" * 120]))
    assert made["warnings"] == ["a\N{REPLACEMENT CHARACTER}b", "x" * 119 + "…", "x" * 120]


def test_audit_annotations_are_texts() -> None:
    assert response(Answer(audit={"outcome": "converted"}))["auditAnnotations"] == {"outcome": "converted"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a b", "a b"),
        ("a\u2028b", "a\ufffdb"),
        ("a\u00a0b", "a\ufffdb"),
        ("\x1b[0m", "\ufffd[0m"),
        ("abcdef", "abcd…"),
        ("abc  def", "abc…"),
        ("äöü", "äöü"),
    ],
)
def test_what_is_shown_fits_one_line(text: str, expected: str) -> None:
    assert shown(text, 5) == expected
