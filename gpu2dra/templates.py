"""ResourceClaimTemplates: their shape in each API version, their names, and how ours are known (R8, R9)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from gpu2dra.allocation import Claim
from gpu2dra.model import ApiVersion, Keep, Object, Options, Style
from gpu2dra.names import DIGEST_LENGTH, SUBDOMAIN_LENGTH, digest, shorten, subdomain

KIND = "ResourceClaimTemplate"
WORKLOAD_ANNOTATION = "gpu2dra.dev/workload"
"""On a template made by the converter: `<Kind>.<group>/<name>` of its workload. It marks the template as ours."""
MANAGED_BY = {"app.kubernetes.io/managed-by": "gpu2dra"}

_KEEP_ANNOTATIONS: Mapping[Keep, tuple[str, str]] = {
    Keep.HELM: ("helm.sh/resource-policy", "keep"),
    Keep.ARGOCD: ("argocd.argoproj.io/sync-options", "Prune=false"),
    Keep.FLUX: ("kustomize.toolkit.fluxcd.io/prune", "disabled"),
}
_DIGEST = re.compile(rf".*-gpu-([0-9a-f]{{{DIGEST_LENGTH}}})(?![^-])")
_ORDERED: tuple[tuple[str, str], ...] = (
    ("helm.sh/hook", "helm.sh/hook-weight"),
    ("argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave"),
)
"""Hook annotation to copy and the order annotation that must come one lower. Deletion policies are not copied: the
template has to outlive the hook's own success, and both tools replace it before the next run by default."""

_COPIED = ("postrenderer.helm.sh/postrender-filename",)
"""By it Helm knows which file of the chart a document belongs to after a post-renderer; it takes it off again."""


class Workload(NamedTuple):
    """What a template takes over from the object whose pods use it."""

    group: str
    kind: str
    name: str
    namespace: str
    metadata: Mapping[str, Any]

    @property
    def reference(self) -> str:
        """The value of WORKLOAD_ANNOTATION."""
        return f"{self.kind}.{self.group}/{self.name}" if self.group else f"{self.kind}/{self.name}"


def build(claim: Claim, workload: Workload, options: Options) -> Object:
    """Return the ResourceClaimTemplate for one claim of the pods of `workload`."""
    spec: Object = {"spec": {"devices": {"requests": [r.device.request(r.name, r.count) for r in claim.requests]}}}
    metadata: Object
    if options.style is Style.ADMISSION:
        metadata = {"name": f"gpu-{digest(canonical_spec(spec))}", "labels": dict(MANAGED_BY)}
    else:
        tail = f"-gpu-{_workload_digest(workload.group, workload.kind, spec)}"
        metadata = {"name": shorten(subdomain(workload.name), SUBDOMAIN_LENGTH, tail)}
        if workload.namespace:
            metadata["namespace"] = workload.namespace
        if isinstance(labels := workload.metadata.get("labels"), dict) and labels:
            metadata["labels"] = dict(labels)
        metadata["annotations"] = {WORKLOAD_ANNOTATION: workload.reference} | _annotations(workload.metadata, options)
    return {
        "apiVersion": str(options.api_version), "kind": KIND, "metadata": metadata,
        "spec": _in_version(spec, options.api_version),
    }  # fmt: skip


def fitting_name(template: Object) -> str | None:
    """Return the name that the spec of a template of ours should have, or None when the object is not one (R8).

    The caller compares it with metadata.name: they differ when someone edited the spec by hand.
    """
    metadata = template.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    reference = annotations.get(WORKLOAD_ANNOTATION) if isinstance(annotations, dict) else None
    spec, name = template.get("spec"), metadata.get("name") if isinstance(metadata, dict) else None
    if template.get("kind") != KIND or not isinstance(reference, str) or not isinstance(spec, dict):
        return None
    group_kind, slash, _ = reference.partition("/")
    kind, _, group = group_kind.partition(".")
    if not slash or not isinstance(name, str):
        return None
    try:
        expected = _workload_digest(group, kind, spec)
    except (TypeError, ValueError, RecursionError):
        return None  # a spec that is no JSON (keys that are no texts, cycles) never came from here
    if found := _DIGEST.search(name):  # what a nameSuffix of kustomize has put behind it stays
        return f"{name[: found.start(1)]}{expected}{name[found.end(1) :]}"
    return shorten(name, SUBDOMAIN_LENGTH, f"-gpu-{expected}")


