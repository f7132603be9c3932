"""The janitor: what it tidies up, what it never touches, and how a pod gets a lost template back."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable

import pytest

from controlplane import gpus, scheduling
from controlplane.client import MERGE_PATCH, Object, wait_for
from controlplane.testbed import AddMachines, Cluster
from controlplane.webhook_cluster.running import (
    UNUSED_SINCE,
    Run,
    Running,
    converted,
    name_of,
    names,
    opt_in,
    stored,
    template,
)  # fmt: skip
from gpu2dra.names import digest
from gpu2dra.templates import canonical_spec
from gpu2dra_webhook.cluster import errors
from gpu2dra_webhook.cluster.cache import Cache, Key
from gpu2dra_webhook.cluster.ledger import Ledger
from gpu2dra_webhook.cluster.objects import Pod, Template, waiting_groups
from gpu2dra_webhook.cluster.repair import Repair
from gpu2dra_webhook.cluster.sweep import Sweep
from gpu2dra_webhook.cluster.template_api import TemplateApi

RECORD = "gpu2dra.dev/converted"
WOKEN = "gpu2dra.dev/woken"
NO_PODS: Cache[Pod] = Cache()
DAY = 86_400.0


def always() -> bool:
    return True


def sweeper(replica: Running, ahead: float, *, settle: float = 300, grace: float = DAY) -> Sweep:
    """Return what sweeps with a clock that is so many seconds ahead."""
    view = replica.parts.view
    api = TemplateApi(replica.api, view.discovery, replica.metrics)
    return Sweep(api, Ledger(view.templates, settle), replica.metrics, grace, lambda: time.time() + ahead)


def mark_of(cluster: Cluster, obj: Object) -> str | None:
    """Return the janitor's mark on a template."""
    mark: str | None = stored(cluster, name_of(obj))["metadata"].get("annotations", {}).get(UNUSED_SINCE)
    return mark


def cached(replica: Running, cluster: Cluster, obj: Object, is_so: Callable[[Template], bool] = bool) -> Template:
    """Return what a replica's cache holds of a template, once it is so."""
    cache = replica.parts.view.templates.cache

    def look() -> Template | None:
        seen = cache.get(cluster.namespace, name_of(obj))
        return seen if seen and is_so(seen) else None

    return wait_for("the cache has it", look)


def test_an_unused_template_is_marked_then_deleted_after_the_grace_time(cluster: Cluster, run: Run) -> None:
    replica = run(janitor=True, template_grace=2)
    replica.ensure(cluster.namespace, template())
    mark = wait_for("it is marked", lambda: mark_of(cluster, template()))
    assert mark.endswith("Z")
    wait_for("it is deleted", lambda: names(cluster) == set())


def test_a_new_template_is_not_marked(cluster: Cluster, run: Run) -> None:
    replica = run()
    cluster.client.create(cluster.here(template()))
    cached(replica, cluster, template())
    sweeper(replica, ahead=200).run(NO_PODS, always)
    assert mark_of(cluster, template()) is None
    sweeper(replica, ahead=400).run(NO_PODS, always)
    assert mark_of(cluster, template()) is not None


def test_a_template_in_use_is_not_marked(cluster: Cluster, run: Run) -> None:
    replica = run()
    for gpus_wanted in (1, 2, 3):
        cluster.client.create(cluster.here(template(gpus_wanted)))
        cached(replica, cluster, template(gpus_wanted))
    ledger = Ledger(replica.parts.view.templates)
    ledger.hand_out(Key(cluster.namespace, name_of(template(1))))
    pods: Cache[Pod] = Cache()
    pods.put(Key(cluster.namespace, "user"), Pod("1", "", frozenset({name_of(template(2))}), frozenset()))
    api = TemplateApi(replica.api, replica.parts.view.discovery, replica.metrics)
    Sweep(api, ledger, replica.metrics, DAY, lambda: time.time() + 400).run(pods, always)
    assert [mark_of(cluster, template(number)) is None for number in (1, 2, 3)] == [True, True, False]


