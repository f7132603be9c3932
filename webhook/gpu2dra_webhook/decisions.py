"""What can become of a pod: the closed sets of outcomes and reasons, and a decision as a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from gpu2dra import CODES, Finding, Object, Operation, Severity
from gpu2dra_webhook.ports import StoreError, StoreProblem
from gpu2dra_webhook.reviews import Answer, Denial
from gpu2dra_webhook.settings import OnApiFailure


class Outcome(StrEnum):
    """What became of a pod: the label `outcome` of the metrics."""

    CONVERTED = "converted"  # its requests are claims now
    STRIPPED = "stripped"  # our claims served it already; limits that came back are taken off (R13)
    UNTOUCHED = "untouched"  # nothing here for us
    SKIPPED = "skipped"  # left alone on purpose
    UNCONVERTED = "unconverted"  # something stands against it, and the pod goes on as it is
    DENIED = "denied"  # refused
    ERROR = "error"  # our own fault


class Reason(StrEnum):
    """Why: the label `reason` of the metrics, besides the codes of findings (`gpu2dra.CODES`)."""

    NONE = "none"
    # Not a pod's creation or update.
    OTHER_KIND = "other-kind"
    SUBRESOURCE = "subresource"
    OTHER_OPERATION = "other-operation"
    NAMESPACE_MISMATCH = "namespace-mismatch"
    # Nothing to do.
    NO_REQUEST = "no-request"
    NOT_OURS = "not-ours"  # an update of a pod that we did not convert
    # The namespace.
    EXCLUDED_NAMESPACE = "excluded-namespace"
    NOT_OPTED_IN = "not-opted-in"
    NAMESPACE_UNKNOWN = "namespace-unknown"
    LIMIT_RANGE = "limit-range"
    QUOTA = "quota"
    SCOPED_QUOTA = "scoped-quota"
    # The cluster.
    NOT_SYNCED = "not-synced"
    NO_DRA = "no-dra"
    DEVICE_CLASS_MISSING = "device-class-missing"
    MIXED_NODES = "mixed-nodes"
    # The template.
    FOREIGN = "foreign"
    TERMINATING = "terminating"
    FULL = "full"
    TIMEOUT = "timeout"
    UNAVAILABLE = "unavailable"
    REFUSED = "refused"
    DROPPED = "dropped"
    # Our own fault.
    EXCEPTION = "exception"


REASONS = frozenset({*Reason, *CODES})
"""Every value that the label `reason` can have."""

_STATUS: Mapping[Reason, tuple[int, str]] = MappingProxyType(
    {
        Reason.FOREIGN: (409, "Conflict"),
        Reason.TERMINATING: (403, "Forbidden"),
        Reason.FULL: (403, "Forbidden"),
        Reason.TIMEOUT: (504, "Timeout"),
        Reason.REFUSED: (403, "Forbidden"),
        Reason.DROPPED: (403, "Forbidden"),
        Reason.EXCEPTION: (500, "InternalError"),
    }
)
"""HTTP status and its reason in Kubernetes' words; anything else is 503, ServiceUnavailable: worth another try."""
_ALWAYS_DENIED = frozenset({StoreProblem.FOREIGN, StoreProblem.TERMINATING, StoreProblem.FULL})
"""No failure of the API, so that the choice what to do about one is not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What becomes of one pod, and what is told about it.

    `templates` must exist before `operations` are sent. `why` is a sentence for people about what was not done, empty
    where nobody needs to know. `notices` are warnings that are enough to be given once.
    """

    outcome: Outcome
    reason: str = Reason.NONE
    operations: tuple[Operation, ...] = ()
    templates: tuple[Object, ...] = ()
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    why: str = ""
    denial: Denial | None = None

    def answer(self, notices: tuple[str, ...] = ()) -> Answer:
        """Return what the API server is told, with `notices` among the warnings."""
        audit = {"outcome": str(self.outcome), "reason": str(self.reason)}
        if self.templates:
            audit["templates"] = ",".join(template["metadata"]["name"] for template in self.templates)
        told = (f"not converted: {self.why}",) if self.why and self.denial is None else ()
        warnings = tuple(f"gpu2dra: {text}" for text in (*told, *self.warnings, *notices))
        return Answer(self.denial, self.operations, warnings, audit)


def untouched(reason: Reason) -> Decision:
    """Return the decision for what is none of our business."""
    return Decision(outcome=Outcome.UNTOUCHED, reason=reason)


def unconverted(reason: Reason, why: str) -> Decision:
    """Return the decision for a pod that goes on as it is, with a warning."""
    return Decision(outcome=Outcome.UNCONVERTED, reason=reason, why=why)


def held_back(findings: tuple[Finding, ...]) -> Decision:
    """Return the decision for a pod that the core left as it is for the first of `findings`."""
    first, *others = findings
    outcome = Outcome.SKIPPED if first.code.startswith("DRA2") else Outcome.UNCONVERTED
    return Decision(
        outcome=outcome, reason=first.code, why="".join(told([first])).replace("Left alone: ", "").removesuffix("."),
        warnings=told(others),
    )  # fmt: skip


def told(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the texts of those findings that are more than information; `gpu2dra explain` knows the codes."""
    return tuple(f"{found.code}: {found.message}" for found in findings if found.severity is not Severity.INFO)


def failed(reason: Reason, why: str, choice: OnApiFailure) -> Decision:
    """Return the decision for a pod that cannot be converted now, by the operator's choice (`on_api_failure`)."""
    if choice == "allow":
        outcome = Outcome.ERROR if reason is Reason.EXCEPTION else Outcome.UNCONVERTED
        return Decision(outcome=outcome, reason=reason, why=why)
    return denied(reason, why)


def denied(reason: Reason, why: str) -> Decision:
    """Return the decision for a pod that is refused."""
    outcome = Outcome.ERROR if reason is Reason.EXCEPTION else Outcome.DENIED
    code, word = _STATUS.get(reason, (503, "ServiceUnavailable"))
    return Decision(outcome=outcome, reason=reason, why=why, denial=Denial(code, word, f"gpu2dra: {why}"))


def no_template(error: StoreError, choice: OnApiFailure) -> Decision:
    """Return the decision for a pod whose template could not be provided."""
    reason = Reason(error.kind)
    return denied(reason, error.message) if error.kind in _ALWAYS_DENIED else failed(reason, error.message, choice)
