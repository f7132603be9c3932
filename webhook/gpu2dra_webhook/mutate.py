"""A review's bytes in, its answer's bytes out: decode, decide, have the templates made, tell about it, encode."""

from __future__ import annotations

import logging
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from gpu2dra.policy import Policy
from gpu2dra_webhook.admission import decide
from gpu2dra_webhook.decisions import Decision, Outcome, Reason, failed, no_template
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.ports import OwnerReference, Recorder, StoreError, TemplateStore, View
from gpu2dra_webhook.reviews import BadReview, Review, decode, encode
from gpu2dra_webhook.room import Room
from gpu2dra_webhook.settings import Settings

_log = logging.getLogger(__name__)

CONVERTED_EVENT = "GPUConverted"
NOT_CONVERTED_EVENT = "GPUNotConverted"
_OPERATIONS = frozenset({"CREATE", "UPDATE"})


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
            decision = self._decide(review, began + timeout)
            notices = self._news(decision)
            answer = encode(review, decision.answer(notices))
        operation = review.operation if review.operation in _OPERATIONS else "other"
        self.metrics.reviewed(operation, str(decision.outcome), str(decision.reason), time.monotonic() - began)
        return answer

    def _decide(self, review: Review, deadline: float) -> Decision:
        try:
            decision = self._carry_out(review, deadline)
            self._tell(review, decision)
        except BadReview:
            raise
        except Exception as error:  # noqa: BLE001 - our own fault must not become an HTTP error without an explanation
            # Without the error's own text: it may quote the pod.
            frames = "".join(traceback.format_tb(error.__traceback__))
            _log.error("exception in admission", extra={"error": type(error).__name__, "trace": frames})
            self.metrics.failed("admission")
            why = "an error in the webhook; its log says more"
            return failed(Reason.EXCEPTION, why, self.settings.on_api_failure)
        return decision

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
        """Record an Event on the pod's owner and write the log; a dry run has no side effects."""
        names = [template["metadata"]["name"] for template in decision.templates]
        fields: dict[str, Any] = {
            "operation": review.operation, "namespace": review.namespace, "outcome": str(decision.outcome),
            "reason": str(decision.reason), "templates": names, "dry_run": bool(review.dry_run), "uid": review.uid,
        }  # fmt: skip
        if decision.why:
            _log.info("not converted: %s", decision.why, extra=fields)
        else:
            _log.debug("decided", extra=fields)
        if review.dry_run:
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
    """Return the controller of the pod, None for one that was made by hand."""
    metadata = (review.object or {}).get("metadata")
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    for reference in references if isinstance(references, list) else ():
        if isinstance(reference, dict) and reference.get("controller") is True:
            parts = [reference.get(key) for key in ("apiVersion", "kind", "name", "uid")]
            if all(isinstance(part, str) and part for part in parts):
                return OwnerReference(*map(str, parts))
    return None