def test_a_clock_that_jumps_deletes_nothing(cluster: Cluster, run: Run) -> None:
    replica = run()
    cluster.client.create(cluster.here(template()))
    cached(replica, cluster, template())
    sweeper(replica, ahead=400).run(NO_PODS, always)
    cached(replica, cluster, template(), lambda seen: bool(seen.unused_since))
    sweeper(replica, ahead=400 * DAY).run(NO_PODS, always)
    assert names(cluster) == {name_of(template())}
    sweeper(replica, ahead=400 * DAY, settle=0).run(NO_PODS, always)
    assert names(cluster) == set()


@pytest.mark.parametrize("mark", ["yesterday", "", "9999-01-01T00:00:00Z", "99999-01-01T00:00:00Z"])
def test_a_mark_that_nobody_of_us_wrote_is_written_anew(cluster: Cluster, run: Run, mark: str) -> None:
    replica = run()
    odd = template() | {"metadata": template()["metadata"] | {"annotations": {UNUSED_SINCE: mark}}}
    cluster.client.create(cluster.here(odd))
    cached(replica, cluster, odd)
    sweeper(replica, ahead=400, settle=0, grace=0).run(NO_PODS, always)
    assert str(mark_of(cluster, odd))[:4] == time.strftime("%Y", time.gmtime(time.time() + 400))


def test_nothing_is_written_without_the_lease(cluster: Cluster, run: Run) -> None:
    replica = run()
    cluster.client.create(cluster.here(template()))
    cached(replica, cluster, template())
    sweeper(replica, ahead=400).run(NO_PODS, lambda: False)
    assert mark_of(cluster, template()) is None


def test_a_template_that_a_pod_names_stays_and_loses_a_mark(cluster: Cluster, run: Run) -> None:
    pod, wanted = converted("user")
    old = wanted | {"metadata": wanted["metadata"] | {"annotations": {UNUSED_SINCE: "2020-01-01T00:00:00Z"}}}
    cluster.client.create(cluster.here(old))
    cluster.client.create(cluster.here(pod))
    run(janitor=True, template_grace=1)
    wait_for("the mark is off", lambda: mark_of(cluster, wanted) is None)


def test_a_pod_that_lost_its_label_is_seen_before_its_template_is_deleted(cluster: Cluster, run: Run) -> None:
    pod, wanted = converted("user")
    del pod["metadata"]["labels"]
    old = wanted | {"metadata": wanted["metadata"] | {"annotations": {UNUSED_SINCE: "2020-01-01T00:00:00Z"}}}
    cluster.client.create(cluster.here(old))
    cluster.client.create(cluster.here(pod))
    run(janitor=True, template_grace=1)
    wait_for("the mark is off", lambda: mark_of(cluster, wanted) is None)


def test_a_template_that_is_handed_out_again_and_again_stays(cluster: Cluster, run: Run) -> None:
    replica = run(janitor=True, template_grace=1)
    replica.ensure(cluster.namespace, template())
    uid = stored(cluster, name_of(template()))["metadata"]["uid"]
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        replica.ensure(cluster.namespace, template())
        time.sleep(0.2)
    assert stored(cluster, name_of(template()))["metadata"]["uid"] == uid


def test_another_replica_that_hands_it_out_takes_the_mark_off(cluster: Cluster, run: Run) -> None:
    leading, other = run(janitor=True, template_grace=4), run()
    other.ensure(cluster.namespace, template())
    wait_for("it is marked", lambda: mark_of(cluster, template()))
    cached(other, cluster, template(), lambda seen: bool(seen.unused_since))
    other.ensure(cluster.namespace, template())
    assert mark_of(cluster, template()) is None
    assert leading.count("template_operations", operation="unmark", result="ok") == 0


