"""A review's bytes in, its answer's bytes out: decode, decide, have the templates made, tell about it, encode."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpu2dra import CODES
from gpu2dra.names import SUBDOMAIN_LENGTH
from gpu2dra.policy import Policy
from gpu2dra_webhook.admission import decide
from gpu2dra_webhook.decisions import Decision, Outcome, Reason, failed, no_template
from gpu2dra_webhook.logs import fault
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.ports import OwnerReference, Recorder, StoreError, TemplateStore, View
from gpu2dra_webhook.reviews import BadReview, Review, decode, encode
from gpu2dra_webhook.room import Room
from gpu2dra_webhook.settings import Settings

_log = logging.getLogger(__name__)

CONVERTED_EVENT = "GPUConverted"
NOT_CONVERTED_EVENT = "GPUNotConverted"
_OPERATIONS = frozenset({"CREATE", "UPDATE"})
_UNTOLD = frozenset({Reason.NAMESPACE_UNKNOWN, Reason.TERMINATING})
"""No Event can stand there, or whoever reaches the port could have Events written in any namespace. An update is told
of to nobody for the same reason: whether its namespace has opted in is not asked, since its pod is ours already."""


@dataclass(slots=True)
class Mutator:
    """Answers reviews; safe from many greenlets. `policy` returns the policy that holds now."""

    settings: Settings
    view: View
    store: TemplateStore
    recorder: Recorder
    metrics: Metrics
    policy: Callable[[], Policy]
    _noticed: set[str] = field(default_factory=set)
    _room: Room = field(default_factory=Room)

    def __call__(self, body: bytes, timeout: float) -> bytes:
        """Return the answer to the review in `body` before `timeout` seconds are over.

        Raises BadReview for what is no review, or too large for one. Whatever else goes wrong becomes an answer, by
        the operator's choice.
        """
        began = time.monotonic()
        with self.metrics.in_flight(), self._room.taken(body):
            review = decode(body)
            decision, answer = self._answered(review, began + timeout)
        operation = review.operation if review.operation in _OPERATIONS else "other"
        self.metrics.reviewed(operation, str(decision.outcome), str(decision.reason), time.monotonic() - began)
        return answer

    def _answered(self, review: Review, deadline: float) -> tuple[Decision, bytes]:
        try:
            decision = self._carry_out(review, deadline)
            answer = encode(review, decision.answer(self._news(decision)))
            self._tell(review, decision)
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - our own fault must not become an HTTP error without an explanation
            _log.error("exception in admission", extra=fault(error))
            self.metrics.failed("admission")
            why = "an error in the webhook; its log says more"
            decision = failed(Reason.EXCEPTION, why, self.settings.on_api_failure)
            answer = encode(review, decision.answer())
        return decision, answer

    def _carry_out(self, review: Review, deadline: float) -> Decision:
        """Decide, and have the templates made that the decision asks for."""
        decision = decide(review, self.view, self.settings, self.policy(), deadline - time.monotonic())
        if not decision.templates:
            return decision
        try:
            self.store.ensure(
                review.namespace, decision.templates,
                timeout=deadline - time.monotonic(), dry_run=bool(review.dry_run),
            )  # fmt: skip
        except StoreError as error:
            return no_template(error, self.settings.on_api_failure)
        return decision

    def _tell(self, review: Review, decision: Decision) -> None:
        """Write the log, and an Event on the owner of a new pod; a dry run has no side effects."""
        names = [template["metadata"]["name"] for template in decision.templates]
        fields: dict[str, Any] = {
            "operation": review.operation, "namespace": review.namespace, "outcome": str(decision.outcome),
            "reason": str(decision.reason), "templates": names, "dry_run": bool(review.dry_run), "uid": review.uid,
        }  # fmt: skip
        if decision.reason in CODES:  # what a finding says quotes the pod: its code has to do
            _log.info("not converted", extra=fields)
        elif decision.why:
            _log.info("not converted: %s", decision.why, extra=fields)
        else:
            _log.debug("decided", extra=fields)
        if review.dry_run or review.operation != "CREATE" or decision.reason in _UNTOLD:
            return
        owner = _owner(review)
        if decision.why:
            text = f"{decision.why[:1].upper()}{decision.why[1:]}."
            self.recorder.record(review.namespace, owner, NOT_CONVERTED_EVENT, text, warning=True)
        elif decision.outcome is Outcome.CONVERTED:
            text = f"GPU requests of the pods are claims from template {', '.join(names)} now."
            self.recorder.record(review.namespace, owner, CONVERTED_EVENT, text, warning=False)

    def _news(self, decision: Decision) -> tuple[str, ...]:
        """Return the notices that have not been given yet by this process; they are logged as well."""
        news = tuple(notice for notice in decision.notices if notice not in self._noticed)
        for notice in news:
            self._noticed.add(notice)
            _log.warning("%s", notice)
        return news


def _owner(review: Review) -> OwnerReference | None:
    """Return the controller of the pod; None for a pod that was made by hand, or for what is no controller's name."""
    metadata = (review.object or {}).get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and reference.get("controller") is True:
            parts = [reference.get(key) for key in ("apiVersion", "kind", "name", "uid")]
            # Events wait, and remember whom they told.
            if all(isinstance(part, str) and 0 < len(part) <= SUBDOMAIN_LENGTH for part in parts):
                return OwnerReference(*map(str, parts))
    return None
