"""Properties of the webhook over drawn Pods and bodies: what it answers, and that the converter would say the same."""

from __future__ import annotations

import contextlib
import json
from copy import deepcopy
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu2dra import Context, Object, Options, Plan
from gpu2dra.converted import ANNOTATION, LABEL
from gpu2dra.devices import Device
from gpu2dra.policy import BUILT_IN, LeftAlone, Policy, Preemption, Rule
from gpu2dra_webhook.decisions import REASONS, Outcome
from gpu2dra_webhook.memory import FixedView
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.reviews import BadReview
from gpu2dra_webhook.settings import Settings
from property.strategies import GPU, MIGS, NETWORK_CLAIM, NETWORK_CLASS, json_values, pods
from property.test_plan_properties import KEYS, containers, held, inside, rest, ways
from unit.build import apply, planned
from webhook.admission.asking import NAMESPACE, TIMEOUT, Webhook, body, patched, request

CONTEXT = Context(namespace=NAMESPACE, claim_classes={("ResourceClaim", NETWORK_CLAIM): frozenset({NETWORK_CLASS})})
VIEW = FixedView(claims={(NAMESPACE, *ref): classes for ref, classes in CONTEXT.claim_classes.items()})
METRICS = Metrics()
DEVICES = (Device("a.example.com"), Device("b.example.com"))


def policies() -> st.SearchStrategy[Policy]:
    """Return policies with some rules; the built-in one more often."""
    rules = st.builds(
        Rule,
        st.sampled_from([*DEVICES, *DEVICES, LeftAlone("not yet")]),
        st.sampled_from([(), (GPU,), ("nvidia.com/mig-*",), (MIGS[0], GPU)]),
        st.sampled_from([(), (), (NAMESPACE,), ("other-*",)]),
    )
    made = st.builds(Policy, st.lists(rules, max_size=3).map(tuple), preemption=st.sampled_from(list(Preemption)))
    return st.just(BUILT_IN) | made


def asked(pod: Object, policy: Policy = BUILT_IN) -> tuple[Webhook, Object]:
    webhook = Webhook(view=VIEW, policy=lambda: policy, metrics=METRICS)
    return webhook, webhook.ask(pod)


@given(pods(unknown=True), policies())
def test_webhook_and_converter_give_each_container_the_same_devices(pod: Object, policy: Policy) -> None:
    webhook, response = asked(pod, policy)
    admitted = patched(pod, response)
    file = planned(pod, Options(policy=policy), CONTEXT)
    converted = apply(pod, file)
    assert (response["auditAnnotations"]["outcome"] == "converted") == bool(file)
    by_webhook = Plan(templates=tuple(webhook.templates.values()))
    assert held(admitted["spec"], by_webhook) == held(converted["spec"], file)
    for (_, one), (_, other) in zip(containers(admitted["spec"]), containers(converted["spec"]), strict=True):
        assert one == other


@given(pods(unknown=True), policies())
def test_a_second_answer_changes_nothing(pod: Object, policy: Policy) -> None:
    webhook, response = asked(pod, policy)
    once = patched(pod, response)
    templates = dict(webhook.templates)
    again = webhook.ask(once)
    assert "patch" not in again
    assert webhook.templates == templates
    if response["auditAnnotations"]["outcome"] == "converted":
        assert again["auditAnnotations"]["outcome"] == "untouched"


@given(pods(unknown=True))
def test_what_is_not_about_the_request_survives(pod: Object) -> None:
    after = patched(pod, asked(pod)[1])
    fields = ("containers", "initContainers", "resourceClaims")
    assert rest(after["spec"], *fields) == rest(pod["spec"], *fields)
    assert rest(after, "metadata", "spec") == rest(pod, "metadata", "spec")
    for (_, old), (_, new) in zip(containers(pod["spec"]), containers(after["spec"]), strict=True):
        assert rest(old, "resources") == rest(new, "resources")
        names = ("limits", "requests", "claims")
        assert rest(old.get("resources", {}), *names) == rest(new.get("resources", {}), *names)
    metadata = deepcopy(after["metadata"])
    for part, ours in (("annotations", ANNOTATION), ("labels", LABEL)):
        if ours in metadata.get(part, {}):
            del metadata[part][ours]
            if part not in pod["metadata"]:
                assert metadata.pop(part) == {}
    assert metadata == pod["metadata"]


