"""What becomes of a pod: every row of the decision, without HTTP and without a cluster."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from gpu2dra import CODES, ApiVersion, Object
from gpu2dra.devices import Device
from gpu2dra.policy import LeftAlone, Policy, Preemption, Rule
from gpu2dra.skips import SYSTEM_NAMESPACES
from gpu2dra_webhook.admission import NAMESPACE_WAIT, decide, opted_in
from gpu2dra_webhook.decisions import REASONS, Decision, Outcome
from gpu2dra_webhook.memory import FixedView
from gpu2dra_webhook.ports import DeviceClassState, NamespaceState
from gpu2dra_webhook.reviews import BadReview, decode
from gpu2dra_webhook.settings import Settings
from unit.build import GPU, MIG, container, pod
from webhook.admission.asking import (
    NAMESPACE,
    OPTED_IN,
    SETTINGS,
    body,
    decided,
    in_namespace,
    namespaces,
    outcome,
    with_quota,
)

POD = pod(container("main", 1))
MIGS = pod(container("main", limits={MIG: 1}))
OTHER = "nvidia.com/mig-2g.10gb"
CLASSES = {name: DeviceClassState(name) for name in ("gpu.nvidia.com", "mig.nvidia.com")}
CHOOSE = "choose the device that replaces it"
SHARES = "hand out shares or slices, so the amount does not count whole GPUs"
PENDING = "converted pods are pending until a node offers devices"
ALLOW = Settings(on_api_failure="allow")


class Untouchable(FixedView):
    """A cluster that must not be asked anything but its API version."""

    def namespace(self, name: str) -> NamespaceState | None:
        """Fail."""
        raise AssertionError(name)

    wait_for_namespace = device_class = claim_classes = mixed_nodes = has_slices = synced = namespace  # type: ignore[assignment]


def test_a_pod_with_a_legacy_request_is_converted() -> None:
    made = decided(POD)
    assert outcome(made) == ("converted", "none")
    assert [template["metadata"]["name"] for template in made.templates] == ["gpu-91eca471"]
    assert made.templates[0]["apiVersion"] == "resource.k8s.io/v1"
    assert (made.warnings, made.notices, made.why, made.denial) == ((), (), "", None)
    assert {"op": "remove", "path": "/spec/containers/0/resources/limits"} in made.operations
    assert not any("/tolerations" in operation["path"] for operation in made.operations)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"kind": {"group": "", "version": "v1", "kind": "Service"}}, "other-kind"),
        ({"kind": {"group": "x", "version": "v1", "kind": "Pod"}}, "other-kind"),
        ({"kind": {"group": "", "version": "v2", "kind": "Pod"}}, "other-kind"),
        ({"kind": {"group": "apps", "version": "v1", "kind": "Deployment"}}, "other-kind"),
        ({"resource": {"group": "", "version": "v1", "resource": "podtemplates"}}, "other-kind"),
        ({"resource": {"group": "metrics.k8s.io", "version": "v1", "resource": "pods"}}, "other-kind"),
        *(({"subResource": name}, "subresource") for name in ("status", "ephemeralcontainers", "binding", "resize")),
        ({"operation": "DELETE", "pod": None}, "other-operation"),
        ({"operation": "CONNECT"}, "other-operation"),
        ({"operation": "create"}, "other-operation"),
        ({"pod": POD | {"metadata": {"name": "a", "namespace": "other"}}}, "namespace-mismatch"),
    ],
)
def test_what_is_no_pods_creation_or_update_is_answered_without_a_look_at_the_cluster(fields: Any, reason: str) -> None:
    obj = fields.pop("pod", POD)
    assert outcome(decided(obj, view=Untouchable(), **fields)) == ("untouched", reason)


@pytest.mark.parametrize(
    ("obj", "fields", "message"),
    [
        (None, {}, "request.object is no Pod of v1, as request.kind says."),
        (None, {"operation": "UPDATE"}, "request.object is no Pod of v1, as request.kind says."),
        (POD | {"kind": "Deployment"}, {}, "request.object is no Pod of v1, as request.kind says."),
        (POD | {"apiVersion": "v2"}, {}, "request.object is no Pod of v1, as request.kind says."),
        (POD, {"namespace": ""}, "The review has no request.namespace."),
    ],
)
def test_a_review_that_contradicts_itself_is_refused(obj: Any, fields: Any, message: str) -> None:
    with pytest.raises(BadReview) as caught:
        decided(obj, view=Untouchable(), **fields)
    assert caught.value.message == message


@pytest.mark.parametrize("namespace", sorted({*SYSTEM_NAMESPACES, "gpu2dra", "excluded"}))
def test_namespaces_that_are_never_converted(namespace: str) -> None:
    settings = Settings(namespace="gpu2dra", excluded_namespaces=frozenset({"excluded"}))
    made = decided(POD, view=Untouchable(), settings=settings, namespace=namespace)
    assert outcome(made) == ("skipped", "excluded-namespace")
    assert made.warnings == ()


@pytest.mark.parametrize(
    ("labels", "opt_in", "opt_out"),
    [
        ({}, False, True),
        ({"gpu2dra.dev/convert": "true"}, True, True),
        ({"gpu2dra.dev/convert": "false"}, False, False),
        ({"gpu2dra.dev/convert": "True"}, False, True),
        ({"gpu2dra.dev/convert": ""}, False, True),
    ],
)
def test_a_label_of_the_namespace_opts_in_or_out(labels: dict[str, str], *, opt_in: bool, opt_out: bool) -> None:
    for mode, expected in (("opt-in", opt_in), ("opt-out", opt_out)):
        settings = Settings(namespace_mode=mode)  # type: ignore[arg-type]
        assert opted_in(settings, labels) is expected
        made = decided(POD, view=in_namespace(labels=labels), settings=settings)
        assert outcome(made) == (("converted", "none") if expected else ("skipped", "not-opted-in"))
        assert made.warnings == ()


def test_a_namespace_that_was_labelled_a_moment_ago_is_waited_for() -> None:
    waits: list[float] = []

    class Late(FixedView):
        def wait_for_namespace(self, name: str, opted_in: Any, timeout: float) -> NamespaceState:
            waits.append(timeout)
            assert not opted_in({})
            return NamespaceState(name, OPTED_IN)

    for view in (Late(namespaces={}), Late(namespaces={NAMESPACE: NamespaceState(NAMESPACE)})):
        assert outcome(decided(POD, view=view)) == ("converted", "none")
    assert outcome(decide(decode(body(POD)), Late(namespaces={}), SETTINGS, Policy(), 2)) == ("converted", "none")
    assert waits == [NAMESPACE_WAIT, NAMESPACE_WAIT, 0.5]


@pytest.mark.parametrize(
    ("view", "reason", "why"),
    [
        (namespaces(), "namespace-unknown", 'namespace "ml" is not known here yet; try again'),
        (
            FixedView(missing=("nodes", "quotas")),
            "not-synced",
            "the webhook has not seen all of the cluster yet (nodes, quotas); try again",
        ),
    ],
)
def test_what_is_not_known_yet_is_a_failure_by_the_operators_choice(view: FixedView, reason: str, why: str) -> None:
    made = decided(POD, view=view)
    assert outcome(made) == ("denied", reason)
    assert made.denial
    assert dataclasses.astuple(made.denial) == (503, "ServiceUnavailable", f"gpu2dra: {why}")
    made = decided(POD, view=view, settings=ALLOW)
    assert (outcome(made), made.denial, made.operations) == (("unconverted", reason), None, ())
    assert made.answer().warnings == (f"gpu2dra: not converted: {why}",)


def test_a_namespace_that_is_being_deleted_gets_a_clear_answer_whatever_the_choice() -> None:
    for settings in (SETTINGS, ALLOW):
        made = decided(POD, view=in_namespace(terminating=True), settings=settings)
        assert outcome(made) == ("denied", "terminating")
        assert made.denial
        assert dataclasses.astuple(made.denial) == (
            403, "Forbidden", 'gpu2dra: namespace "ml" is being deleted; no template can be made in it',
        )  # fmt: skip


@pytest.mark.parametrize(
    "obj",
    [
        pod(container("main")),
        pod(container("main", 0)),
        pod(container("main", limits={"cpu": 1, "amd.com/gpu": 1, "nvidia.com/rdma_shared_device_a": 1})),
        pod(),
        {"apiVersion": "v1", "kind": "Pod"},
        {"metadata": {"name": "a"}, "spec": {"containers": [{}]}},
        pod(container("main"), resourceClaims=[{"name": "own", "resourceClaimName": "c"}]),
        pod(
            container("main", args=["--resource=nvidia.com/gpu"]),
            meta={"annotations": {"note": "nvidia.com/gpu: 1"}},
        ),
    ],
)
def test_a_pod_without_a_request_is_nobodys_business_even_of_an_unknown_namespace(obj: Object) -> None:
    class NoNamespaces(Untouchable):
        """Its namespaces are not asked for, so that nobody waits for one."""

    made = decided(obj, view=NoNamespaces())
    assert (outcome(made), made.warnings, made.operations) == (("untouched", "no-request"), (), ())


def test_the_object_may_leave_kind_and_version_to_the_review() -> None:
    bare = {"metadata": POD["metadata"], "spec": POD["spec"]}
    assert outcome(decided(bare)) == ("converted", "none")


@pytest.mark.parametrize(
    ("obj", "expected", "why"),
    [
        (pod(container("main", 1), meta={"annotations": {"gpu2dra.dev/convert": "false"}}), ("skipped", "DRA201"), ""),
        (pod(container("main", 1), meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
         ("skipped", "DRA202"), ""),
        (pod(container("main", 1), nodeName="n1"), ("skipped", "DRA203"),
         'DRA203: nodeName "n1" bypasses the scheduler, which allocates claims; use a nodeSelector'),
        (pod(container("main", 1), os={"name": "windows"}), ("skipped", "DRA204"),
         "DRA204: DRA does not support Windows"),
        (pod(container("main", 1), schedulerName="volcano"), ("skipped", "DRA206"),
         'DRA206: scheduler "volcano" is not known to allocate claims; find out whether it supports DRA'),
        (pod(container("main", 1), meta={"annotations": {"gpu-fraction": "0.5"}}), ("unconverted", "DRA305"),
         f"DRA305: run:ai cuts or chooses the GPU of this pod (gpu-fraction: 0.5); {CHOOSE}"),
        (pod(container("main", limits={"nvidia.com/gpumem": 3000})), ("unconverted", "DRA305"),
         f"DRA305: nvidia.com/gpumem is another system's part of a GPU and must not become a whole card; {CHOOSE}"),
        (pod(container("main", limits={"nvidia.com/gpu.shared": 1})), ("unconverted", "DRA306"),
         f"DRA306: nvidia.com/gpu.shared is a share of a device whose size the name does not tell; {CHOOSE}"),
        (pod(container("main", 1), nodeSelector={"nvidia.com/mig.strategy": "single"}),
         ("unconverted", "DRA306"),
         f"DRA306: Nodes with nvidia.com/mig.strategy: single {SHARES}"),
        (pod(container("main", "500m")), ("unconverted", "DRA301"),
         'DRA301: nvidia.com/gpu: "500m" is not a whole number; the API server takes whole numbers from 0 up'),
        (pod(container("main", 33)), ("unconverted", "DRA304"),
         'DRA304: Container "main" asks for 33 devices; a ResourceClaim holds at most 32'),
    ],
)  # fmt: skip
def test_a_pod_that_the_core_leaves_alone_goes_on_as_it_is(obj: Object, expected: tuple[str, str], why: str) -> None:
    made = decided(obj)
    assert (outcome(made), made.why, made.operations, made.templates) == (expected, why, (), ())
    assert made.answer().warnings == ((f"gpu2dra: not converted: {why}",) if why else ())


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (Policy(), ("converted", "none")),
        (Policy(preemption=Preemption.SKIP), ("skipped", "DRA209")),
        (Policy((Rule(LeftAlone("later"), (GPU,)),)), ("skipped", "DRA208")),
        (Policy((Rule(LeftAlone("later"), (GPU,), ("other",)),)), ("converted", "none")),
        (Policy((Rule(Device("x"), (GPU,), (NAMESPACE,)),)), ("converted", "none")),
    ],
)
def test_the_policy_decides(policy: Policy, expected: tuple[str, str]) -> None:
    made = decided(pod(container("main", 1), priority=1000), policy=policy)
    assert outcome(made) == expected
    classes = {t["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] for t in made.templates}
    assert classes == ({"x"} if policy.device_classes else {"gpu.nvidia.com"} if made.templates else set())


def test_warnings_of_the_core_reach_the_user_and_what_the_answer_holds_anyway_does_not() -> None:
    made = decided(pod(container("main", 1), priority=1000, priorityClassName="high"))
    assert made.warnings == (
        "DRA104: priorityClassName high: a converted pod cannot preempt others to get its devices.",
    )


@pytest.mark.parametrize("version", list(ApiVersion))
def test_templates_are_of_the_version_that_the_server_serves(version: ApiVersion) -> None:
    made = decided(POD, view=FixedView(version=version))
    assert [template["apiVersion"] for template in made.templates] == [version]


@pytest.mark.parametrize(
    ("view", "reason", "why"),
    [
        (FixedView(version=None), "no-dra",
         "the API server does not serve DRA (resource.k8s.io, from Kubernetes 1.32 on)"),
        (FixedView(classes={}), "device-class-missing",
         "there is no DeviceClass gpu.nvidia.com; install the DRA driver"),
        (FixedView(mixed=("n1",)), "mixed-nodes", "node n1: device plugin and DRA driver both hand out its GPUs"),
        (FixedView(mixed=("n1", "n2", "n3")), "mixed-nodes",
         "node n1 and 2 more: device plugin and DRA driver both hand out its GPUs"),
        (in_namespace(limit_range=("nvidia.com/mig-1g.5gb", GPU)), "limit-range",
         "a LimitRange of the namespace names nvidia.com/gpu and would refuse the converted pod"),
        (with_quota(GPU), "quota",
         "a ResourceQuota counts nvidia.com/gpu; add gpu.nvidia.com.deviceclass.resource.k8s.io/devices"),
        (with_quota(GPU, class_keys=frozenset({"mig.nvidia.com"})), "quota",
         "a ResourceQuota counts nvidia.com/gpu; add gpu.nvidia.com.deviceclass.resource.k8s.io/devices"),
        (with_quota(GPU, class_keys=frozenset({"gpu.nvidia.com"}), scoped=True), "scoped-quota",
         "a scoped ResourceQuota counts nvidia.com/gpu; claims cannot be counted by scope"),
    ],
)  # fmt: skip
def test_what_in_the_cluster_stands_against_it(view: FixedView, reason: str, why: str) -> None:
    made = decided(POD, view=view)
    assert (outcome(made), made.why) == (("unconverted", reason), why)
    assert (made.operations, made.templates, made.denial) == ((), (), None)


@pytest.mark.parametrize(
    ("view", "settings"),
    [
        (FixedView(mixed=("n1",)), Settings(allow_mixed_nodes=True)),
        (FixedView(classes=CLASSES), SETTINGS),
        (in_namespace(limit_range=(MIG,)), SETTINGS),
        (with_quota(MIG), SETTINGS),
        (with_quota(MIG, scoped=True), SETTINGS),
        (with_quota(GPU, class_keys=frozenset({"gpu.nvidia.com"})), SETTINGS),
        (with_quota(GPU), Settings(quota="convert")),
        (with_quota(GPU, scoped=True), Settings(quota="convert")),
        (dataclasses.replace(with_quota(GPU), classes={"gpu.nvidia.com": DeviceClassState("gpu.nvidia.com", GPU)}),
         SETTINGS),
    ],
)  # fmt: skip
def test_what_in_the_cluster_does_not(view: FixedView, settings: Settings) -> None:
    assert outcome(decided(POD, view=view, settings=settings)) == ("converted", "none")


def test_the_devices_of_every_container_must_be_there() -> None:
    view = FixedView(classes={"gpu.nvidia.com": DeviceClassState("gpu.nvidia.com")})
    both = pod(container("main", 1), init=[container("first", limits={MIG: 1})])
    assert outcome(decided(POD, view=view)) == ("converted", "none")
    assert decided(both, view=view).why == "there is no DeviceClass mig.nvidia.com; install the DRA driver"


def test_a_quota_for_a_mig_profile_cannot_be_said_by_the_key_of_its_class() -> None:
    by_key = with_quota(MIG, class_keys=frozenset({"mig.nvidia.com"}))
    made = decided(MIGS, view=by_key)
    assert (outcome(made), made.why) == (
        ("unconverted", "quota"),
        f"a ResourceQuota counts {MIG}; which claims of one class cannot be counted by",
    )
    own_class = Policy((Rule(Device("mig-1g.nvidia.com"), (MIG,)),))
    by_own_key = with_quota(MIG, class_keys=frozenset({"mig-1g.nvidia.com"}))
    assert outcome(decided(MIGS, view=by_own_key, policy=own_class)) == ("converted", "none")


def test_a_class_that_carries_another_name_counts_nothing_for_this_one() -> None:
    view = dataclasses.replace(
        with_quota(GPU), classes={"gpu.nvidia.com": DeviceClassState("gpu.nvidia.com", "example.com/gpu")}
    )
    assert outcome(decided(POD, view=view)) == ("unconverted", "quota")


def test_some_things_are_enough_to_be_told_once() -> None:
    view = FixedView(slices=False, classes={"gpu.nvidia.com": DeviceClassState("gpu.nvidia.com", GPU)})
    made = decided(POD, view=view, settings=Settings(drivers=("gpu.nvidia.com", "gpu.example.com")))
    assert outcome(made) == ("converted", "none")
    assert made.notices == (
        f"no ResourceSlice of gpu.nvidia.com or gpu.example.com yet: {PENDING}",
        "DeviceClass gpu.nvidia.com carries nvidia.com/gpu: from Kubernetes 1.36 on its pods run unconverted, too",
    )
    other = {"gpu.nvidia.com": DeviceClassState("gpu.nvidia.com", "example.com/gpu")}
    for classes in (CLASSES, other):
        assert decided(POD, view=FixedView(classes=classes)).notices == ()


def claiming(name: str = "net", source: str = "resourceClaimName") -> Object:
    """Return a pod whose container has a claim of its own and a limit."""
    main = container("main", 1)
    main["resources"]["claims"] = [{"name": name}]
    return pod(main, resourceClaims=[{"name": name, source: "theirs"}])


@pytest.mark.parametrize(
    ("source", "kind"),
    [("resourceClaimName", "ResourceClaim"), ("resourceClaimTemplateName", "ResourceClaimTemplate")],
)
def test_claims_of_the_pods_own_are_looked_up_in_the_namespace_of_the_request(source: str, kind: str) -> None:
    obj = claiming(source=source)
    same = FixedView(claims={(NAMESPACE, kind, "theirs"): frozenset({"gpu.nvidia.com"})})
    made = decided(obj, view=same)
    assert outcome(made) == ("unconverted", "DRA307")
    network = FixedView(claims={(NAMESPACE, kind, "theirs"): frozenset({"nic.example.com"})})
    made = decided(obj, view=network)
    assert (outcome(made), [warning[:6] for warning in made.warnings]) == (
        ("converted", "none"),
        ["DRA107"] if kind == "ResourceClaimTemplate" else [],
    )
    unknown = decided(obj, view=FixedView(claims={("other", kind, "theirs"): frozenset({"gpu.nvidia.com"})}))
    assert outcome(unknown) == ("converted", "none")
    assert "DRA108" in [warning[:6] for warning in unknown.warnings]


class NoLookUp(FixedView):
    """A cluster in which no claim must be looked up."""

    def claim_classes(self, *arguments: Any) -> Any:
        """Fail."""
        raise AssertionError(arguments)


def test_claims_are_looked_up_only_for_containers_that_have_a_limit_as_well() -> None:
    beside = container("beside")
    beside["resources"] = {"claims": [{"name": "net"}]}
    obj = pod(container("main", 1), beside, resourceClaims=[{"name": "net", "resourceClaimName": "theirs"}])
    assert outcome(decided(obj, view=NoLookUp())) == ("converted", "none")
    with pytest.raises(AssertionError):
        decided(claiming(), view=NoLookUp())


def test_what_is_too_long_for_a_name_is_not_looked_up() -> None:
    asked: set[str] = set()

    class Noted(FixedView):
        """A cluster that notes which claims are looked up."""

        def claim_classes(self, namespace: str, refs: Any, timeout: float) -> Any:
            """Note it."""
            asked.update(name for _, name in refs)
            return super().claim_classes(namespace, refs, timeout)

    obj = claiming()
    obj["spec"]["resourceClaims"] += [
        {"name": f"c{length}", "resourceClaimName": "x" * length} for length in (253, 254, 2**20)
    ]
    decided(obj, view=Noted())
    assert asked == {"theirs", "x" * 253}


def test_no_claim_is_looked_up_for_a_namespace_that_has_not_opted_in() -> None:
    view = NoLookUp(namespaces={NAMESPACE: NamespaceState(NAMESPACE)})
    assert outcome(decided(claiming(), view=view)) == ("skipped", "not-opted-in")


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_every_reason_is_of_the_closed_set(operation: str) -> None:
    assert {*CODES, "none", "exception"} <= REASONS
    for obj in (POD, MIGS, claiming(), pod(container("main", "x"))):
        assert decided(obj, operation, old=obj).reason in REASONS
    assert {str(each) for each in Outcome} == {
        "converted", "stripped", "untouched", "skipped", "unconverted", "denied", "error",
    }  # fmt: skip


def test_audit_annotations_name_outcome_reason_and_templates() -> None:
    assert decided(POD).answer().audit == {"outcome": "converted", "reason": "none", "templates": "gpu-91eca471"}
    assert decided(POD, view=FixedView(classes={})).answer().audit == {
        "outcome": "unconverted",
        "reason": "device-class-missing",
    }
    assert Decision(outcome=Outcome.UNTOUCHED).answer().denial is None
