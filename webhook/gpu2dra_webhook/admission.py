"""What becomes of one pod: a pure function of the review, the cluster as its caches show it, and the settings.

The order of the questions: is it a pod's creation or update, is its namespace one of ours, does it ask for anything,
does the core convert it, does the cluster take it (`obstacles`). No question before the last two asks the API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from gpu2dra import ApiVersion, Context, Object, Options, Plan, Style, plan
from gpu2dra.converted import ANNOTATION, read_record
from gpu2dra.demand import claim_entries
from gpu2dra.devices import Device
from gpu2dra.names import SUBDOMAIN_LENGTH
from gpu2dra.policy import Policy, Rule
from gpu2dra.resources import legacy_resource
from gpu2dra.skips import CONVERT_ANNOTATION, SYSTEM_NAMESPACES
from gpu2dra_webhook.decisions import (
    Decision,
    Outcome,
    Reason,
    denied,
    failed,
    held_back,
    told,
    unconverted,
    untouched,
)
from gpu2dra_webhook.obstacles import notices, obstacle
from gpu2dra_webhook.ports import NamespaceState, View
from gpu2dra_webhook.reviews import BadReview, GroupVersionKind, GroupVersionResource, Review
from gpu2dra_webhook.settings import Settings

OPT_IN_LABEL = CONVERT_ANNOTATION
"""On a namespace: `"true"` opts in, `"false"` opts out where all others are in."""
NAMESPACE_WAIT = 2.0
"""Seconds that a namespace may take to be seen; the API server has seen it, or it would not have asked."""

_POD = GroupVersionKind("v1", "Pod")
_PODS = GroupVersionResource("v1", "pods")
_KNOWN = ("DRA001",)
"""Findings that say what is done anyway: the answer holds it."""


@dataclass(frozen=True, slots=True)
class _Question:
    """One review with all that the answer depends on."""

    review: Review
    view: View
    settings: Settings
    policy: Policy
    timeout: float

    def plan(self, pod: Object, context: Context) -> Plan:
        version = self.view.api_version() or ApiVersion.V1
        options = Options(
            style=Style.ADMISSION, api_version=version, tolerations=False, elsewhere=False, policy=self.policy
        )
        return plan(pod, options, context)

    def opted_in(self, labels: Mapping[str, str]) -> bool:
        return opted_in(self.settings, labels)


def opted_in(settings: Settings, labels: Mapping[str, str]) -> bool:
    """Whether a namespace with these labels is one whose pods are converted."""
    value = labels.get(OPT_IN_LABEL, "")
    return value != "false" if settings.namespace_mode == "opt-out" else value == "true"


def decide(review: Review, view: View, settings: Settings, policy: Policy, timeout: float) -> Decision:
    """Return what becomes of the pod in `review`; `timeout` is how many seconds there are for the whole answer.

    Raises BadReview for a review that says it is about a pod and holds none.
    """
    if reason := _not_about_a_pod(review):
        return untouched(reason)
    ask = _Question(review, view, settings, policy, timeout)
    if review.namespace in SYSTEM_NAMESPACES | settings.excluded_namespaces | {settings.namespace}:
        return Decision(outcome=Outcome.SKIPPED, reason=Reason.EXCLUDED_NAMESPACE)
    return _update(ask) if review.operation == "UPDATE" else _create(ask)


def _not_about_a_pod(review: Review) -> Reason | None:
    if review.sub_resource:
        return Reason.SUBRESOURCE
    if review.kind != _POD or review.resource != _PODS:
        return Reason.OTHER_KIND
    if review.operation not in ("CREATE", "UPDATE"):
        return Reason.OTHER_OPERATION
    pod = review.object
    if pod is None or pod.get("kind", "Pod") != "Pod" or pod.get("apiVersion", "v1") != "v1":
        raise BadReview("request.object is no Pod of v1, as request.kind says.")
    if not review.namespace:
        raise BadReview("The review has no request.namespace.")
    if _metadata(pod).get("namespace", "") not in ("", None, review.namespace):
        return Reason.NAMESPACE_MISMATCH
    return None


def _metadata(obj: Object | None) -> Object:
    metadata = (obj or {}).get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _annotations(obj: Object | None) -> Object:
    annotations = _metadata(obj).get("annotations")
    return annotations if isinstance(annotations, dict) else {}


def _create(ask: _Question) -> Decision:
    pod = {"apiVersion": "v1", "kind": "Pod"} | (ask.review.object or {})
    context = Context(namespace=ask.review.namespace)
    made = ask.plan(pod, context)
    if not made and all(found.code == "DRA101" for found in made.findings):
        return untouched(Reason.NO_REQUEST)
    namespace = _namespace(ask)
    if isinstance(namespace, Decision):
        return namespace
    if any(found.code == "DRA108" for found in made.findings):
        refs = {(kind, name) for entry in claim_entries(pod["spec"]) for kind, name in _source(entry)}
        known = ask.view.claim_classes(ask.review.namespace, refs, ask.timeout / 2)
        made = ask.plan(pod, replace(context, claim_classes=known))
    if not made:
        return held_back(made.findings)
    if not made.access:
        return Decision(outcome=Outcome.STRIPPED, operations=made.operations)
    return _convert(ask, made, namespace)


def _namespace(ask: _Question) -> NamespaceState | Decision:
    """Return the pod's namespace, or the decision where it forbids a conversion."""
    name = ask.review.namespace
    state = ask.view.namespace(name)
    if state is None or not ask.opted_in(state.labels):
        state = ask.view.wait_for_namespace(name, ask.opted_in, min(NAMESPACE_WAIT, ask.timeout / 4))
    if state is None:
        why = f'namespace "{name}" is not known here yet; try again'
        return failed(Reason.NAMESPACE_UNKNOWN, why, ask.settings.on_api_failure)
    if not ask.opted_in(state.labels):
        return Decision(outcome=Outcome.SKIPPED, reason=Reason.NOT_OPTED_IN)
    if state.terminating:
        return denied(Reason.TERMINATING, f'namespace "{name}" is being deleted; no template can be made in it')
    return state


