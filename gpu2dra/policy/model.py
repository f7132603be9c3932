"""A conversion policy as the core reads it: rules from legacy requests to devices, the first that matches wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import NamedTuple, TypeAlias

from gpu2dra.devices import Device, device_for, is_built_in
from gpu2dra.resources import LegacyResource, Meaning


class Preemption(StrEnum):
    """What becomes of a pod with a positive priority, which loses preemption by a conversion (R10)."""

    WARN = "warn"
    SKIP = "skip"


class LeftAlone(NamedTuple):
    """The outcome of a rule that skips: `reason` is the operator's own text."""

    reason: str


Outcome: TypeAlias = Device | LeftAlone | None
"""What one unit of a resource becomes; None: nobody has chosen the device that replaces it."""


class Rule(NamedTuple):
    """One rule: globs of resource names and of namespaces (empty: all), and what becomes of a request they match."""

    outcome: Device | LeftAlone
    resources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    name: str = ""

    def matches(self, resource: LegacyResource, namespace: str) -> bool:
        """Whether the rule is for this resource in this namespace (empty where a manifest names none).

        A share or fraction of a GPU gets a device only where the rule spells its name out, so that it never becomes a
        card by a wildcard (R10).
        """
        spelled_out = isinstance(self.outcome, Device) and resource.meaning not in (Meaning.GPU, Meaning.MIG)
        named = resource.name in self.resources if spelled_out else _hits(self.resources, resource.name)
        return named and _hits(self.namespaces, namespace)


def _hits(globs: Sequence[str], text: str) -> bool:
    return not globs or any(fnmatchcase(text, glob) for glob in globs)


@dataclass(frozen=True, slots=True)
class Policy:
    """All choices of the operator; the empty policy is the built-in one.

    `schedulers`: names of those that allocate claims, besides default-scheduler (R10). `warnings` tell what is odd in
    the document, but no error.
    """

    rules: tuple[Rule, ...] = ()
    schedulers: frozenset[str] = frozenset()
    preemption: Preemption = Preemption.WARN
    warnings: tuple[Problem, ...] = field(default=(), compare=False)

    def outcome(self, resource: LegacyResource, namespace: str) -> Outcome:
        """Return what one unit of `resource` becomes: by the first rule that matches, else as without a policy."""
        for rule in self.rules:
            if rule.matches(resource, namespace):
                return rule.outcome
        return device_for(resource)

    @property
    def device_classes(self) -> frozenset[str]:
        """The DeviceClasses that requests may become, those of the built-in devices aside."""
        return frozenset(rule.outcome.device_class for rule in self.rules if isinstance(rule.outcome, Device))

    def makes(self, device: Device) -> bool:
        """Whether some request may become `device`: no other one may stand in a template of ours."""
        return is_built_in(device) or any(rule.outcome == device for rule in self.rules)


BUILT_IN = Policy()
"""What holds without any policy (design, section 4)."""


class Problem(NamedTuple):
    """One thing that is wrong or odd in a policy document: where (a JSON Pointer), and what to do about it."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message}"


class PolicyError(ValueError):
    """A document that is no policy; `problems` holds everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
