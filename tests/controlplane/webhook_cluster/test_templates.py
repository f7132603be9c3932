"""The store of templates: races, names that are taken, namespaces on their way out, the cap, servers that hang."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from controlplane.client import MERGE_PATCH, Object, wait_for
from controlplane.testbed import Cluster
from controlplane.webhook_cluster import running
from controlplane.webhook_cluster.gate import Gate
from controlplane.webhook_cluster.running import CLAIMS, UNUSED_SINCE, Run, Running, name_of, names, stored, template
from gpu2dra import ApiVersion
from gpu2dra_webhook.cluster.cache import Key
from gpu2dra_webhook.ports import StoreError, StoreProblem


def wait_until_cached(replica: Running, cluster: Cluster, name: str) -> None:
    """Wait until a replica's cache has a template of the test's namespace."""
    cache = replica.parts.view.templates.cache
    assert cache.wait_for(lambda: cache.get(cluster.namespace, name) is not None, 10)


def refusal(call: Callable[[], None]) -> StoreError:
    """Return the StoreError that a call raises."""
    with pytest.raises(StoreError) as caught:
        call()
    return caught.value


def test_a_template_is_there_when_ensure_returns(cluster: Cluster, run: Run) -> None:
    wanted = template(2)
    run().ensure(cluster.namespace, wanted)
    made = stored(cluster, name_of(wanted))
    assert made["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gpu2dra"}
    assert made["spec"]["spec"] == wanted["spec"]["spec"]
    assert made["metadata"]["managedFields"][0]["manager"] == "gpu2dra"


def test_a_template_that_the_cache_shows_needs_no_call(cluster: Cluster, run: Run, gate: Gate) -> None:
    replica = run(gate.kubeconfig)
    wanted = template()
    cluster.client.create(cluster.here(wanted))
    wait_until_cached(replica, cluster, name_of(wanted))
    gate.hold()
    replica.ensure(cluster.namespace, wanted, timeout=0.5)
    assert replica.count("template_cache_hits") == 1
    assert replica.count("template_operations", operation="create", result="ok") == 0


def test_a_template_made_a_moment_ago_is_not_made_again_before_the_cache_knows(cluster: Cluster, run: Run) -> None:
    replica = run()
    for _ in range(20):
        replica.ensure(cluster.namespace, template())
    assert replica.count("template_operations", operation="create", result="ok") == 1
    assert replica.count("template_operations", operation="get", result="ok") == 0


@pytest.mark.parametrize("version", list(ApiVersion), ids=lambda version: version.rpartition("/")[2])
def test_what_another_version_wrote_is_known_by_its_content(cluster: Cluster, run: Run, version: ApiVersion) -> None:
    replica = run()
    if not cluster.client.serves(version, running.TEMPLATE):
        pytest.skip(f"{version} is not served")
    cluster.client.create(cluster.here(template(3, version)))
    wait_until_cached(replica, cluster, name_of(template(3)))
    replica.ensure(cluster.namespace, template(3))
    assert replica.count("template_cache_hits") == 1


def test_two_replicas_and_many_requests_make_one_template(cluster: Cluster, run: Run) -> None:
    replicas = [run(), run()]
    failures: list[BaseException] = []
    start = threading.Barrier(40)

    def ask(replica: Running) -> None:
        start.wait()
        try:
            replica.ensure(cluster.namespace, template(4))
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is the finding
            failures.append(error)

    threads = [threading.Thread(target=ask, args=(replicas[number % 2],)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert names(cluster) == {name_of(template(4))}
    created = [replica.count("template_operations", operation="create", result="ok") for replica in replicas]
    assert sum(created) == 1


def test_what_loses_the_race_takes_the_template_of_the_other(cluster: Cluster, run: Run, gate: Gate) -> None:
    replica = run(gate.kubeconfig)
    gate.hold()
    wanted = template(5)
    asked = threading.Thread(target=replica.ensure, args=(cluster.namespace, wanted))
    asked.start()
    cluster.client.create(cluster.here(wanted))
    uid = stored(cluster, name_of(wanted))["metadata"]["uid"]
    gate.release()
    asked.join()
    assert replica.count("template_operations", operation="create", result="exists") == 1
    assert stored(cluster, name_of(wanted))["metadata"]["uid"] == uid


@pytest.mark.parametrize(
    ("labels", "gpus"),
    [({"app.kubernetes.io/managed-by": "gpu2dra"}, 2), ({}, 1), ({"app.kubernetes.io/managed-by": "Helm"}, 1)],
    ids=["another spec", "no label", "another tool's"],
)
def test_an_object_of_somebody_else_is_refused_and_left_alone(
    cluster: Cluster, run: Run, labels: dict[str, str], gpus: int
) -> None:
    wanted = template(1)
    foreign = template(gpus) | {"metadata": {"name": name_of(wanted), "labels": labels}}
    before = cluster.client.create(cluster.here(foreign))
    replica = run()
    for dry_run in (False, True):
        error = refusal(lambda dry_run=dry_run: replica.ensure(cluster.namespace, wanted, dry_run=dry_run))  # type: ignore[misc]
        assert error.kind is StoreProblem.FOREIGN
        assert error.message == (
            f"ResourceClaimTemplate {name_of(wanted)} in namespace {cluster.namespace}: another object has this name "
            "and is not touched; rename or delete it."
        )
    after = stored(cluster, name_of(wanted))
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_a_dry_run_writes_nothing(cluster: Cluster, run: Run) -> None:
    replica = run()
    replica.ensure(cluster.namespace, template(), dry_run=True)
    assert names(cluster) == set()
    replica.ensure(cluster.namespace, template())
    assert names(cluster) == {name_of(template())}


def test_a_dry_run_leaves_a_mark(cluster: Cluster, run: Run) -> None:
    wanted = template()
    cluster.client.create(cluster.here(marked(wanted)))
    replica = run()
    replica.ensure(cluster.namespace, wanted, dry_run=True)
    assert UNUSED_SINCE in stored(cluster, name_of(wanted))["metadata"]["annotations"]


def marked(obj: Object) -> Object:
    """Return a template that the janitor has marked long ago."""
    return obj | {"metadata": obj["metadata"] | {"annotations": {UNUSED_SINCE: "2020-01-01T00:00:00Z"}}}


def test_a_marked_template_loses_its_mark_before_it_is_handed_out(cluster: Cluster, run: Run) -> None:
    wanted = template()
    cluster.client.create(cluster.here(marked(wanted)))
    run().ensure(cluster.namespace, wanted)
    assert UNUSED_SINCE not in stored(cluster, name_of(wanted))["metadata"].get("annotations", {})


def test_a_marked_template_that_changed_meanwhile_is_looked_at_again(cluster: Cluster, run: Run, gate: Gate) -> None:
    wanted = template()
    cluster.client.create(cluster.here(marked(wanted)))
    replica = run(gate.kubeconfig)
    gate.hold()
    asked = threading.Thread(target=replica.ensure, args=(cluster.namespace, wanted))
    asked.start()
    cluster.client.patch(cluster.here(wanted), {"metadata": {"annotations": {"note": "by a person"}}}, MERGE_PATCH)
    gate.release()
    asked.join()
    assert stored(cluster, name_of(wanted))["metadata"]["annotations"] == {"note": "by a person"}


def test_a_template_that_is_on_its_way_out_is_made_anew(cluster: Cluster, run: Run) -> None:
    wanted = template()
    held = wanted | {"metadata": wanted["metadata"] | {"finalizers": ["example.com/wait"]}}
    old = cluster.client.create(cluster.here(held))
    cluster.client.delete(old)
    replica = run()
    asked = threading.Thread(target=replica.ensure, args=(cluster.namespace, wanted))
    asked.start()
    wait_for("it was tried", lambda: replica.count("template_operations", operation="create", result="exists") > 0)
    cluster.client.patch(old, {"metadata": {"finalizers": None}}, MERGE_PATCH)
    asked.join()
    assert stored(cluster, name_of(wanted))["metadata"]["uid"] != old["metadata"]["uid"]


def test_a_namespace_that_is_being_deleted_is_said_to_be(cluster: Cluster, run: Run) -> None:
    name = f"{cluster.namespace}-going"
    going = cluster.client.create(running.namespace(name) | {"metadata": {"name": name}})
    keeper = cluster.object(
        "v1", "ConfigMap", "keeper", metadata={"name": "keeper", "namespace": name, "finalizers": ["example.com/wait"]}
    )
    cluster.client.create(keeper)
    cluster.client.delete(going)
    replica = run()
    error = refusal(lambda: replica.ensure(name, template()))
    assert (error.kind, error.message.partition(": ")[2]) == (
        StoreProblem.TERMINATING,
        "the namespace is being deleted.",
    )
    cluster.client.patch(keeper, {"metadata": {"finalizers": None}}, MERGE_PATCH)


def test_a_namespace_that_is_not_there_is_said_to_be(cluster: Cluster, run: Run) -> None:
    error = refusal(lambda: run().ensure("nowhere", template()))
    assert error.kind is StoreProblem.TERMINATING
    assert error.message.endswith("the namespace does not exist (any more).")


def test_a_quota_on_templates_refuses_with_its_own_words(cluster: Cluster, run: Run) -> None:
    hard = {"count/resourceclaimtemplates.resource.k8s.io": "0"}
    quota = cluster.client.create(cluster.object("v1", "ResourceQuota", "none", spec={"hard": hard}))
    wait_for("the quota is in force", lambda: cluster.client.read(quota).get("status", {}).get("hard"))
    error = refusal(lambda: run().ensure(cluster.namespace, template()))
    assert error.kind is StoreProblem.REFUSED
    assert "exceeded quota: none" in error.message
    assert names(cluster) == set()


def test_missing_rights_are_said_to_be_missing(cluster: Cluster, run: Run) -> None:
    replica = run()
    replica.parts.view.stop()
    nobody = cluster.plane.kubeconfig("nobody")
    stranger = running.run(nobody, wait=False, janitor=False)
    try:
        error = refusal(lambda: stranger.ensure(cluster.namespace, template()))
    finally:
        stranger.stop()
    assert error.kind is StoreProblem.REFUSED
    assert 'User "nobody" cannot create resource "resourceclaimtemplates"' in error.message


def test_a_field_that_the_server_drops_takes_the_template_back(cluster: Cluster, run: Run) -> None:
    wanted = template()
    exactly = wanted["spec"]["spec"]["devices"]["requests"][0]["exactly"]
    exactly["capacity"] = {"requests": {"memory": "8Gi"}}
    replica = run()
    if cluster.minor >= 36:  # the server knows the field
        replica.ensure(cluster.namespace, wanted)
        return
    for dry_run in (True, False):
        error = refusal(lambda dry_run=dry_run: replica.ensure(cluster.namespace, wanted, dry_run=dry_run))  # type: ignore[misc]
        assert error.kind is StoreProblem.DROPPED
        assert names(cluster) == set()


def wait_until_cached_are(replica: Running, cluster: Cluster, expected: set[str]) -> None:
    """Wait until a replica's cache holds these templates of the test's namespace and no others."""
    cache = replica.parts.view.templates.cache
    cache.wait_for(lambda: cache.within(cluster.namespace).keys() == expected, 10)
    assert cache.within(cluster.namespace).keys() == expected


def use(cluster: Cluster, gpus: int) -> Object:
    """Create a template and a pod that names it; return the template."""
    pod, wanted = running.converted(f"user-{gpus}", gpus)
    answer = cluster.client.try_create(cluster.here(wanted))
    assert answer.status in {201, 409}
    cluster.client.create(cluster.here(pod))
    return wanted


def test_at_the_cap_what_is_unused_goes_first_and_what_exists_is_never_refused(cluster: Cluster, run: Run) -> None:
    used = use(cluster, 1)
    old, older = template(2), template(3)
    for each in (marked(old), older):
        cluster.client.create(cluster.here(each))
    time.sleep(1.1)  # creation times are whole seconds, and so is the age that counts
    replica = run(max_templates_per_namespace=3, template_grace=1)
    replica.ensure(cluster.namespace, template(4), dry_run=True)
    assert names(cluster) == {name_of(each) for each in (used, old, older)}
    replica.ensure(cluster.namespace, template(4))
    use(cluster, 4)
    wait_until_cached_are(replica, cluster, {name_of(each) for each in (used, older, template(4))})
    replica.ensure(cluster.namespace, template(5))
    use(cluster, 5)
    wait_until_cached_are(replica, cluster, {name_of(each) for each in (used, template(4), template(5))})
    error = refusal(lambda: replica.ensure(cluster.namespace, template(6)))
    assert error.kind is StoreProblem.FULL
    assert error.message.endswith(
        "the namespace has 3 templates of gpu2dra, as many as it may, and all of them are in use."
    )
    replica.ensure(cluster.namespace, used)
    assert names(cluster) == {name_of(each) for each in (used, template(4), template(5))}


def test_at_the_cap_what_was_handed_out_a_moment_ago_stays(cluster: Cluster, run: Run) -> None:
    cluster.client.create(cluster.here(template(1)))
    time.sleep(1.1)  # as above
    replica = run(max_templates_per_namespace=1, template_grace=1)
    handed = replica.parts.store._ledger._handed
    key = Key(cluster.namespace, name_of(template(1)))
    replica.ensure(cluster.namespace, template(1))
    now = time.monotonic()
    handed[key] = now + 3600, now + 3600  # a moment ago, however slow the machine is
    assert refusal(lambda: replica.ensure(cluster.namespace, template(2))).kind is StoreProblem.FULL
    handed[key] = now - 3600, now + 3600  # again and again, and no pod names it
    replica.ensure(cluster.namespace, template(2))
    assert names(cluster) == {name_of(template(2))}


def test_at_the_cap_a_template_that_the_cache_does_not_show_yet_is_not_refused(
    cluster: Cluster, run: Run, gate: Gate
) -> None:
    replica = run(gate.kubeconfig, max_templates_per_namespace=1)
    replica.ensure(cluster.namespace, template(1))
    wait_until_cached(replica, cluster, name_of(template(1)))
    gate.hold()
    cluster.client.create(cluster.here(template(2)))
    asked = threading.Thread(target=replica.ensure, args=(cluster.namespace, template(2)))
    asked.start()
    gate.release()
    asked.join()
    assert names(cluster) == {name_of(template(1)), name_of(template(2))}
    assert replica.count("template_operations", operation="delete", result="ok") == 0


def test_a_server_that_hangs_is_answered_for_before_the_deadline(cluster: Cluster, run: Run, gate: Gate) -> None:
    replica = run(gate.kubeconfig)
    gate.hold()
    began = time.monotonic()
    error = refusal(lambda: replica.ensure(cluster.namespace, template(), timeout=1.5))
    assert time.monotonic() - began < 1.5
    assert error.kind is StoreProblem.TIMEOUT
    assert names(cluster) == set()
    gate.release()
    replica.ensure(cluster.namespace, template())
    assert names(cluster) == {name_of(template())}


def test_a_connection_that_breaks_is_replaced_while_there_is_time(cluster: Cluster, run: Run, gate: Gate) -> None:
    replica = run(gate.kubeconfig)
    gate.hold()
    asked = threading.Thread(target=replica.ensure, args=(cluster.namespace, template()), kwargs={"timeout": 30})
    asked.start()

    def has_failed() -> float:
        gate.cut()  # again and again: nobody says when the call has reached the gate
        return replica.count("template_operations", operation="create", result="unreachable")

    wait_for("a call has failed", has_failed)
    gate.release()
    asked.join()
    assert names(cluster) == {name_of(template())}


def test_who_has_more_time_does_not_fail_with_who_had_less(cluster: Cluster, run: Run, gate: Gate) -> None:
    replica = run(gate.kubeconfig)
    gate.hold()
    hasty: list[StoreError] = []
    first = threading.Thread(
        target=lambda: hasty.append(refusal(lambda: replica.ensure(cluster.namespace, template(), timeout=0.5)))
    )
    second = threading.Thread(target=replica.ensure, args=(cluster.namespace, template()))
    first.start()
    second.start()
    first.join()
    gate.release()
    second.join()
    assert [error.kind for error in hasty] == [StoreProblem.TIMEOUT]
    assert names(cluster) == {name_of(template())}


def test_versions_that_are_not_served_are_refused_at_once(cluster: Cluster, run: Run) -> None:
    replica = run()
    unserved = template() | {"apiVersion": "resource.k8s.io/v1alpha1"}
    began = time.monotonic()
    error = refusal(lambda: replica.ensure(cluster.namespace, unserved, timeout=30))
    assert time.monotonic() - began < 10
    assert error.kind is StoreProblem.UNAVAILABLE
    assert error.message.endswith("the API server does not serve resource.k8s.io/v1alpha1 any more.")
    assert replica.parts.view.api_version() == CLAIMS
