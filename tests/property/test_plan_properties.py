"""Properties of `plan()` over drawn workloads, judged without the core's own helpers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu2dra import ApiVersion, Context, Object, Options, Plan, Style
from property.strategies import (
    GPU,
    MIGS,
    NAMES,
    NETWORK_CLAIM,
    NETWORK_CLASS,
    features,
    json_values,
    pods,
    workloads,
)
from unit.build import apply, planned

if TYPE_CHECKING:
    import pytest

CONTEXT = Context(claim_classes={("ResourceClaim", NETWORK_CLAIM): frozenset({NETWORK_CLASS})})
LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
PROFILES = {GPU: "", MIGS[0]: "1g.5gb", MIGS[1]: "3g.20gb+me"}
EVERY = st.builds(Options, style=st.sampled_from(list(Style)), api_version=st.sampled_from(list(ApiVersion)))
Outcome = tuple[str, str]
"""DeviceClass and CEL expression: what kind of device a request is for."""


def inside(obj: Any, way: tuple[str, ...]) -> Any:
    """Return what `way` leads to."""
    for step in way:
        obj = obj[step]
    return obj


def number(text: object) -> int:
    """Return the whole number that a spelling of the strategies means."""
    shown = str(text)
    for suffix, places in (("000000u", 0), ("000m", 0), ("0e-1", 0), ("E0", 0), (".0", 0)):
        if shown.endswith(suffix):
            return int(shown.removesuffix(suffix) or places)
    return int(shown)


def containers(spec: Object) -> list[tuple[str, Object]]:
    """Return the containers in starting order with their phase."""
    early = [("sidecar" if "restartPolicy" in c else "init", c) for c in spec.get("initContainers", ())]
    return [*early, *(("app", c) for c in spec["containers"])]


def wanted(container: Object) -> Counter[str]:
    """Return the MIG profile (empty for a whole GPU) and number of what a legacy container asks for."""
    limits = container.get("resources", {}).get("limits", {})
    return +Counter({PROFILES[name]: number(limits[name]) for name in NAMES if name in limits})


def requests_of(made: Plan) -> dict[str, dict[str, tuple[Outcome, int]]]:
    """Return outcome and count by template and request, from the templates alone."""
    found: dict[str, dict[str, tuple[Outcome, int]]] = {}
    for template in made.templates:
        requests = found.setdefault(template["metadata"]["name"], {})
        for item in template["spec"]["spec"]["devices"]["requests"]:
            exactly = item.get("exactly", item)
            selectors = [selector["cel"]["expression"] for selector in exactly.get("selectors", ())]
            assert item["name"] not in requests
            requests[item["name"]] = ((exactly["deviceClassName"], " ".join(selectors)), exactly["count"])
    return found


def named(spec: Object) -> dict[str, list[tuple[str, str]]]:
    """Return what each container names of claims from templates: entry and request, empty for the whole claim."""
    made = {entry["name"] for entry in spec.get("resourceClaims", ()) if "resourceClaimTemplateName" in entry}
    return {
        container["name"]: [
            (claim["name"], claim.get("request", ""))
            for claim in container.get("resources", {}).get("claims", ())
            if claim["name"] in made
        ]
        for _, container in containers(spec)
    }


def held(spec: Object, made: Plan) -> dict[str, list[tuple[str, str, Outcome, int]]]:
    """Return entry, request, outcome and count of each request that a container of a converted PodSpec reaches."""
    templates = requests_of(made)
    behind = {
        entry["name"]: templates[entry["resourceClaimTemplateName"]]
        for entry in spec.get("resourceClaims", ())
        if "resourceClaimTemplateName" in entry
    }
    return {
        container: [
            (entry, name, *behind[entry][name])
            for entry, request in uses
            for name in ([request] if request else behind[entry])
        ]
        for container, uses in named(spec).items()
    }


def reach(spec: Object, made: Plan) -> dict[str, Counter[str]]:
    """Return the number of devices of each profile that each container reaches."""
    result: dict[str, Counter[str]] = {}
    for name, uses in held(spec, made).items():
        result[name] = Counter()
        for _, _, (device_class, expression), count in uses:
            (profile,) = [
                p for p in PROFILES.values() if (f"'{p}'" in expression if p else device_class == "gpu.nvidia.com")
            ]
            result[name][profile] += count
    return result


@given(workloads(unknown=True), EVERY)
def test_a_second_plan_is_empty_and_no_limit_is_left(drawn: tuple[Object, tuple[str, ...]], options: Options) -> None:
    obj, way = drawn
    made = planned(obj, options, CONTEXT)
    asks = any(wanted(container) for _, container in containers(inside(obj, way)["spec"]))
    assert bool(made) == asks == bool(made.templates) == bool(made.access)
    after = apply(obj, made)
    assert not planned(after, options, CONTEXT)
    for _, container in containers(inside(after, way)["spec"]):
        assert not wanted(container)
        assert all(
            number(container["resources"].get("requests", {}).get(n, 0)) == 0 for n in NAMES if "resources" in container
        )


@given(workloads(unknown=True))
def test_everything_that_is_not_about_the_request_survives(drawn: tuple[Object, tuple[str, ...]]) -> None:
    obj, way = drawn
    after = apply(obj, planned(obj, context=CONTEXT))
    before_spec, after_spec = inside(obj, way)["spec"], inside(after, way)["spec"]
    for field, keys in (
        ("resourceClaims", {"name", "resourceClaimTemplateName"}),
        ("tolerations", {"key", "operator", "effect"}),
    ):
        present = before_spec.get(field, [])
        added = after_spec.get(field, [])
        assert added[: len(present)] == present
        assert all(set(item) == keys for item in added[len(present) :])
    for (_, old), (_, new) in zip(containers(before_spec), containers(after_spec), strict=True):
        old_resources, new_resources = old.get("resources", {}), new.get("resources", {})
        gone = {name for name in NAMES if PROFILES[name] in wanted(old)}
        for section in ("limits", "requests"):
            left = {key: value for key, value in old_resources.get(section, {}).items() if key not in gone}
            assert new_resources.get(section, {}) == left
            assert list(new_resources.get(section, {})) == list(left)
            assert section not in new_resources or left
        claims = old_resources.get("claims", [])
        assert new_resources.get("claims", [])[: len(claims)] == claims
        assert ("resources" in new) == ("resources" in old)
        assert rest(old_resources, "limits", "requests", "claims") == rest(
            new_resources, "limits", "requests", "claims"
        )
        assert rest(old, "resources") == rest(new, "resources")
    fields = ("resourceClaims", "tolerations", "containers", "initContainers")
    assert rest(before_spec, *fields) == rest(after_spec, *fields)
    inside(after, way)["spec"] = before_spec
    assert after == obj


def rest(obj: Object, *fields: str) -> Object:
    """Return `obj` without these fields."""
    return {key: value for key, value in obj.items() if key not in fields}


@given(workloads(), EVERY)
def test_each_container_reaches_what_it_asked_for_and_nothing_of_its_neighbours(
    drawn: tuple[Object, tuple[str, ...]], options: Options
) -> None:
    obj, way = drawn
    made = planned(obj, options, CONTEXT)
    spec = inside(obj, way)["spec"]
    after = inside(apply(obj, made), way)["spec"]
    uses, devices = held(after, made), reach(after, made)
    running: set[tuple[str, str]] = set()
    for phase, container in containers(spec):
        name, asked = container["name"], wanted(container)
        own = {(entry, request) for entry, request, _, _ in uses[name]}
        assert set(devices[name]) == set(asked)
        assert all(devices[name][p] == n if phase != "init" else devices[name][p] >= n for p, n in asked.items())
        assert not own & running
        if phase != "init":
            running |= own
    for profile in PROFILES.values():
        standing = sum(wanted(c)[profile] for phase, c in containers(spec) if phase != "init")
        starting = [
            wanted(c)[profile] + sum(wanted(s)[profile] for p, s in containers(spec)[:position] if p == "sidecar")
            for position, (phase, c) in enumerate(containers(spec))
            if phase == "init" and wanted(c)[profile]
        ]
        total = {
            (e, r): n
            for used in uses.values()
            for e, r, (c, x), n in used
            if (f"'{profile}'" in x if profile else c == "gpu.nvidia.com")
        }
        assert sum(total.values()) == max([standing, *starting])
    for access in made.access:
        assert list(access.requests) == named(after)[access.container]
        assert access.devices == sum(devices[access.container].values())


@given(workloads())
def test_converter_and_webhook_request_the_same_devices_per_container(drawn: tuple[Object, tuple[str, ...]]) -> None:
    obj, way = drawn
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        **rest(inside(obj, way), "metadata", "apiVersion", "kind"),
    }
    file = planned(obj, context=CONTEXT)
    admission = planned(pod, Options(style=Style.ADMISSION), CONTEXT)
    in_file, in_pod = inside(apply(obj, file), way)["spec"], apply(pod, admission)["spec"]
    assert reach(in_file, file) == reach(in_pod, admission)
    assert held(in_file, file) == held(in_pod, admission)
    assert [(a.container, a.legacy, a.requests, a.devices) for a in file.access] == [
        (a.container, a.legacy, a.requests, a.devices) for a in admission.access
    ]


@given(workloads(), EVERY)
def test_names_are_valid_and_unique_and_the_limits_of_the_api_hold(
    drawn: tuple[Object, tuple[str, ...]], options: Options
) -> None:
    obj, way = drawn
    made = planned(obj, options, CONTEXT)
    spec = inside(apply(obj, made), way)["spec"]
    names = [template["metadata"]["name"] for template in made.templates]
    assert len(set(names)) == len(names)
    assert all(SUBDOMAIN.fullmatch(name) for name in names)
    entries = [entry["name"] for entry in spec.get("resourceClaims", ())]
    assert len(set(entries)) == len(entries)
    assert all(LABEL.fullmatch(entry) for entry in entries)
    for requests in requests_of(made).values():
        assert all(LABEL.fullmatch(name) for name in requests)
        assert 1 <= len(requests) <= 32
        assert sum(count for _, count in requests.values()) <= 32
    for _, container in containers(spec):
        claims = [claim["name"] for claim in container.get("resources", {}).get("claims", ())]
        assert len(set(claims)) == len(claims)
        assert set(claims) <= set(entries)


@given(pods(), st.integers(20, 32))
def test_claims_split_at_the_limits(pod: Object, amount: int) -> None:
    for item in pod["spec"]["containers"]:
        item["resources"] = {"limits": {GPU: amount}}
    made = planned(pod, context=CONTEXT)
    assert made
    for requests in requests_of(made).values():
        assert sum(count for _, count in requests.values()) <= 32


# Anything at all, anywhere in a Pod

KEYS = (
    *NAMES,
    "nvidia.com/gpu.shared",
    "nvidia.com/gpumem",
    "name",
    "metadata",
    "spec",
    "containers",
    "initContainers",
    "resources",
    "limits",
    "requests",
    "claims",
    "request",
    "resourceClaims",
    "resourceClaimTemplateName",
    "tolerations",
    "annotations",
    "labels",
    "items",
    "kind",
    "apiVersion",
    "v1",
    "List",
    "Pod",
    "main",
    "gpu",
    "restartPolicy",
    "Always",
    "env",
    "priorityClassName",
    "$N",
    "schedulerName",
    "nodeName",
    "nodeSelector",
    "affinity",
    "namespace",
    "kube-system",
    "gpu2dra.dev/converted",
    "gpu2dra.dev/convert",
)


def ways(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value."""
    yield way
    for step, inner in (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    ):
        yield from ways(inner, (*way, step))


