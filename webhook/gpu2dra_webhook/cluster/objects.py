"""Templates and pods: what the store and the janitor keep of them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import msgspec

from gpu2dra import Object
from gpu2dra.names import canonical_json
from gpu2dra.templates import MANAGED_BY, canonical_spec
from gpu2dra_webhook.cluster.cache import Key
from gpu2dra_webhook.cluster.reflector import Known

UNUSED_SINCE = "gpu2dra.dev/unused-since"
"""On a template of ours that nobody uses: since when, in RFC 3339. The janitor's mark."""


class TemplateObject(Known):
    """A ResourceClaimTemplate, its spec as plain data."""

    spec: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it


@dataclass(frozen=True, slots=True)
class Template:
    """A ResourceClaimTemplate; `content` stands for its spec in canonical form, whatever version it was read in."""

    uid: str
    resource_version: str
    content: bytes
    created: str
    unused_since: str = ""
    ours: bool = True
    deleting: bool = False


def content_of(spec: Object) -> bytes:
    """Return what is equal for two templates exactly when their specs are, in canonical form."""
    return hashlib.sha256(canonical_json(canonical_spec(spec)).encode("utf-8", "surrogatepass")).digest()


def template(item: TemplateObject) -> Template:
    """Return what is kept of a template."""
    metadata = item.metadata
    return Template(
        metadata.uid,
        metadata.resourceVersion,
        content_of(item.spec),
        metadata.creationTimestamp or "",
        (metadata.annotations or {}).get(UNUSED_SINCE, ""),
        MANAGED_BY.items() <= (metadata.labels or {}).items(),
        metadata.deletionTimestamp is not None,
    )


class _ClaimEntry(msgspec.Struct):
    name: str = ""
    resourceClaimTemplateName: str | None = None  # noqa: N815


class _ClaimStatus(msgspec.Struct):
    name: str = ""
    resourceClaimName: str | None = None  # noqa: N815


class _PodSpec(msgspec.Struct):
    resourceClaims: list[_ClaimEntry] | None = None  # noqa: N815


class _PodStatus(msgspec.Struct):
    phase: str = ""
    resourceClaimStatuses: list[_ClaimStatus] | None = None  # noqa: N815


class PodObject(Known):
    """A Pod, as far as its claims go."""

    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


@dataclass(frozen=True, slots=True)
class Pod:
    """A pod that names templates.

    `waiting` are those from which its claim has not been made yet. `entries` are the names of all its claims that come
    from templates, `made` pairs of such a name and the ResourceClaim that its status names. `stuck` says that some are
    made and some are not, which holds for no more than a moment unless the pod has met kubernetes#138407.
    """

    uid: str
    created: str
    templates: frozenset[str]
    waiting: frozenset[str]
    entries: frozenset[str] = frozenset()
    made: frozenset[tuple[str, str]] = frozenset()
    stuck: bool = False


STUCK = Key("", "")
"""The group of the pods that are stuck."""


def waiting_groups(key: Key, pod: Pod) -> list[Key]:
    """Return the templates that the pod waits for, each a group, and STUCK if it is."""
    groups = [Key(key.namespace, name) for name in pod.waiting]
    return [*groups, STUCK] if pod.stuck else groups


def pod(item: PodObject) -> Pod | None:
    """Return what is kept of a pod; None for one that names no template."""
    entries = [entry for entry in item.spec.resourceClaims or () if entry.resourceClaimTemplateName]
    if not entries:
        return None
    made = {status.name: status.resourceClaimName for status in item.status.resourceClaimStatuses or ()}
    pending = item.status.phase in {"", "Pending"} and item.metadata.deletionTimestamp is None
    missing = [entry for entry in entries if pending and entry.name not in made]
    return Pod(
        item.metadata.uid,
        item.metadata.creationTimestamp or "",
        frozenset(entry.resourceClaimTemplateName or "" for entry in entries),
        frozenset(entry.resourceClaimTemplateName or "" for entry in missing),
        frozenset(entry.name for entry in entries),
        frozenset((entry.name, claim) for entry in entries if (claim := made.get(entry.name))),
        stuck=0 < len(missing) < len(entries),
    )
