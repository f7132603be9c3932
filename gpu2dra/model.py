"""What goes into a conversion and what comes out: the types that every other module speaks in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NotRequired, TypeAlias, TypedDict

if TYPE_CHECKING:
    from gpu2dra.policy.model import Policy

Object: TypeAlias = dict[str, Any]
"""A Kubernetes object, or part of one, as plain data. Fields this code does not know pass through."""


class Operation(TypedDict):
    """One JSON Patch operation (RFC 6902); `value` is absent for `remove`."""

    op: Literal["add", "remove", "replace"]
    path: str
    value: NotRequired[Any]


class Severity(StrEnum):
    """How much a finding weighs in the exit code of the converter (design, section 6)."""

    ERROR = "error"  # could not be read or converted
    WARNING = "warning"  # will be converted, or waits for a person
    INFO = "info"  # good to know; never changes an exit code


class Finding(NamedTuple):
    """One thing to tell the user about one place in one object.

    `code` is a key of `gpu2dra.codes.CODES`, `path` a JSON Pointer (RFC 6901) into the object that `plan` was
    given. `line` counts line breaks inside the string at `path`, for names found inside block scalars.
    """

    code: str
    path: str
    message: str
    severity: Severity
    line: int = 0


class Style(StrEnum):
    """Who applies the plan; the devices per container are the same, names and annotations differ (R7, R8, R13)."""

    FILE = "file"
    ADMISSION = "admission"


class ApiVersion(StrEnum):
    """Served versions of the resource.k8s.io group, newest first (R9)."""

    V1 = "resource.k8s.io/v1"
    V1BETA2 = "resource.k8s.io/v1beta2"
    V1BETA1 = "resource.k8s.io/v1beta1"


class Keep(StrEnum):
    """Which tool would prune a template that old ReplicaSets still need, and so must be told to keep it (R8)."""

    NONE = "none"
    HELM = "helm"
    ARGOCD = "argocd"
    FLUX = "flux"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The user's choices. Same object, options and context: same plan, in every process (R14).

    `schedulers`: names known to allocate claims, besides those of the policy (R10). `keep`: tools told not to prune
    templates (R8). `elsewhere`: also report legacy names outside PodSpecs (R11, R12). `policy`: None is the built-in
    one.
    """

    style: Style = Style.FILE
    api_version: ApiVersion = ApiVersion.V1
    tolerations: bool = True
    keep: tuple[Keep, ...] = ()
    schedulers: frozenset[str] = frozenset({"default-scheduler"})
    elsewhere: bool = True
    policy: Policy | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What the caller knows about the neighbours of the object.

    `claim_classes`: DeviceClass names behind `(kind, name)` of a ResourceClaim or ResourceClaimTemplate (R6).
    `priorities`: value per PriorityClass name (R10). `renames`: new name per `(namespace, old name)` of a template
    that someone edited by hand (R8). `namespace`: of the request, where the object itself may not name it.
    `wrapper`: metadata of the object around this one (AppWrapper), whose labels and annotations hold for it as well.
    """

    claim_classes: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    priorities: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    renames: Mapping[tuple[str, str], str] = field(default_factory=lambda: MappingProxyType({}))
    namespace: str = ""
    wrapper: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


class Access(NamedTuple):
    """The devices that one container reaches after the conversion.

    `path` is the JSON Pointer of the container, `legacy` what was taken off it, as `(resource name, amount)` pairs,
    `requests` what it names of the claims, as `(claim entry, request)` pairs where an empty request is the whole claim,
    `devices` how many devices that makes (a text where the amount is a placeholder).
    """

    path: str
    container: str
    legacy: tuple[tuple[str, int | str], ...]
    requests: tuple[tuple[str, str], ...]
    devices: int | str


class Plan(NamedTuple):
    """The conversion of one object.

    Apply `operations` to the object and create `templates` first; an empty plan changes nothing. For a `List` the
    templates are already `add` operations among its items. `own_file` says that those in `templates` must not share a
    file with the object (`generateName`, R8, also of an item of a `List`).
    """

    operations: tuple[Operation, ...] = ()
    templates: tuple[Object, ...] = ()
    findings: tuple[Finding, ...] = ()
    access: tuple[Access, ...] = ()
    own_file: bool = False

    def __bool__(self) -> bool:
        return bool(self.operations)
