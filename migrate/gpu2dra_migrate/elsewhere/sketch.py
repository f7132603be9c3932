"""What a chart makes of its values, as far as claims go: planned by the core, and carried back into the values.

So the rules are the core's, whoever the chart is of: a sketch only says where in the values each part stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gpu2dra import Context, Object, Operation, Options, Plan, plan
from gpu2dra.pointers import add, pointer, segments
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.elsewhere.releases import Release, mapping
from gpu2dra_migrate.text.patch import BadOperation, copied, list_index, patched


@dataclass(frozen=True, slots=True)
class Sketch:
    """An object with the pods of a release. `places`: pointers in it, and where in the values what is there stands.

    The longest pointer counts; what has no place is told at the values as a whole. `inherited`: lists of the object
    that the values give to several pods at once, so that a longer one has to be written out at its own place.
    """

    obj: Object
    places: Mapping[str, str]
    inherited: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    def place(self, path: str) -> str | None:
        """Return the pointer in the values for a pointer in the object, or None."""
        steps = path
        while steps:
            if (found := self.places.get(steps)) is not None:
                return found + path[len(steps) :]
            steps = steps.rpartition("/")[0]
        return None


def plan_sketch(sketch: Sketch, options: Options, context: Context) -> tuple[Plan, Object]:
    """Return the plan for the pods of a sketch, with pointers into the values, and the object after it."""
    made = plan(sketch.obj, replace(options, elsewhere=False), context)
    carried = Plan(
        tuple(_operations(sketch, made.operations)), made.templates,
        tuple(each._replace(path=sketch.place(each.path) or "") for each in made.findings),
        tuple(each._replace(path=sketch.place(each.path) or "") for each in made.access),
    )  # fmt: skip
    return carried, patched(copied(sketch.obj), made.operations)


def _operations(sketch: Sketch, operations: Iterable[Operation]) -> Iterator[Operation]:
    written: set[str] = set()
    for operation in operations:
        path, last = operation["path"], "/-"
        whole = path.removesuffix(last)
        place = sketch.place(path)
        if place is None:
            raise ValueError(f"{path}: the values have no place for it")
        if path.endswith(last) and whole in sketch.inherited and whole not in written:
            written.add(whole)
            yield add(place.removesuffix(last), [*sketch.inherited[whole], operation["value"]])
        else:
            yield {**operation, "path": place}


def rooted(values: Object, operations: Iterable[Operation]) -> list[Operation]:
    """Return the operations with the maps added that they presume: `add /pod/x` where there is no `pod`.

    Raises BadOperation where something else than a map stands in the way.
    """
    data = copied(values)
    result: list[Operation] = []
    for operation in operations:
        names = segments(operation["path"])
        there = data
        made: Operation = operation
        for depth, name in enumerate(names[:-1]):
            if isinstance(there, list):
                inside = there[list_index(name, len(there), operation["path"])]
            elif isinstance(there, dict):
                inside = there.get(name)
            else:
                raise BadOperation(f"{operation['path']}: {names[depth - 1]} is no map")
            if inside is None:
                value = operation.get("value")
                for outer in reversed(names[depth + 1 :]):
                    value = {outer: value}
                made = add(pointer("", *names[: depth + 1]), value)
                break
            there = inside
        result.append(made)
        data = patched(data, [made])
    return result


def metadata_of(release: Release, name: str) -> Object:
    """Return the metadata of a workload of a release: labels and annotations are those of the object in git."""
    own = {key: release.metadata[key] for key in ("labels", "annotations") if release.metadata.get(key)}
    return {"name": name, **({"namespace": release.namespace} if release.namespace else {}), **own}


def legacy_keys(resources: Any, base: str) -> set[str]:
    """Return the pointers of the legacy names in the limits and requests of `resources`, which stands at `base`."""
    return {
        pointer(base, section, name)
        for section in ("limits", "requests")
        for name in mapping(mapping(resources).get(section))
        if legacy_resource(name) is not None
    }
