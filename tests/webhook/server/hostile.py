"""Bodies that no API server sends: what is no review, what is none of our business, and what only takes memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from webhook.server.running import body, pod, review

MEBIBYTE = 2**20
DEEP = 100_000
OLD_VERSION = (
    "admission.k8s.io/v1beta1 is not spoken here; list only v1 in admissionReviewVersions of the webhook configuration."
)


def _without(field: str) -> bytes:
    asked = review()
    del asked["request"][field]
    return json.dumps(asked).encode()


NO_REVIEWS: Sequence[tuple[bytes, str]] = (
    (b"", "The body is no JSON: Input data was truncated."),
    (b"{", "The body is no JSON: Input data was truncated."),
    (b"\x16\x03\x01", "The body is no JSON: JSON is malformed: invalid character (byte 0)."),
    (b"\xef\xbb\xbf{}", "The body is no JSON: JSON is malformed: invalid character (byte 0)."),
    ("{}".encode("utf-16"), "The body is no JSON: it is not UTF-8."),
    (b'"\xff"', "No AdmissionReview: Expected `object`, got `str`."),
    (b"[]", "No AdmissionReview: Expected `object`, got `array`."),
    (b"null", "No AdmissionReview: Expected `object`, got `null`."),
    (b"{}", "This is no kind of no apiVersion, not an AdmissionReview of admission.k8s.io/v1."),
    (b"[" * DEEP, "No AdmissionReview: Expected `object`, got `array`."),
    (b'{"a":' * DEEP, "The review is nested too deeply."),
    (
        body(pod(deep=json.loads("[" * 500 + "]" * 500))).replace(b"[" * 500, b"[" * DEEP),
        "The review is nested too deeply.",
    ),
    (
        json.dumps(review() | {"kind": "Pod"}).encode(),
        "This is Pod of admission.k8s.io/v1, not an AdmissionReview of admission.k8s.io/v1.",
    ),
    (json.dumps(review() | {"apiVersion": "admission.k8s.io/v1beta1"}).encode(), OLD_VERSION),
    (_without("uid"), "No AdmissionReview: Object missing required field `uid`."),
    (body(uid=""), "The review has no request.uid."),
    (body(uid=7), "No AdmissionReview: Expected `str`, got `int` - at `$.uid`."),
    (body(object=[]), "No AdmissionReview: Expected `object | null`, got `array` - at `$.object`."),
    (body(object=None), "request.object is no Pod of v1, as request.kind says."),
    (body(namespace=""), "The review has no request.namespace."),
    (body(namespace="x" * MEBIBYTE), "request.namespace has more than 63 letters."),
)
"""What is refused with a status of 400, and the reason."""

NOTHING_FOR_US: Sequence[tuple[dict[str, Any], str]] = (
    ({"object": pod() | {"metadata": {"namespace": "team-b"}}}, "namespace-mismatch"),
    ({"namespace": "kube-system"}, "excluded-namespace"),
    ({"subResource": "eviction"}, "subresource"),
    ({"subResource": "ephemeralcontainers", "operation": "UPDATE"}, "subresource"),
    ({"operation": "DELETE"}, "other-operation"),
    ({"operation": "CONNECT"}, "other-operation"),
    ({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}, "other-kind"),
    ({"resource": {"group": "", "version": "v1", "resource": "secrets"}}, "other-kind"),
)
"""Fields of requests of which none is the creation of a pod in a namespace of ours, and the reason in the answer."""

STRANGE_NAMES: Sequence[str] = (
    "имя-🚀",
    "line\nbreak",
    "nul\x00",
    "\x1b[2J\x1b[31mred",
    "a/b~c",
    "' || true || '",
    "${jndi:ldap://x}",
    "{{ .Values }}",
    "x" * 100_000,
)

SMALL_VALUES: Sequence[bytes] = (b"{}", b"[]", b'{"":0}', b'{"":{"":{"":{"":{"":0}}}}}', b"[[[[[[0]]]]]]", b'"a"', b"0")
"""Of which seven mebibytes take hundreds when they are decoded."""


def filled(value: bytes, size: int, **fields: Any) -> bytes:
    """Return a review of about `size` bytes whose pod has a list of this value again and again."""
    frame = body(pod(x="HERE"), **fields)
    count = (size - len(frame)) // (len(value) + 1)
    return frame.replace(b'"HERE"', b"[%s]" % b",".join([value] * count))
