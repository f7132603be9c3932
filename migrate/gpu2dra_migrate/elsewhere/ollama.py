"""ollama-helm: its switch `ollama.gpu.draEnabled` makes the chart render a claim and its template.

Source: templates/deployment.yaml and resourceclaimtemplate.yaml of otwld/ollama-helm, since 1.25.0; resource.k8s.io/v1
since 1.26.0. The switch asks for `number` devices of `draDriverClass`; a limit in `resources` would stay beside the
claim, so it has to go.
"""

from __future__ import annotations

from gpu2dra import Access, Context, Object, Operation, Options, Plan
from gpu2dra.codes import finding
from gpu2dra.devices import GPU_CLASS
from gpu2dra.pointers import add, replace
from gpu2dra_migrate.elsewhere.outcome import Outcome
from gpu2dra_migrate.elsewhere.releases import Release, mapping
from gpu2dra_migrate.elsewhere.sketch import legacy_keys
from gpu2dra_migrate.elsewhere.switches import NAME, Asked, asked, is_legacy, names_of, without

_GPU = "/ollama/gpu"
_RESOURCE = f"{_GPU}/nvidiaResource"


def ollama(release: Release, options: Options, context: Context) -> Outcome:
    """Return what becomes of the values of ollama."""
    outcome = Outcome(release.tool)
    values, gpu = release.values, mapping(mapping(release.values.get("ollama")).get("gpu"))
    keys = legacy_keys(values.get("resources"), "/resources")
    if is_legacy(gpu.get("nvidiaResource")):
        outcome.seen.add(_RESOURCE)  # told with the switch, or it names what nobody asks for
    if gpu.get("enabled") is not True or (gpu.get("draEnabled") is True and not keys):
        return outcome
    outcome.seen |= keys
    places = keys or {f"{_GPU}/enabled"}
    resource = str(gpu.get("nvidiaResource") or NAME)
    if why := _unclear(values, gpu) or _other_name(keys, resource):
        outcome.refuse(places, "DRA451", f"ollama: {why}.")
        return outcome
    needs = _needs(release, gpu, resource, options, context)
    outcome.findings += needs.told_at(min(places))
    if not needs.made:
        return outcome
    if why := _unequal(gpu, needs, resource):
        outcome.refuse(places, "DRA451", f"ollama: {why}.")
        return outcome
    outcome.add(_switched(values, gpu, needs, keys, min(places)))
    return outcome


def _unclear(values: Object, gpu: Object) -> str:
    """Return why the switch would not give what the values ask for, or nothing."""
    if gpu.get("type", "nvidia") not in ("nvidia", "", None):
        return f"ollama.gpu.type is {gpu['type']}"
    if mapping(gpu.get("mig")).get("enabled"):
        return "ollama.gpu.mig asks for slices, which the chart's own template cannot"
    if mapping(values.get("knative")).get("enabled"):
        return "Knative refuses claims"
    if "resources" in values and not isinstance(values["resources"], dict):
        return "without resources the chart renders neither limit nor claim"
    return ""


def _other_name(keys: set[str], resource: str) -> str:
    others = names_of(keys) - {resource}
    return f"resources ask for {', '.join(sorted(others))}, the switch for {resource}" if others else ""


def _needs(release: Release, gpu: Object, resource: str, options: Options, context: Context) -> Asked:
    """Return what the Deployment asks for that the chart renders without the switch."""
    values = release.values
    resources = mapping(values.get("resources"))
    amount = mapping(resources.get("limits")).get(resource, gpu.get("number") or 1)
    requests = {key: each for key, each in mapping(resources.get("requests")).items() if key == resource}
    pod = {key: values[key] for key in ("nodeSelector", "affinity", "priorityClassName") if values.get(key)}
    if values.get("podSchedulerName"):
        pod["schedulerName"] = values["podSchedulerName"]
    annotations = mapping(values.get("podAnnotations"))
    limited = {"limits": {resource: amount}, "requests": requests}
    return asked(release, limited, pod, annotations, options, context)


def _unequal(gpu: Object, needs: Asked, resource: str) -> str:
    if not needs.plain:
        return f"{resource} needs selectors, which the chart's own template has not"
    if gpu.get("draEnabled") is True and (gpu.get("number") or 1) != needs.count:
        return f"the switch is on for {gpu.get('number') or 1}, beside a limit of {needs.count}"
    return ""


def _switched(values: Object, gpu: Object, needs: Asked, keys: set[str], place: str) -> Plan:
    """Return the plan that sets the switch and takes the limits off."""
    wanted: dict[str, object] = {"draEnabled": True}
    if (gpu.get("number") or 1) != needs.count:
        wanted["number"] = needs.count
    if needs.device != gpu.get("draDriverClass", GPU_CLASS):
        wanted["draDriverClass"] = needs.device
    operations: list[Operation] = [
        (replace if name in gpu else add)(f"{_GPU}/{name}", value)
        for name, value in wanted.items()
        if gpu.get(name) != value
    ]
    operations += without(values, keys)
    (access,) = needs.made.access
    text = (
        f"The values of ollama ask for {needs.count} × {access.legacy[0][0]}: "
        "becomes a claim by the chart's own switch, ollama.gpu.draEnabled."
    )
    reached = Access(_GPU, "ollama", access.legacy, (("gpu", ""),), needs.count)
    return Plan(tuple(operations), (), (finding("DRA001", place, text),), (reached,))