@given(pods(), st.data())
def test_limits_that_come_back_by_an_update_go_again(pod: Object, data: st.DataObject) -> None:
    webhook, response = asked(pod)
    now = patched(pod, response)
    now["spec"]["nodeName"] = "n1"
    new = deepcopy(now)
    served = json.loads(now["metadata"].get("annotations", {}).get(ANNOTATION, '{"containers":{}}'))["containers"]
    returned = data.draw(st.sets(st.sampled_from(sorted(served)))) if served else set()
    for _, container in containers(new["spec"]):
        if container["name"] in returned:
            container["resources"].setdefault("limits", {}).update(served[container["name"]])
    templates = dict(webhook.templates)
    answer = webhook.ask(new, "UPDATE", old=now)
    assert patched(new, answer)["spec"] == now["spec"]
    assert (answer["auditAnnotations"]["outcome"] == "stripped") == bool(returned)
    assert webhook.templates == templates


# Anything at all


@st.composite
def spoilt_requests(draw: st.DrawFn) -> Any:
    """Return requests of a review in which some values, at any level, are some other JSON value."""
    pod = draw(pods())
    old = draw(st.sampled_from([None, pod, patched(pod, asked(pod)[1])]))
    drawn = request(pod, draw(st.sampled_from(["CREATE", "CREATE", "UPDATE", "DELETE"])), old=old)
    data = deepcopy(drawn)
    for _ in range(draw(st.integers(1, 4))):
        way = draw(st.sampled_from([way for way in ways(data) if way]))
        inside(data, way[:-1])[way[-1]] = draw(json_values(keys=KEYS))
    return data


SETTINGS = st.sampled_from(
    [Settings(), Settings(on_api_failure="allow"), Settings(namespace_mode="opt-out", quota="convert")]
)


def judged(webhook: Webhook, data: bytes) -> None:
    """Hold whatever comes out for `data` to being an answer, or no review."""
    with contextlib.suppress(BadReview):
        answer = json.loads(webhook.mutator(data, TIMEOUT))
        response = answer["response"]
        assert isinstance(response["allowed"], bool)
        audit = response["auditAnnotations"]
        assert audit["outcome"] in set(Outcome) - {Outcome.ERROR}
        assert audit["reason"] in REASONS
        assert all(len(warning) <= 120 and warning.isprintable() for warning in response.get("warnings", ()))
    assert 'gpu2dra_errors_total{where="admission"} 0.0' in webhook.metrics.render().decode()


@given(spoilt_requests(), SETTINGS, policies())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_any_request_gets_an_answer_or_is_no_review(data: Any, choices: Settings, policy: Policy) -> None:
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": data}
    judged(Webhook(choices, VIEW, policy=lambda: policy, metrics=METRICS), json.dumps(review).encode())


def bodies() -> st.SearchStrategy[bytes]:
    """Return bytes, JSON values among them."""
    values = json_values(keys=("kind", "apiVersion", "request"))
    return st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode())


@given(bodies())
def test_any_body_gets_an_answer_or_is_no_review(data: bytes) -> None:
    judged(Webhook(metrics=METRICS), data)


@given(pods(), st.integers(0, 5000))
def test_a_body_that_is_cut_off_or_flipped_gets_an_answer_or_is_no_review(pod: Object, at: int) -> None:
    data = bytearray(body(pod))
    judged(Webhook(metrics=METRICS), bytes(data[: at % len(data)]))
    data[at % len(data)] ^= 1 + at % 255
    judged(Webhook(metrics=METRICS), bytes(data))