@pytest.mark.parametrize("name", ["mine", "gpu-12345", "gpu-123456789", "app-gpu-91eca471", "gpu-zzzzzzzz"])
def test_names_that_are_not_ours_are_never_touched(cluster: Cluster, run: Run, name: str) -> None:
    replica = run()
    other = template() | {"metadata": {"name": name, "labels": template()["metadata"]["labels"]}}
    made = cluster.client.create(cluster.here(other))
    cached(replica, cluster, other)
    sweeper(replica, ahead=DAY, settle=0, grace=0).run(NO_PODS, always)
    assert stored(cluster, name)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


def test_what_is_not_the_template_that_was_seen_is_not_deleted(cluster: Cluster, run: Run) -> None:
    replica = run()
    cluster.client.create(cluster.here(template()))
    seen = cached(replica, cluster, template())
    older = dataclasses.replace(seen, resource_version="1")
    namesake = dataclasses.replace(seen, uid="11111111-2222-3333-4444-555555555555")
    api = TemplateApi(replica.api, replica.parts.view.discovery, replica.metrics)
    key = Key(cluster.namespace, name_of(template()))
    for each in (older, namesake):
        with pytest.raises(errors.Conflict):
            api.delete(key, each, timeout=10)
    with pytest.raises(errors.Conflict):
        api.mark(key, older, "2020-01-01T00:00:00Z", timeout=10)
    assert mark_of(cluster, template()) is None
    api.delete(key, seen, timeout=10)
    assert names(cluster) == set()
    with pytest.raises(errors.NotFound):
        api.delete(key, seen, timeout=10)


@pytest.mark.slow
def test_fifty_rollouts_leave_one_template(cluster: Cluster, run: Run) -> None:
    replica = run(janitor=True, template_grace=2)
    opt_in(cluster)
    labels = {"app": "rolling"}
    pod, wanted = converted("any", 1)
    pod["metadata"]["labels"] |= labels
    spec: Object = {
        "replicas": 2,
        "selector": {"matchLabels": labels},
        "strategy": {"type": "Recreate"},  # no kubelet makes a pod ready, which a rolling update would wait for
        "template": {"metadata": pod["metadata"] | {"name": ""}, "spec": pod["spec"]},
    }
    replica.ensure(cluster.namespace, wanted)
    deployment = cluster.client.create(cluster.object("apps/v1", "Deployment", "rolling", spec=spec))
    most = 0
    for number in range(2, 52):
        pod, wanted = converted("any", number % 32 + 1)
        pod["spec"]["containers"][0]["image"] = f"app:{number}"
        replica.ensure(cluster.namespace, wanted)
        metadata = {"labels": pod["metadata"]["labels"] | labels, "annotations": pod["metadata"]["annotations"]}
        cluster.client.patch(
            deployment, {"spec": {"template": {"metadata": metadata, "spec": pod["spec"]}}}, MERGE_PATCH
        )
        wait_for("its pods are there", lambda image=f"app:{number}": _images(cluster) == {image})  # type: ignore[misc]
        named = {name for each in cluster.client.list("v1", "Pod", cluster.namespace) for name in _templates_of(each)}
        assert named <= names(cluster)
        most = max(most, len(names(cluster)))
    wait_for("the others are gone", lambda: names(cluster) == {name_of(wanted)})
    assert most > 1


def _images(cluster: Cluster) -> set[str]:
    pods = cluster.client.list("v1", "Pod", cluster.namespace)
    return {str(each["spec"]["containers"][0]["image"]) for each in pods}


def _templates_of(pod: Object) -> set[str]:
    return {entry["resourceClaimTemplateName"] for entry in pod["spec"].get("resourceClaims", [])}


def test_a_deleted_template_of_a_waiting_pod_is_put_back_and_the_pod_is_bound(
    cluster: Cluster, run: Run, machines: AddMachines
) -> None:
    opt_in(cluster)
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 2))])
    pods = [converted(name, 1)[0] for name in ("one", "two")]
    for pod in pods:
        cluster.client.create(cluster.here(pod))
    replica = run(janitor=True)
    for pod in pods:
        scheduling.wait_for_scheduled(cluster.client, cluster.here(pod))
    assert names(cluster) == {name_of(template())}
    assert replica.count("template_operations", operation="restore", result="ok") == 1
    assert all(WOKEN in cluster.client.read(cluster.here(pod))["metadata"]["annotations"] for pod in pods)


