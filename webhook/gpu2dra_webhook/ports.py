"""What admission asks of the cluster: protocols that the caches, the template store and the demo's memory fulfil."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from gpu2dra import ApiVersion, Object

NO_LABELS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QuotaState:
    """What the ResourceQuotas of a namespace count (R12).

    `legacy_names`: resource names whose `requests.<name>` has a hard limit. `class_keys`: DeviceClass names with a
    `<class>.deviceclass.resource.k8s.io/devices` key. `scoped`: one of those with a legacy name counts only some pods
    (`scopes` or `scopeSelector`), which cannot be said with claims.
    """

    legacy_names: tuple[str, ...] = ()
    class_keys: frozenset[str] = frozenset()
    scoped: bool = False


NO_QUOTA = QuotaState()


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """What admission needs to know of a namespace.

    `limit_range`: legacy names that a LimitRange of type Container or Pod has in default, defaultRequest, min or max.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=lambda: NO_LABELS)
    terminating: bool = False
    limit_range: tuple[str, ...] = ()
    quota: QuotaState = NO_QUOTA


@dataclass(frozen=True, slots=True)
class DeviceClassState:
    """A DeviceClass of the cluster; `extended_resource_name` is empty when the class carries none (KEP-5004)."""

    name: str
    extended_resource_name: str = ""


@dataclass(frozen=True, slots=True)
class OwnerReference:
    """The controller of a pod, on which Events are recorded."""

    api_version: str
    kind: str
    name: str
    uid: str


class View(Protocol):
    """The cluster as its caches show it: cheap, without I/O, safe from many greenlets (but for `claim_classes`)."""

    def namespace(self, name: str) -> NamespaceState | None:
        """Return the namespace, or None when it is not known (yet)."""

    def wait_for_namespace(
        self, name: str, opted_in: Callable[[Mapping[str, str]], bool], timeout: float
    ) -> NamespaceState | None:
        """Return the namespace once it is known and `opted_in` holds for its labels, else what is known in the end.

        Waits up to `timeout` seconds, since a namespace may have been made or labelled a moment ago. It is enough to
        wait while that is possible: a namespace that the cache has shown without the label for long needs no wait.
        """

    def api_version(self) -> ApiVersion | None:
        """Return the version of resource.k8s.io that the server serves, newest first; None: no DRA."""

    def device_class(self, name: str) -> DeviceClassState | None:
        """Return the DeviceClass, or None when it is missing."""

    def mixed_nodes(self) -> tuple[str, ...]:
        """Return the nodes that report a legacy resource allocatable and have slices of a driver of ours."""

    def has_slices(self) -> bool:
        """Whether there is any ResourceSlice of a driver of ours."""

    def synced(self) -> tuple[str, ...]:
        """Return the names of the caches that are not synced; empty when all are."""

    def claim_classes(
        self, namespace: str, refs: Collection[tuple[str, str]], timeout: float
    ) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return the DeviceClass names behind `(kind, name)` of ResourceClaims and ResourceClaimTemplates.

        What could not be found out in `timeout` seconds is left out. May call the API: asked only for pods with a
        container that has both a legacy limit and a claim of its own.
        """


class StoreProblem(StrEnum):
    """Why a template is not there."""

    FOREIGN = "foreign"  # the name is taken by another spec or owner
    TERMINATING = "terminating"  # the namespace is being deleted
    FULL = "full"  # the cap of managed templates in the namespace
    TIMEOUT = "timeout"  # the API server did not answer in time
    UNAVAILABLE = "unavailable"  # the API server cannot be reached or is overloaded
    REFUSED = "refused"  # by RBAC, a quota, a policy or validation
    DROPPED = "dropped"  # the server stored something else than was sent


class StoreError(Exception):
    """A template could not be provided; `message` is one sentence for the user."""

    def __init__(self, kind: StoreProblem, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class TemplateStore(Protocol):
    """Where ResourceClaimTemplates are made."""

    def ensure(self, namespace: str, templates: Sequence[Object], *, timeout: float, dry_run: bool) -> None:
        """Return when each of `templates` exists in `namespace` with an equal canonical spec.

        Nothing is written on `dry_run`, but a foreign object under the name is still refused. Raises StoreError.
        """


class Recorder(Protocol):
    """Where Events go."""

    def record(self, namespace: str, owner: OwnerReference | None, reason: str, message: str, *, warning: bool) -> None:
        """Record an Event on `owner` (nothing without one). Returns at once and never raises."""
