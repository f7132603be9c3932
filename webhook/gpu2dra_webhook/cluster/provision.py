"""The way to a template that the cache does not show: create, compare, take a mark off, make room, explain."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu2dra import Object
from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.backoff import Backoff
from gpu2dra_webhook.cluster.cache import Key
from gpu2dra_webhook.cluster.ledger import NAMED_WITHIN
from gpu2dra_webhook.cluster.objects import Template
from gpu2dra_webhook.cluster.stamps import stamp
from gpu2dra_webhook.cluster.template_api import OUR_NAME, TemplateApi
from gpu2dra_webhook.ports import StoreError, StoreProblem

if TYPE_CHECKING:
    from gpu2dra_webhook.cluster.discovery import Discovery
    from gpu2dra_webhook.cluster.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Wanted:
    """One template for one namespace."""

    key: Key
    object: Object
    content: bytes
    dry_run: bool

    def fits(self, seen: Template) -> bool:
        """Whether a template is this one, and stays."""
        return seen.ours and seen.content == self.content and not seen.deleting


_TERMINATING = "NamespaceTerminating"
"""Cause of a refusal by the NamespaceLifecycle admission plugin (k8s.io/api/core/v1: NamespaceTerminatingCause)."""


_PASSING = (errors.Unreachable, errors.Overloaded)
"""What the next try may not meet any more."""


class _Again(Exception):
    """Somebody else has changed the template meanwhile, or it is about to go: look again."""


class Provider:
    """Provides one template at a time by calls to the API server."""

    def __init__(self, api: TemplateApi, ledger: Ledger, discovery: Discovery, cap: int) -> None:
        """`cap` is how many templates a namespace may have: at the cap unused ones go first, then it is refused."""
        self._api = api
        self._ledger = ledger
        self._discovery = discovery
        self._cap = cap

    def provide(self, wanted: Wanted, deadline: float) -> None:
        """Try until the template is there, the API server has refused it, or the time is over; raises StoreError."""
        backoff = Backoff(0.05, 0.5)
        while True:
            try:
                self._once(wanted, deadline)
            except _Again:
                wait = backoff.next()
                problem = _problem(wanted, StoreProblem.UNAVAILABLE, "it is being deleted; try again")
            except errors.ApiError as error:
                problem = self._explained(wanted, error)
                if isinstance(error, errors.TimedOut) or not isinstance(error, _PASSING):
                    raise problem from error
                wait = backoff.next(error.retry_after if isinstance(error, errors.Overloaded) else 0)
            else:
                return
            if time.monotonic() + wait >= deadline:
                raise problem
            time.sleep(wait)

    def _explained(self, wanted: Wanted, error: errors.ApiError) -> StoreError:
        """Return what the user is told of an error."""
        match error:
            case errors.TimedOut():
                return _problem(wanted, StoreProblem.TIMEOUT, "the API server did not answer in time; try again")
            case errors.Unreachable() | errors.Overloaded():
                return _problem(wanted, StoreProblem.UNAVAILABLE, error.message)
            case errors.Forbidden() if _TERMINATING in error.causes:
                return _problem(wanted, StoreProblem.TERMINATING, "the namespace is being deleted")
            case errors.NotFound() if error.kind == "namespaces":
                return _problem(wanted, StoreProblem.TERMINATING, "the namespace does not exist (any more)")
            case errors.NotFound():
                self._discovery.look_again()
                text = f"the API server does not serve {wanted.object['apiVersion']} any more"
                return _problem(wanted, StoreProblem.UNAVAILABLE, text)
        return _problem(wanted, StoreProblem.REFUSED, error.message)

    def _once(self, wanted: Wanted, deadline: float) -> None:
        seen = self._ledger.cached(wanted.key)
        if seen is None and self._is_full(wanted.key.namespace):
            seen = self._api.get(wanted.key, timeout=_left(deadline))
            if seen is None:
                self._make_room(wanted, deadline)
        if seen is None or not wanted.fits(seen):
            seen = self._create(wanted, deadline)
        if seen.unused_since and not wanted.dry_run:
            try:
                self._api.mark(wanted.key, seen, None, timeout=_left(deadline))
            except (errors.Conflict, errors.NotFound):  # changed meanwhile, or the janitor was faster
                raise _Again from None
        if not wanted.dry_run:
            self._ledger.tell(wanted.key, wanted.content)

    def _create(self, wanted: Wanted, deadline: float) -> Template:
        """Create the template, or return what has its name if that is what is wanted."""
        namespace = wanted.key.namespace
        try:
            made = self._api.create(namespace, wanted.object, timeout=_left(deadline), dry_run=wanted.dry_run)
        except errors.AlreadyExists:
            stored = self._api.get(wanted.key, timeout=_left(deadline))
            if stored is None or stored.deleting:
                raise _Again from None
            if not wanted.fits(stored):
                raise _problem(
                    wanted, StoreProblem.FOREIGN, "another object has this name and is not touched; rename or delete it"
                ) from None
            return stored
        if made.content == wanted.content:
            return made
        if not wanted.dry_run:
            with contextlib.suppress(errors.NotFound):
                self._api.delete(wanted.key, made, timeout=_left(deadline))
        text = "the API server stored something else than it was sent (a field that it does not know, or another "
        raise _problem(wanted, StoreProblem.DROPPED, f"{text}webhook); the template was taken back")

    def _is_full(self, namespace: str) -> bool:
        return len(self._ledger.cache.within(namespace)) >= self._cap

    def _make_room(self, wanted: Wanted, deadline: float) -> None:
        """Delete the template that nobody has used for longest; StoreError when all are in use."""
        used = self._api.named_by_pods(wanted.key.namespace, timeout=_left(deadline))
        for key, seen in self._unused(wanted.key.namespace, used):
            if wanted.dry_run:
                return
            with contextlib.suppress(errors.Conflict, errors.NotFound):  # somebody was faster: the next one
                self._api.delete(key, seen, timeout=_left(deadline))
                return
        text = f"the namespace has {self._cap} templates of gpu2dra, as many as it may, and all of them are in use"
        raise _problem(wanted, StoreProblem.FULL, text)

    def _unused(self, namespace: str, used: frozenset[str]) -> list[tuple[Key, Template]]:
        """Return what may go: marked ones first, then by age, and last what is handed out and never named by a pod.

        Whoever reaches the port can have templates made and handed out for pods that nobody creates: they would keep
        the shapes of all others out for as long as they are asked for. Where one is needed after all, as another
        replica may have handed it out a moment ago, the janitor puts it back.
        """
        ledger, now = self._ledger, time.time()
        settled, early = stamp(now - ledger.settle), stamp(now - min(NAMED_WITHIN, ledger.settle))
        found = [
            (Key(namespace, name), seen)
            for name, seen in ledger.cache.within(namespace).items()
            if OUR_NAME.fullmatch(name) and name not in used and seen.created <= early
        ]

        def order(one: tuple[Key, Template]) -> tuple[bool, float, str, str]:
            key, seen = one
            lately = seen.created > settled or ledger.handed_out(key)
            # "~" is after all digits
            return lately, ledger.last_handed_out(key) if lately else 0.0, seen.unused_since or "~", seen.created

        return sorted((one for one in found if not ledger.may_be_named_soon(one[0])), key=order)


def _left(deadline: float) -> float:
    """Return the seconds that a call may take; TimedOut when there are none."""
    left = deadline - time.monotonic()
    if left <= 0:
        raise errors.TimedOut("templates", "no time left")
    return left


def _problem(wanted: Wanted, kind: StoreProblem, text: str) -> StoreError:
    return StoreError(kind, f"ResourceClaimTemplate {wanted.key.name} in namespace {wanted.key.namespace}: {text}.")
