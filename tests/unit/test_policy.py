"""What a policy decides, and what the conversion makes of it."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from gpu2dra import Context, Object, Options, Style
from gpu2dra.devices import Device
from gpu2dra.policy import BUILT_IN, LeftAlone, Policy, Rule
from gpu2dra.resources import legacy_resource
from unit.build import GPU, MIG, apply, container, counts, planned, pod, reached, spots

SMALL = Device("small.example.com")
LARGE = Device("large.example.com")
GPUS = Device("gpu.nvidia.com")
SHARED = "nvidia.com/gpu.shared"
LIMITS = "/spec/containers/0/resources/limits"


def outcome(policy: Policy, name: str, namespace: str = "ml") -> Any:
    resource = legacy_resource(name)
    assert resource is not None
    return policy.outcome(resource, namespace)


def classes(obj: Object, policy: Policy, **context: Any) -> dict[str, str]:
    """Return the DeviceClass of each request in the converted `obj`."""
    made = planned(obj, Options(policy=policy), Context(**context))
    requests = [request for template in made.templates for request in template["spec"]["spec"]["devices"]["requests"]]
    return {request["name"]: request["exactly"]["deviceClassName"] for request in requests}


@pytest.mark.parametrize(
    ("rule", "name", "namespace", "expected"),
    [
        (Rule(SMALL, (GPU,)), GPU, "ml", SMALL),
        (Rule(SMALL, ("nvidia.com/*",)), GPU, "ml", SMALL),
        (Rule(SMALL, ("nvidia.com/mig-?g.5gb",)), MIG, "ml", SMALL),
        (Rule(SMALL, ("nvidia.com/mig-*",)), GPU, "ml", GPUS),
        (Rule(SMALL, ("nvidia.com/GPU",)), GPU, "ml", GPUS),
        (Rule(SMALL, namespaces=("ml",)), GPU, "ml", SMALL),
        (Rule(SMALL, namespaces=("m?", "x")), GPU, "ml", SMALL),
        (Rule(SMALL, namespaces=("team-*",)), GPU, "ml", GPUS),
        (Rule(SMALL, namespaces=("ml",)), GPU, "", GPUS),
        (Rule(SMALL, namespaces=("*",)), GPU, "", SMALL),
        (Rule(SMALL, (GPU,), ("other",)), GPU, "ml", GPUS),
        (Rule(LeftAlone("later"), (GPU,)), GPU, "ml", LeftAlone("later")),
        (Rule(LeftAlone("never"), ("nvidia.com/*",)), SHARED, "ml", LeftAlone("never")),
        (Rule(SMALL, (SHARED,)), SHARED, "ml", SMALL),
        (Rule(SMALL, (f"{SHARED[:-1]}?",)), SHARED, "ml", None),
        (Rule(SMALL, ("nvidia.com/*",)), SHARED, "ml", None),
        (Rule(SMALL, namespaces=("*",)), SHARED, "ml", None),
        (Rule(SMALL, ("volcano.sh/*",)), "volcano.sh/vgpu-number", "ml", None),
        (Rule(SMALL, ("volcano.sh/vgpu-number",)), "volcano.sh/vgpu-number", "ml", SMALL),
        (Rule(SMALL, ("*",)), "nvidia.com/GA102GL_A10", "ml", None),
    ],
)
def test_a_rule_is_for_what_its_globs_match(rule: Rule, name: str, namespace: str, expected: Any) -> None:
    assert outcome(Policy((rule,)), name, namespace) == expected


def test_the_first_rule_that_matches_decides_and_the_built_in_device_stands_for_the_rest() -> None:
    policy = Policy((Rule(SMALL, (GPU,), ("dev-*",)), Rule(LARGE, (GPU,)), Rule(SMALL)))
    assert outcome(policy, GPU, "dev-1") == SMALL
    assert outcome(policy, GPU, "prod") == LARGE
    assert outcome(policy, MIG, "prod") == SMALL
    assert outcome(Policy(policy.rules[:1]), GPU, "prod") == outcome(BUILT_IN, GPU) == GPUS


def test_only_devices_of_the_policy_and_the_built_in_ones_are_made() -> None:
    policy = Policy((Rule(SMALL, (GPU,)), Rule(LeftAlone("never"))))
    assert policy.makes(SMALL)
    assert policy.makes(GPUS)
    assert not policy.makes(LARGE)
    assert not policy.makes(Device(SMALL.device_class, ("true",)))
    assert not BUILT_IN.makes(SMALL)


@pytest.mark.parametrize("style", list(Style))
def test_a_request_becomes_the_device_of_its_rule(style: Style) -> None:
    policy = Policy((Rule(SMALL, (GPU,)),))
    made = planned(pod(container("main", 2)), Options(style=style, policy=policy))
    (template,) = made.templates
    assert template["spec"]["spec"]["devices"]["requests"] == [
        {
            "name": "main",
            "exactly": {"deviceClassName": "small.example.com", "allocationMode": "ExactCount", "count": 2},
        }
    ]
    assert apply(pod(container("main", 2)), made)["spec"]["resourceClaims"][0]["name"] == "small"


def test_a_share_converts_where_a_rule_writes_its_name_out() -> None:
    obj = pod(container("main", limits={SHARED: 3}))
    assert spots(planned(obj)) == [("DRA306", f"{LIMITS}/nvidia.com~1gpu.shared")]
    made = planned(obj, Options(policy=Policy((Rule(SMALL, (SHARED,)),))))
    assert (counts(made), reached(made)) == ([{"main": 3}], {"main": 3})


def test_two_names_that_become_one_device_are_one_request() -> None:
    obj = pod(container("main", 1, limits={MIG: 2}))
    assert counts(planned(obj, Options(policy=Policy((Rule(SMALL),))))) == [{"main": 3}]


def test_a_rule_that_skips_leaves_the_whole_object_alone() -> None:
    obj = pod(container("main", 1), container("other", limits={MIG: 1}))
    made = planned(obj, Options(policy=Policy((Rule(LeftAlone("waits for new drivers"), (MIG,)),))))
    assert not made
    assert spots(made) == [("DRA208", "/spec/containers/1/resources/limits/nvidia.com~1mig-1g.5gb")]
    assert made.findings[0].message == f"Left alone: the policy skips {MIG}: waits for new drivers"


def test_zero_is_no_request_for_a_rule_to_skip() -> None:
    made = planned(pod(container("main", 0)), Options(policy=Policy((Rule(LeftAlone("never")),))))
    assert [code for code, _ in spots(made)] == ["DRA101"]


def test_the_namespace_is_that_of_the_object_or_of_the_request() -> None:
    policy = Policy((Rule(SMALL, namespaces=("ml",)),))
    obj = pod(container("main", 1))
    assert classes(obj, policy) == {"main": "gpu.nvidia.com"}
    assert classes(obj, policy, namespace="ml") == {"main": "small.example.com"}
    assert classes(pod(container("main", 1), meta={"namespace": "ml"}), policy) == {"main": "small.example.com"}


def test_a_claim_of_its_own_for_the_class_of_the_rule_is_reported() -> None:
    main = container("main", 1)
    main["resources"]["claims"] = [{"name": "own"}]
    obj = pod(main, resourceClaims=[{"name": "own", "resourceClaimName": "c"}])
    context = Context(claim_classes={("ResourceClaim", "c"): frozenset({"small.example.com"})})
    assert planned(obj, context=context)
    made = planned(obj, Options(policy=Policy((Rule(SMALL),))), context)
    assert [code for code, _ in spots(made)] == ["DRA307"]


def test_schedulers_of_the_policy_come_to_those_of_the_options() -> None:
    obj = pod(container("main", 1), schedulerName="volcano")
    assert [code for code, _ in spots(planned(obj, Options(policy=BUILT_IN)))] == ["DRA206"]
    assert planned(obj, Options(policy=Policy(schedulers=frozenset({"volcano"}))))


def test_a_policy_travels_between_processes() -> None:
    policy = Policy((Rule(SMALL, (GPU,), ("a",), "one"), Rule(LeftAlone("b"))), frozenset({"volcano"}))
    assert pickle.loads(pickle.dumps(policy)) == policy  # noqa: S301 - made a moment ago
