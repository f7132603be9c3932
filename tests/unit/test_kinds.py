"""The table of kinds: what `kind_of` and `matches` answer, and that published schemas hold what each row claims."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from gpu2dra.kinds import KINDS, Kind, kind_of, matches

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONVERTED = {
    "": "Pod PodTemplate ReplicationController List",
    "apps": "ReplicaSet Deployment StatefulSet DaemonSet",
    "batch": "Job CronJob",
    "jobset.x-k8s.io": "JobSet",
    "leaderworkerset.x-k8s.io": "LeaderWorkerSet",
    "disaggregatedset.x-k8s.io": "DisaggregatedSet",
    "kubeflow.org": "PyTorchJob TFJob PaddleJob XGBoostJob JAXJob MPIJob",
    "trainer.kubeflow.org": "TrainingRuntime ClusterTrainingRuntime",
    "ray.io": "RayCluster RayJob RayService RayCronJob",
    "batch.volcano.sh": "Job CronJob",
    "flow.volcano.sh": "JobTemplate",
    "workload.codeflare.dev": "AppWrapper",
    "argoproj.io": "Rollout",
    "apps.kruise.io": "CloneSet StatefulSet DaemonSet BroadcastJob",
    "serving.kserve.io": "InferenceService ServingRuntime ClusterServingRuntime LLMInferenceService",
}


def names(row: Kind) -> str:
    return f"{row.group}/{row.kind}".removeprefix("/")


def test_every_kind_of_the_design_has_a_row() -> None:
    assert KINDS.keys() == {(group, kind) for group, kinds in CONVERTED.items() for kind in kinds.split()}


@pytest.mark.parametrize("row", KINDS.values(), ids=names)
def test_row_is_complete(row: Kind) -> None:
    assert KINDS[row.group, row.kind] is row
    assert row.versions
    assert row.since
    assert bool(row.templates or row.specs) != bool(row.objects)
    patterns = (*row.templates, *row.specs, *row.objects)
    assert len(set(patterns)) == len(patterns)
    assert all(pattern == "" or (pattern.startswith("/") and not pattern.endswith("/")) for pattern in patterns)


@pytest.mark.parametrize(
    ("api_version", "kind", "found"),
    [
        ("v1", "Pod", "Pod"),
        ("apps/v1", "Deployment", "Deployment"),
        ("kubeflow.org/v1", "MPIJob", "MPIJob"),
        ("kubeflow.org/v2beta1", "MPIJob", "MPIJob"),
        ("kubeflow.org/v1alpha2", "MPIJob", None),
        ("extensions/v1beta1", "Deployment", None),
        ("batch/v1beta1", "CronJob", None),
        ("v1", "Deployment", None),
        ("apps/v1/extra", "Deployment", None),
        ("batch.volcano.sh/v1alpha1", "Job", "Job"),
        ("kubeflow.org/v1", "Notebook", None),
        ("serving.knative.dev/v1", "Service", None),
        ("argoproj.io/v1alpha1", "Workflow", None),
        (None, "Pod", None),
        ("v1", None, None),
        (["v1"], "Pod", None),
        ("v1", {}, None),
    ],
)
def test_kind_of(api_version: Any, kind: Any, found: str | None) -> None:
    row = kind_of({"apiVersion": api_version, "kind": kind})
    assert (row.kind if row else None) == found


def test_kind_of_an_object_without_type() -> None:
    assert kind_of({}) is None


def test_same_kind_in_two_groups() -> None:
    core, volcano = (kind_of({"apiVersion": v, "kind": "Job"}) for v in ("batch/v1", "batch.volcano.sh/v1alpha1"))
    assert core
    assert volcano
    assert core.templates != volcano.templates


@pytest.mark.parametrize(
    ("obj", "pattern", "places"),
    [
        ({"a": 1}, "", [("", {"a": 1})]),
        ({"a": {"b": 2}}, "/a/b", [("/a/b", 2)]),
        ({"a": None}, "/a", [("/a", None)]),
        ({"a": None}, "/a/b", []),
        ({"a": [{"b": 1}, {}, {"b": 2}]}, "/a/*/b", [("/a/0/b", 1), ("/a/2/b", 2)]),
        ({"a": {"x/y": {"b": 1}, "m~n": {"b": 2}}}, "/a/*/b", [("/a/x~1y/b", 1), ("/a/m~0n/b", 2)]),
        ({"a": "text"}, "/a/*", []),
        ({"a": [1]}, "/a/0", []),
        ({"a": []}, "/a/*", []),
        ({"*": {"b": 1}}, "/*/b", [("/*/b", 1)]),
        ("text", "/a", []),
        ([1], "/*", [("/0", 1)]),
    ],
)
def test_matches(obj: Any, pattern: str, places: list[tuple[str, Any]]) -> None:
    assert list(matches(obj, pattern)) == places


# Published schemas. A schema that preserves unknown fields holds anything below it.

Schema = dict[str, Any]
FULL = {
    "resourceClaims": ("name", "resourceClaimTemplateName"),
    "containers/*/resources/claims": ("name", "request"),
}


@cache
def crd_files(folder: Path) -> dict[tuple[str, str], Path]:
    """Return the file of each group and kind; the head of a file says it, and parsing all of them takes seconds."""
    found: dict[tuple[str, str], Path] = {}
    for file in sorted(folder.glob("*.yaml")):
        head = file.read_text(encoding="utf-8")[:4000]
        group, kind = (
            re.search(r"^  group: (\S+)$", head, re.MULTILINE),
            re.search(r"^    kind: (\S+)$", head, re.MULTILINE),
        )
        assert group, file
        assert kind, file
        found[group[1], kind[1]] = file
    assert found, f"no CRD in {folder}"
    return found


@cache
def published(folder: Path, group: str, kind: str) -> dict[str, Schema]:
    """Return the schema of each version of a kind."""
    spec = yaml.load(crd_files(folder)[group, kind].read_bytes(), Loader=yaml.CSafeLoader)["spec"]
    row = KINDS.get((group, kind))
    assert row is None or row.namespaced == (spec["scope"] == "Namespaced"), "the scope of the row is wrong"
    assert (spec["group"], spec["names"]["kind"]) == (group, kind)
    return {each["name"]: each["schema"]["openAPIV3Schema"] for each in spec["versions"]}


def preserves(schema: Schema) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True


def steps(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Yield the schemas one level below, with the step of a pattern that leads there."""
    yield from schema.get("properties", {}).items()
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield "*", schema[key]