def test_a_pod_whose_template_comes_later_is_woken(cluster: Cluster, run: Run, machines: AddMachines) -> None:
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    replica = run(janitor=True)
    pod, wanted = converted("early")
    cluster.client.create(cluster.here(pod))
    wait_until_looked(replica)
    # The controller tries after 5 ms, 10 ms and so on: from now on it would come back after five seconds and more.
    time.sleep(5.5)
    replica.ensure(cluster.namespace, wanted)  # as another pod's admission does; here nothing is put back
    if cluster.minor < 37:  # from then on the controller itself watches templates
        wait_for("it is woken", lambda: WOKEN in cluster.client.read(cluster.here(pod))["metadata"]["annotations"])
    scheduling.wait_for_scheduled(cluster.client, cluster.here(pod), deadline=4)
    assert replica.count("template_operations", operation="restore", result="ok") == 0


def test_a_pod_that_gets_its_claim_is_left_alone(cluster: Cluster, run: Run, machines: AddMachines) -> None:
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 1))])
    opt_in(cluster)
    replica = run(janitor=True)
    pod, wanted = converted("plain")
    replica.ensure(cluster.namespace, wanted)
    cluster.client.create(cluster.here(pod))
    scheduling.wait_for_scheduled(cluster.client, cluster.here(pod))
    wait_until_looked(replica)
    assert WOKEN not in cluster.client.read(cluster.here(pod))["metadata"]["annotations"]


def wait_until_looked(replica: Running) -> None:
    """Wait until the janitor has looked at its pods."""
    wait_for("it has swept", lambda: b'gpu2dra_templates{state="used"}' in replica.metrics.render())


def _of_another_class(pod: Object) -> tuple[Object, str]:
    """Return a record as a user would forge it: names and digests are right, the class is one of his choice."""
    spec = template()["spec"]
    spec["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "admin.example.com"
    return spec, f"gpu-{digest(canonical_spec(spec))}"


def _with_a_selector(pod: Object) -> tuple[Object, str]:
    spec = template()["spec"]
    exactly = spec["spec"]["devices"]["requests"][0]["exactly"]
    exactly["selectors"] = [{"cel": {"expression": "true"}}]
    return spec, f"gpu-{digest(canonical_spec(spec))}"


def _with_another_digest(pod: Object) -> tuple[Object, str]:
    return template(8)["spec"], name_of(template(1))


def _with_nothing(pod: Object) -> tuple[Object, str]:
    return {}, name_of(template(1))


@pytest.mark.parametrize("forged", [_of_another_class, _with_a_selector, _with_another_digest, _with_nothing])
def test_a_record_that_the_policy_could_not_have_made_is_refused(
    cluster: Cluster, run: Run, forged: Callable[[Object], tuple[Object, str]]
) -> None:
    opt_in(cluster)
    pod, _ = converted("forger")
    spec, name = forged(pod)
    pod["metadata"]["annotations"][RECORD] = json.dumps({"containers": {"main": {}}, "templates": {name: spec}})
    pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] = name
    cluster.client.create(cluster.here(pod))
    replica = run(janitor=True)
    wait_for("it is refused", lambda: replica.count("template_operations", operation="restore", result="refused"))
    assert names(cluster) == set()


def test_nothing_is_put_back_where_pods_are_not_converted(cluster: Cluster, run: Run) -> None:
    cluster.client.create(cluster.here(converted("stranger")[0]))
    replica = run(janitor=True)
    wait_for("it is refused", lambda: replica.count("template_operations", operation="restore", result="refused"))
    assert names(cluster) == set()


