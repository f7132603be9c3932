"""A client of the API server that sends exactly what it is told: plain objects in, plain objects and warnings out.

The tests look at what the server makes of a request, content type and field manager included. The official client
chooses some of that by itself (a JSON patch that is no list goes out as a strategic merge patch), hence this one.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode

import urllib3

if TYPE_CHECKING:
    from pathlib import Path

Object = dict[str, Any]
Value = str | int | bool
T = TypeVar("T")

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML

_TIMEOUT = urllib3.Timeout(connect=5.0, read=30.0)
_POLL = 0.03
_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


class ApiError(Exception):
    """The server refused: `status` is the HTTP status, `reason` the API's reason (as NotFound), `message` its text."""

    def __init__(self, request: str, status: int, answer: Object) -> None:
        self.status = status
        self.reason = str(answer.get("reason", ""))
        self.message = str(answer.get("message", answer))
        super().__init__(f"{request}: {status} {self.reason}: {self.message}")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: HTTP status, the object (a Status when refused), and the warnings that kubectl would print."""

    request: str
    status: int
    object: Object
    warnings: tuple[str, ...]

    @property
    def accepted(self) -> bool:
        """Whether the server did what it was asked."""
        return 200 <= self.status < 300

    def checked(self) -> Object:
        """Return the object; ApiError when the server refused."""
        if not self.accepted:
            raise ApiError(self.request, self.status, self.object)
        return self.object


class Client:
    """Talks to one API server as one user; safe to use from several threads."""

    def __init__(self, server: str, authority: Path, certificate: Path, key: Path) -> None:
        self.server = server
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}
        self._pool = urllib3.PoolManager(
            maxsize=16,
            retries=False,
            timeout=_TIMEOUT,
            ca_certs=str(authority),
            cert_file=str(certificate),
            key_file=str(key),
        )

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def call(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json", /, **query: Value
    ) -> Answer:
        """Send one request; return whatever the server answers, refusals included. Only a broken connection raises."""
        if query:
            texts = {key: str(value).lower() if isinstance(value, bool) else value for key, value in query.items()}
            path = f"{path}?{urlencode(texts)}"
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        sent = None if body is None else json.dumps(body)
        response = self._pool.request(method, self.server + path, body=sent, headers=headers)
        try:
            answer = json.loads(response.data)
        except ValueError:  # /readyz and its like answer with text
            answer = {"message": response.data.decode(errors="replace")}
        warnings = tuple(_WARNING.findall(", ".join(response.headers.getlist("Warning"))))
        return Answer(f"{method} {path}", response.status, answer, warnings)

    def path(self, api_version: str, kind: str, namespace: str | None = None, name: str | None = None) -> str:
        """Return where objects of a kind are served, by discovery; LookupError when the server does not know it."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        if (api_version, kind) not in self._paths:
            served = self.call("GET", root)
            for resource in served.object.get("resources", []) if served.accepted else []:
                if "/" not in resource["name"]:
                    self._paths[api_version, resource["kind"]] = resource["name"], resource["namespaced"]
        if (api_version, kind) not in self._paths:
            msg = f"the server does not serve {kind} of {api_version}"
            raise LookupError(msg)
        plural, namespaced = self._paths[api_version, kind]
        place = f"/namespaces/{namespace}" if namespaced and namespace else ""
        return f"{root}{place}/{plural}" + (f"/{name}" if name else "")

    def serves(self, api_version: str, kind: str) -> bool:
        """Return whether the server serves a kind in a version."""
        try:
            self.path(api_version, kind)
        except LookupError:
            return False
        return True

    def path_of(self, obj: Mapping[str, Any], *, collection: bool = False) -> str:
        """Return where an object is, or where it is posted to."""
        metadata = obj["metadata"]
        name = None if collection else metadata["name"]
        return self.path(obj["apiVersion"], obj["kind"], metadata.get("namespace"), name)

    def try_create(self, obj: Object, **query: Value) -> Answer:
        """POST an object, as the first `kubectl apply` does."""
        return self.call("POST", self.path_of(obj, collection=True), obj, **query)

    def try_patch(self, obj: Object, patch: Any, content_type: str, **query: Value) -> Answer:
        """PATCH the object that `obj` names."""
        return self.call("PATCH", self.path_of(obj), patch, content_type, **query)

    def try_apply(self, obj: Object, manager: str = "gpu2dra-test", **query: Value) -> Answer:
        """Apply on the server's side; `force=True` takes fields over from other managers, `dryRun="All"` only asks."""
        return self.call("PATCH", self.path_of(obj), obj, APPLY_PATCH, fieldManager=manager, **query)

    def create(self, obj: Object, **query: Value) -> Object:
        """POST an object and return it as stored; ApiError when refused."""
        return self.try_create(obj, **query).checked()

    def patch(self, obj: Object, patch: Any, content_type: str, **query: Value) -> Object:
        """PATCH the object that `obj` names and return it as stored; ApiError when refused."""
        return self.try_patch(obj, patch, content_type, **query).checked()

    def apply(self, obj: Object, manager: str = "gpu2dra-test", **query: Value) -> Object:
        """Apply on the server's side and return the object as stored; ApiError when refused."""
        return self.try_apply(obj, manager, **query).checked()

    def put(self, obj: Object, subresource: str = "") -> Object:
        """PUT an object, or its subresource (as `/status`), and return it as stored; ApiError when refused."""
        return self.call("PUT", self.path_of(obj) + subresource, obj).checked()

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        """Return an object; ApiError when there is none."""
        return self.call("GET", self.path(api_version, kind, namespace, name)).checked()

    def read(self, obj: Mapping[str, Any]) -> Object:
        """Return the newest state of an object; ApiError when it is gone."""
        return self.call("GET", self.path_of(obj)).checked()

    def list(self, api_version: str, kind: str, namespace: str | None = None, **query: Value) -> list[Object]:
        """Return the objects of a kind, in one namespace or in all; a list leaves out what each item's kind is."""
        items = self.call("GET", self.path(api_version, kind, namespace), **query).checked()["items"]
        return [{"apiVersion": api_version, "kind": kind} | item for item in items]

    def delete(self, obj: Mapping[str, Any], **query: Value) -> None:
        """Delete an object at once, without the grace that a kubelet would need; gone already is fine."""
        answer = self.call("DELETE", self.path_of(obj), **({"gracePeriodSeconds": 0} | query))
        if answer.status != 404:
            answer.checked()

    def delete_all(self, api_version: str, kind: str, namespace: str | None = None, **query: Value) -> None:
        """Delete all objects of a kind, in one namespace or without one, at once."""
        path = self.path(api_version, kind, namespace)
        self.call("DELETE", path, **({"gracePeriodSeconds": 0} | query)).checked()


def wait_for(what: str, look: Callable[[], T | None], deadline: float = 30.0) -> T:
    """Call `look` until it returns something true and return that; TimeoutError after some seconds."""
    ends = time.monotonic() + deadline
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > ends:
            msg = f"{what}: not within {deadline:g} s"
            raise TimeoutError(msg)
        time.sleep(_POLL)
