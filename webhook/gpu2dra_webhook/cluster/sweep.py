"""Marks templates that nobody uses, deletes them after a long time, and takes marks off that are no longer true."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.objects import Pod, Template
from gpu2dra_webhook.cluster.stamps import seconds, stamp
from gpu2dra_webhook.cluster.template_api import OUR_NAME, TemplateApi

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.ledger import Ledger
    from gpu2dra_webhook.metrics import Metrics

_log = logging.getLogger(__name__)

_TIMEOUT = 10.0
_MARK_FROM_THE_FUTURE = 60.0


class Sweep:
    """One walk over all templates at a time, by the leader.

    A deletion needs that the mark is older than the grace time by the clock, that this replica has seen it for a while
    by a clock that does not jump, that no pod names the template when the API server is asked once more, and that the
    template is still the one that was seen: whoever hands out a marked one takes the mark off first.
    """

    def __init__(
        self, api: TemplateApi, ledger: Ledger, metrics: Metrics, grace: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._api = api
        self._ledger = ledger
        self._metrics = metrics
        self._grace = grace
        self._clock = clock
        self._marks: dict[tuple[Key, str], float] = {}

    def run(self, pods: Cache[Pod], holds: Callable[[], bool]) -> None:
        """Do what is due; ends early when `holds` turns false or the API server is away."""
        named = {Key(key.namespace, name) for key, pod in pods.walk() for name in pod.templates}
        ours = [(key, seen) for key, seen in self._ledger.cache.walk() if OUR_NAME.fullmatch(key.name)]
        self._note_marks(ours)
        unused = 0
        for key, seen in ours:
            used = key in named or self._ledger.handed_out(key) or self._is_young(seen)
            unused += not used
            due = self._due(key, seen, used=used)
            if due is None:
                continue
            if not holds():
                return
            try:
                due(key, seen)
            except (errors.Conflict, errors.NotFound):  # somebody was faster: the next walk sees what is there then
                continue
            except errors.ApiError as error:
                _log.warning("templates cannot be tidied up now: %s", error)
                return
        self._metrics.templates("used", len(ours) - unused)
        self._metrics.templates("unused", unused)

    def _due(self, key: Key, seen: Template, *, used: bool) -> Callable[[Key, Template], None] | None:
        """Return what is to be done with a template now."""
        if seen.deleting:
            return None
        if used:
            return self._unmark if seen.unused_since else None
        since = seconds(seen.unused_since)
        if since is None or since > self._clock() + _MARK_FROM_THE_FUTURE:
            return self._mark
        watched = time.monotonic() - self._marks[key, seen.uid + seen.unused_since]
        if since + self._grace <= self._clock() and watched >= min(self._grace, self._ledger.settle):
            return self._delete
        return None

    def _is_young(self, seen: Template) -> bool:
        created = seconds(seen.created)
        return created is None or created + self._ledger.settle > self._clock()

    def _note_marks(self, ours: list[tuple[Key, Template]]) -> None:
        now = time.monotonic()
        marks = [(key, seen.uid + seen.unused_since) for key, seen in ours if seen.unused_since]
        self._marks = {mark: self._marks.get(mark, now) for mark in marks}

    def _mark(self, key: Key, seen: Template) -> None:
        self._api.mark(key, seen, stamp(self._clock()), timeout=_TIMEOUT)

    def _unmark(self, key: Key, seen: Template) -> None:
        self._api.mark(key, seen, None, timeout=_TIMEOUT)

    def _delete(self, key: Key, seen: Template) -> None:
        if key.name in self._api.named_by_pods(key.namespace, timeout=_TIMEOUT) or self._ledger.handed_out(key):
            self._unmark(key, seen)
            return
        self._api.delete(key, seen, timeout=_TIMEOUT)
        _log.info("deleted template %s of namespace %s, unused since %s", key.name, key.namespace, seen.unused_since)
