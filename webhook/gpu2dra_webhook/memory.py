"""A cluster that is none: what admission asks of one, answered from memory, for the demo and for tests."""

# ruff: noqa: ARG002 - these answer at once, whatever time there is

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from gpu2dra import ApiVersion, Object
from gpu2dra.templates import canonical_spec
from gpu2dra_webhook.admission import OPT_IN_LABEL
from gpu2dra_webhook.ports import DeviceClassState, NamespaceState, OwnerReference, StoreError, StoreProblem


@dataclass(slots=True, kw_only=True)
class FixedView:
    """Fulfils `ports.View`. As it comes, every namespace has opted in, every DeviceClass is there, nothing is wrong.

    `namespaces` and `classes` of None stand for any; a namespace or class that they lack is unknown.
    """

    namespaces: Mapping[str, NamespaceState] | None = None
    version: ApiVersion | None = ApiVersion.V1
    classes: Mapping[str, DeviceClassState] | None = None
    mixed: tuple[str, ...] = ()
    slices: bool = True
    missing: tuple[str, ...] = ()
    claims: Mapping[tuple[str, str, str], frozenset[str]] = field(default_factory=dict)

    def namespace(self, name: str) -> NamespaceState | None:
        """Return the namespace."""
        if self.namespaces is None:
            return NamespaceState(name, {OPT_IN_LABEL: "true"})
        return self.namespaces.get(name)

    def wait_for_namespace(
        self, name: str, opted_in: Callable[[Mapping[str, str]], bool], timeout: float
    ) -> NamespaceState | None:
        """Return the namespace as it is: nothing changes here while one waits."""
        return self.namespace(name)

    def api_version(self) -> ApiVersion | None:
        """Return `version`."""
        return self.version

    def device_class(self, name: str) -> DeviceClassState | None:
        """Return the DeviceClass."""
        return DeviceClassState(name) if self.classes is None else self.classes.get(name)

    def mixed_nodes(self) -> tuple[str, ...]:
        """Return `mixed`."""
        return self.mixed

    def has_slices(self) -> bool:
        """Return `slices`."""
        return self.slices

    def synced(self) -> tuple[str, ...]:
        """Return `missing`."""
        return self.missing

    def claim_classes(
        self, namespace: str, refs: Collection[tuple[str, str]], timeout: float
    ) -> Mapping[tuple[str, str], frozenset[str]]:
        """Return what `claims`, by namespace, kind and name, says of each."""
        return {ref: self.claims[namespace, *ref] for ref in refs if (namespace, *ref) in self.claims}


@dataclass(slots=True)
class MemoryStore:
    """Fulfils `ports.TemplateStore`: templates by namespace and name."""

    templates: dict[tuple[str, str], Object] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def ensure(self, namespace: str, templates: Sequence[Object], *, timeout: float, dry_run: bool) -> None:
        """Keep each template; StoreError when its name stands for another spec."""
        with self._lock:
            for template in templates:
                name = template["metadata"]["name"]
                kept = self.templates.get((namespace, name))
                if kept is not None and canonical_spec(kept["spec"]) != canonical_spec(template["spec"]):
                    message = f'ResourceClaimTemplate "{name}" exists and is not what gpu2dra would make; delete it'
                    raise StoreError(StoreProblem.FOREIGN, message)
                if kept is None and not dry_run:
                    self.templates[namespace, name] = template


class NoRecorder:
    """Fulfils `ports.Recorder` where there is nobody to tell."""

    def record(self, namespace: str, owner: OwnerReference | None, reason: str, message: str, *, warning: bool) -> None:
        """Do nothing."""
