"""Legacy workloads as people write them, and their conversion by the real `plan`, ready for an API server."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jsonpatch

from controlplane import gpus
from controlplane.client import Object
from controlplane.testbed import Cluster
from gpu2dra import Context, Options, Plan, Style, plan

GPU = "nvidia.com/gpu"
FILE = Options()
ADMISSION = Options(style=Style.ADMISSION, elsewhere=False)
_IMAGE = "registry.example/app:1"
_NOTHING_KNOWN = Context()


def container(name: str, amount: object = None, resource: str = GPU, *, sidecar: bool = False, **fields: Any) -> Object:
    """Return a container; `amount` is its limit, none by default. A sidecar is an init container that stays."""
    limits = {} if amount is None else {"resources": {"limits": {resource: amount}}}
    stays = {"restartPolicy": "Always"} if sidecar else {}
    return {"name": name, "image": _IMAGE, **limits, **stays, **fields}


def pod(name: str, *apps: Object, init: Iterable[Object] = (), **spec: Any) -> Object:
    """Return a Pod with these containers, and these init containers and sidecars in starting order."""
    starting = {"initContainers": list(init)} if init else {}
    metadata = {"name": name}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {**starting, "containers": [*apps], **spec},
    }


def one_gpu(name: str, amount: object = 1, **spec: Any) -> Object:
    """Return a Pod whose only container asks for GPUs."""
    return pod(name, container("main", amount), **spec)


def deployment(name: str, amount: object, replicas: int = 1) -> Object:
    """Return a Deployment whose pods have one container that asks for GPUs."""
    made = one_gpu(name, amount)
    template = {"metadata": {"labels": {"app": name}}, "spec": made["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def on_node(obj: Object, node: str) -> Object:
    """Return a copy of a Pod that only one node may take, by a nodeSelector: nodeName would bypass the scheduler."""
    return {**obj, "spec": {**obj["spec"], "nodeSelector": {gpus.HOSTNAME: node}}}


@dataclass(frozen=True, slots=True)
class Converted:
    """An object after its conversion, and what has to be there before it."""

    object: Object
    templates: tuple[Object, ...]
    plan: Plan

    @property
    def codes(self) -> list[str]:
        """The codes of the findings, in order."""
        return [finding.code for finding in self.plan.findings]


def convert(obj: Object, options: Options = FILE, context: Context = _NOTHING_KNOWN) -> Converted:
    """Return the conversion of an object, its patch applied; AssertionError when `plan` converts nothing."""
    made = plan(obj, options, context)
    assert made.operations, [finding.message for finding in made.findings]
    return Converted(jsonpatch.apply_patch(obj, [dict(step) for step in made.operations]), made.templates, made)


def codes(obj: Object, options: Options = FILE, context: Context = _NOTHING_KNOWN) -> list[str]:
    """Return the codes of what `plan` says about an object that it must not convert."""
    made = plan(obj, options, context)
    assert not made.operations, made.operations
    return [finding.code for finding in made.findings]


def install(
    cluster: Cluster, obj: Object, options: Options | None = None, context: Context = _NOTHING_KNOWN
) -> Converted:
    """Convert an object for the test's namespace and create its templates, those excepted that are there already."""
    made = convert(cluster.here(obj), options or FILE, context)
    for template in made.templates:
        answer = cluster.client.try_create(cluster.here(template))
        assert answer.accepted or answer.object["reason"] == "AlreadyExists", answer
    return made


def template(name: str, *requests: Object) -> Object:
    """Return a ResourceClaimTemplate that somebody else wrote."""
    spec = {"spec": {"devices": {"requests": list(requests)}}}
    metadata = {"name": name}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec}


def request(name: str, count: int = 1, device_class: str = "gpu.nvidia.com", **fields: Any) -> Object:
    """Return a device request in the shape of resource.k8s.io/v1."""
    return {"name": name, "exactly": {"deviceClassName": device_class, "count": count, **fields}}


def claiming(name: str, template_name: str, *uses: Object, **spec: Any) -> Object:
    """Return a Pod that names a template and whose only container has these entries in `resources.claims`."""
    main = container("main") | {"resources": {"claims": [copy.deepcopy(use) for use in uses] or [{"name": "gpu"}]}}
    entry = {"name": "gpu", "resourceClaimTemplateName": template_name}
    return pod(name, main, resourceClaims=[entry], **spec)


def containers(obj: Object) -> list[Any]:
    """Return the init containers and containers of a Pod, in this order."""
    return [*obj["spec"].get("initContainers", []), *obj["spec"]["containers"]]


def names_a_gpu(obj: Object) -> bool:
    """Return whether any container has a limit or request for an NVIDIA resource."""
    resources = [each.get("resources", {}) for each in containers(obj)]
    return any(key.startswith("nvidia.com/") for each in resources for part in ("limits", "requests")
               for key in each.get(part, {}))  # fmt: skip