def _source(entry: Object) -> list[tuple[str, str]]:
    kinds = (("resourceClaimTemplateName", "ResourceClaimTemplate"), ("resourceClaimName", "ResourceClaim"))
    # What is longer is no name, and would go to the API server as it is.
    return [
        (kind, name) for key, kind in kinds if isinstance(name := entry.get(key), str) and len(name) <= SUBDOMAIN_LENGTH
    ]


def _convert(ask: _Question, made: Plan, namespace: NamespaceState) -> Decision:
    if missing := ask.view.synced():
        why = f"the webhook has not seen all of the cluster yet ({', '.join(missing)}); try again"
        return failed(Reason.NOT_SYNCED, why, ask.settings.on_api_failure)
    devices = dict(_devices(ask, made))
    if found := obstacle(devices, ask.view, namespace, ask.settings):
        return unconverted(*found)
    return Decision(
        outcome=Outcome.CONVERTED,
        operations=made.operations,
        templates=made.templates,
        warnings=told(found for found in made.findings if found.code not in _KNOWN),
        notices=tuple(notices(devices, ask.view, ask.settings)),
    )


def _devices(ask: _Question, made: Plan) -> Iterator[tuple[str, Device]]:
    """Yield the legacy names that are taken off, each with the device that stands for it."""
    for access in made.access:
        for name, _ in access.legacy:
            resource = legacy_resource(name)
            device = ask.policy.outcome(resource, ask.review.namespace) if resource else None
            if isinstance(device, Device):
                yield name, device


def _update(ask: _Question) -> Decision:
    """Return the decision for an update: only limits that came back to a pod of ours are taken off (R13).

    What counts is the record that the pod carries already, whatever the update says. What is a reason to leave a new
    pod alone is none here: that it has a node, or that the policy has changed since it was converted.
    """
    new = ask.review.object or {}
    record = _annotations(ask.review.old_object).get(ANNOTATION)
    if not isinstance(record, str):
        return untouched(Reason.NOT_OURS)
    spec = new.get("spec")
    spec = {key: value for key, value in spec.items() if key != "nodeName"} if isinstance(spec, dict) else {}
    metadata = {**_metadata(new), "annotations": {**_annotations(new), ANNOTATION: record}}
    taken_off = {name for amounts in read_record(metadata, spec).containers.values() for name in amounts}
    scheduler = spec.get("schedulerName")
    policy = Policy(
        (Rule(Device("any"), tuple(taken_off)),), frozenset({scheduler} if isinstance(scheduler, str) else ())
    )
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    made = replace(ask, policy=policy).plan(pod, Context(namespace=ask.review.namespace))
    if made and not made.access:
        return Decision(outcome=Outcome.STRIPPED, operations=made.operations)
    if made:
        return unconverted(Reason.NOT_OURS, "the resources of a pod cannot change; recreate it to give it GPUs")
    held = tuple(found for found in made.findings if found.code != "DRA101")
    return held_back(held) if held else untouched(Reason.NO_REQUEST)
