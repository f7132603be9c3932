"""Claims and requests from what containers want: R4, R5 and R6, by hand-worked tables and by a judge of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu2dra.allocation import Allocation, Amount, CannotAllocate, Consumer, allocate
from gpu2dra.demand import Phase
from gpu2dra.devices import Device

DEVICES = {
    "gpu": Device("gpu.nvidia.com"),
    "mig": Device("mig.nvidia.com", ("profile == '1g.5gb'",)),
    "mig3": Device("mig.nvidia.com", ("profile == '3g.20gb'",)),
}
OUTCOMES = {device: name for name, device in DEVICES.items()}


def consumers(text: str) -> list[Consumer]:
    """Read `init i gpu=1 mig=2 | sidecar s gpu=1 | app a gpu=$N`."""
    found = []
    for part in text.split("|"):
        phase, name, *wants = part.split()
        pairs = (want.split("=") for want in wants)
        amounts: dict[Device, Amount] = {DEVICES[device]: int(n) if n.isdigit() else n for device, n in pairs}
        found.append(Consumer(name, Phase(phase), amounts))
    return found


def shown(made: Allocation) -> tuple[str, dict[str, str]]:
    """Return claims as `entry[request=count …]` and uses as `entry/request …=devices`."""
    claims = [f"{claim.entry}[{' '.join(f'{r.name}={r.count}' for r in claim.requests)}]" for claim in made.claims]
    uses = {name: " ".join(f"{entry}/{request}" for entry, request in used) for name, used in made.uses.items()}
    return " ".join(claims), {name: f"{text} ={made.devices[name]}" for name, text in uses.items()}


@pytest.mark.parametrize(
    ("wants", "claims", "uses"),
    [
        # One request per container (R4), one claim where each container needs one request.
        ("app a gpu=1", "gpu[a=1]", {"a": "gpu/a =1"}),
        ("app a gpu=2 | app b gpu=1", "gpu[a=2 b=1]", {"a": "gpu/a =2", "b": "gpu/b =1"}),
        # A plain init container borrows what starts after it.
        ("init i gpu=1 | app a gpu=1", "gpu[a=1]", {"i": "gpu/a =1", "a": "gpu/a =1"}),
        # Requests are never cut: it sees more than it asked for.
        ("init i gpu=1 | app a gpu=4", "gpu[a=4]", {"i": "gpu/a =4", "a": "gpu/a =4"}),
        # It stops as soon as its need is covered.
        ("init i gpu=2 | app a gpu=2 | app b gpu=2", "gpu[a=2 b=2]", {"i": "gpu/a =2", "a": "gpu/a =2", "b": "gpu/b =2"}),
        # Two requests for one container: a claim for every request, since it may name each claim once only.
        (
            "init i gpu=2 | app a gpu=1 | app b gpu=1",
            "gpu-a[a=1] gpu-b[b=1]",
            {"i": "gpu-a/a gpu-b/b =2", "a": "gpu-a/a =1", "b": "gpu-b/b =1"},
        ),
        # Overshoot by the last one taken.
        (
            "init i gpu=3 | app a gpu=2 | app b gpu=2",
            "gpu-a[a=2] gpu-b[b=2]",
            {"i": "gpu-a/a gpu-b/b =4", "a": "gpu-a/a =2", "b": "gpu-b/b =2"},
        ),
        # What is missing is one extra request, named after the first that lacks something.
        ("init i gpu=3 | app a gpu=2", "gpu-i[i=1] gpu-a[a=2]", {"i": "gpu-a/a gpu-i/i =3", "a": "gpu-a/a =2"}),
        # Nobody to borrow from.
        ("init i gpu=2", "gpu[i=2]", {"i": "gpu/i =2"}),
        # Plain init containers run one after the other and share the extra request.
        ("init i gpu=1 | init j gpu=3", "gpu[i=3]", {"i": "gpu/i =3", "j": "gpu/i =3"}),
        ("init i gpu=3 | init j gpu=1", "gpu[i=3]", {"i": "gpu/i =3", "j": "gpu/i =3"}),
        (
            "init i gpu=2 | init j gpu=4 | app a gpu=1",
            "gpu-i[i=3] gpu-a[a=1]",
            {"i": "gpu-a/a gpu-i/i =4", "j": "gpu-a/a gpu-i/i =4", "a": "gpu-a/a =1"},
        ),
        # The first needs nothing extra, so the extra request is named after the second and the first does not see it.
        (
            "init i gpu=1 | init j gpu=3 | app a gpu=1",
            "gpu-j[j=2] gpu-a[a=1]",
            {"i": "gpu-a/a =1", "j": "gpu-a/a gpu-j/j =3", "a": "gpu-a/a =1"},
        ),
        # A sidecar that starts later lends, one that runs already does not.
        ("init i gpu=1 | sidecar s gpu=1 | app a gpu=1", "gpu[s=1 a=1]", {"i": "gpu/s =1", "s": "gpu/s =1", "a": "gpu/a =1"}),
        ("sidecar s gpu=1 | init i gpu=1 | app a gpu=1", "gpu[s=1 a=1]", {"s": "gpu/s =1", "i": "gpu/a =1", "a": "gpu/a =1"}),
        (
            "sidecar s gpu=1 | init i gpu=2 | app a gpu=1",  # max(1 + 1, 2 + 1) = 3
            "gpu-s[s=1] gpu-i[i=1] gpu-a[a=1]",
            {"s": "gpu-s/s =1", "i": "gpu-a/a gpu-i/i =2", "a": "gpu-a/a =1"},
        ),
        (
            "init i gpu=2 | sidecar s gpu=1 | app a gpu=1",
            "gpu-s[s=1] gpu-a[a=1]",
            {"i": "gpu-s/s gpu-a/a =2", "s": "gpu-s/s =1", "a": "gpu-a/a =1"},
        ),
        (
            "init i gpu=1 | sidecar s gpu=1 | init j gpu=2 | app a gpu=1",  # max(2, 1, 2 + 1) = 3
            "gpu-s[s=1] gpu-j[j=1] gpu-a[a=1]",
            {"i": "gpu-s/s =1", "s": "gpu-s/s =1", "j": "gpu-a/a gpu-j/j =2", "a": "gpu-a/a =1"},
        ),
        (
            "init i gpu=3 | sidecar s gpu=1 | init j gpu=3 | app a gpu=1",  # max(2, 3, 3 + 1) = 4
            "gpu-i[i=2] gpu-s[s=1] gpu-a[a=1]",
            {"i": "gpu-s/s gpu-a/a gpu-i/i =4", "s": "gpu-s/s =1", "j": "gpu-a/a gpu-i/i =3", "a": "gpu-a/a =1"},
        ),
        ("sidecar s gpu=1 | sidecar t gpu=2", "gpu[s=1 t=2]", {"s": "gpu/s =1", "t": "gpu/t =2"}),
        # Only within one outcome.
        ("init i gpu=1 | app a mig=1", "gpu[i=1 a=1]", {"i": "gpu/i =1", "a": "gpu/a =1"}),
        ("init i gpu=1 | app a mig=1 | app b gpu=1", "gpu[a=1 b=1]", {"i": "gpu/b =1", "a": "gpu/a =1", "b": "gpu/b =1"}),
        ("init i mig=1 | app a mig=2", "mig[a=2]", {"i": "mig/a =2", "a": "mig/a =2"}),
        ("init i mig=1 | app a mig3=2", "mig[i=1 a=2]", {"i": "mig/i =1", "a": "mig/a =2"}),
        # Several outcomes on one container: several requests, so a claim for each.
        ("app a gpu=1 mig=2", "gpu-a[a=1] mig-a[a=2]", {"a": "gpu-a/a mig-a/a =3"}),
        ("app a mig=1 mig3=1", "mig-a[a=1] mig-a-2[a=1]", {"a": "mig-a/a mig-a-2/a =2"}),
        (
            "init i gpu=1 mig=1 | app a gpu=1",
            "mig-i[i=1] gpu-a[a=1]",
            {"i": "gpu-a/a mig-i/i =2", "a": "gpu-a/a =1"},
        ),
        (
            "app a gpu=1 mig=1 | app b gpu=1",
            "gpu-a[a=1] mig-a[a=1] gpu-b[b=1]",
            {"a": "gpu-a/a mig-a/a =2", "b": "gpu-b/b =1"},
        ),
        # A placeholder counts where nothing has to be worked out from it.
        ("app a gpu=$N | app b gpu=1", "gpu[a=$N b=1]", {"a": "gpu/a =$N", "b": "gpu/b =1"}),
        ("init i gpu=$N", "gpu[i=$N]", {"i": "gpu/i =$N"}),
        ("init i gpu=1 | app a gpu=1 | app b gpu=$N", "gpu[a=1 b=$N]", {"i": "gpu/a =1", "a": "gpu/a =1", "b": "gpu/b =$N"}),
        ("app a gpu=$N mig=2", "gpu-a[a=$N] mig-a[a=2]", {"a": "gpu-a/a mig-a/a =$N + 2"}),
    ],
)  # fmt: skip
def test_claims_and_who_uses_them(wants: str, claims: str, uses: dict[str, str]) -> None:
    made = allocate(consumers(wants), ())
    assert shown(made) == (claims, uses)
    assert not made.split


def apps(*counts: int) -> str:
    return " | ".join(f"app c{number} gpu={count}" for number, count in enumerate(counts))


@pytest.mark.parametrize(
    ("counts", "sizes", "entries"),
    [
        ([32], [1], ["gpu"]),
        ([16, 16], [2], ["gpu"]),
        ([16, 17], [1, 1], ["gpu", "gpu-2"]),
        ([20, 20, 12], [1, 2], ["gpu", "gpu-2"]),
        ([1] * 32, [32], ["gpu"]),
        ([1] * 33, [32, 1], ["gpu", "gpu-2"]),
        ([8] * 9, [4, 4, 1], ["gpu", "gpu-2", "gpu-3"]),
        ([32, 1, 31, 1], [1, 2, 1], ["gpu", "gpu-2", "gpu-3"]),
    ],
)
def test_a_claim_holds_32_requests_and_32_devices(counts: list[int], sizes: list[int], entries: list[str]) -> None:
    made = allocate(consumers(apps(*counts)), ())
    assert [len(claim.requests) for claim in made.claims] == sizes
    assert [claim.entry for claim in made.claims] == entries
    assert made.split == (len(sizes) > 1)


def test_placeholders_are_spread_by_the_number_of_requests() -> None:
    made = allocate(consumers(" | ".join(f"app c{n} gpu=$N" for n in range(33))), ())
    assert [len(claim.requests) for claim in made.claims] == [32, 1]


@pytest.mark.parametrize("wants", ["app a gpu=33", "init a gpu=33", "sidecar a gpu=33", "app b gpu=1 | app a gpu=33"])
def test_one_container_above_32_is_refused(wants: str) -> None:
    with pytest.raises(CannotAllocate, match='"a" asks for 33 devices; a ResourceClaim holds at most 32') as caught:
        allocate(consumers(wants), ())
    assert (caught.value.code, caught.value.container) == ("DRA304", "a")


@pytest.mark.parametrize(
    ("wants", "container"),
    [("init i gpu=1 | app a gpu=$N", "a"), ("init i gpu=$N | app a gpu=1", "i"), ("init i gpu=2 | sidecar s gpu=1 | app a gpu=$N", "a")],
)
def test_sharing_is_not_worked_out_from_a_placeholder(wants: str, container: str) -> None:
    with pytest.raises(CannotAllocate, match=r"is the placeholder \$N") as caught:
        allocate(consumers(wants), ())
    assert (caught.value.code, caught.value.container) == ("DRA316", container)


@pytest.mark.parametrize(
    ("wants", "taken", "entries"),
    [
        ("app a gpu=1", {"gpu"}, ["gpu-2"]),
        ("app a gpu=1", {"gpu", "gpu-2", "other"}, ["gpu-3"]),
        ("app a gpu=1 mig=1", {"gpu-a"}, ["gpu-a-2", "mig-a"]),
        (f"app {'x' * 63} gpu=1 mig=1", set(), ["gpu-" + "x" * 59, "mig-" + "x" * 59]),
        (f"app {'x' * 62}a gpu=1 mig=1 | app {'x' * 62}b gpu=1", set(), ["gpu-" + "x" * 59, "mig-" + "x" * 59, "gpu-" + "x" * 57 + "-2"]),
    ],
)
def test_entries_avoid_taken_names_and_fit_63_characters(wants: str, taken: set[str], entries: list[str]) -> None:
    assert [claim.entry for claim in allocate(consumers(wants), taken).claims] == entries


def test_nobody_wants_anything() -> None:
    assert allocate([], ()) == Allocation()
    assert allocate([Consumer("a", Phase.APP, {})], ()) == Allocation([], {"a": []}, {"a": 0})


# A judge that knows nothing of the algorithm: it starts the containers of the pod and looks who holds which device.


def judge(wanted: Sequence[Consumer], made: Allocation) -> None:
    """Hold an allocation to R4, R5 and R6."""
    requests = {(claim.entry, request.name): request for claim in made.claims for request in claim.requests}
    assert len(requests) == sum(len(claim.requests) for claim in made.claims)
    assert all(claim.requests for claim in made.claims)
    assert len({claim.entry for claim in made.claims}) == len(made.claims)
    reach: dict[str, Counter[Device]] = {}
    hold: dict[str, set[tuple[str, str, int]]] = {}
    for consumer in wanted:
        uses = made.uses[consumer.name]
        assert len({entry for entry, _ in uses}) == len(uses), "a container names each claim at most once"
        hold[consumer.name] = {(*use, n) for use in uses for n in range(int(requests[use].count))}
        reach[consumer.name] = Counter()
        for use in uses:
            reach[consumer.name][requests[use].device] += int(requests[use].count)
        assert made.devices[consumer.name] == len(hold[consumer.name])
        assert set(reach[consumer.name]) == set(consumer.wants), "no device of a kind that it did not ask for"
    running: set[str] = set()

    def start(consumer: Consumer) -> None:
        taken = set().union(*(hold[name] for name in running))
        assert not taken & hold[consumer.name], "two containers that run at one time share a device"
        for device, amount in consumer.wants.items():
            least = int(amount)
            assert reach[consumer.name][device] >= least
            assert consumer.phase is Phase.INIT or reach[consumer.name][device] == least

    for consumer in wanted:
        start(consumer)
        if consumer.phase is not Phase.INIT:
            running.add(consumer.name)
    assert {use for uses in made.uses.values() for use in uses} == set(requests), "a request that nobody uses"
    for device in {device for consumer in wanted for device in consumer.wants}:
        amounts = [(c.phase, int(c.wants.get(device, 0))) for c in wanted]
        needs = [sum(amount for phase, amount in amounts if phase is not Phase.INIT)]
        for position, (phase, amount) in enumerate(amounts):
            if phase is Phase.INIT:
                needs.append(amount + sum(n for before, n in amounts[:position] if before is Phase.SIDECAR))
        assert sum(int(r.count) for r in requests.values() if r.device == device) == max(needs), "R5's total"
    for claim in made.claims:
        assert len(claim.requests) <= 32
        assert sum(int(request.count) for request in claim.requests) <= 32


@st.composite
def pods(draw: st.DrawFn) -> list[Consumer]:
    early = draw(st.lists(st.sampled_from([Phase.INIT, Phase.SIDECAR]), max_size=5))
    phases = [*early, *([Phase.APP] * draw(st.integers(1, 4)))]
    amounts = st.dictionaries(st.sampled_from(list(OUTCOMES)), st.integers(1, 9), min_size=1, max_size=3)
    return [Consumer(f"c{number}", phase, draw(amounts)) for number, phase in enumerate(phases)]


@given(pods())
def test_a_judge_of_its_own_agrees(wanted: list[Consumer]) -> None:
    judge(wanted, allocate(wanted, ()))


def test_the_judge_refuses_what_breaks_a_rule() -> None:
    wanted = consumers("sidecar s gpu=1 | init i gpu=1 | app a gpu=1")
    made = allocate(wanted, ())
    made.uses["i"] = made.uses["s"]
    with pytest.raises(AssertionError, match="share a device"):
        judge(wanted, made)
    generous = allocate(consumers("app s gpu=1 | app i gpu=1 | app a gpu=1"), ())
    with pytest.raises(AssertionError, match="R5's total"):
        judge(wanted, generous)