def test_a_pod_of_several_claims_that_the_controller_keeps_pending_is_freed(
    cluster: Cluster, run: Run, machines: AddMachines
) -> None:
    """kubernetes#138407: one claim of a waiting pod is made again, and the status never holds both from then on."""
    made = [template(gpus) for gpus in (1, 2)]
    for each in made:
        cluster.client.create(cluster.here(each))
    pod, _ = converted("several", 1)
    pod["spec"]["resourceClaims"] = [
        {"name": f"claim-{number}", "resourceClaimTemplateName": name_of(each)} for number, each in enumerate(made)
    ]
    pod["spec"]["containers"][0]["resources"] = {"claims": [{"name": "claim-0"}, {"name": "claim-1"}]}
    seen = cluster.client.create(cluster.here(pod))
    wait_for("both claims are made", lambda: len(_claims_of(cluster, seen)) == 2)
    claim = _claims_of(cluster, seen)["claim-0"]
    cluster.client.delete(cluster.object("resource.k8s.io/v1", "ResourceClaim", claim))
    if cluster.minor < 37:
        wait_for("it flaps", lambda: len(_claims_of(cluster, seen)) == 1)
    run(janitor=True)
    machines([gpus.Machine("h100", gpus.whole(gpus.H100, 3))])
    # The controller remembers for a minute what it made, and names the claim that was deleted again and again.
    scheduling.wait_for_scheduled(cluster.client, seen, deadline=120)
    assert len(_claims_of(cluster, seen)) == 2


def _claims_of(cluster: Cluster, pod: Object) -> dict[str, str]:
    return scheduling.claim_names(cluster.client.read(pod))


def waiting_pods(cluster: Cluster, seen: Object, created: str) -> Cache[Pod]:
    """Return a cache with a pod of the test's namespace that waits for its template."""
    names_of_templates = frozenset(_templates_of(seen))
    pods: Cache[Pod] = Cache(waiting_groups)
    pods.put(
        Key(cluster.namespace, name_of(seen)),
        Pod(seen["metadata"]["uid"], created, names_of_templates, names_of_templates),
    )
    return pods


def repairer(replica: Running) -> Repair:
    """Return what repairs by a replica's caches, and may put anything back."""
    view = replica.parts.view
    api, ledger = TemplateApi(replica.api, view.discovery, replica.metrics), Ledger(view.templates)
    return Repair(replica.api, api, ledger, replica.parts.store, view.discovery, replica.metrics, lambda *about: True)


def test_only_a_pod_that_is_older_than_its_template_is_woken_and_once(cluster: Cluster, run: Run) -> None:
    replica = run()
    pod, wanted = converted("user")
    cluster.client.create(cluster.here(wanted))
    created = cached(replica, cluster, wanted).created
    seen = cluster.client.create(cluster.here(pod))
    repair = repairer(replica)
    repair.run(waiting_pods(cluster, seen, created), always)
    assert WOKEN not in cluster.client.read(seen)["metadata"]["annotations"]
    repair.run(waiting_pods(cluster, seen, "2020-01-01T00:00:00Z"), always)
    assert WOKEN in cluster.client.read(seen)["metadata"]["annotations"]
    cluster.client.patch(seen, {"metadata": {"annotations": {WOKEN: None}}}, MERGE_PATCH)
    repair.run(waiting_pods(cluster, seen, "2020-01-01T00:00:00Z"), always)
    assert WOKEN not in cluster.client.read(seen)["metadata"]["annotations"]


def test_a_template_that_only_the_cache_lacks_is_not_put_back(cluster: Cluster, run: Run) -> None:
    replica = run()
    replica.parts.view.templates.stop()
    pod, wanted = converted("user")
    cluster.client.create(cluster.here(wanted))
    seen = cluster.client.create(cluster.here(pod))
    repairer(replica).run(waiting_pods(cluster, seen, seen["metadata"]["creationTimestamp"]), always)
    assert replica.count("template_operations", operation="get", result="ok") == 1
    assert replica.count("template_operations", operation="restore", result="ok") == 0
    assert WOKEN not in cluster.client.read(seen)["metadata"]["annotations"]
