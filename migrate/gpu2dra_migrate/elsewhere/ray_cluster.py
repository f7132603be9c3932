"""KubeRay's ray-cluster chart: head and workers take lists of claims beside their resources.

Source: helm-chart/ray-cluster of ray-project/kuberay (values and templates/raycluster-cluster.yaml), since 1.6.0. What
Ray is told of GPUs comes from the limit, so `rayStartParams.num-gpus` has to say it (see `gpu2dra.operators`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu2dra import Context, Object, Options
from gpu2dra.pointers import pointer
from gpu2dra_migrate.elsewhere.outcome import Outcome
from gpu2dra_migrate.elsewhere.releases import Release, mapping
from gpu2dra_migrate.elsewhere.sketch import Sketch, legacy_keys, metadata_of, plan_sketch

_POD = (
    "initContainers", "resourceClaims", "tolerations", "nodeSelector", "affinity", "priorityClassName", "priority",
    "runtimeClassName",
)  # fmt: skip


def ray_cluster(release: Release, options: Options, context: Context) -> Outcome:
    """Return what becomes of the values of a ray-cluster."""
    outcome = Outcome(release.tool)
    groups = dict(_groups(release.values))
    for base, group in groups.items():
        outcome.seen |= legacy_keys(group.get("resources"), f"{base}/resources")
        for field in ("initContainers", "sidecarContainers"):
            for index, container in enumerate(_list(group.get(field))):
                place = pointer(base, field, index, "resources")
                outcome.seen |= legacy_keys(mapping(container).get("resources"), place)
    if not outcome.seen:
        return outcome
    made, _ = plan_sketch(_sketch(release, groups), options, context)
    outcome.add(made)
    return outcome


def _groups(values: Object) -> Iterator[tuple[str, Object]]:
    """Yield pointer and values of the head and of each group of workers that is not disabled."""
    for name in ("head", "worker"):
        group = values.get(name)
        if isinstance(group, dict) and group.get("disabled") is not True:
            yield pointer("", name), group
    for name, group in mapping(values.get("additionalWorkerGroups")).items():
        if isinstance(group, dict) and group.get("disabled") is not True:
            yield pointer("/additionalWorkerGroups", name), group


def _sketch(release: Release, groups: dict[str, Object]) -> Sketch:
    spec: Object = {"workerGroupSpecs": []}
    places: dict[str, str] = {}
    for base, group in groups.items():
        if base == "/head":
            spec["headGroupSpec"] = _group(group, "ray-head")
            _note(places, "/spec/headGroupSpec", base, group)
        else:
            _note(places, f"/spec/workerGroupSpecs/{len(spec['workerGroupSpecs'])}", base, group)
            spec["workerGroupSpecs"].append(_group(group, "ray-worker"))
    metadata = metadata_of(release, release.name)
    return Sketch({"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": metadata, "spec": spec}, places)


def _group(group: Object, name: str) -> Object:
    """Return a group of a RayCluster as the chart renders it, as far as it matters."""
    first = {"name": name} | {key: group[key] for key in ("resources",) if isinstance(group.get(key), dict)}
    spec: Object = {"containers": [first, *_list(group.get("sidecarContainers"))]}
    spec |= {key: group[key] for key in _POD if group.get(key)}
    result: Object = {"template": {"metadata": {"annotations": mapping(group.get("annotations"))}, "spec": spec}}
    parameters = mapping(group.get("initArgs")) | mapping(group.get("rayStartParams"))
    if parameters or "rayStartParams" in group:
        result["rayStartParams"] = parameters
    return result


def _note(places: dict[str, str], at: str, base: str, group: Object) -> None:
    """Add where the parts of the group at `at` stand in the values, below `base`."""
    pod = f"{at}/template/spec"
    places[at] = base
    places[f"{pod}/containers/0"] = base
    for number in range(len(_list(group.get("sidecarContainers")))):
        places[f"{pod}/containers/{number + 1}"] = pointer(base, "sidecarContainers", number)
    for field in _POD:
        places[f"{pod}/{field}"] = pointer(base, field)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
