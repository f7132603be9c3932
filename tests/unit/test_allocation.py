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
        (
            "init i gpu=2 | app a gpu=2 | app b gpu=2",
            "gpu[a=2 b=2]",
            {"i": "gpu/a =2", "a": "gpu/a =2", "b": "gpu/b =2"},
        ),
        # All requests of the pod for one container: the whole claim, since it may name each claim once only.
        (
            "init i gpu=2 | app a gpu=1 | app b gpu=1",
            "gpu[a=1 b=1]",
            {"i": "gpu/ =2", "a": "gpu/a =1", "b": "gpu/b =1"},
        ),
        # Overshoot by the last one taken.
        (
            "init i gpu=3 | app a gpu=2 | app b gpu=2",
            "gpu[a=2 b=2]",
            {"i": "gpu/ =4", "a": "gpu/a =2", "b": "gpu/b =2"},
        ),
        # What is missing is one extra request, named after the first that lacks something.
        ("init i gpu=3 | app a gpu=2", "gpu[i=1 a=2]", {"i": "gpu/ =3", "a": "gpu/a =2"}),
        # Nobody to borrow from.
        ("init i gpu=2", "gpu[i=2]", {"i": "gpu/i =2"}),
        # Plain init containers run one after the other and share the extra request.
        ("init i gpu=1 | init j gpu=3", "gpu[i=3]", {"i": "gpu/i =3", "j": "gpu/i =3"}),
        ("init i gpu=3 | init j gpu=1", "gpu[i=3]", {"i": "gpu/i =3", "j": "gpu/i =3"}),
        (
            "init i gpu=2 | init j gpu=4 | app a gpu=1",
            "gpu[i=3 a=1]",
            {"i": "gpu/ =4", "j": "gpu/ =4", "a": "gpu/a =1"},
        ),
        # The first needs nothing extra, so the extra request is named after the second and the first does not see it.
        (
            "init i gpu=1 | init j gpu=3 | app a gpu=1",
            "gpu[j=2 a=1]",
            {"i": "gpu/a =1", "j": "gpu/ =3", "a": "gpu/a =1"},
        ),
        # Some but not all requests of the pod for one container: these are in claims of their own.
        (
            "init i gpu=2 | app a gpu=1 | app b gpu=1 | app c gpu=1",
            "gpu[a=1 c=1] gpu-2[b=1]",
            {"i": "gpu/a gpu-2/b =2", "a": "gpu/a =1", "b": "gpu-2/b =1", "c": "gpu/c =1"},
        ),
        # A sidecar that starts later lends, one that runs already does not.
        (
            "init i gpu=1 | sidecar s gpu=1 | app a gpu=1",
            "gpu[s=1 a=1]",
            {"i": "gpu/s =1", "s": "gpu/s =1", "a": "gpu/a =1"},
        ),
        (
            "sidecar s gpu=1 | init i gpu=1 | app a gpu=1",
            "gpu[s=1 a=1]",
            {"s": "gpu/s =1", "i": "gpu/a =1", "a": "gpu/a =1"},
        ),
        (
            "sidecar s gpu=1 | init i gpu=2 | app a gpu=1",  # max(1 + 1, 2 + 1) = 3
            "gpu[s=1 i=1] gpu-2[a=1]",
            {"s": "gpu/s =1", "i": "gpu-2/a gpu/i =2", "a": "gpu-2/a =1"},
        ),
        (
            "init i gpu=2 | sidecar s gpu=1 | app a gpu=1",
            "gpu[s=1 a=1]",
            {"i": "gpu/ =2", "s": "gpu/s =1", "a": "gpu/a =1"},
        ),
        (
            "init i gpu=1 | sidecar s gpu=1 | init j gpu=2 | app a gpu=1",  # max(2, 1, 2 + 1) = 3
            "gpu[s=1 j=1] gpu-2[a=1]",
            {"i": "gpu/s =1", "s": "gpu/s =1", "j": "gpu-2/a gpu/j =2", "a": "gpu-2/a =1"},
        ),
        (
            "init i gpu=3 | sidecar s gpu=1 | init j gpu=3 | app a gpu=1",  # max(2, 3, 3 + 1) = 4
            "gpu[i=2] gpu-2[s=1] gpu-3[a=1]",
            {"i": "gpu-2/s gpu-3/a gpu/i =4", "s": "gpu-2/s =1", "j": "gpu-3/a gpu/i =3", "a": "gpu-3/a =1"},
        ),
        ("sidecar s gpu=1 | sidecar t gpu=2", "gpu[s=1 t=2]", {"s": "gpu/s =1", "t": "gpu/t =2"}),
        # Only within one outcome.
        ("init i gpu=1 | app a mig=1", "gpu[i=1 a=1]", {"i": "gpu/i =1", "a": "gpu/a =1"}),
        (
            "init i gpu=1 | app a mig=1 | app b gpu=1",
            "gpu[a=1 b=1]",
            {"i": "gpu/b =1", "a": "gpu/a =1", "b": "gpu/b =1"},
        ),
        ("init i mig=1 | app a mig=2", "mig[a=2]", {"i": "mig/a =2", "a": "mig/a =2"}),
        ("init i mig=1 | app a mig3=2", "mig[i=1 a=2]", {"i": "mig/i =1", "a": "mig/a =2"}),
        # Several outcomes on one container: several requests, under names of their own.
        ("app a gpu=1 mig=2", "gpu[a=1 a-2=2]", {"a": "gpu/ =3"}),
        ("app a mig=1 mig3=1", "mig[a=1 a-2=1]", {"a": "mig/ =2"}),
        ("app a mig=1 mig3=1 gpu=4", "gpu[a=1 a-2=1 a-3=4]", {"a": "gpu/ =6"}),
        ("init i gpu=1 mig=1 | app a gpu=1", "gpu[i=1 a=1]", {"i": "gpu/ =2", "a": "gpu/a =1"}),
        (
            "app a gpu=1 mig=1 | app b gpu=1",
            "gpu[a=1 b=1] mig[a-2=1]",
            {"a": "gpu/a mig/a-2 =2", "b": "gpu/b =1"},
        ),
        (
            "app a gpu=1 mig=1 | app a-2 gpu=1",
            "gpu[a=1 a-2=1] mig[a-3=1]",
            {"a": "gpu/a mig/a-3 =2", "a-2": "gpu/a-2 =1"},
        ),
        # All requests for one container, and too many devices for one claim.
        ("app a gpu=20 mig=20", "gpu[a=20] mig[a-2=20]", {"a": "gpu/a mig/a-2 =40"}),
        (
            "app a gpu=20 mig=20 mig3=1",
            "gpu[a=20] mig[a-2=20] mig-2[a-3=1]",
            {"a": "gpu/a mig/a-2 mig-2/a-3 =41"},
        ),
        # A container that wants nothing is in nobody's way.
        (
            "init i gpu=2 | app a gpu=1 | app b gpu=1 | app c",
            "gpu[a=1 b=1]",
            {"i": "gpu/ =2", "a": "gpu/a =1", "b": "gpu/b =1", "c": " =0"},
        ),
        # A placeholder counts where nothing has to be worked out from it.
        ("app a gpu=$N | app b gpu=1", "gpu[a=$N b=1]", {"a": "gpu/a =$N", "b": "gpu/b =1"}),
        ("init i gpu=$N", "gpu[i=$N]", {"i": "gpu/i =$N"}),
        (
            "init i gpu=1 | app a gpu=1 | app b gpu=$N",
            "gpu[a=1 b=$N]",
            {"i": "gpu/a =1", "a": "gpu/a =1", "b": "gpu/b =$N"},
        ),
        ("app a gpu=$N mig=2", "gpu[a=$N a-2=2]", {"a": "gpu/ =$N + 2"}),
    ],
)
def test_claims_and_who_uses_them(wants: str, claims: str, uses: dict[str, str]) -> None:
    made = allocate(consumers(wants), ())
    assert shown(made) == (claims, uses)