def canonical_spec(spec: Object) -> Object:
    """Return the `spec` of a template in its resource.k8s.io/v1 form with the API's defaults filled in.

    Source: SetDefaults_ExactDeviceRequest, SetDefaults_DeviceSubRequest (allocationMode ExactCount, count 1) and
    SetDefaults_DeviceToleration (operator Equal) in pkg/apis/resource/v1/defaults.go. A v1beta1 request is flat.
    Metadata without values is left out: the server gives back `metadata: {}` for a template that has none.
    """
    inner = spec.get("spec")
    if _is_blank(spec.get("metadata")):
        spec = {key: value for key, value in spec.items() if key != "metadata"}
    devices = inner.get("devices") if isinstance(inner, dict) else None
    requests = devices.get("requests") if isinstance(devices, dict) else None
    if not isinstance(inner, dict) or not isinstance(devices, dict) or not isinstance(requests, list):
        return spec
    canonical = [_canonical_request(request) if isinstance(request, dict) else request for request in requests]
    return {**spec, "spec": {**inner, "devices": {**devices, "requests": canonical}}}


def _is_blank(metadata: object) -> bool:
    """Whether the metadata of the claims to be made says nothing: `{}`, or up to 1.33 `{creationTimestamp: null}`."""
    return metadata is None or (isinstance(metadata, dict) and not any(metadata.values()))


def _canonical_request(request: Object) -> Object:
    if request.get("deviceClassName") == "" and "firstAvailable" in request:  # v1beta1, as the server gives it back
        request = {k: v for k, v in request.items() if k != "deviceClassName"}
    if "deviceClassName" in request:  # v1beta1
        request = {"name": request.get("name"), "exactly": {k: v for k, v in request.items() if k != "name"}}
    result = dict(request)
    if isinstance(exactly := request.get("exactly"), dict):
        result["exactly"] = _with_defaults(exactly)
    if isinstance(alternatives := request.get("firstAvailable"), list):
        result["firstAvailable"] = [_with_defaults(a) if isinstance(a, dict) else a for a in alternatives]
    return result


def _with_defaults(request: Object) -> Object:
    result = {"allocationMode": "ExactCount", **request}
    if result["allocationMode"] == "ExactCount":
        result["count"] = result.get("count") or 1  # the server reads 0 as absent
    if isinstance(tolerations := request.get("tolerations"), list):
        result["tolerations"] = [{"operator": "Equal", **t} if isinstance(t, dict) else t for t in tolerations]
    return result


def _workload_digest(group: str, kind: str, spec: Object) -> str:
    """Digest over spec, group and kind: a Deployment and a Job of one name must not make one object twice (R8)."""
    return digest({"group": group, "kind": kind, "spec": canonical_spec(spec)})


def _in_version(spec: Object, version: ApiVersion) -> Object:
    if version is not ApiVersion.V1BETA1:
        return spec
    requests = [{"name": r["name"], **r["exactly"]} for r in spec["spec"]["devices"]["requests"]]
    return {"spec": {"devices": {"requests": requests}}}


def _annotations(metadata: Mapping[str, Any], options: Options) -> dict[str, str]:
    own = metadata.get("annotations")
    own = own if isinstance(own, dict) else {}
    result: dict[str, str] = {key: own[key] for key in _COPIED if isinstance(own.get(key), str)}
    for hook, order in _ORDERED:
        if isinstance(own.get(hook), str):
            result[hook] = own[hook]
        if hook in result or order in own:
            result[order] = _one_lower(own.get(order, "0"))
    result.update(_KEEP_ANNOTATIONS[keep] for keep in options.keep if keep is not Keep.NONE)
    return result


def _one_lower(order: object) -> str:
    """Return a weight or wave one below `order`; both tools read what is not a whole number as 0."""
    try:
        return str(int(str(order)) - 1)
    except ValueError:
        return "-1"
