"""What must hold in every build that is already converted, whatever it was before; and what breaks it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpu2dra import Object
from gpu2dra.kinds import matches, pod_specs
from gpu2dra.quantity import AmountError, parse_quantity
from gpu2dra.resources import legacy_resource
from gpu2dra.templates import fitting_name
from gpu2dra_migrate.elsewhere.references import pods_namespace
from gpu2dra_migrate.kustomize.patches import Patch, aims_at
from gpu2dra_migrate.kustomize.square import claim_pointers, is_ours, key_of, templates_in
from gpu2dra_migrate.manifest import describe

BOTH, UNRESOLVED, UNFIT = "DRA446", "DRA447", "DRA448"


def built_problems(built: Sequence[Object]) -> Iterator[tuple[str, str]]:
    """Yield code and message of what is wrong with the objects that a kustomization builds."""
    templates = templates_in(built)
    for obj in built:
        about = describe(obj)
        namespace = pods_namespace(obj)
        for name in _both(obj):
            yield BOTH, f'Container "{name}" of {about} has a claim and a limit on the extended resource.'
        for _, name in claim_pointers(obj):
            if (namespace, name) in templates:
                continue
            elsewhere = [space for space, other in templates if other == name and space != namespace]
            if elsewhere:
                yield (
                    UNRESOLVED,
                    f"{about} uses template {name}, which is in another namespace ({elsewhere[0] or 'none'}).",
                )
            elif "-gpu-" in name:
                yield UNRESOLVED, f"{about} uses template {name}, which the build does not make."
        fitting = fitting_name(obj) if is_ours(obj) else None
        if fitting and fitting != key_of(obj)[3]:
            yield UNFIT, f"The spec of {about} was edited, so its name should be {fitting}."


def is_claimed(patch: Patch, document: Any, obj: Object) -> bool:
    """Whether a patch of a request is about a container of `obj` that has a claim already."""
    names = {container.get("name") for container in _containers(obj) if _resources(container).get("claims")}
    if not names or not aims_at(patch, document, obj):
        return False
    patched = {container.get("name") for container in _containers(document)} if isinstance(document, dict) else names
    return not names.isdisjoint(patched or names)


def _both(obj: Object) -> Iterator[str]:
    """Yield the names of containers with a claim and a limit that is not 0."""
    for container in _containers(obj):
        resources = _resources(container)
        if resources.get("claims") and _asks(resources.get("limits")):
            yield str(container.get("name"))


def _containers(obj: Object) -> Iterator[Object]:
    for _, spec in pod_specs(obj):
        for field in ("containers", "initContainers"):
            yield from (each for _, each in matches(spec, f"/{field}/*") if isinstance(each, dict))


def _resources(container: Object) -> Object:
    resources = container.get("resources")
    return resources if isinstance(resources, dict) else {}


def _asks(limits: object) -> bool:
    for key, amount in limits.items() if isinstance(limits, dict) else ():
        try:
            if legacy_resource(key) and parse_quantity(amount) > 0:
                return True
        except AmountError:
            return True
    return False
