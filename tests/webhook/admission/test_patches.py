"""What a pod is after the patch, applied by the jsonpatch package: whatever is absent, odd or there already.

Numbers in names of tests are those of public bug reports, kept in the table of tests/controlplane/README.md.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import pytest

from gpu2dra import Object
from gpu2dra.converted import ANNOTATION, LABEL
from gpu2dra.devices import Device
from gpu2dra.policy import LeftAlone, Policy, Preemption, Rule
from gpu2dra_webhook.memory import FixedView, MemoryStore
from gpu2dra_webhook.ports import StoreError, StoreProblem
from gpu2dra_webhook.settings import Settings
from unit.build import GPU, MIG, container, pod, sidecar
from webhook.admission.asking import NAMESPACE, Webhook, patched

TEMPLATE = "gpu-91eca471"
ENTRY = {"name": "gpu", "resourceClaimTemplateName": TEMPLATE}
USE = {"name": "gpu", "request": "main"}


def record(obj: Any) -> Any:
    """Return what the annotation says was taken off."""
    return json.loads(obj["metadata"]["annotations"][ANNOTATION])["containers"]


def plain(**fields: Any) -> Object:
    """Return a bare Pod whose only container asks for a GPU; `fields` replace its own."""
    main = {"name": "main", "image": "a", "resources": {"limits": {GPU: "1"}, "requests": {GPU: "1"}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {"containers": [main]}} | fields


@pytest.mark.parametrize(
    "metadata",
    [
        {},
        {"name": "a"},
        {"annotations": None, "labels": None},
        {"annotations": {}, "labels": {}},
        {"annotations": {"a/b~c": "d"}, "labels": {"e/f": "g"}},
        {"annotations": {ANNOTATION: "not JSON"}, "labels": {LABEL: "false"}},
        {"annotations": {ANNOTATION: "{}"}, "labels": {LABEL: "true"}},
        {"generateName": "web-7c9f-"},
        {"generateName": "web-7c9f-", "name": "", "namespace": ""},
        {"name": "", "creationTimestamp": None},
    ],
)
def test_1_metadata_with_and_without_annotations_labels_and_name(metadata: Object) -> None:
    after = Webhook().admit(plain(metadata=metadata))
    assert record(after) == {"main": {GPU: 1}}
    assert after["metadata"]["labels"][LABEL] == "true"
    kept = {key: value for key, value in metadata.items() if key not in ("annotations", "labels")}
    assert {key: after["metadata"][key] for key in kept} == kept
    for part, ours in (("annotations", ANNOTATION), ("labels", LABEL)):
        before = metadata.get(part) or {}
        assert {key: after["metadata"][part][key] for key in before if key != ours} == {
            key: value for key, value in before.items() if key != ours
        }


def test_1_without_any_metadata() -> None:
    obj = plain()
    del obj["metadata"]
    after = Webhook().admit(obj)
    assert (record(after), after["metadata"]["labels"]) == ({"main": {GPU: 1}}, {LABEL: "true"})


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"resourceClaims": None},
        {"resourceClaims": []},
        {"tolerations": None},
        {"tolerations": []},
        {"tolerations": [{"key": GPU, "operator": "Exists"}]},
        {"initContainers": None},
        {"initContainers": []},
        {"ephemeralContainers": []},
    ],
)
def test_1_fields_of_the_spec_that_are_absent_empty_or_null(spec: Object) -> None:
    obj = pod(container("main", 1), **spec)
    after = Webhook().admit(obj)
    assert after["spec"]["resourceClaims"] == [ENTRY]
    assert after["spec"]["containers"][0]["resources"] == {"claims": [USE]}
    for key in spec.keys() - {"resourceClaims"}:
        assert after["spec"][key] == spec[key]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({"limits": {GPU: 1}}, {"claims": [USE]}),
        ({"limits": {GPU: 1}, "requests": {}}, {"requests": {}, "claims": [USE]}),
        ({"limits": {GPU: 1}, "requests": None}, {"requests": None, "claims": [USE]}),
        ({"limits": {GPU: 1}, "claims": None}, {"claims": [USE]}),
        ({"limits": {GPU: 1}, "claims": []}, {"claims": [USE]}),
        ({"limits": {GPU: 1}, "claims": [{"name": "net"}]}, {"claims": [{"name": "net"}, USE]}),
        (
            {"limits": {"cpu": 1, GPU: 1, "a.com/b~c": 2}, "requests": {GPU: "1", "memory": "1Gi"}},
            {"limits": {"cpu": 1, "a.com/b~c": 2}, "requests": {"memory": "1Gi"}, "claims": [USE]},
        ),
    ],
)
def test_1_resources_of_the_container(resources: Object, expected: Object) -> None:
    main = container("main") | {"resources": resources}
    claims = [{"name": "net", "resourceClaimName": "net"}]
    view = FixedView(claims={(NAMESPACE, "ResourceClaim", "net"): frozenset({"nic.example.com"})})
    after = Webhook(view=view).admit(pod(main, resourceClaims=claims))
    assert after["spec"]["containers"][0]["resources"] == expected


def test_3_no_two_operations_write_one_path() -> None:
    containers = [container(f"c{n}", 2, limits={MIG: 1}) for n in range(4)]
    obj = pod(*containers, init=[container("i", 3), sidecar("s", 1)], meta={"annotations": {"a": "b"}})
    patch = json.loads(base64.b64decode(Webhook().ask(obj)["patch"]))
    paths = Counter(operation["path"] for operation in patch)
    assert len(patch) == 15
    assert [path for path, times in paths.items() if times > 1 and not path.endswith("/-")] == []


def test_5_claims_of_the_pods_own_pass_whole() -> None:
    claims = [
        {"name": "template", "resourceClaimTemplateName": "theirs"},
        {"name": "named", "resourceClaimName": "theirs"},
        {"name": "new", "fieldOfTheFuture": {"a": 1}},
    ]
    beside = container("beside") | {"resources": {"claims": [{"name": "template", "request": "r"}, {"name": "new"}]}}
    after = Webhook().admit(pod(container("main", 1), beside, resourceClaims=deepcopy(claims)))
    assert after["spec"]["resourceClaims"] == [*claims, ENTRY]
    assert after["spec"]["containers"][1] == beside


def test_5_a_name_that_is_taken_is_avoided() -> None:
    after = Webhook().admit(pod(container("main", 1), resourceClaims=[{"name": "gpu", "resourceClaimName": "x"}]))
    assert after["spec"]["resourceClaims"][1] == ENTRY | {"name": "gpu-2"}


def test_5_unknown_fields_pass_untouched() -> None:
    obj = pod(container("main", 1, new=[{"deep": None}]), futureField={"limits": {GPU: 1}}) | {"extra": [1]}
    after = Webhook().admit(obj)
    assert (after["extra"], after["spec"]["futureField"]) == ([1], {"limits": {GPU: 1}})
    assert after["spec"]["containers"][0]["new"] == [{"deep": None}]


def test_7_asked_a_second_time_nothing_is_added() -> None:
    webhook = Webhook()
    obj = pod(container("main", 1), container("other", limits={MIG: 2}), init=[container("first", 1)])
    once = webhook.admit(obj)
    again = webhook.ask(once)
    assert (again["auditAnnotations"]["outcome"], "patch" in again) == ("untouched", False)


def test_7_another_webhook_adds_a_container_in_between() -> None:
    webhook = Webhook()
    once = webhook.admit(pod(container("main", 1)))
    once["spec"]["containers"].append(container("injected", 2))
    once["spec"].setdefault("initContainers", []).append(container("init", 1))
    twice = webhook.admit(once)
    assert record(twice) == {"main": {GPU: 1}, "injected": {GPU: 2}, "init": {GPU: 1}}
    assert [c["resources"] for c in twice["spec"]["containers"]] == [
        {"claims": [USE]},
        {"claims": [{"name": "gpu-2", "request": "injected"}]},
    ]
    names = [entry["resourceClaimTemplateName"] for entry in twice["spec"]["resourceClaims"]]
    assert names[0] == TEMPLATE
    assert {name for _, name in webhook.templates} == set(names)
    assert set(json.loads(twice["metadata"]["annotations"][ANNOTATION])["templates"]) == set(names)
    assert webhook.ask(twice)["auditAnnotations"]["outcome"] == "untouched"


def test_7_another_webhook_puts_the_limit_back() -> None:
    webhook = Webhook()
    once = webhook.admit(pod(container("main", 1)))
    touched = deepcopy(once)
    touched["spec"]["containers"][0]["resources"] |= {"limits": {GPU: "1"}, "requests": {GPU: "1"}}
    response = webhook.ask(touched)
    assert response["auditAnnotations"] == {"outcome": "stripped", "reason": "none"}
    assert patched(touched, response) == once


@dataclass(slots=True)
class FailsOnce:
    """A store whose API server goes away after the first template that it makes, for one review."""

    memory: MemoryStore = field(default_factory=MemoryStore)
    fails: bool = True

    def ensure(self, namespace: str, templates: Sequence[Object], *, timeout: float, dry_run: bool) -> None:
        """Make one template after the other, as the store of a cluster does."""
        for number, each in enumerate(templates):
            if number and self.fails:
                self.fails = False
                raise StoreError(StoreProblem.UNAVAILABLE, "the API server cannot be reached")
            self.memory.ensure(namespace, [each], timeout=timeout, dry_run=dry_run)


def test_9_a_second_try_goes_on_where_the_first_one_failed() -> None:
    store = FailsOnce()
    webhook = Webhook(store=store)
    obj = pod(*(container(f"c{n}", 20) for n in range(3)))
    first = webhook.ask(obj)
    assert (first["allowed"], first["status"]["code"]) == (False, 503)
    assert "patch" not in first
    made = dict(store.memory.templates)
    assert len(made) == 1
    after = webhook.admit(obj)
    named = {entry["resourceClaimTemplateName"] for entry in after["spec"]["resourceClaims"]}
    assert {name for _, name in store.memory.templates} == named
    assert len(named) == 3
    assert made.items() <= store.memory.templates.items()


def test_23_a_dry_run_creates_nothing_and_shows_the_pod_as_it_would_be() -> None:
    webhook = Webhook()
    assert webhook.admit(pod(container("main", 1)), dryRun=True)["spec"]["resourceClaims"] == [ENTRY]
    assert (webhook.templates, webhook.events.seen) == ({}, [])


INJECTIONS = (
    "true || device.attributes['gpu.nvidia.com'].profile == 'x'",
    "']) || true //",
    "gpu.nvidia.com\n- expression: true",
    "{{ .Values.x }}",
    "${jndi:ldap://x}",
)


@pytest.mark.parametrize("text", INJECTIONS)
@pytest.mark.parametrize(
    "key", ["gpu2dra.dev/device", "gpu2dra.dev/min-memory", "gpu2dra.dev/selector", "gpu2dra.dev/workload", ANNOTATION]
)
def test_an_annotation_that_tries_to_inject_cel_changes_no_template(key: str, text: str) -> None:
    plainly, injected = Webhook(), Webhook()
    plainly.ask(pod(container("main", limits={MIG: 1})))
    injected.ask(pod(container("main", limits={MIG: 1}), meta={"annotations": {key: text}}))
    assert injected.templates == plainly.templates


@pytest.mark.parametrize("text", INJECTIONS)
def test_a_record_that_was_made_up_makes_no_template(text: str) -> None:
    template = {"spec": {"devices": {"requests": [{"name": "main", "exactly": {"deviceClassName": text}}]}}}
    forged = json.dumps({"containers": {"main": {GPU: 1}}, "templates": {"mine": template, TEMPLATE: template}})
    main = container("main", 1)
    main["resources"]["claims"] = [{"name": "mine"}]
    claims = [{"name": "mine", "resourceClaimTemplateName": "mine"}]
    webhook = Webhook()
    webhook.ask(pod(main, meta={"annotations": {ANNOTATION: forged}}, resourceClaims=claims))
    assert webhook.templates == {}
    other = pod(main, container("other", 1), meta={"annotations": {ANNOTATION: forged}}, resourceClaims=claims)
    webhook.ask(other)
    made = [each["spec"]["spec"]["devices"]["requests"][0]["exactly"] for each in webhook.templates.values()]
    assert [each["deviceClassName"] for each in made] == ["gpu.nvidia.com"]


@pytest.mark.parametrize("name", ["a\x00b", "\u202ename", "x" * 5000, "😀", "../../etc", "a/b~1c"])
def test_odd_names_get_an_answer(name: str) -> None:
    webhook = Webhook()
    response = webhook.ask(pod(container(name, 1), meta={"name": name, "labels": {name: name}}))
    assert response["allowed"]
    assert record(patched(pod(container(name, 1), meta={"name": name, "labels": {name: name}}), response)) == {
        name: {GPU: 1}
    }


# R13: a limit comes back to a pod that is admitted already


def admitted(*containers: Object, **fields: Any) -> Object:
    """Return a pod as it is after its admission, with a node from the scheduler."""
    obj: Object = Webhook().admit(pod(*containers, **fields))
    obj["spec"]["nodeName"] = "n1"
    return obj


def back(obj: Object, amount: Any = 1, index: int = 0) -> Object:
    """Return the pod with the limit put back, as an apply of the bare manifest does it."""
    obj = deepcopy(obj)
    obj["spec"]["containers"][index].setdefault("resources", {})["limits"] = {GPU: amount}
    return obj


def updated(new: Object, old: Object, **view: Any) -> tuple[str, str, Any]:
    response = Webhook(view=FixedView(**view)).ask(new, "UPDATE", old=old)
    audit = response["auditAnnotations"]
    return audit["outcome"], audit["reason"], patched(new, response)


@pytest.mark.parametrize("amount", [1, "1", "1000m"])
def test_an_update_that_brings_the_limit_back_is_stripped(amount: Any) -> None:
    pod_now = admitted(container("main", 1))
    assert updated(back(pod_now, amount), pod_now) == ("stripped", "none", pod_now)


def test_an_update_needs_neither_a_device_class_nor_a_namespace_in_the_caches() -> None:
    pod_now = admitted(container("main", 1))
    found = updated(back(pod_now), pod_now, classes={}, namespaces={}, mixed=("n1",), missing=("nodes",))
    assert found == ("stripped", "none", pod_now)


def test_an_update_is_stripped_whatever_the_policy_says_by_now() -> None:
    share = "nvidia.com/gpu.shared"
    before = Policy((Rule(Device("share.example.com"), (share,)),), frozenset({"volcano"}))
    pod_now = Webhook(policy=lambda: before).admit(
        pod(container("main", limits={share: 2}), schedulerName="volcano", priority=100)
    )
    new = deepcopy(pod_now)
    new["spec"]["containers"][0]["resources"]["limits"] = {share: "2"}
    by_now = Policy((Rule(LeftAlone("not any more")),), preemption=Preemption.SKIP)
    response = Webhook(policy=lambda: by_now).ask(new, "UPDATE", old=pod_now)
    assert (response["auditAnnotations"]["outcome"], patched(new, response)) == ("stripped", pod_now)


def test_an_update_makes_no_template_and_no_event() -> None:
    pod_now = admitted(container("main", 1))
    webhook = Webhook()
    webhook.ask(back(pod_now), "UPDATE", old=pod_now)
    assert (webhook.templates, webhook.events.seen) == ({}, [])


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (lambda pod_now: back(pod_now, 2), "DRA314"),
        (lambda pod_now: back(back(pod_now), 1, 1), "not-ours"),
        (lambda pod_now: back(pod_now, "x"), "DRA301"),
    ],
)
def test_an_update_to_anything_else_is_left_for_the_server_to_refuse(new: Any, reason: str) -> None:
    pod_now = admitted(container("main", 1), container("other"))
    changed = new(pod_now)
    assert updated(changed, pod_now) == ("unconverted", reason, changed)


def test_an_update_of_a_pod_that_we_did_not_convert_is_none_of_our_business() -> None:
    pod_now = pod(container("main", 1), nodeName="n1")
    assert updated(pod_now, pod_now) == ("untouched", "not-ours", pod_now)
    copied = pod(container("main", 1), meta={"annotations": admitted(container("main", 1))["metadata"]["annotations"]})
    assert updated(copied, pod_now) == ("untouched", "not-ours", copied)


def test_the_record_of_the_old_object_counts_not_that_of_the_update() -> None:
    pod_now = admitted(container("main", 1))
    forged = back(pod_now, 2)
    text = forged["metadata"]["annotations"][ANNOTATION]
    forged["metadata"]["annotations"][ANNOTATION] = text.replace('{"nvidia.com/gpu":1}', '{"nvidia.com/gpu":2}')
    assert forged["metadata"]["annotations"][ANNOTATION] != text
    assert updated(forged, pod_now) == ("unconverted", "DRA314", forged)


def test_an_update_that_loses_the_record_is_still_stripped() -> None:
    pod_now = admitted(container("main", 1))
    bare = back(pod_now)
    del bare["metadata"]["annotations"]
    outcome, _, after = updated(bare, pod_now)
    assert outcome == "stripped"
    assert after["spec"] == pod_now["spec"]


def test_an_update_without_a_limit_changes_nothing() -> None:
    pod_now = admitted(container("main", 1))
    relabelled = deepcopy(pod_now)
    relabelled["metadata"]["labels"]["new"] = "label"
    assert updated(relabelled, pod_now) == ("untouched", "no-request", relabelled)
    assert updated(back(pod_now, 0), pod_now) == ("untouched", "no-request", back(pod_now, 0))


def test_a_pod_of_an_excluded_namespace_is_not_stripped() -> None:
    pod_now = admitted(container("main", 1))
    webhook = Webhook(Settings(excluded_namespaces=frozenset({NAMESPACE})))
    assert webhook.ask(back(pod_now), "UPDATE", old=pod_now)["auditAnnotations"]["reason"] == "excluded-namespace"
