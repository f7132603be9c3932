"""What must hold in every build that is already converted, whatever it was before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpu2dra import Object
from gpu2dra.kinds import kind_of, matches
from gpu2dra.quantity import AmountError, parse_quantity
from gpu2dra.resources import legacy_resource
from gpu2dra.templates import fitting_name
from gpu2dra_migrate.elsewhere.references import pods_namespace
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
            elsewhere = [space for space, other in templates if other == name and space != namespace]
            if elsewhere:
                yield (
                    UNRESOLVED,
                    f"{about} uses template {name}, which is in another namespace ({elsewhere[0] or 'none'}).",
                )
            elif (namespace, name) not in templates and "-gpu-" in name:
                yield UNRESOLVED, f"{about} uses template {name}, which the build does not make."
        fitting = fitting_name(obj) if is_ours(obj) else None
        if fitting and fitting != key_of(obj)[3]:
            yield UNFIT, f"The spec of {about} was edited, so its name should be {fitting}."


def _both(obj: Object) -> Iterator[str]:
    """Yield the names of containers with a claim and a limit that is not 0."""
    row = kind_of(obj)
    for base in (*(f"{pattern}/spec" for pattern in row.templates), *row.specs) if row else ():
        for field in ("containers", "initContainers"):
            for _, container in matches(obj, f"{base}/{field}/*"):
                resources = container.get("resources") if isinstance(container, dict) else None
                if isinstance(resources, dict) and resources.get("claims") and _asks(resources.get("limits")):
                    yield str(container.get("name"))


def _asks(limits: object) -> bool:
    for key, amount in limits.items() if isinstance(limits, dict) else ():
        try:
            if legacy_resource(key) and parse_quantity(amount) > 0:
                return True
        except AmountError:
            return True
    return False
