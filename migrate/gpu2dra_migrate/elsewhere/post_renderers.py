"""`postRenderers` of a HelmRelease: a strategic-merge patch gives pods the claims that their chart has no value for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gpu2dra import Object, Operation
from gpu2dra.kinds import pod_specs
from gpu2dra.pointers import add, pointer, remove, value_at
from gpu2dra_migrate.elsewhere.releases import mapping
from gpu2dra_migrate.text.emit import documents_text
from gpu2dra_migrate.text.patch import copied, patched


def claim_patch(target: Mapping[str, str], obj: Object) -> Object:
    """Return the patch that gives the pods of what `target` selects the claims of `obj`, a converted workload.

    Lists of claims are replaced by kustomize, whose schema does not know them, so `obj` must have all of them.
    """
    ((path, spec),) = pod_specs(obj)
    change: Object = {}
    for field in ("initContainers", "containers"):
        users = [
            {"name": each["name"], "resources": {"claims": each["resources"]["claims"]}}
            for each in spec.get(field) or ()
            if mapping(each.get("resources")).get("claims")
        ]
        if users:
            change[field] = users
    change["resourceClaims"] = spec["resourceClaims"]
    for name in reversed(path.split("/")[1:]):
        change = {name: change}
    patch = {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": "any"}, **change}
    return {"target": dict(target), "patch": documents_text([patch])}


def without_claims(values: Object, operations: Sequence[Operation], containers: Sequence[str]) -> list[Operation]:
    """Return the operations on values for a chart that cannot take claims there: what goes, goes; claims do not come.

    `containers` are the pointers of the containers in the values. Resources that become empty go as a whole.
    """
    kept = [each for each in operations if not each["path"].endswith(("/resources/claims", "/pod/resourceClaims"))]
    data = patched(copied(values), [each for each in kept if each["op"] == "remove"])
    for base in containers:
        place = pointer(base, "resources")
        if any(each["path"].startswith(f"{place}/") for each in kept) and not value_at(data, place):
            kept = [each for each in kept if not each["path"].startswith(f"{place}/")]
            kept.append(remove(place))
    return kept


def with_patches(spec: Mapping[str, Any], patches: Sequence[Object]) -> list[Operation]:
    """Return the operations that put `patches` behind those of a HelmRelease, whose `spec` this is."""
    if not patches:
        return []
    base, present = "/spec/postRenderers", spec.get("postRenderers")
    if not isinstance(present, list) or not present:
        return [add(base, [{"kustomize": {"patches": list(patches)}}])]
    last = len(present) - 1
    old = mapping(mapping(present[last]).get("kustomize")).get("patches")
    if isinstance(old, list) and old:
        return [add(pointer(base, last, "kustomize", "patches", "-"), patch) for patch in patches]
    return [add(f"{base}/-", {"kustomize": {"patches": list(patches)}})]
