"""Small builders of Kubernetes objects for the tests of the core, and what an object is once its plan is applied."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import jsonpatch

from gpu2dra import Context, Object, Options, Plan, Style, plan

GPU = "nvidia.com/gpu"
MIG = "nvidia.com/mig-1g.5gb"
GPU_CLASS = "gpu.nvidia.com"
FILE = Options()
ADMISSION = Options(style=Style.ADMISSION)


def container(name: str = "main", gpu: Any = None, *, limits: Object | None = None, **fields: Any) -> Object:
    """Return a container with `limits`, where `gpu` is the amount of nvidia.com/gpu."""
    limits = (limits or {}) | ({GPU: gpu} if gpu is not None else {})
    return (
        {"name": name, "image": "registry.example.com/app:1"}
        | ({"resources": {"limits": limits}} if limits else {})
        | fields
    )


def sidecar(name: str, gpu: Any = None) -> Object:
    """Return an init container that keeps running."""
    return container(name, gpu, restartPolicy="Always")


def pod(
    *containers: Object, init: list[Object] | None = None, name: str = "train", meta: Any = None, **spec: Any
) -> Object:
    """Return a Pod; `meta` is added to its metadata, `spec` to its PodSpec."""
    inits = {"initContainers": init} if init else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name} | (meta or {}),
        "spec": {**inits, "containers": list(containers), **spec},
    }


def deployment(
    *containers: Object, name: str = "web", meta: Any = None, kind: str = "Deployment", **spec: Any
) -> Object:
    """Return a workload of apps/v1 (batch/v1 for a Job) around a pod template."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": list(containers), **spec}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name} | (meta or {}),
        "spec": {"template": template},
    }


def planned(obj: Any, options: Options = FILE, context: Context | None = None) -> Plan:
    """Return the plan of `obj`, held to what holds for every plan: the object is unchanged, findings are whole."""
    before = deepcopy(obj)
    made = plan(obj, options, context or Context())
    assert obj == before
    assert all(found.message and found.path[:1] in ("", "/") for found in made.findings)
    return made


def apply(obj: Any, made: Plan) -> Any:
    """Return `obj` after the operations of its plan, applied by the jsonpatch package."""
    return jsonpatch.apply_patch(deepcopy(obj), list(made.operations))


def codes(made: Plan) -> list[str]:
    """Return the codes of the findings in their order."""
    return [found.code for found in made.findings]


def spots(made: Plan) -> list[tuple[str, str]]:
    """Return code and path of each finding."""
    return [(found.code, found.path) for found in made.findings]


def counts(made: Plan) -> list[dict[str, Any]]:
    """Return the count per request name of each template, in order, whatever API version it is written in."""
    templates = [template["spec"]["spec"]["devices"]["requests"] for template in made.templates]
    return [{r["name"]: r.get("exactly", r)["count"] for r in requests} for requests in templates]


def reached(made: Plan) -> dict[str, Any]:
    """Return how many devices each container reaches."""
    return {access.container: access.devices for access in made.access}
