"""The loader of policies: what it takes, and everything that it refuses, by path and with the fix."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpu2dra.devices import Device
from gpu2dra.policy import LeftAlone, Policy, PolicyError, Preemption, Rule
from gpu2dra.policy.load import load

GPU = "nvidia.com/gpu"
SLICE = {"name": "slice", "deviceClassName": "slice.example.com"}
POLICIES = sorted((Path(__file__).resolve().parents[2] / "examples" / "policies").glob("*.yaml"))

FIELDS = "apiVersion, kind, metadata, devices, rules, schedulers, preemption"
NO_GPU = (
    "fits no whole GPU and no MIG profile; a device takes the place of another name only where that is written out."
)


def document(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy", "devices": [SLICE], **fields}


def rule(**fields: Any) -> dict[str, Any]:
    return {"match": {"resources": [GPU]}, "device": "slice", **fields}


def problems(data: Any) -> dict[str, str]:
    """Return the messages by path."""
    with pytest.raises(PolicyError) as caught:
        load(data)
    return {problem.path: problem.message for problem in caught.value.problems}


def test_a_whole_policy() -> None:
    policy = load(
        document(
            metadata={"name": "fleet", "labels": {"team": "platform"}, "annotations": {"x/y": "z"}},
            devices=[SLICE, {"name": "card", "deviceClassName": "card.example.com"}],
            rules=[
                {
                    "name": "small",
                    "match": {"resources": [GPU, "nvidia.com/gpu.shared"], "namespaces": ["dev-*"]},
                    "device": "slice",
                },
                {"match": {"namespaces": ["legacy"]}, "skip": "moves next year"},
                {"match": {"resources": ["nvidia.com/*"]}, "device": "card"},
            ],
            schedulers=["volcano"],
            preemption="skip",
        )
    )
    assert policy == Policy(
        (
            Rule(Device("slice.example.com"), (GPU, "nvidia.com/gpu.shared"), ("dev-*",), "small"),
            Rule(LeftAlone("moves next year"), (), ("legacy",)),
            Rule(Device("card.example.com"), ("nvidia.com/*",)),
        ),
        frozenset({"volcano"}),
        Preemption.SKIP,
    )
    assert policy.warnings == ()


def test_the_shortest_policy_is_the_built_in_one() -> None:
    assert load({"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy"}) == Policy()


@pytest.mark.parametrize(
    ("data", "path", "message"),
    [
        (None, "", f"An empty value cannot stand here; write a map of {FIELDS}."),
        (document(apiVersion="gpu2dra.dev/v1"), "/apiVersion",
         '"gpu2dra.dev/v1" cannot stand here; write gpu2dra.dev/v1alpha1.'),
        (document(kind="Config"), "/kind", '"Config" cannot stand here; write ConversionPolicy.'),
        (document(rule=[]), "/rule", "There is no such field; rules may be meant."),
        (document(spec=1), "/spec", f"There is no such field; the fields are {FIELDS}."),
        (document(metadata={"labels": {"a/b": 1}}), "/metadata/labels/a~1b",
         "1 cannot stand here; write a text, in quotes if need be."),
        (document(metadata={"labels": {1: "a"}}), "/metadata/labels", "A map cannot stand here; write a map of texts."),
        (document(devices={"a": 1}), "/devices", "A map cannot stand here; write a list."),
        (document(devices=[SLICE, "card"]), "/devices/1",
         '"card" cannot stand here; write a map of name, deviceClassName.'),
        (document(devices=[{"name": "card"}]), "/devices/0/deviceClassName",
         "This field is missing; write a DNS name (lower-case letters, digits, - and .)."),
        (document(devices=[SLICE | {"deviceClassName": "A_b"}]), "/devices/0/deviceClassName",
         '"A_b" cannot stand here; write a DNS name (lower-case letters, digits, - and .).'),
        (document(devices=[SLICE | {"deviceClassName": "a..b"}]), "/devices/0/deviceClassName",
         '"a..b" cannot stand here; write a DNS name (lower-case letters, digits, - and .).'),
        (document(devices=[SLICE | {"deviceClassName": "a\n"}]), "/devices/0/deviceClassName",
         "'a\\n' cannot stand here; write a DNS name (lower-case letters, digits, - and .)."),
        (document(devices=[SLICE | {"deviceClassName": "a" * 254}]), "/devices/0/deviceClassName",
         f'"{"a" * 60}…" cannot stand here; write a DNS name (lower-case letters, digits, - and .).'),
        (document(devices=[SLICE | {"name": "x.y"}]), "/devices/0/name",
         '"x.y" cannot stand here; write at most 63 lower-case letters, digits and -, as in a DNS label.'),
        (document(devices=[SLICE | {"name": True}]), "/devices/0/name",
         "true cannot stand here; write at most 63 lower-case letters, digits and -, as in a DNS label."),
        (document(devices=[SLICE, SLICE]), "/devices/1/name",
         '"slice" is the name of /devices/0 already; give it another.'),
        (document(rules=[{"device": "slice"}]), "/rules/0/match", "This field is missing."),
        (document(rules=[rule(match={})]), "/rules/0/match",
         'This matches nothing in particular; list resources or namespaces ("*" stands for all).'),
        (document(rules=[rule(match={"resources": []})]), "/rules/0/match/resources",
         "An empty value cannot stand here; list at least one, or remove the field."),
        (document(rules=[rule(match={"resource": [GPU]})]), "/rules/0/match/resource",
         "There is no such field; resources may be meant."),
        (document(rules=[rule(match={"resources": ["nvidia.com/[ab]"]})]), "/rules/0/match/resources/0",
         '"nvidia.com/[ab]" cannot stand here; write a resource name such as nvidia.com/gpu or nvidia.com/mig-*.'),
        (document(rules=[rule(match={"resources": ["amd.com/gpu"]})]), "/rules/0/match/resources/0",
         '"amd.com/gpu" is no GPU resource that gpu2dra knows; write one such as nvidia.com/gpu.'),
        (document(rules=[rule(match={"resources": ["nvidia.com/gpumem"]})]), "/rules/0/match/resources/0",
         "The amount of nvidia.com/gpumem is no number of devices; only a rule that skips can be for it."),
        (document(rules=[rule(match={"resources": [GPU, "volcano.sh/*"]})]), "/rules/0/match/resources/1",
         f'"volcano.sh/*" {NO_GPU}'),
        (document(rules=[{"match": {"resources": ["amd.com/*"]}, "skip": "x"}]), "/rules/0/match/resources/0",
         '"amd.com/*" fits no GPU resource that gpu2dra knows; they begin with nvidia.com/ or volcano.sh/.'),
        (document(rules=[rule(match={"namespaces": ["Team"]})]), "/rules/0/match/namespaces/0",
         '"Team" cannot stand here; write a namespace such as team-a or team-*.'),
        (document(rules=[rule(device="slices")]), "/rules/0/device",
         'There is no device "slices"; "slice" may be meant.'),
        (document(rules=[rule(device="x")]), "/rules/0/device", 'There is no device "x"; the devices are slice.'),
        (document(devices=[], rules=[rule(device="x")]), "/rules/0/device",
         'There is no device "x"; the devices are none yet.'),
        (document(rules=[{"match": {"resources": [GPU]}}]), "/rules/0",
         "A rule says what becomes of the request; write device: NAME or skip: REASON."),
        (document(rules=[rule(skip="never")]), "/rules/0/skip",
         "A rule has either a device or a reason to skip; remove one of them."),
        (document(rules=[{"match": {"resources": [GPU]}, "skip": ""}]), "/rules/0/skip",
         "An empty value cannot stand here; write a reason of at most 80 letters."),
        (document(rules=[{"match": {"resources": [GPU]}, "skip": "a\nb"}]), "/rules/0/skip",
         "'a\\nb' cannot stand here; write a reason of at most 80 letters."),
        (document(rules=[rule(name="a"), rule(name="a", match={"namespaces": ["x"]})]), "/rules/1/name",
         '"a" is the name of /rules/0 already; give it another.'),
        (document(schedulers=["Volcano"]), "/schedulers/0",
         '"Volcano" cannot stand here; write a DNS name (lower-case letters, digits, - and .).'),
        (document(preemption="never"), "/preemption", '"never" cannot stand here; write warn or skip.'),
        (document(preemption=None), "/preemption", "An empty value cannot stand here; write warn or skip."),
        (document(preemption=[1]), "/preemption", "A list cannot stand here; write warn or skip."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_path_and_the_fix(data: Any, path: str, message: str) -> None:
    assert problems(data) == {path: message}


@pytest.mark.parametrize(
    ("most", "fields"),
    [
        (63, lambda text: {"devices": [SLICE | {"name": text}]}),
        (253, lambda text: {"devices": [SLICE | {"deviceClassName": text}]}),
        (253, lambda text: {"schedulers": [text]}),
        (253, lambda text: {"rules": [rule(match={"resources": [f"nvidia.com/{text[11:]}"]}, skip="no")]}),
        (63, lambda text: {"rules": [rule(match={"namespaces": [text]})]}),
        (80, lambda text: {"rules": [{"match": {"resources": [GPU]}, "skip": text}]}),
    ],
)
def test_texts_are_as_long_as_what_they_name_may_be(most: int, fields: Callable[[str], dict[str, Any]]) -> None:
    def long(length: int) -> set[str]:
        try:
            load(document(**fields("a" * length)))
        except PolicyError as error:
            return {problem.message for problem in error.problems}
        return set()

    new = long(most + 1) - long(most)
    assert len(new) == 1
    assert "cannot stand here" in new.pop()


def test_everything_that_is_wrong_is_told_at_once() -> None:
    found = problems(
        {
            "apiVersion": "v1",
            "devices": [{"name": "A"}, 3],
            "rules": [rule(device="x", skip=""), {"match": {"resources": ["a", 1], "namespaces": []}, "devise": "b"}],
            "preemption": 1,
        }
    )
    assert sorted(found) == [
        "/apiVersion",
        "/devices/0/deviceClassName",
        "/devices/0/name",
        "/devices/1",
        "/kind",
        "/preemption",
        "/rules/0/device",
        "/rules/0/skip",
        "/rules/1",
        "/rules/1/devise",
        "/rules/1/match/namespaces",
        "/rules/1/match/resources/0",
        "/rules/1/match/resources/1",
    ]
    assert all(message.endswith((".", ").")) for message in found.values())


def test_an_error_reads_as_one_line_for_each_problem() -> None:
    with pytest.raises(PolicyError) as caught:
        load(document(kind="x", rules=[rule(device="y")]))
    assert str(caught.value).splitlines() == [
        '/kind: "x" cannot stand here; write ConversionPolicy.',
        '/rules/0/device: There is no device "y"; the devices are slice.',
    ]


@pytest.mark.parametrize(
    "glob", ["*", "nvidia.com/*", "nvidia.com/g?u", "*/gpu", "nvidia.com/mig-1g.*", "nvidia.com/m*"]
)
def test_a_glob_that_fits_a_whole_gpu_or_a_mig_profile_is_fine(glob: str) -> None:
    assert [each.resources for each in load(document(rules=[rule(match={"resources": [glob]})])).rules] == [(glob,)]


def only(**match: list[str]) -> dict[str, Any]:
    return rule(match=match)


def skip(**match: list[str]) -> dict[str, Any]:
    return {"match": match, "skip": "never"}


@pytest.mark.parametrize(
    ("rules", "unreachable"),
    [
        ([only(resources=[GPU]), only(resources=[GPU])], ["/rules/1"]),
        ([only(resources=["nvidia.com/*"]), only(resources=[GPU])], ["/rules/1"]),
        ([only(resources=["nvidia.com/*"]), only(resources=["nvidia.com/mig-*"])], ["/rules/1"]),
        ([only(resources=["nvidia.com/mig-*"]), only(resources=["nvidia.com/*"])], []),
        ([only(resources=["nvidia.com/*g"]), only(resources=["nvidia.com/*"])], []),
        ([only(resources=[GPU]), only(resources=["nvidia.com/gp*"])], []),
        # a wildcard does not reach what must be written out; a skip does
        ([only(resources=["nvidia.com/*"]), only(resources=["nvidia.com/gpu.shared"])], []),
        ([only(resources=["nvidia.com/*"]), skip(resources=["nvidia.com/*"])], []),
        ([skip(resources=["nvidia.com/*"]), only(resources=["nvidia.com/gpu.shared"])], ["/rules/1"]),
        # namespaces
        ([only(namespaces=["a", "b-*"]), only(resources=[GPU], namespaces=["b-1", "a"])], ["/rules/1"]),
        ([only(namespaces=["a", "b-*"]), only(resources=[GPU], namespaces=["b-*"])], ["/rules/1"]),
        ([only(namespaces=["a", "b-*"]), only(resources=[GPU], namespaces=["b*"])], []),
        ([only(namespaces=["a"]), only(resources=[GPU])], []),
        ([only(resources=[GPU]), only(namespaces=["a"])], []),
        # several earlier rules together
        (
            [only(resources=[GPU]), only(resources=["nvidia.com/mig-*"]), only(resources=[GPU, "nvidia.com/mig-1g*"])],
            ["/rules/2"],
        ),
    ],
)
def test_a_rule_that_is_never_reached_is_a_warning(rules: list[Any], unreachable: list[str]) -> None:
    warnings = load(document(rules=rules)).warnings
    assert [warning.path for warning in warnings] == unreachable
    expected = "This rule is never reached: earlier ones match all that it matches. Move it up or remove it."
    assert all(warning.message == expected for warning in warnings)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_the_policies_of_the_examples_are_valid(path: Path) -> None:
    assert load(yaml.safe_load(path.read_text("utf-8"))).warnings == ()


def test_there_are_policies_among_the_examples() -> None:
    assert POLICIES
