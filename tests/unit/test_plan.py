"""`plan()` by the rules of the design: each section holds one rule, R1 to R15, with values written by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import gpu2dra
from gpu2dra import ApiVersion, Context, Keep, Object, Options, Severity, Style
from gpu2dra.converted import ANNOTATION
from gpu2dra.podspec import MOST_REQUESTS, _sum
from gpu2dra.policy import Policy, Preemption
from unit.build import (
    ADMISSION,
    FILE,
    GPU,
    GPU_CLASS,
    MIG,
    apply,
    codes,
    container,
    counts,
    deployment,
    planned,
    pod,
    reached,
    sidecar,
    spots,
)

RESOURCES = "/spec/containers/0/resources"
LIMIT = f"{RESOURCES}/limits/nvidia.com~1gpu"
REQUEST = f"{RESOURCES}/requests/nvidia.com~1gpu"
TOLERATION = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}


def resources(limits: Any, requests: Any = None) -> Object:
    """Return a pod with one container that has these resources."""
    both = {"limits": limits} | ({"requests": requests} if requests is not None else {})
    return pod({"name": "main", "resources": both})


def changed(obj: Any, options: Options = FILE, **context: Any) -> Any:
    """Return `obj` after its conversion."""
    return apply(obj, planned(obj, options, Context(**context)))


# Rule 1: the limit is the amount


@pytest.mark.parametrize("amount", [2, "2", "2000m", "20e-1", "0.002k", "+2", 2.0])
@pytest.mark.parametrize("requests", [None, {GPU: 2}, {GPU: "2"}])
def test_r01_whole_numbers_count_in_any_spelling(amount: Any, requests: Any) -> None:
    made = planned(resources({GPU: amount}, requests))
    assert counts(made) == [{"main": 2}]
    assert reached(made) == {"main": 2}
    assert made.access[0].legacy == ((GPU, 2),)


@pytest.mark.parametrize(
    ("limits", "requests", "code", "path"),
    [
        ({GPU: "500m"}, None, "DRA301", LIMIT),
        ({GPU: -1}, None, "DRA301", LIMIT),
        ({GPU: "two"}, None, "DRA301", LIMIT),
        ({GPU: 1}, {GPU: "1.5"}, "DRA301", REQUEST),
        ({GPU: 2}, {GPU: 1}, "DRA302", REQUEST),
        ({"cpu": 1}, {GPU: 1}, "DRA303", REQUEST),
        (None, {GPU: 1}, "DRA303", REQUEST),
        ({GPU: "{{ gpus }}"}, None, "DRA310", LIMIT),
    ],
)
def test_r01_what_the_server_refuses_is_left_as_it_is(limits: Any, requests: Any, code: str, path: str) -> None:
    made = planned(resources(limits, requests))
    assert not made.operations
    assert not made.templates
    assert spots(made) == [(code, path)]
    assert code == "DRA310" or made.findings[0].severity is Severity.ERROR


def test_r01_one_bad_amount_leaves_the_whole_object_as_it_is() -> None:
    made = planned(pod(container("good", 1), container("bad", "500m")))
    assert not made
    assert spots(made) == [("DRA301", "/spec/containers/1/resources/limits/nvidia.com~1gpu")]


def test_r01_a_placeholder_carries_over_as_the_count() -> None:
    made = planned(pod(container("main", "${GPUS}")))
    assert counts(made) == [{"main": "${GPUS}"}]
    assert "DRA112" in codes(made)


# Rule 2: zero is deliberate


@pytest.mark.parametrize("zero", [0, "0", "0k", None])
def test_r02_zero_stays_and_makes_no_claim(zero: Any) -> None:
    made = planned(resources({GPU: zero}, {GPU: zero}))
    assert not made
    assert not made.templates
    assert spots(made) == [("DRA101", LIMIT)]
    assert made.findings[0].severity is Severity.INFO


def test_r02_zero_stays_beside_a_converted_container_and_beside_another_name() -> None:
    obj = pod(container("none", 0), container("main", limits={GPU: 0, MIG: 1}))
    after = changed(obj)
    assert after["spec"]["containers"][0] == obj["spec"]["containers"][0]
    assert after["spec"]["containers"][1]["resources"] == {
        "limits": {GPU: 0},
        "claims": [{"name": "mig", "request": "main"}],
    }
    assert counts(planned(obj)) == [{"main": 1}]


# Rule 3: the key goes from limits and requests, and a map that becomes empty goes too


@pytest.mark.parametrize(
    ("limits", "requests", "left"),
    [
        ({GPU: 1}, None, {}),
        ({GPU: 1}, {GPU: 1}, {}),
        ({GPU: 1, "cpu": 2}, {GPU: 1}, {"limits": {"cpu": 2}}),
        ({GPU: 1}, {GPU: 1, "cpu": 2}, {"requests": {"cpu": 2}}),
        (
            {"memory": "1Gi", GPU: 1, "cpu": 2},
            {"memory": "1Gi", GPU: 1},
            {"limits": {"memory": "1Gi", "cpu": 2}, "requests": {"memory": "1Gi"}},
        ),
        ({GPU: 1}, {}, {"requests": {}}),
    ],
)
def test_r03_keys_and_empty_maps_go(limits: Any, requests: Any, left: Any) -> None:
    after = changed(resources(limits, requests))
    assert after["spec"]["containers"][0]["resources"] == {**left, "claims": [{"name": "gpu", "request": "main"}]}


def test_r03_the_operations_are_these() -> None:
    made = planned(resources({"cpu": 1, GPU: 1}, {GPU: 1}))
    assert list(made.operations) == [
        {
            "op": "add",
            "path": "/spec/resourceClaims",
            "value": [{"name": "gpu", "resourceClaimTemplateName": "train-gpu-1be5c0c2"}],
        },
        {"op": "remove", "path": LIMIT},
        {"op": "remove", "path": f"{RESOURCES}/requests"},
        {"op": "add", "path": f"{RESOURCES}/claims", "value": [{"name": "gpu", "request": "main"}]},
        {"op": "add", "path": "/spec/tolerations", "value": [TOLERATION]},
    ]


# Rule 4: one request per container


def test_r04_each_container_gets_its_own_request_and_nobody_elses() -> None:
    obj = pod(container("a", 2), container("none"), container("b", 1))
    made = planned(obj)
    assert counts(made) == [{"a": 2, "b": 1}]
    assert reached(made) == {"a": 2, "b": 1}
    after = apply(obj, made)["spec"]["containers"]
    assert [c.get("resources", {}).get("claims") for c in after] == [
        [{"name": "gpu", "request": "a"}], None, [{"name": "gpu", "request": "b"}],
    ]  # fmt: skip
    assert [(a.path, a.container, a.requests) for a in made.access] == [
        ("/spec/containers/0", "a", (("gpu", "a"),)),
        ("/spec/containers/2", "b", (("gpu", "b"),)),
    ]


def test_r04_a_mig_profile_is_selected() -> None:
    made = planned(pod(container("main", limits={"nvidia.com/mig-1g.10gb.me": 3})))
    assert made.templates[0]["spec"]["spec"]["devices"]["requests"] == [
        {
            "name": "main",
            "exactly": {
                "deviceClassName": "mig.nvidia.com",
                "allocationMode": "ExactCount",
                "count": 3,
                "selectors": [
                    {
                        "cel": {
                            "expression": "'profile' in device.attributes['gpu.nvidia.com'] && "
                            "device.attributes['gpu.nvidia.com'].profile == '1g.10gb+me'"
                        }
                    }
                ],
            },
        }
    ]
    assert made.operations[0].get("value") == [
        {"name": "mig", "resourceClaimTemplateName": made.templates[0]["metadata"]["name"]}
    ]


def test_r04_the_message_says_what_becomes_of_it() -> None:
    made = planned(pod(container("a", limits={GPU: 1, MIG: 2}), container("b", 1)))
    gpu, mig = (template["metadata"]["name"] for template in made.templates)
    assert [found.message for found in made.findings if found.code == "DRA001"] == [
        (
            'Container "a" asks for 1 × nvidia.com/gpu and 2 × nvidia.com/mig-1g.5gb: becomes '
            f'request "a" of claim "gpu" ({gpu}), request "a-2" of claim "mig" ({mig}).'
        ),
        f'Container "b" asks for 1 × nvidia.com/gpu: becomes request "b" of claim "gpu" ({gpu}).',
    ]
    (whole,) = planned(pod(container("a", limits={GPU: 1, MIG: 2}))).templates
    (first, *_) = planned(pod(container("a", limits={GPU: 1, MIG: 2}))).findings
    assert first.message.endswith(f': becomes claim "gpu" ({whole["metadata"]["name"]}).')


def test_r04_two_names_for_one_device_are_one_request() -> None:
    assert _sum(1, 2) == 3
    assert _sum(1, "$N") == "1 + $N"
    assert _sum("$N", 1) == "$N + 1"


# Rule 5: init containers share


@pytest.mark.parametrize(
    ("init", "apps", "templates", "devices"),
    [
        ([container("i", 1)], [container("a", 4)], [{"a": 4}], {"i": 4, "a": 4}),
        ([container("i", 2)], [container("a", 1), container("b", 1)], [{"a": 1, "b": 1}], {"i": 2, "a": 1, "b": 1}),
        ([container("i", 3)], [container("a", 2)], [{"i": 1, "a": 2}], {"i": 3, "a": 2}),
        ([container("i", 2), container("j", 4)], [container("a", 1)], [{"i": 3, "a": 1}], {"i": 4, "j": 4, "a": 1}),
        ([container("i", 1), sidecar("s", 1)], [container("a", 1)], [{"s": 1, "a": 1}], {"i": 1, "s": 1, "a": 1}),
        (
            [sidecar("s", 1), container("i", 2)],
            [container("a", 1)],
            [{"s": 1, "i": 1}, {"a": 1}],
            {"s": 1, "i": 2, "a": 1},
        ),
        ([container("i", 0), sidecar("s", 1)], [container("a")], [{"s": 1}], {"s": 1}),
        ([container("i", limits={MIG: 1})], [container("a", 1)], [{"i": 1, "a": 1}], {"i": 1, "a": 1}),
    ],
)
def test_r05_init_containers_borrow_what_starts_later(init: Any, apps: Any, templates: Any, devices: Any) -> None:
    made = planned(pod(*apps, init=init))
    assert counts(made) == templates
    assert reached(made) == devices


def claims_of(spec: Object) -> dict[str, Any]:
    """Return what each container names of the claims."""
    every = (*spec.get("initContainers", ()), *spec["containers"])
    return {item["name"]: item.get("resources", {}).get("claims") for item in every}


def test_r05_a_container_that_needs_all_requests_names_the_claim() -> None:
    spec = changed(pod(container("a", 1), container("b", 1), init=[container("i", 2)]))["spec"]
    assert claims_of(spec) == {
        "i": [{"name": "gpu"}],
        "a": [{"name": "gpu", "request": "a"}],
        "b": [{"name": "gpu", "request": "b"}],
    }
    assert len(spec["resourceClaims"]) == 1


def test_r05_a_container_that_needs_some_requests_names_a_claim_for_each() -> None:
    spec = changed(pod(container("a", 1), container("b", 1), container("c", 1), init=[container("i", 2)]))["spec"]
    assert claims_of(spec) == {
        "i": [{"name": "gpu", "request": "a"}, {"name": "gpu-2", "request": "b"}],
        "a": [{"name": "gpu", "request": "a"}],
        "b": [{"name": "gpu-2", "request": "b"}],
        "c": [{"name": "gpu", "request": "c"}],
    }
    assert [entry["name"] for entry in spec["resourceClaims"]] == ["gpu", "gpu-2"]


def test_r05_an_init_container_that_sees_more_is_told() -> None:
    path = "/spec/initContainers/0/resources/limits/nvidia.com~1gpu"
    assert ("DRA102", path) in spots(planned(pod(container("a", 2), init=[container("i", 1)])))
    assert "DRA102" not in codes(planned(pod(container("a", 2), init=[container("i", 2)])))
    assert "DRA102" not in codes(planned(pod(container("a", limits={GPU: 1, MIG: 1}))))


def test_r05_a_placeholder_cannot_be_shared_out() -> None:
    made = planned(pod(container("a", "${N}"), init=[container("i", 1)]))
    assert not made
    assert spots(made) == [("DRA316", "/spec/containers/0/resources/limits")]


# Rule 6: limits of the API, and claims that are there already


@pytest.mark.parametrize(
    ("amounts", "templates", "note"),
    [
        ([32], [{"c0": 32}], False),
        ([16, 16], [{"c0": 16, "c1": 16}], False),
        ([16, 17], [{"c0": 16}, {"c1": 17}], True),
        ([1] * 32, [{f"c{n}": 1 for n in range(32)}], False),
        ([1] * 33, [{f"c{n}": 1 for n in range(32)}, {"c32": 1}], True),
    ],
)
def test_r06_a_claim_holds_32_requests_and_32_devices(amounts: list[int], templates: Any, note: bool) -> None:
    made = planned(pod(*(container(f"c{n}", amount) for n, amount in enumerate(amounts))))
    assert counts(made) == templates
    assert ("DRA107" in codes(made)) == note
    entries = ["gpu", "gpu-2"][: len(templates)]
    assert [entry["name"] for entry in made.operations[0].get("value", [])] == entries


def test_r06_a_pod_with_hundreds_of_requests_is_left_as_it_is() -> None:
    """And nobody waits while it is looked at: the number of requests is asked before they are shared out."""
    containers = [container(f"c{number}", 1) for number in range(MOST_REQUESTS)]
    made = planned(pod(*containers))
    assert len(made.templates) == MOST_REQUESTS // 32
    one_more = planned(pod(*containers, container("more", 1)))
    assert (codes(one_more), one_more.operations, one_more.templates) == (["DRA317"], (), ())
    many_names = {f"nvidia.com/mig-1g.{number}gb": 1 for number in range(MOST_REQUESTS + 1)}
    assert codes(planned(resources(many_names))) == ["DRA317"]


def test_r06_what_a_pod_carries_fits_its_annotations() -> None:
    main = container("main", 1)
    room = 262_144 - len("note") - sum(map(len, _record_of(pod(main))))
    fitting = pod(main) | {"metadata": {"name": "p", "annotations": {"note": "x" * room}}}
    assert codes(planned(fitting, ADMISSION)) == ["DRA001"]
    full = pod(main) | {"metadata": {"name": "p", "annotations": {"note": "x" * (room - 1) + "é"}}}
    made = planned(full, ADMISSION)
    assert (codes(made), made.operations, made.templates) == (["DRA317"], (), ())
    assert codes(planned(full)) == ["DRA001", "DRA103"]  # in a file nothing is carried


def _record_of(obj: Object) -> tuple[str, str]:
    annotations = changed(obj, ADMISSION)["metadata"]["annotations"]
    return ANNOTATION, annotations[ANNOTATION]


def test_r06_claims_from_templates_that_are_there_already_count() -> None:
    mine = [{"name": "mine", "resourceClaimTemplateName": "t"}, {"name": "other", "resourceClaimName": "o"}, "text"]
    assert "DRA107" not in codes(planned(pod(container("main", 1), resourceClaims=mine[1:])))
    (told,) = [f for f in planned(pod(container("main", 1), resourceClaims=mine)).findings if f.code == "DRA107"]
    assert (told.path, told.message.split(";")[0]) == ("/spec", "The pod gets 2 claims from templates")


def test_r06_one_container_above_32_is_refused() -> None:
    made = planned(pod(container("a", 1), container("b", 33)))
    assert not made
    assert spots(made) == [("DRA304", "/spec/containers/1/resources/limits")]


def test_r06_existing_claims_stay_and_taken_names_are_avoided() -> None:
    mine = {"name": "gpu", "resourceClaimName": "nic"}
    obj = pod(container("main", 1), resourceClaims=[mine, "text"])
    obj["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    after = changed(obj, claim_classes={("ResourceClaim", "nic"): frozenset({"nic.example.com"})})
    assert after["spec"]["resourceClaims"][:2] == [mine, "text"]
    assert after["spec"]["resourceClaims"][2]["name"] == "gpu-2"
    assert after["spec"]["containers"][0]["resources"]["claims"] == [
        {"name": "gpu"},
        {"name": "gpu-2", "request": "main"},
    ]


def test_r06_a_name_that_a_container_uses_and_the_pod_does_not_list_is_taken_too() -> None:
    other = container("other") | {"resources": {"claims": [{"name": "gpu"}, {"name": ["x"]}, 1]}}
    assert changed(pod(container("main", 1), other))["spec"]["resourceClaims"][0]["name"] == "gpu-2"


def test_r06_every_claim_avoids_the_taken_names() -> None:
    taken = [{"name": name, "resourceClaimName": "x"} for name in ("gpu", "mig")]
    obj = pod(container("main", limits={GPU: 20, MIG: 20}), resourceClaims=taken)
    assert [entry["name"] for entry in changed(obj)["spec"]["resourceClaims"]] == ["gpu", "mig", "gpu-2", "mig-2"]


@pytest.mark.parametrize(
    ("entry", "classes", "code"),
    [
        ({"resourceClaimTemplateName": "t"}, {("ResourceClaimTemplate", "t"): frozenset({GPU_CLASS})}, "DRA307"),
        ({"resourceClaimName": "t"}, {("ResourceClaim", "t"): frozenset({"x", GPU_CLASS})}, "DRA307"),
        ({"resourceClaimName": "t"}, {("ResourceClaimTemplate", "t"): frozenset({GPU_CLASS})}, "DRA108"),
        ({"resourceClaimName": "t"}, {}, "DRA108"),
        ({}, {}, "DRA108"),
        ({"resourceClaimName": "t"}, {("ResourceClaim", "t"): frozenset({"mig.nvidia.com"})}, None),
    ],
)
def test_r06_a_container_with_somebody_elses_claim(entry: Any, classes: Any, code: str | None) -> None:
    obj = pod(container("main", 1), container("other", 1), resourceClaims=[{"name": "mine", **entry}])
    obj["spec"]["containers"][0]["resources"]["claims"] = [{"name": "mine"}]
    made = planned(obj, context=Context(claim_classes=classes))
    assert bool(made) == (code != "DRA307")
    told = [(c, p) for c, p in spots(made) if c in ("DRA307", "DRA108")]
    assert told == ([(code, f"{RESOURCES}/claims/0")] if code else [])


def test_r06_a_claim_that_the_container_does_not_use_is_nobodys_business() -> None:
    obj = pod(container("main", 1), resourceClaims=[{"name": "mine", "resourceClaimName": "t"}])
    made = planned(obj, context=Context(claim_classes={("ResourceClaim", "t"): frozenset({GPU_CLASS})}))
    assert codes(made) == ["DRA001", "DRA103"]


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        ({"resources": {"limits": {GPU: 1}}}, "DRA308", "/spec/resources/limits/nvidia.com~1gpu"),
        (
            {"ephemeralContainers": [container("e", 1)]},
            "DRA309",
            "/spec/ephemeralContainers/0/resources/limits/nvidia.com~1gpu",
        ),
    ],
)
def test_r06_pod_level_resources_and_ephemeral_containers_hold_no_claims(spec: Any, code: str, path: str) -> None:
    made = planned(pod(container("main", 1), **spec))
    assert not made
    assert spots(made) == [(code, path)]


@pytest.mark.parametrize("field", ["resourceClaims", "tolerations"])
@pytest.mark.parametrize("value", ["text", {"name": "gpu"}, 1, False])
def test_r06_what_is_no_list_is_not_overwritten(field: str, value: Any) -> None:
    made = planned(pod(container("main", 1), **{field: value}))
    assert not made
    assert spots(made) == [("DRA313", f"/spec/{field}")]


def test_r06_claims_that_are_no_list_are_not_overwritten() -> None:
    obj = pod(container("main", 1))
    obj["spec"]["containers"][0]["resources"]["claims"] = {"name": "x"}
    assert spots(planned(obj)) == [("DRA313", f"{RESOURCES}/claims")]


@pytest.mark.parametrize("empty", [None, []])
def test_r06_an_empty_list_is_written_anew(empty: Any) -> None:
    obj = pod(container("main", 1), resourceClaims=empty, tolerations=empty)
    obj["spec"]["containers"][0]["resources"]["claims"] = empty
    after = changed(obj)["spec"]
    assert [
        len(after["resourceClaims"]),
        len(after["tolerations"]),
        len(after["containers"][0]["resources"]["claims"]),
    ] == [1, 1, 1]


# Rule 7: tolerations


@pytest.mark.parametrize(
    "present",
    [
        [TOLERATION],
        [{"key": "a"}, {"operator": "Exists"}],
        [{"operator": "Exists", "effect": "NoSchedule"}],
        [{"key": GPU, "operator": "Exists"}],
        [{"key": GPU, "operator": "Exists", "effect": ""}],
        [{"key": "", "operator": "Exists", "effect": None}],
    ],
)
def test_r07_an_equal_or_wider_toleration_is_enough(present: Any) -> None:
    assert changed(pod(container("main", 1), tolerations=present))["spec"]["tolerations"] == present


@pytest.mark.parametrize(
    "present",
    [
        [{"key": GPU, "effect": "NoSchedule"}],
        [{"key": GPU, "operator": "Equal", "value": "present", "effect": "NoSchedule"}],
        [{"key": GPU, "operator": "Exists", "effect": "NoExecute"}],
        [{"key": "other", "operator": "Exists", "effect": "NoSchedule"}],
        ["text", {"key": ["x"], "operator": "Exists"}],
    ],
)
def test_r07_a_narrower_one_is_not(present: Any) -> None:
    assert changed(pod(container("main", 1), tolerations=present))["spec"]["tolerations"] == [*present, TOLERATION]


def test_r07_one_for_each_name_that_goes() -> None:
    obj = pod(
        container("a", 1),
        container("b", limits={MIG: 1}),
        container("c", 1),
        container("z", limits={"nvidia.com/mig-2g.10gb": 0}),
    )
    assert changed(obj)["spec"].get("tolerations") == [TOLERATION, {**TOLERATION, "key": MIG}]


def test_r07_it_is_switchable_and_the_webhook_adds_none() -> None:
    obj = pod(container("main", 1))
    assert "tolerations" not in changed(obj, Options(tolerations=False))["spec"]
    assert "tolerations" not in changed(obj, ADMISSION)["spec"]


# Rule 8: names and life of a template


def digests(obj: Object, options: Options = FILE) -> list[str]:
    return [template["metadata"]["name"] for template in planned(obj, options).templates]


def test_r08_names_end_in_a_digest_that_is_pinned() -> None:
    assert digests(pod(container("main", 1))) == ["train-gpu-1be5c0c2"]
    assert digests(deployment(container("main", 1))) == ["web-gpu-5272c032"]
    assert digests(pod(container("main", 1)), ADMISSION) == ["gpu-91eca471"]


def test_r08_another_count_another_name_another_kind_another_object() -> None:
    names = [
        *digests(deployment(container("main", 1))), *digests(deployment(container("main", 2))),
        *digests(deployment(container("other", 1))), *digests(deployment(container("main", 1), kind="StatefulSet")),
        *digests(deployment(container("main", 1), kind="Job")),
    ]  # fmt: skip
    assert len(set(names)) == 5


def test_r08_the_template_is_where_its_user_is() -> None:
    (template,) = planned(
        deployment(container("main", 1), meta={"namespace": "ml", "labels": {"app": "web"}})
    ).templates
    assert template["metadata"] == {
        "name": "web-gpu-5272c032", "namespace": "ml", "labels": {"app": "web"},
        "annotations": {"gpu2dra.dev/workload": "Deployment.apps/web"},
    }  # fmt: skip
    (template,) = planned(deployment(container("main", 1))).templates
    assert "namespace" not in template["metadata"]
    assert "labels" not in template["metadata"]


def test_r08_hooks_and_waves_come_one_lower() -> None:
    annotations = {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "1", "argocd.argoproj.io/sync-wave": "-1"}
    (template,) = planned(deployment(container("main", 1), kind="Job", meta={"annotations": annotations})).templates
    assert template["metadata"]["annotations"] == {
        "gpu2dra.dev/workload": "Job.batch/web",
        "helm.sh/hook": "pre-install", "helm.sh/hook-weight": "0", "argocd.argoproj.io/sync-wave": "-2",
    }  # fmt: skip


def test_r08_tools_that_prune_are_told_to_keep_it() -> None:
    (template,) = planned(deployment(container("main", 1)), Options(keep=(Keep.HELM, Keep.ARGOCD, Keep.FLUX))).templates
    assert {
        "helm.sh/resource-policy": "keep",
        "argocd.argoproj.io/sync-options": "Prune=false",
        "kustomize.toolkit.fluxcd.io/prune": "disabled",
    }.items() <= template["metadata"]["annotations"].items()


def test_r08_the_webhook_copies_nothing_of_the_pods() -> None:
    obj = pod(
        container("main", 1),
        meta={"namespace": "ml", "labels": {"app": "web"}, "annotations": {"argocd.argoproj.io/hook": "Sync"}},
    )
    (template,) = planned(obj, ADMISSION).templates
    assert template["metadata"] == {"name": "gpu-91eca471", "labels": {"app.kubernetes.io/managed-by": "gpu2dra"}}


@pytest.mark.parametrize(
    ("meta", "stem"), [({"generateName": "train-"}, "train"), ({"generateName": "x.", "name": None}, "x")]
)
def test_r08_with_generate_name_the_template_needs_a_file_of_its_own(meta: Any, stem: str) -> None:
    obj = deployment(container("main", 1), kind="Job")
    obj["metadata"] = meta
    made = planned(obj)
    assert made.own_file
    assert made.templates[0]["metadata"]["name"].startswith(f"{stem}-gpu-")
    assert ("DRA105", "/metadata/generateName") in spots(made)
    assert "DRA103" not in codes(made)


def test_r08_with_a_name_generate_name_does_not_count() -> None:
    made = planned(pod(container("main", 1), meta={"generateName": "x-"}))
    assert not made.own_file
    assert made.templates[0]["metadata"]["name"] == "train-gpu-1be5c0c2"


@pytest.mark.parametrize("meta", [{}, None, {"name": ""}, {"name": 1}, {"name": "_"}, {"labels": {}}, "text"])
def test_r08_without_a_name_nothing_can_be_named(meta: Any) -> None:
    obj = deployment(container("main", 1))
    obj["metadata"] = meta
    made = planned(obj)
    assert not made
    assert spots(made) == [("DRA313", "/metadata")]


def test_r08_the_webhook_needs_no_name() -> None:
    obj = pod(container("main", 1))
    obj["metadata"] = {"generateName": "web-7d4-"}
    assert digests(obj, ADMISSION) == ["gpu-91eca471"]
    assert not planned(obj, ADMISSION).own_file


def test_r08_pods_of_one_object_that_are_alike_share_a_template() -> None:
    template = {"spec": {"containers": [container("main", 8)]}}
    made = planned(
        {
            "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": {"name": "vllm"},
            "spec": {"leaderWorkerTemplate": {"leaderTemplate": template, "workerTemplate": deepcopy(template)}},
        }
    )  # fmt: skip
    assert len(made.templates) == 1
    assert len(made.access) == 2


def edited() -> Object:
    """Return a template of ours in which somebody has changed the count from 1 to 2."""
    (template,) = planned(deployment(container("main", 1), meta={"namespace": "ml"})).templates
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] = 2
    return template


def test_r08_an_edited_template_is_renamed() -> None:
    made = planned(edited())
    assert list(made.operations) == [{"op": "replace", "path": "/metadata/name", "value": "web-gpu-9faae2ab"}]
    assert spots(made) == [("DRA002", "/metadata/name")]
    assert not planned(apply(edited(), made)).operations


def test_r08_a_field_at_its_default_is_the_same_as_none() -> None:
    (template,) = planned(deployment(container("main", 1))).templates
    exactly = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    assert exactly.pop("allocationMode") == "ExactCount"
    assert not planned(template)
    del exactly["count"]
    assert not planned(template)


def test_r08_references_follow_a_rename() -> None:
    before = deployment(container("main", 1), meta={"namespace": "ml"})
    converted = changed(before)
    converted["spec"]["template"]["spec"]["resourceClaims"].append({"name": "own", "resourceClaimTemplateName": "mine"})
    renames = {("ml", "web-gpu-5272c032"): "web-gpu-9faae2ab", ("other", "mine"): "x"}
    made = planned(converted, context=Context(renames=renames))
    assert list(made.operations) == [
        {
            "op": "replace",
            "path": "/spec/template/spec/resourceClaims/0/resourceClaimTemplateName",
            "value": "web-gpu-9faae2ab",
        }
    ]
    assert not planned(apply(converted, made), context=Context(renames=renames))


def test_r08_references_follow_a_rename_even_where_a_limit_cannot_be_converted() -> None:
    obj = changed(deployment(container("main", 1)))
    obj["spec"]["template"]["spec"]["containers"].append(container("bad", "500m"))
    made = planned(obj, context=Context(renames={("", "web-gpu-5272c032"): "new"}))
    assert apply(obj, made)["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == "new"
    assert codes(made) == ["DRA301"]


def test_r08_an_object_without_a_namespace_is_in_the_callers() -> None:
    obj = changed(deployment(container("main", 1)))
    made = planned(obj, context=Context(renames={("ml", "web-gpu-5272c032"): "new"}, namespace="ml"))
    assert len(made.operations) == 1


# Rule 9: the API version


@pytest.mark.parametrize("version", list(ApiVersion))
def test_r09_each_version_has_its_shape(version: ApiVersion) -> None:
    (template,) = planned(deployment(container("main", 1)), Options(api_version=version)).templates
    assert template["apiVersion"] == version.value
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    inner = {"deviceClassName": GPU_CLASS, "allocationMode": "ExactCount", "count": 1}
    assert request == (
        {"name": "main", **inner} if version is ApiVersion.V1BETA1 else {"name": "main", "exactly": inner}
    )
    assert template["metadata"]["name"] == "web-gpu-5272c032"


def test_r09_the_default_is_v1() -> None:
    assert planned(pod(container("main", 1))).templates[0]["apiVersion"] == "resource.k8s.io/v1"


@pytest.mark.parametrize("version", list(ApiVersion))
def test_r09_the_old_pod_field_source_is_never_written(version: ApiVersion) -> None:
    (entry,) = changed(pod(container("main", 1)), Options(api_version=version))["spec"]["resourceClaims"]
    assert entry == {"name": "gpu", "resourceClaimTemplateName": "train-gpu-1be5c0c2"}


# Rule 10: left alone


@pytest.mark.parametrize(
    ("obj", "code", "path"),
    [
        (
            pod(container("main", 1), meta={"annotations": {"gpu2dra.dev/convert": "false"}}),
            "DRA201",
            "/metadata/annotations/gpu2dra.dev~1convert",
        ),
        (
            pod(container("main", 1), meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
            "DRA202",
            "/metadata/annotations/kubernetes.io~1config.mirror",
        ),
        (pod(container("main", 1), nodeName="n"), "DRA203", "/spec/nodeName"),
        (pod(container("main", 1), os={"name": "windows"}), "DRA204", "/spec/os/name"),
        (pod(container("main", 1), meta={"namespace": "kube-system"}), "DRA205", "/metadata/namespace"),
        (pod(container("main", 1), meta={"namespace": "gpu-operator"}), "DRA205", "/metadata/namespace"),
        (pod(container("main", 1), schedulerName="volcano"), "DRA206", "/spec/schedulerName"),
        (
            pod(container("main", 1), meta={"annotations": {"gpu-fraction": "0.5"}}),
            "DRA305",
            "/metadata/annotations/gpu-fraction",
        ),
        (pod(container("main", limits={"nvidia.com/gpumem": 1})), "DRA305", f"{RESOURCES}/limits/nvidia.com~1gpumem"),
        (
            pod(container("main", 1, limits={"nvidia.com/gpucores": 30})),
            "DRA305",
            f"{RESOURCES}/limits/nvidia.com~1gpucores",
        ),
        (
            pod(container("main", limits={"volcano.sh/vgpu-number": 1})),
            "DRA305",
            f"{RESOURCES}/limits/volcano.sh~1vgpu-number",
        ),
        (
            pod(container("main", limits={"nvidia.com/GA102GL_A10": 1})),
            "DRA305",
            f"{RESOURCES}/limits/nvidia.com~1GA102GL_A10",
        ),
        (
            pod(container("main", limits={"nvidia.com/gpu.shared": 1})),
            "DRA306",
            f"{RESOURCES}/limits/nvidia.com~1gpu.shared",
        ),
    ],
)
@pytest.mark.parametrize("options", [FILE, ADMISSION], ids=["file", "admission"])
def test_r10_each_reason_has_its_code(obj: Object, code: str, path: str, options: Options) -> None:
    made = planned(obj, options)
    assert not made
    assert not made.templates
    assert spots(made) == [(code, path)]


def test_r10_the_webhook_goes_by_the_namespace_of_the_request() -> None:
    for meta in ({}, {"namespace": ""}, {"namespace": None}):
        made = planned(pod(container("main", 1), meta=meta), ADMISSION, Context(namespace="kube-system"))
        assert codes(made) == ["DRA205"]


def test_r10_reasons_are_for_pods_that_ask_for_something() -> None:
    assert planned(pod(container("main"), nodeName="n")).findings == ()
    assert codes(planned(pod(container("main", 0), nodeName="n"))) == ["DRA101"]


@pytest.mark.parametrize(
    ("spec", "priorities", "told"),
    [
        ({}, {}, None),
        ({"priority": 0}, {}, None),
        ({"priority": -5}, {}, None),
        ({"priority": 5}, {}, "priority"),
        ({"priority": 5, "priorityClassName": "high"}, {}, "priorityClassName"),
        ({"priority": 0, "priorityClassName": "high"}, {}, None),
        ({"priorityClassName": "high"}, {}, "priorityClassName"),
        ({"priorityClassName": "high"}, {"high": 100}, "priorityClassName"),
        ({"priorityClassName": "low"}, {"low": -100}, None),
        ({"priorityClassName": "low"}, {"low": 0}, None),
        ({"priority": "5", "priorityClassName": ["x"]}, {}, None),
        ({"priorityClassName": ""}, {}, None),
        ({"priority": 5, "preemptionPolicy": "Never"}, {}, None),
        ({"priority": 5, "preemptionPolicy": "PreemptLowerPriority"}, {}, "priority"),
    ],
)
def test_r10_a_positive_priority_is_converted_with_a_warning(spec: Any, priorities: Any, told: str | None) -> None:
    made = planned(pod(container("main", 1), **spec), context=Context(priorities=priorities))
    assert made
    assert [p for c, p in spots(made) if c == "DRA104"] == ([f"/spec/{told}"] if told else [])
    shown = [found.message.split(":")[0] for found in made.findings if found.code == "DRA104"]
    assert shown == ([f"{told} {spec[told]}"] if told else [])


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({"priority": 5, "priorityClassName": "high"}, [("DRA209", "/spec/priorityClassName")]),
        ({"priority": 5, "preemptionPolicy": "Never"}, None),
        ({"priority": 0, "priorityClassName": "high"}, None),
    ],
)
@pytest.mark.parametrize("style", list(Style))
def test_r10_a_positive_priority_is_left_alone_where_the_policy_says_so(spec: Any, found: Any, style: Style) -> None:
    options = Options(style=style, policy=Policy(preemption=Preemption.SKIP))
    made = planned(pod(container("main", 1), **spec), options)
    assert (spots(made) == found) if found else made


# Rule 11: kinds


@pytest.mark.parametrize(
    ("api_version", "kind", "path"),
    [
        ("v1", "PodTemplate", ("template",)),
        ("apps/v1", "Deployment", ("spec", "template")),
        ("batch/v1", "CronJob", ("spec", "jobTemplate", "spec", "template")),
        ("jobset.x-k8s.io/v1alpha2", "JobSet", ("spec", "replicatedJobs", 0, "template", "spec", "template")),
        ("kubeflow.org/v1", "PyTorchJob", ("spec", "pytorchReplicaSpecs", "Worker", "template")),
    ],
)
def test_r11_a_kind_of_the_table_is_converted_where_it_keeps_its_pods(
    api_version: str, kind: str, path: tuple[Any, ...]
) -> None:
    obj: Any = {"spec": {"containers": [container("main", 1)]}}
    for step in reversed(path):
        obj = [obj] if step == 0 else {step: obj}
    obj |= {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}
    made = planned(obj)
    assert reached(made) == {"main": 1}
    assert made.access[0].path == "".join(f"/{step}" for step in path) + "/spec/containers/0"
    assert not planned(apply(obj, made))


@pytest.mark.parametrize(
    ("api_version", "kind", "code"),
    [
        ("example.com/v1", "Trainer", "DRA401"),
        ("apps/v1beta1", "Deployment", "DRA312"),
        ("serving.knative.dev/v1", "Service", None),
    ],
)
def test_r11_an_unknown_kind_is_reported_and_never_edited(api_version: str, kind: str, code: str | None) -> None:
    obj = deployment(container("main", 1)) | {"apiVersion": api_version, "kind": kind}
    made = planned(obj)
    assert not made
    assert made.findings
    assert code is None or codes(made) == [code]
    assert not planned(obj, Options(elsewhere=False)).findings


def test_r11_what_the_operator_reads_from_the_limit_changes_with_it() -> None:
    group = {"rayStartParams": {}, "template": {"spec": {"containers": [container("ray", 4)]}}}
    obj = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "r"}, "spec": {"headGroupSpec": group}}
    made = planned(obj)
    assert apply(obj, made)["spec"]["headGroupSpec"]["rayStartParams"] == {"num-gpus": "4"}
    assert "DRA106" in codes(made)


@pytest.mark.parametrize(("kind", "told"), [("Job", True), ("Deployment", False), ("StatefulSet", False)])
def test_r11_kinds_whose_pods_cannot_change_are_told(kind: str, told: bool) -> None:
    assert ("DRA103" in codes(planned(deployment(container("main", 1), kind=kind)))) == told


def test_r11_a_list_holds_each_template_before_its_user() -> None:
    items = [
        deployment(container("main", 1), name="a"),
        {"kind": "Service"},
        pod(container("main", limits={GPU: 20, MIG: 20}), name="b"),
        "text",
    ]
    obj = {"apiVersion": "v1", "kind": "List", "items": items}
    made = planned(obj)
    after = apply(obj, made)
    assert [
        (i.get("kind"), i.get("metadata", {}).get("name", "").split("-")[0]) if isinstance(i, dict) else i
        for i in after["items"]
    ] == [
        ("ResourceClaimTemplate", "a"),
        ("Deployment", "a"),
        ("Service", ""),
        ("ResourceClaimTemplate", "b"),
        ("ResourceClaimTemplate", "b"),
        ("Pod", "b"),
        "text",
    ]
    entries = after["items"][5]["spec"]["resourceClaims"]
    assert [e["resourceClaimTemplateName"] for e in entries] == [t["metadata"]["name"] for t in after["items"][3:5]]
    assert made.templates == ()
    assert [a.path for a in made.access] == ["/items/0/spec/template/spec/containers/0", "/items/2/spec/containers/0"]
    assert ("DRA001", "/items/0/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu") in spots(made)
    assert not planned(after)


def test_r11_findings_and_access_of_a_list_stand_in_the_order_of_its_items() -> None:
    items = [deployment(container(name, 1), name=name) for name in ("c", "a", "b")]
    made = planned({"apiVersion": "v1", "kind": "List", "items": [*items, GPU, {"kind": "X", "nvidia.com/gpu": 1}]})
    assert [access.container for access in made.access] == ["c", "a", "b"]
    base = "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu"
    assert [spot for spot in spots(made) if spot[0] == "DRA001"] == [("DRA001", f"/items/{n}{base}") for n in range(3)]
    assert [path for code, path in spots(made) if code != "DRA001"] == ["/items/3", "/items/4/nvidia.com~1gpu"]


def test_r11_an_item_with_generate_name_keeps_its_template_out_of_the_list() -> None:
    item = deployment(container("main", 1), kind="Job")
    item["metadata"] = {"generateName": "x-"}
    made = planned({"apiVersion": "v1", "kind": "List", "items": [item, pod(container("main", 1))]})
    assert made.own_file
    assert [t["metadata"]["name"].split("-")[0] for t in made.templates] == ["x"]
    assert sum(o["op"] == "add" and o["path"] == "/items/1" for o in made.operations) == 1


def test_r11_the_template_of_a_wrapped_object_stands_beside_the_wrapper() -> None:
    inner = deployment(container("main", 1), kind="Job")
    obj = {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "w", "namespace": "ml"},
        "spec": {"components": [{"template": inner}]},
    }
    made = planned(obj)
    (template,) = made.templates
    assert template["metadata"]["namespace"] == "ml"
    assert not made.own_file
    assert len(apply(obj, made)["spec"]["components"]) == 1
    assert made.access[0].path == "/spec/components/0/template/spec/template/spec/containers/0"
    renames = {("ml", template["metadata"]["name"]): "new"}
    assert len(planned(apply(obj, made), context=Context(renames=renames)).operations) == 1
    obj["metadata"] = {"generateName": "w-"}
    assert planned(obj).own_file


def wrapper(*inner: Object, **meta: Any) -> Object:
    """Return an AppWrapper around some objects."""
    components = [{"template": item} for item in inner]
    return {
        "apiVersion": "workload.codeflare.dev/v1beta2",
        "kind": "AppWrapper",
        "metadata": {"name": "w"} | meta,
        "spec": {"components": components},
    }


def test_r11_templates_of_wrapped_objects_stand_in_their_order() -> None:
    made = planned(wrapper(*(deployment(container("main", 1), name=name) for name in ("c", "a", "b"))))
    assert [template["metadata"]["name"].split("-")[0] for template in made.templates] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("outer", "inner", "copied"),
    [
        ({"a": "1"}, None, {"a": "1"}),
        ({"a": "1", "b": "1"}, {"b": "2"}, {"a": "1", "b": "2"}),
        ({"a": "1"}, "text", {"a": "1"}),
        ("text", {"b": "2"}, {"b": "2"}),
        ({}, {"b": "2"}, {"b": "2"}),
        ({}, None, None),
    ],
)
def test_r11_labels_and_annotations_of_the_wrapper_are_those_of_what_it_wraps(
    outer: Any, inner: Any, copied: Any
) -> None:
    item = deployment(container("main", 1), kind="Job", meta={"labels": inner} if inner is not None else {})
    (template,) = planned(wrapper(item, labels=outer)).templates
    assert template["metadata"].get("labels") == copied
    waves = {"argocd.argoproj.io/sync-wave": "3"}
    (template,) = planned(wrapper(deployment(container("main", 1)), annotations=waves)).templates
    assert template["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"] == "2"


def test_r11_a_pod_spec_without_a_template_around_it() -> None:
    obj = {
        "apiVersion": "serving.kserve.io/v1alpha1",
        "kind": "ServingRuntime",
        "metadata": {"name": "s"},
        "spec": {"containers": [container("kserve-container", 1)]},
    }
    made = planned(obj)
    assert reached(made) == {"kserve-container": 1}
    assert made.access[0].path == "/spec/containers/0"
    assert not planned(obj | {"spec": "text"})


def test_r11_what_an_operator_reads_and_has_no_other_field_for_stays() -> None:
    job = {"name": "node", "template": {"spec": {"template": {"spec": {"containers": [container("node", 4)]}}}}}
    obj = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": "t"},
        "spec": {"mlPolicy": {"xgboost": {}}, "template": {"spec": {"replicatedJobs": [job]}}},
    }
    made = planned(obj)
    assert not made
    assert made.templates == ()
    assert codes(made) == ["DRA315"]


# Rule 12: neighbours


def test_r12_a_limit_range_on_the_resource_is_an_error() -> None:
    obj = {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"},
        "spec": {"limits": [{"type": "Container", "default": {GPU: 1, "cpu": 1}}]},
    }  # fmt: skip
    made = planned(obj)
    assert not made
    assert [(f.code, f.severity) for f in made.findings] == [("DRA405", Severity.ERROR)]


def test_r12_a_resource_quota_on_the_resource_is_told() -> None:
    obj = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {f"requests.{GPU}": 4, "pods": 9}},
    }
    made = planned(obj)
    assert not made
    assert codes(made) == ["DRA404"]


def test_r12_a_queue_of_kueue_is_told() -> None:
    obj = deployment(container("main", 1), kind="Job", meta={"labels": {"kueue.x-k8s.io/queue-name": "q"}})
    assert ("DRA110", "/metadata/labels/kueue.x-k8s.io~1queue-name") in spots(planned(obj))
    bare = pod(container("main", 1), meta={"labels": {"kueue.x-k8s.io/queue-name": "q"}})
    assert codes(planned(bare)).count("DRA110") == 1
    inner = deployment(container("main", 1))
    inner["spec"]["template"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "q"
    assert ("DRA110", "/spec/template/metadata/labels/kueue.x-k8s.io~1queue-name") in spots(planned(inner))


def test_r12_a_program_that_reads_visible_devices_is_told() -> None:
    env = [{"name": "A", "value": "1"}, {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]
    made = planned(pod(container("main", 1, env=env), container("other", env=env)))
    assert [path for code, path in spots(made) if code == "DRA109"] == ["/spec/containers/0/env/1"]


# Rule 13: idempotent


@pytest.mark.parametrize("options", [FILE, ADMISSION], ids=["file", "admission"])
def test_r13_converted_input_gives_an_empty_plan(options: Options) -> None:
    obj = pod(
        container("a", 1),
        container("b", limits={GPU: 1, MIG: 2}),
        container("z", 0),
        init=[container("i", 2), sidecar("s", 1)],
    )
    made = planned(obj, options)
    assert made
    again = planned(apply(obj, made), options)
    assert not again
    assert again.templates == ()
    assert codes(again) == ["DRA101"]
    assert all(not planned(template, options) for template in made.templates)


RECORD = '{"containers":{"main":{"nvidia.com/gpu":1}},"templates":{"gpu-91eca471":%s}}'
SPEC = (
    '{"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":1,'
    '"deviceClassName":"gpu.nvidia.com"},"name":"main"}]}}}'
)


def admitted() -> Object:
    """Return a converted Pod as the webhook leaves it."""
    obj: Object = changed(pod(container("main", 1), meta={"labels": {"a": "b"}}), ADMISSION)
    return obj


def test_r13_an_admitted_pod_carries_what_was_taken_off_it() -> None:
    meta = admitted()["metadata"]
    assert meta.get("annotations") == {"gpu2dra.dev/converted": RECORD % SPEC}
    assert meta["labels"] == {"a": "b", "gpu2dra.dev/converted": "true"}


def test_r13_the_converter_writes_no_record() -> None:
    assert changed(pod(container("main", 1)))["metadata"] == {"name": "train"}


@pytest.mark.parametrize("back", [{"limits": {GPU: 1}}, {"limits": {GPU: "1000m", "cpu": 1}, "requests": {GPU: 1}}])
def test_r13_a_limit_that_comes_back_is_stripped_only(back: Any) -> None:
    obj = admitted()
    obj["spec"]["containers"][0]["resources"].update(deepcopy(back))
    made = planned(obj, ADMISSION)
    assert made.templates == ()
    assert made.access == ()
    after = apply(obj, made)
    left = {"limits": {"cpu": 1}} if "cpu" in back["limits"] else {}
    assert after["spec"]["containers"][0]["resources"] == {"claims": [{"name": "gpu", "request": "main"}], **left}
    assert after["spec"]["resourceClaims"] == admitted()["spec"]["resourceClaims"]
    assert after["metadata"] == admitted()["metadata"]


def test_r13_another_amount_is_left_for_the_server_to_refuse() -> None:
    obj = admitted()
    obj["spec"]["containers"][0]["resources"]["limits"] = {GPU: 2}
    made = planned(obj, ADMISSION)
    assert not made
    assert spots(made) == [("DRA314", LIMIT)]


def test_r13_a_container_that_another_webhook_adds_is_converted_too() -> None:
    obj = admitted()
    obj["spec"]["containers"].append(container("injected", 2))
    made = planned(obj, ADMISSION)
    assert counts(made) == [{"injected": 2}]
    after = apply(obj, made)
    assert [e["name"] for e in after["spec"]["resourceClaims"]] == ["gpu", "gpu-2"]
    record = json.loads(after["metadata"]["annotations"]["gpu2dra.dev/converted"])
    assert record["containers"] == {"main": {GPU: 1}, "injected": {GPU: 2}}
    assert sorted(record["templates"]) == sorted(
        e["resourceClaimTemplateName"] for e in after["spec"]["resourceClaims"]
    )
    assert not planned(after, ADMISSION)


def test_r13_a_copied_annotation_does_not_take_a_gpu_away() -> None:
    obj = pod(container("main", 1), meta={"annotations": {"gpu2dra.dev/converted": RECORD % SPEC}})
    made = planned(obj, ADMISSION)
    assert counts(made) == [{"main": 1}]
    assert reached(made) == {"main": 1}
    other = pod(container("main", 2), meta={"annotations": {"gpu2dra.dev/converted": RECORD % SPEC}})
    assert counts(planned(other, ADMISSION)) == [{"main": 2}]


def test_r13_the_record_is_the_webhooks_business() -> None:
    obj = admitted()
    obj["spec"]["containers"][0]["resources"]["limits"] = {GPU: 1}
    classes = {("ResourceClaimTemplate", "gpu-91eca471"): frozenset({GPU_CLASS})}
    assert codes(planned(obj, FILE, Context(claim_classes=classes))) == ["DRA307"]


# Rule 14: determinism


PROGRAM = """
import json, sys
from gpu2dra import Keep, Options, Style, plan
obj = json.load(sys.stdin)
for style in Style:
    made = plan(obj, Options(style=style, keep=tuple(Keep)))
    print(json.dumps([made.operations, made.templates, [str(f) for f in made.findings], [str(a) for a in made.access]]))
