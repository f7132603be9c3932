"""What containers ask for, and what stands against a conversion, read from a PodSpec (R1, R2, R6)."""

from __future__ import annotations

from typing import Any

import pytest

from gpu2dra.demand import Phase, Reading, is_placeholder, read
from unit.build import GPU, MIG, container, sidecar

BASE = "/spec"
MAIN = "/spec/containers/0/resources"


def reading(*containers: Any, init: list[Any] | None = None, **spec: Any) -> Reading:
    return read({"initContainers": init or [], "containers": list(containers), **spec}, BASE)


def asked(made: Reading) -> list[tuple[str, Phase, dict[str, int | str]]]:
    return [(d.name, d.phase, {item.resource.name: item.amount for item in d.legacy}) for d in made.demands]


def test_containers_come_in_starting_order_with_their_phase() -> None:
    made = reading(
        container("a", 1), container("b"),
        init=[container("i", 2), sidecar("s", 3), container("n", 1, restartPolicy="Never"), "no container"],
    )  # fmt: skip
    assert asked(made) == [
        ("i", Phase.INIT, {GPU: 2}),
        ("s", Phase.SIDECAR, {GPU: 3}),
        ("n", Phase.INIT, {GPU: 1}),
        ("a", Phase.APP, {GPU: 1}),
        ("b", Phase.APP, {}),
    ]
    assert [d.path for d in made.demands] == [
        *(f"/spec/initContainers/{n}" for n in range(3)),
        *(f"/spec/containers/{n}" for n in range(2)),
    ]
    assert (made.blockers, made.notes, made.asks) == ([], [], True)


def test_restart_policy_of_an_app_container_does_not_make_it_a_sidecar() -> None:
    assert asked(reading(container("a", 1, restartPolicy="Always"))) == [("a", Phase.APP, {GPU: 1})]


def test_names_come_in_the_order_of_the_manifest_and_every_place_is_seen() -> None:
    made = reading(
        container(limits={"cpu": 1, MIG: 1, GPU: 2})
        | {"resources": {"limits": {"cpu": 1, MIG: 1, GPU: 2}, "requests": {GPU: "2"}}}
    )
    (demand,) = made.demands
    assert [(item.resource.name, item.amount, item.in_requests) for item in demand.legacy] == [
        (MIG, 1, False),
        (GPU, 2, True),
    ]
    assert made.seen == {
        "/spec/containers/0/resources/limits/nvidia.com~1mig-1g.5gb",
        "/spec/containers/0/resources/limits/nvidia.com~1gpu",
        "/spec/containers/0/resources/requests/nvidia.com~1gpu",
    }


@pytest.mark.parametrize(
    ("limits", "requests", "amount"),
    [
        (2, 2, 2), (2, "2", 2), ("2000m", "2", 2), ("1k", 1000, 1000), ("20e-1", "0.002k", 2), ("2", None, 2),
        ("${N}", None, "${N}"), ("${N}", "${N}", "${N}"), ("$N", "$N", "$N"), ("${N:=2}", "${N:=2}", "${N:=2}"),
    ],
)  # fmt: skip
def test_a_request_that_equals_the_limit_is_the_same_amount(limits: Any, requests: Any, amount: int | str) -> None:
    resources = {"limits": {GPU: limits}} | ({"requests": {GPU: requests}} if requests is not None else {})
    made = reading({"name": "main", "resources": resources})
    assert made.blockers == []
    assert asked(made) == [("main", Phase.APP, {GPU: amount})]


@pytest.mark.parametrize(
    ("resources", "code", "path"),
    [
        ({"limits": {GPU: "500m"}}, "DRA301", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: -1}}, "DRA301", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: "two"}}, "DRA301", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: True}}, "DRA301", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: []}}, "DRA301", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: 1}, "requests": {GPU: "x"}}, "DRA301", "/requests/nvidia.com~1gpu"),
        ({"limits": {GPU: 2}, "requests": {GPU: 1}}, "DRA302", "/requests/nvidia.com~1gpu"),
        ({"limits": {GPU: 1}, "requests": {GPU: 2}}, "DRA302", "/requests/nvidia.com~1gpu"),
        ({"limits": {GPU: 0}, "requests": {GPU: 1}}, "DRA302", "/requests/nvidia.com~1gpu"),
        ({"limits": {GPU: 2}, "requests": {GPU: None}}, "DRA302", "/requests/nvidia.com~1gpu"),
        ({"limits": {GPU: "${N}"}, "requests": {GPU: "${M}"}}, "DRA302", "/requests/nvidia.com~1gpu"),
        ({"limits": {GPU: "${N}"}, "requests": {GPU: 1}}, "DRA302", "/requests/nvidia.com~1gpu"),
        ({"requests": {GPU: 1}}, "DRA303", "/requests/nvidia.com~1gpu"),
        ({"limits": {"cpu": 1}, "requests": {GPU: 1}}, "DRA303", "/requests/nvidia.com~1gpu"),
        ({"limits": {"nvidia.com/gpumem": 3000}}, "DRA305", "/limits/nvidia.com~1gpumem"),
        ({"limits": {"volcano.sh/vgpu-number": 1}}, "DRA305", "/limits/volcano.sh~1vgpu-number"),
        ({"limits": {"nvidia.com/GA102GL_A10": 1}}, "DRA305", "/limits/nvidia.com~1GA102GL_A10"),
        ({"limits": {"nvidia.com/gpu.shared": 1}}, "DRA306", "/limits/nvidia.com~1gpu.shared"),
        ({"limits": {"nvidia.com/mig-1g.5gb.shared": 1}}, "DRA306", "/limits/nvidia.com~1mig-1g.5gb.shared"),
        ({"limits": {GPU: "{{ gpus }}"}}, "DRA310", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: "{% if x %}1{% endif %}"}}, "DRA310", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: "<%= gpus %>"}}, "DRA310", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: "${A}${B}"}}, "DRA310", "/limits/nvidia.com~1gpu"),
        ({"limits": {GPU: 1}, "requests": {GPU: "{{ n }}"}}, "DRA310", "/requests/nvidia.com~1gpu"),
    ],
)  # fmt: skip
def test_what_forbids_a_conversion(resources: Any, code: str, path: str) -> None:
    made = reading({"name": "main", "resources": resources})
    assert [(found.code, found.path) for found in made.blockers] == [(code, MAIN + path)]
    assert asked(made) == [("main", Phase.APP, {})]
    assert made.asks