@st.composite
def spoilt(draw: st.DrawFn) -> Any:
    """Return a workload in which some values, at any level, are some other JSON value."""
    obj, _ = draw(workloads())
    obj = deepcopy(obj)
    for _ in range(draw(st.integers(1, 3))):
        way = draw(st.sampled_from(list(ways(obj))))
        value = draw(json_values(keys=KEYS))
        if not way:
            return value
        inside(obj, way[:-1])[way[-1]] = value
        if draw(st.booleans()) and isinstance(above := inside(obj, way[:-1]), dict):
            above[draw(st.sampled_from(KEYS))] = value
    return obj


@given(spoilt(), EVERY)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_whatever_stands_there_the_plan_applies_and_is_never_both_claim_and_limit(obj: Any, options: Options) -> None:
    made = planned(obj, options)
    after = apply(obj, made)
    old = {way: value for way, value in everything(obj) if way[-1:] == ("resources",)}
    for way, resources in everything(after):
        if way[-1:] != ("resources",) or not isinstance(resources, dict) or resources == old.get(way):
            continue
        for section in ("limits", "requests"):
            values = resources.get(section)
            left = [name for name in NAMES if isinstance(values, dict) and asks(values.get(name))]
            assert left == []
    if made:
        assert not planned(after, options).templates


def asks(amount: object) -> bool:
    """Whether an amount, in any spelling, has a digit other than 0 before its exponent."""
    return re.search("[1-9]", re.split("[eE]", str(amount))[0]) is not None


def everything(value: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value with its way."""
    return ((way, inside(value, way)) for way in ways(value))


# The strategies themselves


def test_the_draws_hold_what_is_interesting(capsys: pytest.CaptureFixture[str]) -> None:
    seen: Counter[str] = Counter()
    total = 300

    @settings(max_examples=total, derandomize=True, database=None)
    @given(pods())
    def draw(pod: Object) -> None:
        seen.update(["pods", *features(pod)])

    draw()
    shares = {name: count / seen["pods"] for name, count in sorted(seen.items()) if name != "pods"}
    with capsys.disabled():
        print(
            "\n" + "\n".join(f"{share:6.1%} of {seen['pods']} drawn Pods hold {name}" for name, share in shares.items())
        )
    assert len(shares) == 6
    assert min(shares.values()) >= 0.15
