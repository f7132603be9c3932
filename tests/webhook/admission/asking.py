"""Reviews as the API server sends them, a webhook with a cluster in memory, and what a pod is after its answer."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import jsonpatch

from gpu2dra import Object
from gpu2dra.policy import BUILT_IN, Policy
from gpu2dra_webhook.admission import OPT_IN_LABEL, decide
from gpu2dra_webhook.decisions import Decision
from gpu2dra_webhook.memory import FixedView, MemoryStore
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.mutate import Mutator
from gpu2dra_webhook.ports import NamespaceState, OwnerReference, QuotaState, TemplateStore
from gpu2dra_webhook.reviews import decode
from gpu2dra_webhook.settings import Settings

NAMESPACE = "ml"
UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
SETTINGS = Settings()
OPTED_IN = {OPT_IN_LABEL: "true"}
TIMEOUT = 10.0


def request(pod: Any, operation: str = "CREATE", *, old: Any = None, **fields: Any) -> Object:
    """Return the request of a review about `pod`; `fields` replace or add to its own."""
    return {
        "uid": UID,
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
        "requestResource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": NAMESPACE,
        "operation": operation,
        "userInfo": {"username": "system:serviceaccount:kube-system:replicaset-controller"},
        "object": pod,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
        **fields,
    }


def body(pod: Any, operation: str = "CREATE", *, old: Any = None, **fields: Any) -> bytes:
    """Return the bytes of a review about `pod`."""
    review = {
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": request(pod, operation, old=old, **fields),
    }
    return json.dumps(review).encode()


def decided(
    pod: Any,
    operation: str = "CREATE",
    *,
    old: Any = None,
    view: FixedView | None = None,
    settings: Settings = SETTINGS,
    policy: Policy = BUILT_IN,
    **fields: Any,
) -> Decision:
    """Return the decision about `pod`."""
    review = decode(body(pod, operation, old=old, **fields))
    return decide(review, view or FixedView(), settings, policy, TIMEOUT)


def namespaces(*states: NamespaceState) -> FixedView:
    """Return a cluster with these namespaces."""
    return FixedView(namespaces={state.name: state for state in states})


def in_namespace(**fields: Any) -> FixedView:
    """Return a cluster whose namespace of the reviews has these fields; it has opted in unless they say otherwise."""
    return namespaces(NamespaceState(NAMESPACE, **({"labels": OPTED_IN} | fields)))


def with_quota(*legacy: str, **fields: Any) -> FixedView:
    """Return a cluster with a ResourceQuota on legacy names in the namespace of the reviews."""
    return in_namespace(quota=QuotaState(legacy, **fields))


def outcome(decision: Decision) -> tuple[str, str]:
    """Return outcome and reason."""
    return str(decision.outcome), str(decision.reason)


def patched(pod: Any, response: Object) -> Any:
    """Return `pod` after the patch of a response, applied by the jsonpatch package."""
    if "patch" not in response:
        return pod
    assert response["patchType"] == "JSONPatch"
    return jsonpatch.apply_patch(deepcopy(pod), json.loads(base64.b64decode(response["patch"], validate=True)))


Event = tuple[str, OwnerReference | None, str, str, bool]


@dataclass(slots=True)
class Events:
    """A recorder that keeps what is recorded."""

    seen: list[Event] = field(default_factory=list)

    def record(self, namespace: str, owner: OwnerReference | None, reason: str, message: str, *, warning: bool) -> None:
        """Keep it."""
        self.seen.append((namespace, owner, reason, message, warning))


@dataclass(slots=True)
class Webhook:
    """A mutator with a cluster in memory, asked and heard as the API server would."""

    settings: Settings = SETTINGS
    view: FixedView = field(default_factory=FixedView)
    store: TemplateStore = field(default_factory=MemoryStore)
    policy: Callable[[], Policy] = lambda: BUILT_IN
    events: Events = field(default_factory=Events)
    metrics: Metrics = field(default_factory=Metrics)
    mutator: Mutator = field(init=False)

    def __post_init__(self) -> None:
        self.mutator = Mutator(self.settings, self.view, self.store, self.events, self.metrics, self.policy)

    @property
    def templates(self) -> Mapping[tuple[str, str], Object]:
        """The templates in its store."""
        assert isinstance(self.store, MemoryStore)
        return self.store.templates

    def ask(self, pod: Any, operation: str = "CREATE", *, old: Any = None, **fields: Any) -> Object:
        """Return the response about `pod`, held to what holds for every one."""
        answer = json.loads(self.mutator(body(pod, operation, old=old, **fields), TIMEOUT))
        assert list(answer) == ["apiVersion", "kind", "response"]
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        response: Object = answer["response"]
        assert response["uid"] == UID
        assert all(len(warning) <= 120 for warning in response.get("warnings", ()))
        assert response["allowed"] or "patch" not in response
        return response

    def admit(self, pod: Any, **fields: Any) -> Any:
        """Return `pod` as it is after admission."""
        response = self.ask(pod, **fields)
        assert response["allowed"]
        return patched(pod, response)

    def counted(self) -> list[str]:
        """Return `operation outcome reason` of the answers that were counted."""
        lines = self.metrics.render().decode().splitlines()
        found = [line for line in lines if line.startswith("gpu2dra_admission_requests_total{")]
        return [" ".join(part.split('"')[1] for part in line.split(",")) for line in found]