def apps(*counts: int) -> str:
    return " | ".join(f"app c{number} gpu={count}" for number, count in enumerate(counts))


@pytest.mark.parametrize(
    ("counts", "sizes", "entries"),
    [
        ([32], [1], ["gpu"]),
        ([16, 16], [2], ["gpu"]),
        ([16, 17], [1, 1], ["gpu", "gpu-2"]),
        ([20, 20, 12], [2, 1], ["gpu", "gpu-2"]),
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


def test_placeholders_are_spread_by_the_number_of_requests() -> None:
    made = allocate(consumers(" | ".join(f"app c{n} gpu=$N" for n in range(33))), ())
    assert [len(claim.requests) for claim in made.claims] == [32, 1]


@pytest.mark.parametrize("wants", ["app a gpu=33", "init a gpu=33", "sidecar a gpu=33", "app b gpu=1 | app a gpu=33"])
def test_one_container_above_32_is_refused(wants: str) -> None:
    with pytest.raises(CannotAllocate) as caught:
        allocate(consumers(wants), ())
    assert str(caught.value) == 'Container "a" asks for 33 devices; a ResourceClaim holds at most 32.'
    assert (caught.value.code, caught.value.container) == ("DRA304", "a")


@pytest.mark.parametrize(
    ("wants", "container"),
    [
        ("init i gpu=1 | app a gpu=$N", "a"),
        ("init i gpu=$N | app a gpu=1", "i"),
        ("init i gpu=2 | sidecar s gpu=1 | app a gpu=$N", "a"),
    ],
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
        ("app a gpu=1 mig=1", {"gpu"}, ["gpu-2"]),
        ("app a gpu=20 mig=20", {"gpu", "mig"}, ["gpu-2", "mig-2"]),
    ],
)
def test_entries_avoid_taken_names(wants: str, taken: set[str], entries: list[str]) -> None:
    assert [claim.entry for claim in allocate(consumers(wants), taken).claims] == entries


def test_request_names_fit_63_characters() -> None:
    (claim,) = allocate(consumers(f"app {'x' * 63} gpu=1 mig=1 | init i gpu=1"), ()).claims[:1]
    assert claim.requests[0].name == "x" * 63
    names = [r.name for c in allocate(consumers(f"app {'x' * 63} gpu=1 mig=1"), ()).claims for r in c.requests]
    assert names == ["x" * 63, "x" * 61 + "-2"]


def test_nobody_wants_anything() -> None:
    assert allocate([], ()) == Allocation()
    assert allocate([Consumer("a", Phase.APP, {})], ()) == Allocation([], {"a": []}, {"a": 0})


# A judge that knows nothing of the algorithm: it starts the containers of the pod and looks who holds which device.

Devices = set[tuple[str, str, int]]


def judge(wanted: Sequence[Consumer], made: Allocation) -> None:
    """Hold an allocation to R4, R5 and R6."""
    requests = {(claim.entry, request.name): request for claim in made.claims for request in claim.requests}
    assert len(requests) == sum(len(claim.requests) for claim in made.claims)
    assert len({claim.entry for claim in made.claims}) == len(made.claims)
    uses: dict[str, list[tuple[str, str]]] = {}
    for name, named in made.uses.items():
        assert len({entry for entry, _ in named}) == len(named), "a container names each claim at most once"
        uses[name] = [
            key for entry, request in named for key in requests if key[0] == entry and request in (key[1], "")
        ]
        assert len(uses[name]) >= len(named), "a request that is in no claim"
    holds: dict[str, Devices] = {
        name: {(*use, n) for use in used for n in range(int(requests[use].count))} for name, used in uses.items()
    }
    assert made.devices == {name: len(devices) for name, devices in holds.items()}
    assert {use for used in uses.values() for use in used} == set(requests), "a request that nobody uses"
    for consumer in wanted:
        judge_reach(consumer, Counter(requests[entry, name].device for entry, name, _ in holds[consumer.name]))
    judge_start(wanted, holds)
    for device in {device for consumer in wanted for device in consumer.wants}:
        total = sum(int(request.count) for request in requests.values() if request.device == device)
        assert total == needed(wanted, device), "R5's total"
    for claim in made.claims:
        assert 1 <= len(claim.requests) <= 32
        assert sum(int(request.count) for request in claim.requests) <= 32


def judge_reach(consumer: Consumer, reached: Counter[Device]) -> None:
    """Hold what one container reaches to what it wants: no other kind, and exactly as much but for init containers."""
    assert set(reached) == set(consumer.wants), "no device of a kind that it did not ask for"
    for device, amount in consumer.wants.items():
        assert reached[device] >= int(amount)
        assert consumer.phase is Phase.INIT or reached[device] == amount


def judge_start(wanted: Sequence[Consumer], holds: dict[str, Devices]) -> None:
    """Start the containers; no two that run at one time may hold a device."""
    running: Devices = set()
    for consumer in wanted:
        assert not running & holds[consumer.name], "two containers that run at one time share a device"
        if consumer.phase is not Phase.INIT:
            running |= holds[consumer.name]


def needed(wanted: Sequence[Consumer], device: Device) -> int:
    """Return max(apps + sidecars, init i + sidecars before i)."""
    amounts = [(consumer.phase, int(consumer.wants.get(device, 0))) for consumer in wanted]
    needs = [sum(amount for phase, amount in amounts if phase is not Phase.INIT)]
    for position, (phase, amount) in enumerate(amounts):
        if phase is Phase.INIT:
            needs.append(amount + sum(n for before, n in amounts[:position] if before is Phase.SIDECAR))
    return max(needs)


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
