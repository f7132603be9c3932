"""R1 to R3: which amounts the servers take, what zero is to them, and why both keys have to go."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controlplane import gpus
from controlplane.client import Object
from controlplane.testbed import AddMachines, Cluster
from controlplane.workloads import GPU, container, convert, names_a_gpu, one_gpu, pod, request, template
from gpu2dra import Severity, plan
from gpu2dra.quantity import AmountError, parse_amount, parse_quantity

Answer = Callable[[str], None]

# The servers count in thousandths, in 64 bits. Above this `1E` is a whole number and `1000000000000000000` is not; no
# plan converts either, since a claim holds 32 devices.
LARGEST = (2**63 - 1) // 1000

# What a limit is worth, by hand; None where the server refuses it.
LIMITS: list[tuple[object, int | None]] = [
    ("2", 2),
    (2, 2),
    (2.0, 2),
    (1e3, 1000),
    ("2000m", 2),
    ("2000000u", 2),
    ("2000000000n", 2),
    ("20e-1", 2),
    ("0.2E1", 2),
    ("0.5k", 500),
    ("1k", 1000),
    ("1M", 1_000_000),
    ("1Ki", 1024),
    ("0.5Ki", 512),
    ("1e3", 1000),
    ("1P", 10**15),
    ("+2", 2),
    ("2.", 2),
    (".5k", 500),
    ("002", 2),
    (" 2 ", 2),
    ("0", 0),
    (0, 0),
    ("-0", 0),
    (None, 0),
    *((text, 0) for text in (".", "-", "k", "-m", "E", "Ti", "e3", "e-9")),  # no digits: zero
    *((text, None) for text in ("Pi", "Ei", "e", "e-10", "+-")),  # or not
    ("0.9999999", 1),  # a server looks at thousandths, rounded up
    ("0.1n", None),  # rounded up to a nano, then to a thousandth
    ("9223372036854775", 9_223_372_036_854_775),
    ("500m", None),
    ("1.5", None),
    (1.5, None),
    ("1.0001", None),
    ("0.3Ki", None),
    ("-1", None),
    (-1, None),
    ("-500m", None),
    ("abc", None),
    ("", None),
    ("1 000", None),
    ("2K", None),  # kilo is written k
    ("2ki", None),
    ("1e", None),
    ("0x2", None),
    ("2 m", None),
    ("1_000", None),
    ("٢", None),  # a digit, but no ASCII
    (True, None),
    ([], None),
    ({}, None),
]
# Limit and request, and whether a server takes the pair. `...`: the key is not there.
PAIRS: list[tuple[object, object, bool]] = [
    (2, ..., True),
    (2, 2, True),
    (2, "2000m", True),
    ("1k", 1000, True),
    (2, 1, False),
    (1, 2, False),
    (0, 0, True),
    (0, ..., True),
    (2, 0, False),
    (0, 1, False),
    (..., 1, False),
    (..., 0, False),
    (None, None, True),
    (2, None, False),
    (None, 2, False),
    (..., None, False),
    (2, "two", False),
    (2, "500m", False),
    ("500m", "500m", False),
]


def takes(cluster: Cluster, limit: object, wanted: object = ...) -> bool:
    """Return whether the server takes a limit, and a request with it, in dry-run."""
    answer = cluster.client.try_create(cluster.here(asking(limit, wanted)), dryRun="All")
    assert answer.accepted or answer.status in (400, 422), answer
    return answer.accepted


def means(cluster: Cluster, limit: object, amount: int) -> bool:
    """Return whether a limit is this amount to the server: it takes only a request that is equal to the limit.

    What it gives back says less: `+2` and `2000m` come back as they were written.
    """
    return takes(cluster, limit, amount) and not takes(cluster, limit, amount - 1 if amount else 1)


def asking(limit: object, wanted: object) -> Object:
    """Return a Pod with this limit and this request; `...` leaves the key out."""
    sections = (("limits", limit), ("requests", wanted))
    resources = {section: {GPU: value} for section, value in sections if value is not ...}
    return pod("amount", container("main") | {"resources": resources})


def planned(limit: object, wanted: object = ...) -> int | None:
    """Return the amount that `plan` takes a limit for; None when it reports an error."""
    made = plan(asking(limit, wanted))
    if any(finding.severity is Severity.ERROR and finding.code != "DRA304" for finding in made.findings):
        assert not made.operations
        return None
    if not made.operations:  # left as it is because it is zero, or because no claim holds that many
        return parse_amount(limit)
    return int(made.templates[0]["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"])


def test_r01_amounts(cluster: Cluster, answer: Answer) -> None:
    """One limit of each spelling: `2`, `2000m`, `20e-1`, `0.5k`, `1Ki`, `+2`, `null`, `500m`, `-1`, `abc` and so on."""
    taken = [value for value, _ in LIMITS if takes(cluster, value)]
    assert taken == [value for value, amount in LIMITS if amount is not None]
    assert [value for value, amount in LIMITS if amount is not None and not means(cluster, value, amount)] == []
    assert [(value, planned(value)) for value, _ in LIMITS] == LIMITS
    answer(f"takes {len(taken)}, refuses {len(LIMITS) - len(taken)}; `plan` likewise, with the same amounts")


def test_r01_requests(cluster: Cluster, answer: Answer) -> None:
    """Limit and request together, equal and not, in other spellings, one without the other."""
    found = [(limit, wanted, takes(cluster, limit, wanted)) for limit, wanted, _ in PAIRS]
    assert found == PAIRS
    assert [(limit, wanted, planned(limit, wanted) is not None) for limit, wanted, _ in PAIRS] == PAIRS
    answer(f"takes {sum(taken for *_, taken in found)} pairs, refuses {sum(not taken for *_, taken in found)}; "
           "`plan` likewise")  # fmt: skip


NUMBERS = st.from_regex(r"[+-]?([0-9]{1,4}\.?[0-9]{0,4}|\.[0-9]{1,4})", fullmatch=True)
SUFFIXES = st.sampled_from(
    ["", *"numkKMGTPEe", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E3", "e-3", "e+2", "e0", "E"]
)
AMOUNTS = st.one_of(
    st.builds("{}{}".format, NUMBERS, SUFFIXES),
    st.builds("{}000{}".format, st.integers(0, 99), st.sampled_from(["m", "000u", "000000n", "e-3"])),
    st.integers(-2, 2 * LARGEST),
    st.floats(min_value=-2, max_value=2.0 * LARGEST, allow_nan=False),
    st.text(st.sampled_from("0123456789+-.eEkKmi "), max_size=6),
)


def test_r01_generated(cluster: Cluster, answer: Answer, record_property: Callable[[str, object], None]) -> None:
    """Amounts drawn at random: numbers, texts, suffixes, exponents, nonsense."""
    tally = {True: 0, False: 0}

    @settings(max_examples=300, derandomize=True, deadline=None)
    @given(AMOUNTS)
    def agree(value: object) -> None:
        ours = None
        with contextlib.suppress(AmountError):
            assume(abs(parse_quantity(value)) <= LARGEST)
            ours = parse_amount(value)
        taken = takes(cluster, value)
        tally[taken] += 1
        assert taken == (ours is not None), f"{value!r}: gpu2dra says {ours}, Kubernetes {cluster.release} {taken}"
        assert ours is None or means(cluster, value, ours), f"{value!r} is not {ours} to Kubernetes {cluster.release}"
        assert planned(value) == ours

    agree()
    assert min(tally.values()) >= 50, tally
    record_property(
        "figures", f"Kubernetes {cluster.release} took {tally[True]} generated amounts, refused {tally[False]}"
    )
    answer("takes the same as `plan`, with the same amount")


def test_r02_zero(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """A limit of zero on nodes with devices but no device plugin; a claim for zero devices."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 2))])
    none = one_gpu("none", 0)
    made = plan(none)
    assert not made.operations
    assert [finding.code for finding in made.findings] == ["DRA101"]
    mixed = convert(cluster.here(pod("mixed", container("asks", 2), container("unset", "0"))))
    limits = [each["resources"].get("limits") for each in mixed.object["spec"]["containers"]]
    assert limits == [None, {GPU: "0"}]
    cluster.client.create(mixed.templates[0])
    assert [found.node for found in cluster.outcomes([none, mixed.object])] == ["h100", "h100"]
    zero = cluster.client.create(cluster.here(template("zero", request("gpu", 0))))
    assert zero["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1
    answer("limit taken, pod runs without a GPU; a claim for 0 becomes a claim for 1")


def test_r03_both_keys(cluster: Cluster, machines: AddMachines, answer: Answer) -> None:
    """What is stored of a limit alone; taking off the limit only, the request only, both as `plan` does."""
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 2))])
    legacy = pod("both", {**container("main"), "resources": {"limits": {GPU: 2, "cpu": 1}}})
    stored = cluster.client.create(cluster.here(legacy), dryRun="All")
    resources = stored["spec"]["containers"][0]["resources"]
    assert resources == {"limits": {GPU: "2", "cpu": "1"}, "requests": {GPU: "2", "cpu": "1"}}

    def without(section: str) -> Object:
        kept = {name: dict(values) for name, values in resources.items()}
        del kept[section][GPU]
        return cluster.here(pod("half", {**container("main"), "resources": kept}))

    no_limit = cluster.client.try_create(without("limits"), dryRun="All")
    assert "Limit must be set for non overcommitable resources" in str(no_limit.object["message"])
    again = cluster.client.create(without("requests"), dryRun="All")
    assert again["spec"]["containers"][0]["resources"] == resources  # the limit fills it in once more

    made = convert(cluster.here(pod("both", {**container("main"), "resources": resources})))
    claims = [{"name": "gpu", "request": "main"}]
    after = made.object["spec"]["containers"][0]["resources"]
    assert after == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}, "claims": claims}
    cluster.client.create(made.templates[0])
    assert cluster.outcome(made.object).node == "h100"
    assert not names_a_gpu(cluster.client.read(made.object))
    answer("a limit fills the request in; without the limit refused, without the request filled in again; "
           "without both runs")  # fmt: skip
