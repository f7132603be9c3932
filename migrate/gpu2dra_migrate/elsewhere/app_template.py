"""bjw-s' app-template: its values name each controller and container, so claims go where the limits stand.

Source: charts/library/common of bjw-s-labs/helm-charts. The pod option `resourceClaims` is there since common and
app-template 5.0.0 (schemas/pod.json, templates/lib/pod/_spec.tpl); before that a post-renderer has to bring it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpu2dra import Context, Object, Options
from gpu2dra.pointers import pointer
from gpu2dra_migrate.elsewhere.outcome import Outcome, too_old
from gpu2dra_migrate.elsewhere.post_renderers import claim_patch, without_claims
from gpu2dra_migrate.elsewhere.releases import Release, mapping
from gpu2dra_migrate.elsewhere.sketch import Sketch, legacy_keys, metadata_of, plan_sketch

SINCE = (5, 0, 0)
_LABELLED = 4
"""The major version from which on objects are labelled with app.kubernetes.io/controller; older labels vary."""
_KINDS = {
    "deployment": ("apps/v1", "Deployment"), "statefulset": ("apps/v1", "StatefulSet"),
    "daemonset": ("apps/v1", "DaemonSet"), "cronjob": ("batch/v1", "CronJob"), "job": ("batch/v1", "Job"),
}  # fmt: skip
_LISTS = ("resourceClaims", "tolerations")
_OPTIONS = ("nodeSelector", "affinity", "priorityClassName", "schedulerName", "runtimeClassName")
_CONTAINER = ("resources", "env", "restartPolicy")
_DEFAULTS = "defaultContainerOptions"
_Container = tuple[str, str, str, Object]
"""Field (containers, initContainers), pointer in the values, name and values of a container."""


def app_template(release: Release, options: Options, context: Context) -> Outcome:
    """Return what becomes of the values of an app-template; older ones get a patch where it can be aimed."""
    outcome = Outcome(release.tool)
    controllers = dict(_controllers(release.values))
    own = release.version is not None and release.version.low >= SINCE
    for name, controller in controllers.items():
        containers = list(_containers(controller, pointer("/controllers", name)))
        keys: set[str] = set()
        for _, place, _, container in containers:
            keys |= legacy_keys(container.get("resources"), f"{place}/resources")
        if not keys:
            continue
        outcome.seen |= keys
        if why := _unclear(release.values, controller, containers):
            outcome.refuse(keys, "DRA451", f'app-template: controller "{name}" {why}.')
            continue
        sketch = _sketch(release, name, containers, len(controllers))
        made, after = plan_sketch(sketch, options, context)
        if own or not made.access:
            outcome.add(made)
            continue
        target = _target(release, name, str(after["kind"]), controllers)
        if target is None:
            outcome.refuse(keys, "DRA450", too_old(release, SINCE))
            continue
        places = [place for _, place, _, _ in containers]
        outcome.add(made, without_claims(release.values, made.operations, places))
        outcome.patches.append(claim_patch(target, after))
    return outcome


def _controllers(values: Object) -> Iterator[tuple[str, Object]]:
    for name, controller in mapping(values.get("controllers")).items():
        if isinstance(controller, dict) and controller.get("enabled", True) is not False:
            yield str(name), controller


def _containers(controller: Object, base: str) -> Iterator[_Container]:
    for field in ("initContainers", "containers"):
        for name, container in mapping(controller.get(field)).items():
            if isinstance(container, dict) and container.get("enabled", True) is not False:
                yield field, pointer(base, field, name), str(container.get("nameOverride") or name), container


def _type(controller: Object) -> str:
    return str(controller.get("type", "deployment"))


def _unclear(values: Object, controller: Object, containers: list[_Container]) -> str:
    """Return why it is not clear what pods the values of a controller make, or nothing."""
    if _type(controller) not in _KINDS:
        return f"is of type {controller['type']}, which is none that is known"
    shared = [mapping(each.get(_DEFAULTS)).get("resources") for each in (values, controller)]
    if any(legacy_keys(each, "") for each in shared):
        return f"gives GPUs by {_DEFAULTS}, too: write them at the containers"
    for field, _, name, container in containers:
        asks = bool(legacy_keys(container.get("resources"), ""))
        if asks and "{{" in name:
            return "has a container whose name is a template"
        if asks and field == "initContainers" and container.get("restartPolicy") == "Always":
            return "has a sidecar with a GPU, whose place among the init containers the chart decides"
        if asks and any(shared):
            return f"shares resources by {_DEFAULTS}: write them at the containers"
    return ""


def _sketch(release: Release, name: str, containers: list[_Container], count: int) -> Sketch:
    """Return the workload of a controller as the chart would render it, as far as it matters."""
    controller = release.values["controllers"][name]
    api, kind = _KINDS[_type(controller)]
    base, default = pointer("/controllers", name, "pod"), mapping(release.values.get("defaultPodOptions"))
    own = mapping(controller.get("pod"))
    template = "/spec/jobTemplate/spec/template" if kind == "CronJob" else "/spec/template"
    spec: Object = {}
    places: dict[str, str] = {}
    inherited: dict[str, list[Any]] = {}
    for field, place, shown, container in containers:
        listed = spec.setdefault(field, [])
        places[f"{template}/spec/{field}/{len(listed)}"] = place
        listed.append({"name": shown} | {key: container[key] for key in _CONTAINER if key in container})
    for option in (*_LISTS, *_OPTIONS):
        value = own.get(option) or default.get(option)
        if value:
            spec[option] = value
        where = base if option in _LISTS or own.get(option) else "/defaultPodOptions"
        places[f"{template}/spec/{option}"] = pointer(where, option)
        if option in _LISTS and isinstance(value, list) and not own.get(option):
            inherited[f"{template}/spec/{option}"] = value
    annotations = mapping(default.get("annotations")) | mapping(own.get("annotations"))
    pod: Object = {"metadata": {"annotations": annotations}, "spec": spec}
    for step in reversed(template.split("/")[1:]):
        pod = {step: pod}
    metadata = metadata_of(release, release.name if count == 1 else f"{release.name}-{name}")
    return Sketch({"apiVersion": api, "kind": kind, "metadata": metadata, **pod}, places, inherited)


def _target(release: Release, name: str, kind: str, controllers: dict[str, Object]) -> dict[str, str] | None:
    """Return what a patch has to be aimed at, so that it meets this controller and no other; None if nobody knows."""
    if not release.patches:
        return None
    target = {"kind": kind}
    if release.version and release.version.low[0] >= _LABELLED:
        target["labelSelector"] = f"app.kubernetes.io/controller={name}"
    else:
        kinds = [_KINDS.get(_type(each), ("", ""))[1] for each in controllers.values()]
        if kinds.count(kind) > 1:
            return None
    return target
