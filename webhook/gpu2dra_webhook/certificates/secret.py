"""The Secret that holds the certificate authorities, shared by all replicas. Nothing else is ever read or written."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from gpu2dra import Object
from gpu2dra.templates import MANAGED_BY
from gpu2dra_webhook.certificates.authority import CertificateError, parse, to_pem
from gpu2dra_webhook.certificates.rotation import Authorities
from gpu2dra_webhook.cluster.client import Api, path
from gpu2dra_webhook.cluster.errors import NotFound
from gpu2dra_webhook.cluster.template_api import MANAGER

CERTIFICATES = "ca.crt"
KEYS = "ca.key"
_TIMEOUT = 5.0
_MANAGER = {"fieldManager": MANAGER}
_CLOCK = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@dataclass(frozen=True, slots=True)
class Stored:
    """What was found: the authorities, and the object that they are in, None when there is no Secret."""

    authorities: Authorities = ()
    secret: Object | None = field(default=None, repr=False)


class AuthoritySecret:
    """One Secret by its name. Every call may raise ApiError."""

    def __init__(self, api: Api, namespace: str, name: str) -> None:
        self.title = f"Secret {namespace}/{name}"
        self._api = api
        self._metadata = {"name": name, "namespace": namespace, "labels": MANAGED_BY}
        self._collection = path("/api/v1/namespaces", namespace, "secrets")
        self._path = path(self._collection, name)

    def read(self) -> Stored:
        """Return what the Secret holds.

        Raises CertificateError for one that is not ours or cannot be understood: it is left as it is.
        """
        try:
            secret = self._api.read("GET", self._path, timeout=_TIMEOUT)
        except NotFound:
            return Stored()
        labels: Mapping[str, str] = secret["metadata"].get("labels") or {}
        if not MANAGED_BY.items() <= labels.items():
            wanted = ",".join(f"{key}={value}" for key, value in MANAGED_BY.items())
            raise CertificateError(
                f"{self.title} is not gpu2dra's (it lacks the label {wanted}), so it is left alone: "
                "delete or rename it, or choose another service name."
            )
        data: Mapping[str, str] = secret.get("data") or {}
        try:
            certificates, keys = (base64.b64decode(data.get(name, "")) for name in (CERTIFICATES, KEYS))
            return Stored(parse(certificates, keys), secret)
        except (CertificateError, binascii.Error) as error:
            raise CertificateError(
                f"{self.title} is broken: {error}. It is left as it is; delete it, and a new one is made."
            ) from error

    def write(self, before: Stored, authorities: Authorities) -> None:
        """Store authorities in place of what was read; AlreadyExists or Conflict when somebody was faster."""
        texts = dict(zip((CERTIFICATES, KEYS), to_pem(authorities), strict=True))
        data = {name: base64.b64encode(text).decode() for name, text in texts.items()}
        if before.secret is None:
            secret = {"apiVersion": "v1", "kind": "Secret", "metadata": self._metadata, "type": "Opaque", "data": data}
            self._api.call("POST", self._collection, secret, query=_MANAGER, timeout=_TIMEOUT)
        else:  # with the resourceVersion that was read
            secret = before.secret | {"data": (before.secret.get("data") or {}) | data}
            self._api.call("PUT", self._path, secret, query=_MANAGER, timeout=_TIMEOUT)

    def server_time(self) -> float:
        """Return what the API server's clock says, in seconds since the epoch."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        answer = self._api.read("POST", _CLOCK, review, query=_MANAGER, timeout=_TIMEOUT)
        return datetime.fromisoformat(answer["metadata"]["creationTimestamp"]).timestamp()
