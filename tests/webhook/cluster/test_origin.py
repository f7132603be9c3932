"""Which template content the policy could have made: only that is put back from a pod's annotation."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from gpu2dra import Context, Object, Options, Style, plan
from gpu2dra.devices import Device
from gpu2dra.names import digest
from gpu2dra.policy import BUILT_IN, Policy, Rule
from gpu2dra.templates import canonical_spec
from gpu2dra_webhook.cluster.origin import may_be_ours


def templates(*limits: dict[str, int], policy: Policy = BUILT_IN) -> list[Object]:
    """Return the templates that admission makes of a pod with these limits, a container each."""
    containers = [{"name": f"c{number}", "resources": {"limits": each}} for number, each in enumerate(limits)]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": containers}}
    return list(plan(pod, Options(style=Style.ADMISSION, policy=policy), Context(namespace="n")).templates)


@pytest.mark.parametrize(
    "limits",
    [
        [{"nvidia.com/gpu": 1}],
        [{"nvidia.com/gpu": 32}],
        [{"nvidia.com/gpu": 2}, {"nvidia.com/mig-1g.5gb": 1}, {"nvidia.com/mig-1g.10gb.me": 3}],
        [{"nvidia.com/gpu": 1}] * 40,
    ],
    ids=["one", "most", "slices", "several claims"],
)
def test_what_admission_makes_is_ours(limits: list[dict[str, int]]) -> None:
    made = templates(*limits)
    assert made
    assert all(may_be_ours(each["metadata"]["name"], each["spec"], BUILT_IN) for each in made)


def test_devices_of_the_policy_are_ours_only_with_that_policy() -> None:
    policy = Policy(rules=(Rule(Device("vgpu.example.com"), resources=("nvidia.com/gpu",)),))
    (made,) = templates({"nvidia.com/gpu": 1}, policy=policy)
    assert may_be_ours(made["metadata"]["name"], made["spec"], policy)
    assert not may_be_ours(made["metadata"]["name"], made["spec"], BUILT_IN)


def _request(spec: Object) -> Object:
    request: Object = spec["spec"]["devices"]["requests"][0]
    return request


FORGERIES: dict[str, Callable[[Object], object]] = {
    "another class": lambda spec: _request(spec)["exactly"].update(deviceClassName="admin.example.com"),
    "admin access": lambda spec: _request(spec)["exactly"].update(adminAccess=True),
    "all devices": lambda spec: _request(spec)["exactly"].update(allocationMode="All"),
    "a selector": lambda spec: _request(spec)["exactly"].update(selectors=[{"cel": {"expression": "true"}}]),
    "an odd selector": lambda spec: _request(spec)["exactly"].update(selectors=["true"]),
    "a toleration": lambda spec: _request(spec)["exactly"].update(tolerations=[{"operator": "Exists"}]),
    "too many devices": lambda spec: _request(spec)["exactly"].update(count=33),
    "fewer than none": lambda spec: _request(spec)["exactly"].update(count=-1),
    "a count that is a text": lambda spec: _request(spec)["exactly"].update(count="1"),
    "a count that is a truth": lambda spec: _request(spec)["exactly"].update(count=True),
    "alternatives": lambda spec: _request(spec).update(firstAvailable=[{"name": "x", "deviceClassName": "y"}]),
    "no name": lambda spec: _request(spec).update(name=1),
    "no request": lambda spec: spec["spec"]["devices"].update(requests=[]),
    "too many requests": lambda spec: spec["spec"]["devices"].update(requests=[_request(spec)] * 33),
    "no list": lambda spec: spec["spec"]["devices"].update(requests={"a": 1}),
    "no object": lambda spec: spec["spec"]["devices"].update(requests=["a"]),
    "configuration": lambda spec: spec["spec"]["devices"].update(config=[{"opaque": {"driver": "x"}}]),
    "constraints": lambda spec: spec["spec"]["devices"].update(constraints=[{"matchAttribute": "a/b"}]),
    "metadata": lambda spec: spec.update(metadata={"labels": {"a": "b"}}),
    "another field": lambda spec: spec["spec"].update(more=1),
    "no devices at all": lambda spec: spec.update(spec={}),
    "nothing": lambda spec: spec.clear(),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES.keys())
def test_what_admission_never_writes_is_not_ours_whatever_its_name(forge: Callable[[Object], object]) -> None:
    spec = copy.deepcopy(templates({"nvidia.com/gpu": 1})[0]["spec"])
    forge(spec)
    assert not may_be_ours(f"gpu-{digest(canonical_spec(spec))}", spec, BUILT_IN)


def test_a_name_that_is_not_the_digest_is_not_ours() -> None:
    (made,) = templates({"nvidia.com/gpu": 1})
    for name in ("gpu-00000000", "x", made["metadata"]["name"] + "0"):
        assert not may_be_ours(name, made["spec"], BUILT_IN)