"""


def test_r14_same_input_same_bytes_in_every_process() -> None:
    mig = {f"nvidia.com/mig-{n}g.{5 * n}gb": n for n in range(1, 8)}
    obj = pod(
        container("a", limits={GPU: 1, **mig}),
        container("b", limits=mig),
        init=[container("i", limits=mig)],
        meta={"labels": {"x": "y"}},
    )
    here = Path(gpu2dra.__file__).parent.parent
    outputs = {
        subprocess.run(
            [sys.executable, "-S", "-P", "-c", PROGRAM],
            input=json.dumps(obj),
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(here)},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(outputs) == 1
    assert "mig-4" in outputs.pop()


# Rule 15: works with server-side apply, where lists of maps are keyed by name


ALL_OF_ONE = pod(container("a", limits={GPU: 1, MIG: 1, "nvidia.com/mig-2g.10gb": 1}), init=[container("i", 1)])
SOME_OF_MANY = pod(
    container("a", limits={GPU: 1, MIG: 1, "nvidia.com/mig-2g.10gb": 1}),
    container("b", 32),
    container("c", 2),
    init=[container("i", 32), container("j", limits={MIG: 2})],
    resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}, {"name": "mig", "resourceClaimName": "y"}],
)
SOME_OF_MANY["spec"]["containers"][2]["resources"]["claims"] = [{"name": "gpu"}]


@pytest.mark.parametrize("options", [FILE, ADMISSION], ids=["file", "admission"])
@pytest.mark.parametrize(("obj", "claims"), [(ALL_OF_ONE, 1), (SOME_OF_MANY, 6)], ids=["all", "some"])
def test_r15_no_two_entries_of_a_keyed_list_have_one_name(obj: Object, claims: int, options: Options) -> None:
    made = planned(obj, options)
    after = apply(obj, made)["spec"]
    names = [entry["name"] for entry in after["resourceClaims"]]
    assert len(set(names)) == len(names) == claims
    for used in claims_of(after).values():
        keys = [claim["name"] for claim in used]
        assert len(set(keys)) == len(keys)
        assert set(keys) <= set(names)
    for template in made.templates:
        requests = [request["name"] for request in template["spec"]["spec"]["devices"]["requests"]]
        assert len(set(requests)) == len(requests)


# What is no object, or no object as the API has it


@pytest.mark.parametrize(
    "obj",
    [None, 1, "nvidia.com/gpu", [], [1], {}, {"kind": "Pod"}, {"apiVersion": "v1"}, {"apiVersion": [], "kind": {}}],
)
def test_what_is_no_object_has_no_plan(obj: Any) -> None:
    made = planned(obj)
    assert not made
    assert made.templates == ()


MALFORMED: list[Any] = [
    None,
    0,
    1,
    -1,
    1.5,
    True,
    "",
    "x",
    "nvidia.com/gpu",
    [],
    ["x"],
    [None],
    [[]],
    {},
    {"x": 1},
    {"nvidia.com/gpu": 1},
    {"name": ["x"]},
    [{"name": {}}],
]


@pytest.mark.parametrize(
    "path",
    [
        "metadata",
        "metadata/labels",
        "metadata/annotations",
        "metadata/name",
        "metadata/namespace",
        "metadata/generateName",
        "spec",
        "spec/containers",
        "spec/initContainers",
        "spec/resourceClaims",
        "spec/tolerations",
        "spec/nodeName",
        "spec/schedulerName",
        "spec/os",
        "spec/os/name",
        "spec/nodeSelector",
        "spec/affinity",
        "spec/affinity/nodeAffinity",
        "spec/priority",
        "spec/priorityClassName",
        "spec/resources",
        "spec/resources/limits",
        "spec/ephemeralContainers",
        "spec/containers/0",
        "spec/containers/0/name",
        "spec/containers/0/env",
        "spec/containers/0/restartPolicy",
        "spec/containers/0/resources",
        "spec/containers/0/resources/limits",
        "spec/containers/0/resources/requests",
        "spec/containers/0/resources/claims",
        "spec/containers/0/resources/limits/nvidia.com~1gpu",
        "spec/containers/0/resources/requests/nvidia.com~1gpu",
        "spec/initContainers/0/resources/limits",
        "metadata/annotations/gpu2dra.dev~1converted",
        "metadata/annotations/gpu2dra.dev~1convert",
    ],
)
@pytest.mark.parametrize("options", [FILE, ADMISSION], ids=["file", "admission"])
def test_malformed_fields_give_findings_or_nothing(path: str, options: Options) -> None:
    for value in MALFORMED:
        obj = pod(
            container("main", 1, env=[]),
            init=[container("i", 2)],
            meta={"labels": {}, "annotations": {}},
            affinity={},
            os={},
            resources={},
        )
        *above, last = [step.replace("~1", "/") for step in path.split("/")]
        node: Any = obj
        for step in above:
            node = node[int(step)] if isinstance(node, list) else node.setdefault(step, {})
        node[int(last) if isinstance(node, list) else last] = deepcopy(value)
        made = planned(obj, options)
        after = apply(obj, made)
        both = [c for c in all_containers(after) if is_both(c)]
        assert both == []
        assert made.operations or made.findings or path in ("spec", "spec/containers", "spec/containers/0"), value


def all_containers(obj: Any) -> list[Any]:
    """Return what stands where containers stand, whatever it is."""
    spec = obj.get("spec") if isinstance(obj, dict) else None
    lists = [spec.get(field) for field in ("initContainers", "containers")] if isinstance(spec, dict) else []
    return [item for items in lists if isinstance(items, list) for item in items]


def is_both(item: Any) -> bool:
    """Whether a container holds a claim of ours and a limit above zero."""
    resources = item.get("resources") if isinstance(item, dict) else None
    if not isinstance(resources, dict) or not isinstance(resources.get("claims"), list):
        return False
    ours = any(isinstance(claim, dict) and str(claim.get("name")).startswith("gpu") for claim in resources["claims"])
    limits = resources.get("limits")
    return ours and isinstance(limits, dict) and limits.get(GPU, 0) not in (0, "0", None)
