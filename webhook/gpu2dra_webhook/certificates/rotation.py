"""What becomes of the certificate authorities over time: pure decisions, the same in every replica.

The Secret holds a list of authorities, and what each one is for shows in it: the oldest with a key is *current* and
signs the leaves, a newer one with a key is *next*, one without a key is *previous*. The caBundle holds them all.

    next      is made when two thirds of current's life are over
    current   is what next becomes when the caBundle has been seen to hold it for the propagation time without a break:
              the older ones lose their keys
    previous  goes when its leaves are gone, two leaf lifetimes later, or when it has expired

So nobody leads and no time is written down: any replica may take any of these steps, each is one guarded update, and a
replica that restarts merely begins to count again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from gpu2dra_webhook.certificates.authority import Authority

Authorities = tuple[Authority, ...]


class Since:
    """Since when things have been so without a break, as far as this process has seen."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def look(self, now_so: Collection[str], now: float) -> None:
        """Take down what is so now. A clock that went back makes everything wait the full time again."""
        self._since = {name: min(now, self._since.get(name, now)) for name in now_so}

    def for_at_least(self, seconds: float, now: float) -> frozenset[str]:
        """Return what has been so for this long."""
        return frozenset(name for name, since in self._since.items() if now - since >= seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a replica knows when it decides; authorities are named by their fingerprints."""

    now: float
    stored: Authorities = ()
    """What the Secret holds; nothing when it is gone or empty."""
    known: Authorities = ()
    """What it held when this replica last looked."""
    signer: Authority | None = None
    """Whose leaf this replica serves."""
    found: Authorities = ()
    """What any entry of the webhook configuration trusts."""
    bundled: frozenset[str] = frozenset()
    """What every entry of it trusts."""
    trusted: frozenset[str] = frozenset()
    """Those of `bundled` that have been there for the propagation time."""
    retired: frozenset[str] = frozenset()
    """Those that have been without a key for as long as a leaf of theirs may be in use."""


def plan(situation: Situation, create: Callable[[], Authority]) -> Authorities:
    """Return what the Secret is to hold, oldest first; equal to what it holds when nothing has to change.

    A Secret that is gone is made again of what this replica remembers, with a new authority added, so deleting it means
    "rotate now" and breaks nothing. What the caBundle holds already is kept as previous then, since somebody may need
    it: replicas that remember more, or those of before a change to this source of certificates. Where a Secret lacks
    the authority that our own leaf needs, and the API servers still trust it, it is put back.
    """
    now = situation.now
    held = list(situation.stored or dict.fromkeys((*situation.known, *situation.found)))
    signer = situation.signer
    if signer is not None and signer not in held and signer.fingerprint in situation.bundled:
        held.append(signer)
    if not situation.stored or all(now >= one.renew_at for one in _signing(held, now)):
        held.append(create())
    proven = [one for one in _signing(held, now) if one.fingerprint in situation.trusted]
    if proven:
        held = [one.without_key() if one.age < proven[-1].age else one for one in held]
    kept = [one for one in held if one.usable(now) and (one.key or one.fingerprint not in situation.retired)]
    return tuple(sorted(kept, key=_age))


def choose(authorities: Iterable[Authority], situation: Situation) -> Authority | None:
    """Return whose leaf to serve, None when nobody can sign.

    The oldest that the API servers surely know. While there is none (at the first start, when somebody changed the
    caBundle, when the Secret was replaced) whoever signs now if they know it, then the oldest that they may know, then
    whoever signs now, then the oldest. Our own signer has its key here even if the Secret has it no more.
    """
    signer, held = situation.signer, tuple(authorities)
    mine = [signer] if signer in held and signer.usable(situation.now) else []
    signing = _signing(held, situation.now)
    bundled = [one for one in signing if one.fingerprint in situation.bundled]
    preferred = (
        [one for one in signing if one.fingerprint in situation.trusted],
        [one for one in mine if one.fingerprint in situation.bundled],
        bundled,
        mine,
        signing,
    )
    return next((one for choice in preferred for one in choice), None)


def fingerprints(authorities: Iterable[Authority]) -> frozenset[str]:
    """Return how authorities are named in a situation."""
    return frozenset(one.fingerprint for one in authorities)


def changes(before: Authorities, after: Authorities) -> list[str]:
    """Return what `plan` has decided, in words for the log."""
    had, has = {one.fingerprint: one for one in before}, {one.fingerprint: one for one in after}
    return [
        *(f"{name[:8]} is added" for name in has if name not in had),
        *(f"{name[:8]} signs no more" for name, one in has.items() if name in had and had[name].key and not one.key),
        *(f"{name[:8]} is removed" for name in had if name not in has),
    ]


def same(one: Authorities, other: Authorities) -> bool:
    """Whether two lists hold the same authorities, keys included."""
    return [(a.fingerprint, a.key is None) for a in one] == [(a.fingerprint, a.key is None) for a in other]


def _signing(authorities: Iterable[Authority], now: float) -> list[Authority]:
    return sorted((one for one in authorities if one.key and one.usable(now)), key=_age)


def _age(authority: Authority) -> tuple[float, str]:
    return authority.age