@pytest.mark.parametrize("zero", [0, "0", "0k", "-0", None, "0e5"])
@pytest.mark.parametrize("name", [GPU, MIG, "nvidia.com/gpu.shared", "nvidia.com/gpumem"])
def test_zero_is_noted_and_asks_for_nothing(zero: object, name: str) -> None:
    made = reading({"name": "main", "resources": {"limits": {name: zero}, "requests": {name: 0}}})
    assert [(found.code, found.path) for found in made.notes] == [
        ("DRA101", f"{MAIN}/limits/{name.replace('/', '~1')}")
    ]
    assert f"{name}: {'null' if zero is None else 0} says" in made.notes[0].message
    assert (made.blockers, made.asks) == ([], False)
    assert asked(made) == [("main", Phase.APP, {})]


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"resources": {"limits": {GPU: 1}}}, "DRA308", "/spec/resources/limits/nvidia.com~1gpu"),
        ({"resources": {"requests": {MIG: 1}}}, "DRA308", "/spec/resources/requests/nvidia.com~1mig-1g.5gb"),
        (
            {"ephemeralContainers": [{}, {"name": "e", "resources": {"limits": {GPU: 1}}}]},
            "DRA309",
            "/spec/ephemeralContainers/1/resources/limits/nvidia.com~1gpu",
        ),
    ],
)
def test_places_that_hold_neither_limits_nor_claims(spec: Any, code: str, path: str) -> None:
    made = reading(container("main", 1), **spec)
    assert [(found.code, found.path) for found in made.blockers] == [(code, path)]
    assert path in made.seen


def test_places_that_hold_neither_are_nobodys_business_without_a_gpu() -> None:
    made = reading(
        container("main", 1),
        resources={"limits": {"cpu": 1}},
        ephemeralContainers=[{"resources": {"limits": {"cpu": 1}}}],
    )
    assert made.blockers == []


@pytest.mark.parametrize("name", [None, "", 1, ["main"], {}])
def test_a_request_needs_the_name_of_its_container(name: object) -> None:
    made = reading({"name": name, "resources": {"limits": {GPU: 1}}})
    assert [(found.code, found.path) for found in made.blockers] == [("DRA313", "/spec/containers/0")]


def test_a_container_without_a_name_and_without_a_gpu_is_nobodys_business() -> None:
    assert reading({"resources": {"limits": {"cpu": 1}}}, {}, {}).blockers == []


def test_two_containers_of_one_name_cannot_have_a_request_each() -> None:
    made = reading(
        container("main", 1), container("main", 2), container("other", 1), container("third"), container("third")
    )
    assert [(found.code, found.path) for found in made.blockers] == [
        ("DRA313", "/spec/containers/0/name"),
        ("DRA313", "/spec/containers/1/name"),
    ]


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": None},
        {"containers": {"main": container("main", 1)}},
        {"containers": "x"},
        {"containers": [None, 1, "a", []]},
        {"containers": [{"resources": None}, {"resources": []}, {"resources": "x"}]},
        {
            "containers": [
                {"resources": {"limits": GPU, "requests": [GPU]}},
                {"resources": {"limits": 1, "requests": None}},
            ]
        },
        {"containers": [{"resources": {"limits": {1: 2, None: 3, ("a",): 1}}}]},
        {"initContainers": 1, "ephemeralContainers": {}, "resources": []},
        {"ephemeralContainers": [None, {"resources": 1}], "resources": {"limits": []}},
    ],
)
def test_what_is_no_container_asks_for_nothing(spec: Any) -> None:
    made = read(spec, BASE)
    assert (made.blockers, made.notes, made.seen, made.asks) == ([], [], set(), False)


@pytest.mark.parametrize(
    "text", ["$N", "${N}", "${GPU_COUNT}", "${N:=2}", "${N:-2}", "${N=2}", "${N:?missing}", "${N+1}", "$_n1"]
)
def test_a_placeholder(text: str) -> None:
    assert is_placeholder(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2",
        "$",
        "$1",
        "${}",
        "${1}",
        "${N",
        "a${N}",
        "${N}${M}",
        "${N} ",
        "${N:=${M}}",
        "$(N)",
        "{{ N }}",
        2,
        None,
        ["$N"],
    ],
)
def test_no_placeholder(text: object) -> None:
    assert not is_placeholder(text)
