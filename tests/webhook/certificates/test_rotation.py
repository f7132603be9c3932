"""Every transition of the rotation, on authorities A, B, C that were made on the days 0, 200 and 300 of a clock."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from gpu2dra_webhook.certificates.authority import Authority, create
from gpu2dra_webhook.certificates.rotation import Authorities, Since, Situation, changes, choose, plan, same
from webhook.certificates.tls import DAY, Clock

DAY_0 = Clock().now
MADE = {name: create(DAY_0 + day * DAY, 300 * DAY) for name, day in {"A": 0, "B": 200, "C": 300}.items()}
NEW = create(DAY_0 + 450 * DAY, 300 * DAY)
NAMES = {one.fingerprint: name for name, one in (MADE | {"+": NEW}).items()}


def held(names: str) -> Authorities:
    """Return authorities by their letters, oldest first: capital ones with their keys, small ones without."""
    return tuple(MADE[name] if name.isupper() else MADE[name.upper()].without_key() for name in names)


def known_as(names: str) -> frozenset[str]:
    return frozenset(one.fingerprint for one in held(names))


def letters(authorities: Iterable[Authority]) -> str:
    return "".join(NAMES[one.fingerprint] if one.key else NAMES[one.fingerprint].lower() for one in authorities)


def situation(
    day: float,
    stored: str,
    *,
    known: str = "",
    signer: str = "",
    trusted: str = "",
    retired: str = "",
    bundled: str = "",
) -> Situation:
    return Situation(
        now=DAY_0 + day * DAY,
        stored=held(stored),
        known=held(known),
        signer=held(signer)[0] if signer else None,
        found=held((bundled or trusted).lower()),
        bundled=known_as(bundled or trusted),
        trusted=known_as(trusted),
        retired=known_as(retired),
    )


TRANSITIONS = {
    "nothing yet: the first is made": (situation(0, ""), "+"),
    "current in its life: nothing changes": (situation(199, "A", known="A", signer="A", trusted="A"), "A"),
    "two thirds over: next is made": (situation(200, "A", known="A", signer="A", trusted="A"), "A+"),
    "next is made, and not in the bundle for long": (situation(210, "AB", known="AB", signer="A", trusted="A"), "AB"),
    "next is trusted: it is promoted": (situation(210, "AB", known="AB", signer="A", trusted="AB"), "aB"),
    "next is trusted, but current is not": (situation(210, "AB", known="AB", signer="A", trusted="B"), "aB"),
    "previous has leaves": (situation(211, "aB", known="aB", signer="B", trusted="AB"), "aB"),
    "leaves of previous are gone": (situation(213, "aB", known="aB", signer="B", trusted="AB", retired="A"), "B"),
    "previous has expired": (situation(300, "aB", known="aB", signer="B", trusted="AB"), "B"),
    "current expires before next is trusted": (situation(300, "AB", known="AB", signer="A", trusted="A"), "B"),
    "all have expired": (situation(600, "ABC", known="ABC", signer="C", trusted="ABC"), "+"),
    "all have expired, and all are previous": (situation(600, "abc", known="abc"), "+"),
    "two steps are due at once": (situation(400, "BC", known="BC", signer="B", trusted="BC", retired="A"), "bC"),
    "three with keys: the newest trusted one wins": (
        situation(299, "ABC", known="ABC", signer="A", trusted="AB"),
        "aBC",
    ),
    "the Secret is deleted: what is known comes back, and a new one": (
        situation(10, "", known="A", signer="A", trusted="A"),
        "A+",
    ),
    "the Secret is deleted in the middle of a rotation": (
        situation(210, "", known="AB", signer="A", trusted="A"),
        "AB+",
    ),
    "the Secret is deleted, and what was known has expired": (situation(300, "", known="A", signer="A"), "+"),
    "the Secret is replaced: our signer is put back": (
        situation(310, "C", known="B", signer="B", trusted="B"),
        "BC",
    ),
    "the Secret is replaced, and the caBundle as well: ours is out of use": (
        situation(310, "C", known="B", signer="B", bundled="C"),
        "C",
    ),
    "the Secret is deleted, and we know nothing: what is in the caBundle stays": (
        situation(210, "", bundled="AB"),
        "ab+",
    ),
    "the Secret is deleted, and others know more than we do": (
        situation(210, "", known="A", signer="A", trusted="A", bundled="AB"),
        "Ab+",
    ),
    "an older Secret comes back from a backup: ours goes on": (
        situation(210, "A", known="B", signer="B", trusted="B"),
        "aB",
    ),
    "somebody removed our signer after promotion": (
        situation(310, "C", known="BC", signer="B", trusted="BC"),
        "bC",
    ),
    "our signer has expired: it is not put back": (situation(300, "B", known="A", signer="A"), "B"),
    "a colleague has promoted: nothing is undone": (situation(210, "aB", known="AB", signer="A", trusted="AB"), "aB"),
    "our clock is behind: an authority of the future does": (situation(100, "B", signer="B"), "B"),
}


@pytest.mark.parametrize(("given", "expected"), TRANSITIONS.values(), ids=TRANSITIONS.keys())
def test_transition(given: Situation, expected: str) -> None:
    assert letters(plan(given, lambda: NEW)) == expected


@pytest.mark.parametrize(("given", "expected"), TRANSITIONS.values(), ids=TRANSITIONS.keys())
def test_a_step_that_was_taken_is_not_taken_again(given: Situation, expected: str) -> None:
    after = plan(given, lambda: NEW)
    again = plan(
        Situation(now=given.now, stored=after, known=after, signer=choose(after, given), trusted=given.trusted),
        lambda: NEW,
    )
    assert letters(again) == expected


SIGNERS = {
    "nobody": (situation(0, ""), "", "", ""),
    "the first start: the only one, trusted or not": (situation(0, "A"), "A", "", "A"),
    "current, while next is not trusted": (situation(210, "AB", signer="A", trusted="A"), "AB", "AB", "A"),
    "current, even if next is trusted, until it is promoted": (situation(210, "AB", trusted="AB"), "AB", "AB", "A"),
    "next, once current has lost its key": (situation(210, "aB", signer="A", trusted="AB"), "aB", "AB", "B"),
    "current, with the key that we remember, if we have not seen next for long": (
        situation(210, "aB", signer="A"),
        "aB",
        "AB",
        "A",
    ),
    "the same, and the colleagues have removed ours": (situation(210, "B", signer="A"), "B", "B", "B"),
    "the Secret was made anew, and ours is previous": (situation(310, "bC", signer="B"), "bC", "B", "B"),
    "the same, after a restart": (situation(310, "bC"), "bC", "B", "C"),
    "cut off for long, and others have rotated": (situation(210, "AB", signer="A"), "AB", "B", "B"),
    "current has expired": (situation(300, "AB", signer="A", trusted="A"), "AB", "AB", "B"),
    "just restarted: the oldest of those that are in the bundle": (situation(210, "AB"), "AB", "B", "B"),
    "the bundle was emptied: whoever signs": (situation(310, "BC", signer="C"), "BC", "", "C"),
    "back from a backup: the trusted one, though it is newer": (
        situation(210, "AB", signer="B", trusted="B"),
        "AB",
        "B",
        "B",
    ),
    "all have lost their keys": (situation(210, "ab", trusted="AB"), "ab", "AB", ""),
    "all have expired": (situation(900, "AB", trusted="AB"), "AB", "AB", ""),
}


@pytest.mark.parametrize(("given", "authorities", "bundled", "expected"), SIGNERS.values(), ids=SIGNERS.keys())
def test_who_signs(given: Situation, authorities: str, bundled: str, expected: str) -> None:
    seen = Situation(now=given.now, signer=given.signer, trusted=given.trusted, bundled=known_as(bundled))
    chosen = choose(held(authorities), seen)
    assert letters([chosen] if chosen else []) == expected


@pytest.mark.parametrize(
    ("looks", "at", "expected"),
    [
        ([(0, "x")], 9, ""),
        ([(0, "x")], 10, "x"),
        ([(0, "x"), (5, "xy")], 10, "x"),
        ([(0, "x"), (5, "xy")], 15, "xy"),
        ([(0, "x"), (5, ""), (6, "x")], 15, ""),
        ([(0, "x"), (5, ""), (6, "x")], 16, "x"),
        ([(100, "x"), (50, "x")], 59, ""),
        ([(100, "x"), (50, "x")], 60, "x"),
    ],
    ids=["short", "long enough", "one of two", "both", "with a break", "after a break", "clock back", "after that"],
)
def test_since_counts_without_a_break(looks: list[tuple[float, str]], at: float, expected: str) -> None:
    since = Since()
    for now, so in looks:
        since.look(so, now)
    assert since.for_at_least(10, at) == set(expected)


def test_lists_are_the_same_only_with_the_same_keys() -> None:
    assert same(held("aB"), held("aB"))
    assert not same(held("aB"), held("AB"))
    assert not same(held("B"), held("aB"))


def test_changes_are_told_by_fingerprints_and_hold_no_key() -> None:
    told = changes(held("AB"), (*held("b"), NEW))
    assert [re.sub("^[0-9a-f]{8} ", "", one) for one in told] == ["is added", "signs no more", "is removed"]
    assert [one[:8] for one in told] == [one.fingerprint[:8] for one in (NEW, MADE["B"], MADE["A"])]
