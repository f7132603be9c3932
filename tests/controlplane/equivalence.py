"""The drawn Pods and their converted twins, in a control plane of their own: what the equivalence tests start from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import jsonpatch

from controlplane import supply, trial
from controlplane.client import Client, Object
from controlplane.cluster import Options
from controlplane.pods import Wish, needs, sample, wishes
from controlplane.testbed import StartControlPlane, add_namespace
from controlplane.trial import Placement
from gpu2dra import Context, Style, plan
from gpu2dra import Options as Choices

NUMBER = 300
NAMESPACE = "equivalence"
TEMPLATE = "network"
CONTEXT = Context(claim_classes={("ResourceClaimTemplate", TEMPLATE): frozenset({supply.NETWORK})})

Record = Callable[[str, object], None]


@dataclass(frozen=True)
class Case:
    """A legacy Pod, its twin with the templates, and what the containers of both ask for."""

    name: str
    legacy: Object
    twin: Object
    templates: tuple[Object, ...]
    wishes: list[Wish]

    def placements(self, namespace: str, *, fits: bool) -> Iterator[Placement]:
        """Yield the legacy Pod and its twin on nodes that have just enough, or one too few of one resource."""
        enough = needs(self.wishes)
        nodes = [enough] if fits else [{**enough, name: amount - 1} for name, amount in enough.items()]
        for number, node in enumerate(nodes):
            for kind, pod in (("legacy", self.legacy), ("twin", self.twin)):
                named = trial.pinned(pod, f"{self.name}-{kind}-{number}", namespace)
                yield Placement(named, node, kind == "legacy", fits)


def prepared(text: str, name: str) -> Object:
    """Return a drawn Pod by a short name, with a template of its own in the place of the claim that it shares."""
    pod: Object = json.loads(text)
    pod["metadata"] = {key: value for key, value in pod["metadata"].items() if key != "namespace"} | {"name": name}
    for entry in pod["spec"].get("resourceClaims", []):
        del entry["resourceClaimName"]
        entry["resourceClaimTemplateName"] = TEMPLATE
    return pod


def case(client: Client, namespace: str, number: int, text: str) -> Case:
    """Convert a drawn Pod, every other one as the webhook does; the API server reads its quantities for us."""
    name = f"pod-{number}"
    legacy = prepared(text, name)
    inside = legacy | {"metadata": legacy["metadata"] | {"namespace": namespace}}
    stored = client.create(inside, dryRun="All")
    made = plan(inside, Choices(style=(Style.FILE, Style.ADMISSION)[number % 2]), CONTEXT)
    twin = jsonpatch.apply_patch(inside, list(made.operations))
    templates = tuple(
        template | {"metadata": template["metadata"] | {"namespace": namespace}} for template in made.templates
    )
    found = Case(name, legacy, twin, templates, wishes(stored))
    assert bool(templates) == bool(needs(found.wishes)), f"{name} was not converted: {made.findings}"
    return found


def cases(client: Client, namespace: str) -> list[Case]:
    """Return the sample, converted, with the templates created."""
    client.create(supply.network_template(TEMPLATE) | {"metadata": {"name": TEMPLATE, "namespace": namespace}})
    texts = list(enumerate(sample(NUMBER)))
    found = trial.each(lambda numbered: case(client, namespace, *numbered), texts)
    # As the webhook does it, equal specs are one template.
    templates = {template["metadata"]["name"]: template for case in found for template in case.templates}
    trial.each(client.create, templates.values())
    return found


def start(
    start_control_plane: StartControlPlane, options: Options, classes: Iterable[Object]
) -> tuple[Client, list[Case]]:
    """Start a control plane with these DeviceClasses, whose nodes are all of a trial's; return the sample in it."""
    client = start_control_plane(options).client
    for obj in (*classes, *supply.network()):
        client.create(obj)
    add_namespace(client, NAMESPACE)
    return client, cases(client, NAMESPACE)
