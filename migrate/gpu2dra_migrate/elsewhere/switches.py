"""Charts that make claims and templates themselves once a switch is on: what the switch has to give, by the core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpu2dra import Context, Finding, Object, Operation, Options, Plan, plan
from gpu2dra.devices import GPU_CLASS
from gpu2dra.pointers import pointer, remove, segments, value_at
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.elsewhere.releases import Release, mapping
from gpu2dra_migrate.elsewhere.sketch import metadata_of

NAME = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the pods of a chart ask for without its switch: `made` is the core's plan, `device` and `count` follow."""

    made: Plan
    device: str = ""
    count: Any = 0
    plain: bool = True

    def told_at(self, place: str) -> Iterator[Finding]:
        """Yield what the core tells about such pods, at `place` in the values, but for the conversion itself."""
        yield from (each._replace(path=place) for each in self.made.findings if each.code != "DRA001")


def asked(
    release: Release, resources: Object, pod: Object, annotations: Object, options: Options, context: Context
) -> Asked:
    """Return what one container with these resources, in a Deployment of the release, asks for.

    `pod` holds the fields of the PodSpec beside the container that are known.
    """
    container = {"name": release.name or "main", "resources": resources}
    metadata = metadata_of(release, release.name or "main")
    spec = {"template": {"metadata": {"annotations": annotations}, "spec": {**pod, "containers": [container]}}}
    made = plan({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}, options, context)
    if not made.templates:
        return Asked(made)
    (request,) = made.templates[0]["spec"]["spec"]["devices"]["requests"]
    exactly = mapping(request.get("exactly", request))
    return Asked(made, str(exactly.get("deviceClassName", GPU_CLASS)), exactly.get("count"), "selectors" not in exactly)


def without(values: Object, keys: Iterable[str]) -> list[Operation]:
    """Return the operations that take these keys of limits and requests off; a map that becomes empty goes too."""
    operations: list[Operation] = []
    gone: dict[str, list[str]] = {}
    for key in sorted(keys):
        gone.setdefault(key.rpartition("/")[0], []).append(key)
    emptied = {section for section, found in gone.items() if len(found) == len(value_at(values, section))}
    for section, found in gone.items():
        resources = section.rpartition("/")[0]
        if all(pointer(resources, name) in emptied for name in value_at(values, resources)):
            operations += [remove(resources)] * (remove(resources) not in operations)
        elif section in emptied:
            operations.append(remove(section))
        else:
            operations += [remove(key) for key in found]
    return operations


def names_of(keys: Iterable[str]) -> set[str]:
    """Return the resource names that pointers of limits and requests end in."""
    return {segments(key)[-1] for key in keys}


def is_legacy(name: object) -> bool:
    """Whether a value is a legacy resource name."""
    return isinstance(name, str) and legacy_resource(name) is not None
