"""llm-d-modelservice: its switch `accelerator.dra` makes a claim and a template for each role.

Source: _helpers.tpl, _helpers-dra.tpl and resource-claim-template.yaml of llm-d-incubation/llm-d-modelservice.
The count comes from the parallelism and all containers of a role share one claim; a limit of the user stays beside it.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpu2dra import Access, ApiVersion, Context, Object, Operation, Options, Plan
from gpu2dra.codes import finding
from gpu2dra.devices import GPU_CLASS
from gpu2dra.podspec import tolerating
from gpu2dra.pointers import add, pointer, replace
from gpu2dra_migrate.elsewhere.outcome import Outcome
from gpu2dra_migrate.elsewhere.releases import Release, mapping
from gpu2dra_migrate.elsewhere.sketch import legacy_keys
from gpu2dra_migrate.elsewhere.switches import NAME, Asked, asked, names_of, without

_ROLES = ("decode", "prefill")
_SIMULATOR = "llm-d-inference-sim"


def modelservice(release: Release, options: Options, context: Context) -> Outcome:
    """Return what becomes of the values of an llm-d-modelservice."""
    outcome = Outcome(release.tool)
    values = release.values
    roles = [role for role in _ROLES if mapping(values.get(role)).get("create", True) is not False]
    keys = {role: _keys(mapping(values.get(role)), role) for role in roles}
    outcome.seen = outcome.seen.union(*keys.values())
    accelerator = mapping(values.get("accelerator"))
    by_itself = accelerator.get("dra") is not True and accelerator.get("type", "nvidia") == "nvidia"
    if not roles or not (outcome.seen or by_itself):
        return outcome
    places = outcome.seen or {f"/{roles[0]}"}
    if why := _version(options) or _unclear(values, roles):
        outcome.refuse(places, "DRA451", f"llm-d-modelservice: {why}.")
        return outcome
    needs: dict[str, Asked] = {}
    for role in roles:
        needs[role] = _needs(release, role, options, context)
        outcome.findings += needs[role].told_at(min(keys[role], default=f"/{role}"))
    if not all(each.made for each in needs.values()):
        return outcome
    if why := _unequal(values, needs):
        outcome.refuse(places, "DRA451", f"llm-d-modelservice: {why}.")
        return outcome
    outcome.add(_switched(release, needs, keys, options))
    return outcome


def _version(options: Options) -> str:
    if options.api_version is ApiVersion.V1:
        return ""
    return f"its templates are of {ApiVersion.V1}, which Kubernetes serves since 1.34"


def _keys(config: Object, role: str) -> set[str]:
    return {
        key for place, container in _containers(config, role) for key in legacy_keys(container.get("resources"), place)
    }


def _containers(config: Object, role: str) -> Iterator[tuple[str, Object]]:
    listed = config.get("containers")
    for number, each in enumerate(listed if isinstance(listed, list) else ()):
        yield pointer("", role, "containers", number, "resources"), mapping(each)


def _unclear(values: Object, roles: list[str]) -> str:
    """Return why the switch would not give what the values ask for, or nothing."""
    accelerator = mapping(values.get("accelerator"))
    if mapping(values.get("requester")).get("enable"):
        return "the requester asks for GPUs by a limit of its own"
    if mapping(accelerator.get("resources")).get("nvidia", NAME) != NAME:
        return f"accelerator.resources.nvidia is {mapping(accelerator['resources'])['nvidia']}"
    for role in roles:
        config = mapping(values.get(role))
        containers = [each for _, each in _containers(config, role)]
        own = {**accelerator, **mapping(config.get("accelerator"))}
        if own.get("type", "nvidia") != "nvidia":
            return f"the accelerator of {role} is {own['type']}"
        if len(containers) != 1:
            found = f"{len(containers)} containers" if containers else "no container in these values"
            return f"{role} has {found}, and the switch gives one claim to all of them"
        if _SIMULATOR in str(containers[0].get("image")):
            return f"{role} runs a simulator, which asks for no GPU and would get one"
        if others := names_of(_keys(config, role)) - {NAME}:
            return f"{role} asks for {', '.join(sorted(others))}"
        if any(mapping(each).get("resources") for each in config.get("initContainers") or ()):
            return f"{role} has init containers with resources of their own"
    return ""


def _needs(release: Release, role: str, options: Options, context: Context) -> Asked:
    """Return what the pods of a role ask for that the chart renders without the switch."""
    config = mapping(release.values.get(role))
    ((_, container),) = _containers(config, role)
    resources = mapping(container.get("resources"))
    amount = mapping(resources.get("limits")).get(NAME, _workers(config))
    requests = {key: each for key, each in mapping(resources.get("requests")).items() if key == NAME}
    pod = {key: config[key] for key in ("nodeSelector", "affinity", "priorityClassName") if config.get(key)}
    scheduler = config.get("schedulerName") or release.values.get("schedulerName")
    if scheduler:
        pod["schedulerName"] = scheduler
    annotations = mapping(config.get("podAnnotations"))
    return asked(release, {"limits": {NAME: amount}, "requests": requests}, pod, annotations, options, context)


def _workers(config: Object) -> int:
    """Return the GPUs of a worker: tensor and local data parallelism; the chart's defaults are 1."""
    parallelism = mapping(config.get("parallelism"))
    tensor, local = (parallelism.get(name) or 1 for name in ("tensor", "dataLocal"))
    return tensor * local if isinstance(tensor, int) and isinstance(local, int) else 0