def descend(schema: Schema, pattern: str) -> Schema | None:
    """Return the schema that `pattern` leads to, or the one that preserves everything on the way; None: pruned."""
    for step in pattern.split("/")[1:]:
        if preserves(schema) and step not in dict(steps(schema)):
            return schema
        below = dict(steps(schema)).get(step)
        if below is None:
            return None
        schema = below
    return schema


def holds_claims(schema: Schema) -> bool:
    """Whether a PodSpec of this schema keeps claims at pod level, and at container level with their request."""
    for pattern, fields in FULL.items():
        claims = descend(schema, f"/{pattern}")
        if claims is None:
            return False
        items = claims if preserves(claims) else claims.get("items", {})
        if not preserves(items) and not set(fields) <= set(items.get("properties", {})):
            return False
    return True


def pod_specs(schema: Schema, path: str = "") -> Iterator[str]:
    """Yield a pattern for each PodSpec with claims in a schema."""
    # Below a field that preserves everything there is nothing to find.
    if "containers" in schema.get("properties", {}) and not preserves(schema) and holds_claims(schema):
        yield path
    for step, below in steps(schema):
        yield from pod_specs(below, f"{path}/{step}")


CRD_ROWS = [
    pytest.param(row, id=names(row))
    for row in KINDS.values()
    if names(row)
    in {
        *("jobset.x-k8s.io/JobSet", "leaderworkerset.x-k8s.io/LeaderWorkerSet", "batch.volcano.sh/Job"),
        *(f"kubeflow.org/{kind}Job" for kind in ("PyTorch", "TF", "Paddle", "XGBoost", "JAX", "MPI")),
        *(f"trainer.kubeflow.org/{kind}" for kind in ("TrainingRuntime", "ClusterTrainingRuntime")),
        *(f"ray.io/Ray{kind}" for kind in ("Cluster", "Job", "Service")),
        *(f"serving.kserve.io/{kind}" for kind in ("InferenceService", "ServingRuntime", "ClusterServingRuntime")),
        "workload.codeflare.dev/AppWrapper",
    }
]
"""The rows whose schema is in the shared folder."""


@pytest.mark.parametrize("row", CRD_ROWS)
def test_published_schema_holds_what_the_row_claims(row: Kind, shared: Path) -> None:
    versions = published(shared / "crds", row.group, row.kind)
    checked = [version for version in row.versions if version in versions]
    assert checked, f"none of {row.versions} is in the schema, which has {sorted(versions)}"
    for version in checked:
        for pattern in (*(f"{template}/spec" for template in row.templates), *row.specs):
            schema = descend(versions[version], pattern)
            assert schema is not None, f"{version}: nothing at {pattern}"
            assert holds_claims(schema), f"{version}: {pattern} drops claims"
        for pattern in row.objects:
            wrapped = descend(versions[version], pattern)
            assert wrapped is not None, f"{version}: nothing at {pattern}"
            assert preserves(wrapped), f"{version}: {pattern} prunes"


@pytest.mark.slow
def test_no_published_kind_with_claims_is_forgotten(shared: Path) -> None:
    known = {
        (row.group, row.kind, pattern)
        for row in KINDS.values()
        for pattern in (*(f"{template}/spec" for template in row.templates), *row.specs)
    }
    found = {
        (group, kind, pattern)
        for group, kind in crd_files(shared / "crds")
        for schema in published(shared / "crds", group, kind).values()
        for pattern in pod_specs(schema)
    }
    assert found
    assert found <= known


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_notebook_schema_drops_claims(version: str, shared: Path) -> None:
    """Why a Notebook is reported: no release of its controller, up to 1.11.0, publishes a schema with claims."""
    schema = published(shared / "crds", "kubeflow.org", "Notebook")[version]
    found = descend(schema, "/spec/template/spec")
    assert found is not None
    assert not holds_claims(found)
    assert ("kubeflow.org", "Notebook") not in KINDS


def claims(fields: tuple[str, ...]) -> Schema:
    return {"type": "array", "items": {"properties": {field: {} for field in fields}}}


@pytest.mark.parametrize(
    ("pod", "container", "held"),
    [
        (("name", "resourceClaimTemplateName"), ("name", "request"), True),
        (("name", "source"), ("name", "request"), False),
        (("name", "resourceClaimTemplateName"), ("name",), False),
    ],
)
def test_holds_claims_wants_every_field(pod: tuple[str, ...], container: tuple[str, ...], held: bool) -> None:
    resources = {"properties": {"claims": claims(container)}}
    containers = {"items": {"properties": {"resources": resources}}}
    spec: Schema = {"properties": {"resourceClaims": claims(pod), "containers": containers}}
    assert holds_claims(spec) is held
    assert list(pod_specs({"properties": {"spec": spec}})) == (["/spec"] if held else [])


def test_holds_claims_follows_what_is_preserved() -> None:
    assert holds_claims({"x-kubernetes-preserve-unknown-fields": True})
    assert not holds_claims({"properties": {"containers": {}}})
