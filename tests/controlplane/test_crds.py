"""Custom kinds against their published CRDs, on the real API server: converted objects come back with their claims.

A field that a schema lacks is dropped without a word, so what the server returns decides whether the table of kinds is
right: for the smallest object of each place that the table names, and for the objects of the corpus.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jsonpatch
import pytest
import yaml12

from controlplane import build, minimal, trial
from controlplane.client import Answer, Client, Object, wait_for
from controlplane.cluster import ControlPlane
from controlplane.converted import TEMPLATE, Pair, complaint, is_built_in, pairs
from controlplane.equivalence import Record
from controlplane.manifests import placed
from controlplane.testbed import add_namespace
from gpu2dra import plan
from gpu2dra.kinds import KINDS, Kind

if TYPE_CHECKING:
    from pathlib import Path

NAMESPACE = "crds"
_SLOW = 120.0
"""Seconds until the server serves a kind: it compiles some megabytes of schemas first."""
NO_CRD = frozenset(
    {
        ("disaggregatedset.x-k8s.io", "DisaggregatedSet"), ("ray.io", "RayCronJob"), ("batch.volcano.sh", "CronJob"),
        ("flow.volcano.sh", "JobTemplate"), ("argoproj.io", "Rollout"), ("apps.kruise.io", "CloneSet"),
        ("apps.kruise.io", "StatefulSet"), ("apps.kruise.io", "DaemonSet"), ("apps.kruise.io", "BroadcastJob"),
        ("serving.kserve.io", "LLMInferenceService"),
    }
)  # fmt: skip
"""Rows of the table whose CRD is not among the shared ones."""
NO_VERSION = frozenset({("kubeflow.org/v2beta1", "MPIJob")})
"""Versions of kinds of the table that the shared CRDs do not serve: there are two operators, each with its own CRD."""
ANNOTATIONS = {"InferenceService": {"serving.kserve.io/deploymentMode": "Standard"}}
"""What an object needs for the converter to touch it: Knative, the default of KServe, refuses claims."""
LEFT = {
    ("InferenceService", "/spec/predictor/workerSpec"): "DRA315",
    ("InferenceService", "/spec/canary/*/predictor/workerSpec"): "DRA315",
    ("ServingRuntime", "/spec/workerSpec"): "DRA315",
    ("ClusterServingRuntime", "/spec/workerSpec"): "DRA315",
}
"""Places that the table names so that they are reported: KServe counts nodes by these limits."""


@dataclass(frozen=True, slots=True)
class Served:
    """A server with the CRDs, and these by group and kind."""

    client: Client
    definitions: dict[tuple[str, str], Object]


@pytest.fixture(scope="module")
def served(release: str, shared: Path, say: Callable[[str], None]) -> Iterator[Served]:
    """Start a control plane with the CRDs of all kinds of the table: others' tests see none of them."""
    definitions = {key: definition(path) for key, path in published(shared).items() if key in KINDS}
    with ControlPlane(build.control_planes()[release](say)) as plane:
        trial.each(plane.client.create, definitions.values())
        for (group, kind), found in definitions.items():
            for version in versions(found):
                wait_for(f"{kind} is served", functools.partial(plane.client.serves, f"{group}/{version}", kind), _SLOW)
        add_namespace(plane.client, NAMESPACE)
        yield Served(plane.client, definitions)


def published(shared: Path) -> dict[tuple[str, str], Path]:
    """Return the files of the published CRDs by group and kind, without reading all of their megabytes as YAML."""
    found = {}
    for path in sorted((shared / "crds").glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        group, kind = (re.search(rf"^ {{2,4}}{field}: (\S+)$", text, re.MULTILINE) for field in ("group", "kind"))
        assert group, path
        assert kind, path
        found[group[1], kind[1]] = path
    return found


def definition(path: Path) -> Object:
    """Return a CRD without what is of no use here: descriptions, and the webhook that converts between versions."""
    # Megabytes: PyYAML takes eight times as long.
    found: Any = yaml12.parse_yaml(path.read_text(encoding="utf-8"))
    found["spec"].pop("conversion", None)
    found.pop("status", None)
    undescribe(found["spec"]["versions"])
    return dict(found)


def undescribe(value: Any) -> None:
    """Take the descriptions off a schema; a property by that name is no text, and stays."""
    if isinstance(value, dict):
        if isinstance(value.get("description"), str):
            del value["description"]
        for item in value.values():
            undescribe(item)
    elif isinstance(value, list):
        for item in value:
            undescribe(item)


def versions(definition: Object) -> list[str]:
    """Return the versions that a CRD serves."""
    return [version["name"] for version in definition["spec"]["versions"] if version["served"]]


def claims_in(value: Any, path: str = "") -> dict[str, Any]:
    """Return every list of claims in an object, of pods and of containers, by its place."""
    found: dict[str, Any] = {}
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in children:
        here = f"{path}/{key}"
        if key == "resourceClaims" or (key == "claims" and path.endswith("/resources")):
            found[here] = item
        else:
            found |= claims_in(item, here)
    return found


def test_the_rows_without_a_crd_are_known(shared: Path) -> None:
    custom = {key for key, kind in KINDS.items() if not kind.since.startswith("Kubernetes")}
    assert custom - published(shared).keys() == NO_CRD


def test_what_the_table_does_not_name_is_not_converted(shared: Path) -> None:
    others = published(shared).keys() - KINDS.keys()
    assert {("argoproj.io", "Workflow"), ("kubeflow.org", "Notebook"), ("apps.nvidia.com", "NIMService")} <= others
    template = {"metadata": {}, "spec": minimal.pod_spec({})}
    for group, kind in others:
        obj = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "a"}, "spec": {"template": template}}
        assert not plan(obj).operations, kind


