"""A review's bytes in, its answer's bytes out: templates, Events, metrics, logs, and what happens when things fail."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpu2dra import Object, Plan
from gpu2dra.devices import Device
from gpu2dra.policy import Policy, Rule
from gpu2dra_webhook.memory import FixedView, MemoryStore, NoRecorder
from gpu2dra_webhook.ports import DeviceClassState, NamespaceState, OwnerReference, StoreError, StoreProblem
from gpu2dra_webhook.reviews import BadReview
from gpu2dra_webhook.settings import Settings
from unit.build import GPU, container, pod
from webhook.admission.asking import NAMESPACE, UID, Webhook, body, namespaces, patched

ALLOW = Settings(on_api_failure="allow")
TEMPLATE = "gpu-91eca471"
SECRET = "s3cr3t-of-the-pod"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u-1", "controller": True}


def one(**meta: Any) -> Object:
    return pod(container("main", 1), meta=meta)


@dataclass
class BrokenStore:
    """A store that fails, and keeps what it was asked for."""

    error: Exception
    asked: list[tuple[str, Sequence[Object], float, bool]] = field(default_factory=list)

    def ensure(self, namespace: str, templates: Sequence[Object], *, timeout: float, dry_run: bool) -> None:
        """Raise `error`."""
        self.asked.append((namespace, templates, timeout, dry_run))
        raise self.error


def test_the_template_is_there_before_the_answer() -> None:
    webhook = Webhook()
    response = webhook.ask(one())
    assert response["auditAnnotations"] == {"outcome": "converted", "reason": "none", "templates": TEMPLATE}
    assert list(webhook.templates) == [(NAMESPACE, TEMPLATE)]
    (entry,) = patched(one(), response)["spec"]["resourceClaims"]
    assert entry == {"name": "gpu", "resourceClaimTemplateName": TEMPLATE}
    assert webhook.templates[NAMESPACE, TEMPLATE]["metadata"] == {
        "name": TEMPLATE,
        "labels": {"app.kubernetes.io/managed-by": "gpu2dra"},
    }


def test_templates_are_made_in_the_namespace_of_the_request_and_one_does_for_all_pods_alike() -> None:
    webhook = Webhook()
    for name in ("a", "b"):
        webhook.ask(one(name=name), namespace="one")
    webhook.ask(one(namespace="two"), namespace="two")
    assert list(webhook.templates) == [("one", TEMPLATE), ("two", TEMPLATE)]


@pytest.mark.parametrize("dry_run", [True, False, None])
def test_a_dry_run_gets_the_same_answer_and_leaves_nothing_behind(*, dry_run: bool | None) -> None:
    webhook = Webhook()
    obj = one(ownerReferences=[OWNER])
    response = webhook.ask(obj, dryRun=dry_run)
    assert response["auditAnnotations"]["outcome"] == "converted"
    assert response["patch"] == Webhook().ask(obj)["patch"]
    assert bool(webhook.templates) is not bool(dry_run)
    assert bool(webhook.events.seen) is not bool(dry_run)


def test_the_store_is_told_how_much_time_is_left_and_whether_it_is_a_dry_run() -> None:
    store = BrokenStore(StoreError(StoreProblem.TIMEOUT, "too late"))
    Webhook(store=store).ask(one(), dryRun=True)
    ((namespace, templates, timeout, dry_run),) = store.asked
    assert (namespace, [template["metadata"]["name"] for template in templates]) == (NAMESPACE, [TEMPLATE])
    assert 9 < timeout <= 10
    assert dry_run is True


@pytest.mark.parametrize(
    ("kind", "code", "word", "by_choice"),
    [
        (StoreProblem.FOREIGN, 409, "Conflict", False),
        (StoreProblem.TERMINATING, 403, "Forbidden", False),
        (StoreProblem.FULL, 403, "Forbidden", False),
        (StoreProblem.TIMEOUT, 504, "Timeout", True),
        (StoreProblem.UNAVAILABLE, 503, "ServiceUnavailable", True),
        (StoreProblem.REFUSED, 403, "Forbidden", True),
        (StoreProblem.DROPPED, 403, "Forbidden", True),
    ],
)
def test_without_its_template_a_pod_is_denied_or_goes_on_as_it_is(
    kind: StoreProblem, code: int, word: str, *, by_choice: bool
) -> None:
    error = StoreError(kind, "a reason for people")
    denial = {
        "uid": UID,
        "allowed": False,
        "status": {"code": code, "reason": word, "message": "gpu2dra: a reason for people"},
        "auditAnnotations": {"outcome": "denied", "reason": str(kind)},
    }
    webhook = Webhook(store=BrokenStore(error))
    assert webhook.ask(one()) == denial
    assert webhook.counted() == [f"CREATE denied {kind}"]
    webhook = Webhook(ALLOW, store=BrokenStore(error))
    allowed = {
        "uid": UID,
        "allowed": True,
        "warnings": ["gpu2dra: not converted: a reason for people"],
        "auditAnnotations": {"outcome": "unconverted", "reason": str(kind)},
    }
    assert webhook.ask(one()) == (allowed if by_choice else denial)


def test_our_own_fault_is_answered_counted_and_logged_without_the_pod(caplog: pytest.LogCaptureFixture) -> None:
    error = ValueError(f"bad value: {SECRET}")
    for settings, code in ((Settings(), 500), (ALLOW, None)):
        webhook = Webhook(settings, store=BrokenStore(error))
        response = webhook.ask(one(annotations={"token": SECRET}))
        assert response.get("status", {}).get("code") == code
        assert SECRET not in json.dumps(response)
        assert "Traceback" not in json.dumps(response)
        assert response["auditAnnotations"] == {"outcome": "error", "reason": "exception"}
        assert webhook.counted() == ["CREATE error exception"]
        assert 'gpu2dra_errors_total{where="admission"} 1.0' in webhook.metrics.render().decode()
    (record, _) = [record for record in caplog.records if record.levelno == logging.ERROR]
    fields = vars(record)
    assert (fields["error"], "in ensure" in fields["trace"]) == ("ValueError", True)
    assert SECRET not in str(fields)


def test_what_is_no_review_is_nobodys_answer() -> None:
    webhook = Webhook()
    with pytest.raises(BadReview):
        webhook.mutator(b"{}", 10)
    with pytest.raises(BadReview):
        webhook.ask(None)
    assert webhook.counted() == []
    assert "gpu2dra_admission_in_flight 0.0" in webhook.metrics.render().decode()


def test_every_answer_is_counted_by_operation_outcome_and_reason() -> None:
    webhook = Webhook()
    webhook.ask(one())
    webhook.ask(one())
    webhook.ask(pod(container("main")), "UPDATE")
    webhook.ask(None, "DELETE", old=one())
    webhook.ask(one(), "CONNECT")
    assert sorted(webhook.counted()) == [
        "CREATE converted none",
        "UPDATE untouched not-ours",
        "other untouched other-operation",
    ]
    assert "gpu2dra_admission_duration_seconds_count 5.0" in webhook.metrics.render().decode()


def test_an_event_tells_the_owner_that_its_pods_are_converted() -> None:
    webhook = Webhook()
    others = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u-0"}]
    webhook.ask(one(ownerReferences=[*others, OWNER]))
    owner = OwnerReference("apps/v1", "ReplicaSet", "web-1", "u-1")
    text = f"GPU requests of the pods are claims from template {TEMPLATE} now."
    assert webhook.events.seen == [(NAMESPACE, owner, "GPUConverted", text, False)]


def test_an_event_tells_the_owner_why_they_are_not() -> None:
    webhook = Webhook(view=FixedView(classes={}))
    webhook.ask(one(ownerReferences=[OWNER]))
    owner = OwnerReference("apps/v1", "ReplicaSet", "web-1", "u-1")
    text = "There is no DeviceClass gpu.nvidia.com; install the DRA driver."
    assert webhook.events.seen == [(NAMESPACE, owner, "GPUNotConverted", text, True)]


def test_a_denial_is_an_event_too() -> None:
    webhook = Webhook(store=BrokenStore(StoreError(StoreProblem.FULL, "the namespace has too many templates")))
    webhook.ask(one(ownerReferences=[OWNER]))
    assert [event[2:4] for event in webhook.events.seen] == [
        ("GPUNotConverted", "The namespace has too many templates.")
    ]


def test_what_is_nobodys_business_is_no_event() -> None:
    webhook = Webhook(Settings(excluded_namespaces=frozenset({"out"})))
    webhook.ask(pod(container("main"), meta={"ownerReferences": [OWNER]}))
    webhook.ask(one(ownerReferences=[OWNER]), namespace="out")
    webhook.ask(one(ownerReferences=[OWNER], annotations={"gpu2dra.dev/convert": "false"}))
    assert webhook.events.seen == []


def test_nobody_has_events_written_in_a_namespace_that_is_not_known_or_going() -> None:
    gone = NamespaceState(NAMESPACE, {"gpu2dra.dev/convert": "true"}, terminating=True)
    for view, reason in ((FixedView(namespaces={}), "namespace-unknown"), (namespaces(gone), "terminating")):
        webhook = Webhook(view=view)
        assert webhook.ask(one(ownerReferences=[OWNER]))["auditAnnotations"]["reason"] == reason
        assert webhook.events.seen == []


@pytest.mark.parametrize("text", ["{}", json.dumps({"containers": {"main": {GPU: 1}}, "templates": {TEMPLATE: {}}})])
def test_an_update_is_no_event_since_its_namespace_was_not_looked_at(text: str) -> None:
    webhook = Webhook(view=namespaces())
    before = one(ownerReferences=[OWNER], annotations={"gpu2dra.dev/converted": text})
    for change in (one(ownerReferences=[OWNER]), pod(container("main", "x"), meta={"ownerReferences": [OWNER]})):
        response = webhook.ask(change, "UPDATE", old=before)
        assert response["auditAnnotations"]["outcome"] == "unconverted"
        assert response["warnings"]
    assert webhook.events.seen == []


HALF = r"\ud83d"


@pytest.mark.parametrize(
    "record",
    [
        f'{{"containers": {{}}, "templates": {{"{HALF}": {{}}}}}}',
        f'{{"containers": {{}}, "templates": {{"x": {{"spec": "{HALF}"}}}}}}',
    ],
)
def test_half_a_character_in_a_record_is_no_record(record: str) -> None:
    obj = one(annotations={"gpu2dra.dev/converted": record})
    response = Webhook().ask(obj)
    assert response["auditAnnotations"] == {"outcome": "converted", "reason": "none", "templates": TEMPLATE}
    assert json.loads(patched(obj, response)["metadata"]["annotations"]["gpu2dra.dev/converted"])["containers"] == {
        "main": {GPU: 1}
    }


@pytest.mark.parametrize(("settings", "allowed"), [(Settings(), False), (ALLOW, True)])
def test_what_cannot_be_written_is_an_answer_too(
    settings: Settings, allowed: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def plans(pod: Object, options: object, context: object) -> Plan:
        return Plan(operations=({"op": "add", "path": "/x", "value": f"{SECRET}\ud83d"},))

    monkeypatch.setattr("gpu2dra_webhook.admission.plan", plans)
    webhook = Webhook(settings)
    response = webhook.ask(one(ownerReferences=[OWNER]))
    assert (response["allowed"], response["auditAnnotations"]["reason"]) == (allowed, "exception")
    assert webhook.counted() == ["CREATE error exception"]
    assert webhook.events.seen == []
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "references",
    [
        None,
        [],
        {},
        ["x", None],
        [OWNER | {"controller": False}],
        [OWNER | {"uid": ""}],
        [OWNER | {"name": ["a"]}],
        *([OWNER | {key: "x" * 254}] for key in ("apiVersion", "kind", "name", "uid")),
        [{key: OWNER[key] for key in OWNER if key != "kind"}],
    ],
)
def test_a_pod_without_a_controller_has_no_owner(references: Any) -> None:
    webhook = Webhook()
    webhook.ask(one(ownerReferences=references))
    assert [event[1] for event in webhook.events.seen] == [None]


def test_a_notice_is_given_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Webhook(view=FixedView(classes={"gpu.nvidia.com": DeviceClassState("gpu.nvidia.com", GPU)}))
    notice = "DeviceClass gpu.nvidia.com carries nvidia.com/gpu: from Kubernetes 1.36 on its pods run unconverted, too"
    assert webhook.ask(one())["warnings"] == [f"gpu2dra: {notice}"]
    assert "warnings" not in webhook.ask(one())
    assert [record.message for record in caplog.records if record.levelno == logging.WARNING] == [notice]


def test_warnings_are_at_most_120_letters_long() -> None:
    name = "x" * 63
    response = Webhook().ask(pod(container(name, "500m" + "0" * 300), meta={"name": name}))
    (warning,) = response["warnings"]
    assert (len(warning), warning[:42]) == (120, "gpu2dra: not converted: DRA301: nvidia.com")


@pytest.mark.parametrize("settings", [Settings(), ALLOW])
def test_the_log_holds_no_pod_contents(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = container("main", 1, env=[{"name": "TOKEN", "value": SECRET}], args=[SECRET], image=SECRET)
    for view in (FixedView(), FixedView(classes={}), FixedView(missing=("nodes",))):
        Webhook(settings, view).ask(pod(secret, meta={"annotations": {"a": SECRET}, "labels": {"b": SECRET}}))
    assert len(caplog.records) == 3
    assert SECRET not in "".join(str(vars(record)) for record in caplog.records)


ASKING_AT_LENGTH = 300_000
TELLING: Sequence[tuple[str, Object]] = (
    ("DRA203", pod(container("main", 1), nodeName=SECRET)),
    ("DRA206", pod(container("main", 1), schedulerName=SECRET)),
    ("DRA301", pod(container("main", SECRET))),
    ("DRA305", one(annotations={"gpu-fraction": f"{SECRET} {'x' * ASKING_AT_LENGTH}"})),
    ("DRA306", pod(container("main", 1), nodeSelector={"nvidia.com/gpu.product": f"{SECRET}-SHARED"})),
)
"""Pods of which a finding's message quotes something, by the finding's code."""


@pytest.mark.parametrize(("code", "obj"), TELLING)
def test_what_a_finding_quotes_of_a_pod_is_told_to_its_user_and_not_logged(
    code: str, obj: Object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    webhook = Webhook()
    response = webhook.ask(obj)
    assert response["auditAnnotations"]["reason"] == code
    assert SECRET in "".join(response["warnings"])
    (record,) = caplog.records
    assert (record.message, vars(record)["reason"]) == ("not converted", code)
    assert SECRET not in str(vars(record))
    assert len(str(vars(record))) < 3000


def test_the_log_tells_what_became_of_a_pod(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    Webhook().ask(one())
    Webhook(view=FixedView(version=None)).ask(one(), dryRun=True)
    converted, unconverted = caplog.records
    wanted = {"operation": "CREATE", "namespace": NAMESPACE, "uid": UID}
    assert (wanted | {"outcome": "converted", "templates": [TEMPLATE]}).items() <= vars(converted).items()
    assert (converted.levelname, unconverted.levelname) == ("DEBUG", "INFO")
    assert (wanted | {"reason": "no-dra", "dry_run": True}).items() <= vars(unconverted).items()
    assert unconverted.message == (
        "not converted: the API server does not serve DRA (resource.k8s.io, from Kubernetes 1.32 on)"
    )


def test_the_policy_that_holds_when_the_review_comes_decides() -> None:
    now = [Policy()]
    webhook = Webhook(policy=lambda: now[0])
    webhook.ask(one())
    now[0] = Policy((Rule(Device("other.example.com")),))
    webhook.ask(one())
    made = [each["spec"]["spec"]["devices"]["requests"][0]["exactly"] for each in webhook.templates.values()]
    assert [each["deviceClassName"] for each in made] == ["gpu.nvidia.com", "other.example.com"]


# The store and the recorder of the demo


def template(name: str, count: int, **spec: Any) -> Object:
    request = {"name": "main", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": count, **spec}}
    return {"metadata": {"name": name}, "spec": {"spec": {"devices": {"requests": [request]}}}}


def test_the_store_in_memory_takes_an_equal_template_and_refuses_another_one() -> None:
    store = MemoryStore()
    store.ensure("a", [template("one", 1)], timeout=1, dry_run=False)
    store.ensure("a", [template("one", 1, allocationMode="ExactCount")], timeout=1, dry_run=False)
    for dry_run in (True, False):
        with pytest.raises(StoreError) as caught:
            store.ensure("a", [template("one", 2)], timeout=1, dry_run=dry_run)
        assert caught.value.kind is StoreProblem.FOREIGN
        assert caught.value.message == (
            'ResourceClaimTemplate "one" exists and is not what gpu2dra would make; delete it'
        )
    store.ensure("b", [template("one", 2)], timeout=1, dry_run=True)
    assert store.templates == {("a", "one"): template("one", 1)}


def test_where_there_is_nobody_to_tell_nobody_is_told() -> None:
    NoRecorder().record("a", None, "reason", "message", warning=True)


def test_a_body_is_answered_whatever_its_size() -> None:
    large = pod(container("main", 1), meta={"annotations": {f"a{n}": "x" * 1000 for n in range(3000)}})
    data = body(large)
    assert len(data) > 3_000_000
    assert json.loads(Webhook().mutator(data, 10))["response"]["allowed"] is True
