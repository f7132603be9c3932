"""The calls about ResourceClaimTemplates that the store and the janitor make, each counted."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from gpu2dra import Object
from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.client import MERGE_PATCH, Api, path
from gpu2dra_webhook.cluster.objects import UNUSED_SINCE, PodObject, Template, TemplateObject, pod, template

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.cache import Key
    from gpu2dra_webhook.cluster.discovery import Discovery
    from gpu2dra_webhook.metrics import Metrics

OUR_NAME = re.compile(r"gpu-[0-9a-f]{8}")
"""Names that the webhook gives (R8); nothing else is ever marked, deleted or put back."""
MANAGER = "gpu2dra"
"""Field manager of all that the webhook writes."""

_RESULTS: dict[type[Exception], str] = {
    errors.AlreadyExists: "exists", errors.Conflict: "conflict", errors.NotFound: "not_found",
    errors.TimedOut: "timeout", errors.Unreachable: "unreachable", errors.Overloaded: "overloaded",
}  # fmt: skip
_PAGE = 500
Operation = Literal["create", "get", "mark", "unmark", "delete"]


class _PodList(msgspec.Struct):
    items: list[PodObject] | None = None
    metadata: dict[str, Any] = {}


class TemplateApi:
    """Templates of one API server, by the version that it serves. Every method raises ApiError."""

    def __init__(self, api: Api, discovery: Discovery, metrics: Metrics) -> None:
        self.api = api
        self._discovery = discovery
        self._metrics = metrics

    def create(self, namespace: str, obj: Object, *, timeout: float, dry_run: bool) -> Template:
        """POST a template and return what was stored, or would have been."""
        where = path(f"/apis/{obj['apiVersion']}/namespaces", namespace, "resourceclaimtemplates")
        query = {"fieldManager": MANAGER} | ({"dryRun": "All"} if dry_run else {})
        with self._counted("create"):
            return _decoded(self.api.call("POST", where, obj, query=query, timeout=timeout))

    def get(self, key: Key, *, timeout: float) -> Template | None:
        """Return what is stored now, or None."""
        with self._counted("get"):
            try:
                return _decoded(self.api.call("GET", self._path(key), timeout=timeout))
            except errors.NotFound:
                return None

    def mark(self, key: Key, seen: Template, since: str | None, *, timeout: float) -> Template:
        """Write since when a template is unused, or with None that it is used; Conflict when it is no longer `seen`."""
        # The resourceVersion is enough: an object made anew under the name has another one.
        patch = {"metadata": {"resourceVersion": seen.resource_version, "annotations": {UNUSED_SINCE: since}}}
        with self._counted("mark" if since else "unmark"):
            answer = self.api.call(
                "PATCH", self._path(key), patch, content_type=MERGE_PATCH, query={"fieldManager": MANAGER},
                timeout=timeout,
            )  # fmt: skip
            return _decoded(answer)

    def delete(self, key: Key, seen: Template, *, timeout: float) -> None:
        """Delete a template; Conflict when it is no longer `seen`, NotFound when it is gone already."""
        preconditions = {"uid": seen.uid, "resourceVersion": seen.resource_version}
        with self._counted("delete"):
            self.api.call("DELETE", self._path(key), {"preconditions": preconditions}, timeout=timeout)

    def named_by_pods(self, namespace: str, *, timeout: float) -> frozenset[str]:
        """Return the names of the templates that pods of a namespace name now, whoever has made those pods."""
        names: set[str] = set()
        query: dict[str, str | int] = {"limit": _PAGE}
        while True:
            where = path("/api/v1/namespaces", namespace, "pods")
            page = msgspec.json.decode(self.api.call("GET", where, query=query, timeout=timeout), type=_PodList)
            for item in page.items or ():
                if found := pod(item):
                    names |= found.templates
            if not (token := page.metadata.get("continue")):
                return frozenset(names)
            query["continue"] = token

    def _path(self, key: Key) -> str:
        version = self._discovery.version
        if version is None:
            raise errors.ApiError(f"templates of {key.namespace}", "the API server serves no resource.k8s.io")
        return path(f"/apis/{version}/namespaces", key.namespace, "resourceclaimtemplates", key.name)

    @contextlib.contextmanager
    def _counted(self, operation: Operation) -> Iterator[None]:
        try:
            yield
        except errors.ApiError as error:
            self._metrics.template_operation(operation, _RESULTS.get(type(error), "refused"))
            raise
        self._metrics.template_operation(operation, "ok")


def _decoded(body: bytes) -> Template:
    return template(msgspec.json.decode(body, type=TemplateObject))