def _unequal(values: Object, needs: dict[str, Asked]) -> str:
    """Return why the claims of the switch would be others than what is asked for, or nothing."""
    own = mapping(mapping(mapping(values.get("accelerator")).get("resourceClaimTemplates")).get("nvidia"))
    for role, each in needs.items():
        count = own.get("count", _workers(mapping(values.get(role))))
        if each.count != count:
            return f"{role} asks for {each.count} and would get {count}, by its parallelism"
        if not each.plain:
            return "the policy asks for selectors"
    if len({each.device for each in needs.values()}) > 1:
        return "the roles need devices of several classes"
    return ""


def _switched(release: Release, needs: dict[str, Asked], keys: dict[str, set[str]], options: Options) -> Plan:
    """Return the plan that sets the switch and takes the limits off.

    Templates are named after the chart alone, so a second release in the namespace would collide: they get a name.
    """
    values = release.values
    accelerator = mapping(values.get("accelerator"))
    own = mapping(mapping(accelerator.get("resourceClaimTemplates")).get("nvidia"))
    operations: list[Operation] = []
    if accelerator.get("dra") is not True:
        operations.append((replace if "dra" in accelerator else add)("/accelerator/dra", True))
    place = "/accelerator/resourceClaimTemplates/nvidia"
    if "name" not in own and release.name:
        operations.append(add(f"{place}/name", f"{release.name}-gpu"))
    device = next(iter(needs.values())).device
    if device != own.get("class", GPU_CLASS):
        operations.append((replace if "class" in own else add)(f"{place}/class", device))
    findings, access = [], []
    for role, each in needs.items():
        config = mapping(values.get(role))
        if "dra" in mapping(config.get("accelerator")) and config["accelerator"]["dra"] is not True:
            operations.append(replace(f"/{role}/accelerator/dra", True))
        operations += without(values, keys[role])
        if options.tolerations:
            operations += tolerating(pointer("", role), config.get("tolerations"), [NAME])
        text = (
            f"The values of llm-d-modelservice ask for {each.count} × {NAME} in {role}: "
            "becomes a claim by the chart's own switch, accelerator.dra."
        )
        findings.append(finding("DRA001", min(keys[role], default=f"/{role}"), text))
        (reached,) = each.made.access
        access.append(Access(f"/{role}", role, reached.legacy, (("gpu", ""),), each.count))
    return Plan(tuple(operations), (), tuple(findings), tuple(access))