def test_minimal_objects_come_back_with_their_claims(served: Served, record_property: Record) -> None:
    tried = Counter[str]()
    problems: list[str] = []
    for key, definition in served.definitions.items():
        kind = KINDS[key]
        assert set(versions(definition)) & set(kind.versions), kind
        for version in definition["spec"]["versions"]:
            if version["name"] in kind.versions and version["served"]:
                schema = version["schema"]["openAPIV3Schema"]
                for pattern, obj in minimal.objects(kind, f"{key[0]}/{version['name']}", schema).items():
                    tried[kind.kind] += 1
                    problem = lost(served.client, kind, pattern, obj)
                    problems += [f"{kind.kind} {version['name']} {pattern}: {problem}"] if problem else []
    lines = [f"{tried.total()} places in {len(tried)} custom kinds keep their claims: {', '.join(tried)}"]
    record_property("figures", "\n".join(lines))
    assert problems == []


def lost(client: Client, kind: Kind, pattern: str, obj: Object) -> str:
    """Convert an object and send it; return what is missing in what comes back, or why it was not converted."""
    obj["metadata"]["annotations"] = ANNOTATIONS.get(kind.kind, {})
    obj = placed(client, obj, NAMESPACE)
    made = plan(obj)
    codes = {finding.code for finding in made.findings}
    if expected := LEFT.get((kind.kind, pattern)):
        return "" if expected in codes and not made.operations else f"was to be reported with {expected}"
    if not made.operations:
        return f"was not converted: {[finding.message for finding in made.findings]}"
    converted = jsonpatch.apply_patch(obj, list(made.operations))
    answer = client.try_create(converted, dryRun="All", fieldValidation="Strict")
    if not answer.accepted:
        return str(answer.object["message"])
    # A pod's two lists or more: the pod's entries, and those of each container.
    sent, back = claims_in(converted), claims_in(answer.object)
    assert len(sent) >= 3
    return "" if sent == back else f"sent {sent}, got {back}"


def test_custom_objects_of_the_corpus_come_back_with_their_claims(
    served: Served, shared: Path, record_property: Record
) -> None:
    custom = [pair for pair in pairs(shared) if pair.before and pair.after["kind"] != TEMPLATE]
    custom = [pair for pair in custom if not is_built_in(pair.after)]
    chosen = [pair for pair in custom if served.client.serves(pair.after["apiVersion"], pair.after["kind"])]
    verdicts = [compared(served.client, pair) for pair in chosen]
    problems = [f"{pair.about}: {problem}" for pair, (problem, _) in zip(chosen, verdicts, strict=True) if problem]
    alike = {pair.about: reason for pair, (_, reason) in zip(chosen, verdicts, strict=True) if reason}
    without = Counter((pair.after["apiVersion"], pair.after["kind"]) for pair in custom if pair not in chosen)
    lines = [
        f"{len(chosen)} converted objects of custom kinds in the corpus and the examples:",
        f"  {', '.join(f'{count} {kind}' for kind, count in Counter(pair.after['kind'] for pair in chosen).items())}",
        f"  {len(alike)} are refused as their originals are:",
        *(f"    {about}: {reason}" for about, reason in sorted(alike.items())),
        f"  {len(problems)} lose claims",
        *(f"  {count} × {kind} of {version}: no CRD here" for (version, kind), count in sorted(without.items())),
    ]
    record_property("figures", "\n".join(lines))
    assert problems == []
    unserved = {(version.partition("/")[0], kind) for version, kind in without if (version, kind) not in NO_VERSION}
    assert unserved <= NO_CRD


def compared(client: Client, pair: Pair) -> tuple[str, str]:
    """Return what is wrong with what comes back of a converted object, and why it is refused as its original is."""
    assert pair.before
    after, before = (sent(client, obj) for obj in (pair.after, pair.before))
    if complaint(after):
        return ("", complaint(after)) if complaint(after) == complaint(before) else (complaint(after), "")
    if set(after.warnings) - set(before.warnings):
        return f"warnings: {after.warnings}", ""
    expected, back = claims_in(pair.after), claims_in(after.object)
    return ("" if expected and expected == back else f"sent {expected}, got {back}"), ""


def sent(client: Client, obj: Object) -> Answer:
    return client.try_create(placed(client, obj, NAMESPACE), dryRun="All", fieldValidation="Warn")
