"""Charts that can render claims by themselves: their own switch is set, if it gives each container what it asked for.

Sources: otwld/ollama-helm (ollama.gpu.draEnabled), llm-d-incubation/llm-d-modelservice (accelerator.dra),
NVIDIA-AI-Blueprints/rag (nimOperator.draResources.enabled). Charts that only take lists of claims in their values
(KubeRay's ray-cluster, bjw-s common) have no switch, and render through the helper like any other.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpu2dra import Context, Options
from gpu2dra.pointers import pointer, replace
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.helm.chart import Chart
from gpu2dra_migrate.helm.documents import objects_in
from gpu2dra_migrate.helm.program import Rendered
from gpu2dra_migrate.helm.reach import limits_left, reach
from gpu2dra_migrate.helm.square import asks, converted
from gpu2dra_migrate.manifest import with_neighbours
from gpu2dra_migrate.text.edits import DocumentEdit, edit
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.proof import prove
from gpu2dra_migrate.text.values import to_data

SWITCHES = ("ollama.gpu.draEnabled", "accelerator.dra", "nimOperator.draResources.enabled")
"""Values that make a chart render claims, as its templates read them below `.Values`."""


def own_switch(chart: Chart) -> str | None:
    """Return the switch of the chart itself for DRA, or None."""
    texts = list(chart.templates.values())
    return next((way for way in SWITCHES if any(f".Values.{way}" in text for text in texts)), None)


def set_on(text: str, switch: str) -> str:
    """Return a values.yaml in which `switch` is true; raise FileError where it does not stand in it."""
    documents = compose(text)
    place = to_data(documents[0]) if documents else None
    for name in switch.split("."):
        if not isinstance(place, dict) or name not in place:
            raise FileError(f"values.yaml has no {switch}")
        place = place[name]
    if place is True:
        return text
    change = DocumentEdit(0, [replace(pointer("", *switch.split(".")), True)])
    new = edit(text, [change], documents)
    prove(text, new, [change], documents)
    return new


def unequal(before: Sequence[Rendered], after: Sequence[Rendered], options: Options) -> str:
    """Return why the switch does not do what a conversion does, or nothing.

    Each container has to reach the devices that the core would give it, and no container may keep a limit beside a
    claim.
    """
    old = [obj for each in before for obj in objects_in(each.text)]
    new = [obj for each in after for obj in objects_in(each.text)]
    context = with_neighbours(Context(), old)
    wanted, found = reach(converted(old, options, context)), reach(new)
    for place in dict.fromkeys((*wanted, *found)):
        if wanted.get(place) != found.get(place):
            kind, name, _, container = place
            counts = [sum(devices.get(place, {}).values()) for devices in (wanted, found)]
            return f'container "{container}" of {kind}/{name} would reach {counts[1]} devices by it, not {counts[0]}'
    if left := limits_left(new):
        kind, name, _, container = left[0]
        return f'container "{container}" of {kind}/{name} would keep its limit beside the claim'
    if rest := [obj for obj in new if asks(obj, options)]:
        return f"{rest[0]['kind']}/{rest[0].get('metadata', {}).get('name')} would still ask by its limits"
    return ""
