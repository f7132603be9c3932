"""The helper in template language and the core make the same objects of the same texts, in Helm 3 and 4."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpu2dra import ApiVersion, Keep, Object, Options
from gpu2dra.kinds import KINDS, Kind
from gpu2dra.skips import SYSTEM_NAMESPACES
from gpu2dra_migrate.manifest import objects
from helm.bench import Bench, bench, by_core
from property.strategies import GPU, MIGS, pods, workloads
from property.test_plan_properties import spoilt
from unit import test_operators as ops
from unit import test_quantity, test_resources, test_skips
from unit.build import container, deployment, pod

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow

REASON = re.compile(r"\n# gpu2dra leaves this on the extended resource: DRA\d{3} [a-z-]+\n")
MANY = settings(
    max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)


def compare(workbench: Bench, texts: Sequence[str], options: Options | None = None) -> int:
    """Assert that helper and core make the same of each text; return how many of them change."""
    changed = 0
    for text, result in zip(texts, workbench.convert(texts), strict=True):
        expected = by_core(text, *([options] if options else []))
        assert objects(result) == expected, text
        if expected != objects(text):
            changed += 1
        else:
            assert REASON.sub("", result) == text, text
    return changed


def texts(objs: Sequence[Any]) -> list[str]:
    """Return objects as YAML, which JSON is."""
    return [json.dumps(obj, ensure_ascii=False) for obj in objs]


def rows(test: Any, mark: int = 0) -> list[Any]:
    """Return the table that another test is parametrized with, in the decorator nearest to it."""
    return [row.values if hasattr(row, "marks") else row for row in test.pytestmark[mark].args[1]]


@given(st.lists(workloads(unknown=True), min_size=1, max_size=60))
@MANY
def test_drawn_workloads(workbench: Bench, drawn: list[tuple[Object, Any]]) -> None:
    compare(workbench, texts([obj for obj, _ in drawn]))


@given(st.lists(spoilt(), min_size=1, max_size=60))
@MANY
def test_workloads_with_anything_anywhere(workbench: Bench, drawn: list[Any]) -> None:
    compare(workbench, texts([tame(obj) for obj in drawn]))


def tame(value: Any) -> Any:
    """Return `value` without numbers that a float does not hold, which no field of a Pod has in numbers."""
    if isinstance(value, dict):
        return {key: tame(item) for key, item in value.items()}
    if isinstance(value, list):
        return [tame(item) for item in value]
    large = isinstance(value, int | float) and not -1e15 < value < 1e15
    return 7 if large else value


@given(st.lists(st.tuples(pods(), st.integers(10, 33)), min_size=1, max_size=60))
@MANY
def test_splits_over_claims(workbench: Bench, drawn: list[tuple[Object, int]]) -> None:
    for obj, amount in drawn:
        for item in obj["spec"]["containers"]:
            item["resources"] = {"limits": {GPU: amount}}
    compare(workbench, texts([obj for obj, _ in drawn]))


def test_a_container_for_each_request_that_a_claim_can_hold(workbench: Bench) -> None:
    crowds = [pod(*(container(f"c{n}", 1) for n in range(count))) for count in (31, 32, 33, 70)]
    shared = [pod(container("a", 32), container("b", 1), init=[container("i", n)]) for n in (1, 32)]
    assert compare(workbench, texts([*crowds, *shared])) == 6


AMOUNTS = (
    *(amount for amount, _ in test_quantity.WHOLE),
    *(
        "500m",
        "1.0001",
        1.5,
        1e-7,
        -1,
        "-1",
        "-0.5n",
        "",
        " ",
        "x",
        "1x",
        "1 2",
        "0x2",
        "1_0",
        "1e",
        "1e99999",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "Pi",
    ),
    *("1e-99999", "32.0000000001", "0.03125Ki", "0.9999Ki", "33", 10**30, "1" * 256, "1" * 257, True, [], {}, None),
)


def test_amounts(workbench: Bench) -> None:
    compare(workbench, texts([pod(container(limits={GPU: amount})) for amount in AMOUNTS]))


def test_amounts_without_quotes(workbench: Bench) -> None:
    plain = "2 2.0 2. +2 02 0x2 0b10 0o2 1_0 2e0 20e-1 .5k 0.5k yes no ~ null 2000m 1Ki 0.03125Ki 12345678901234567890"
    objs = [f"apiVersion: v1\nkind: Pod\nmetadata: {{name: x}}\nspec:\n  containers:\n  - name: a\n    resources:\n"
            f"      limits:\n        nvidia.com/gpu: {amount}\n" for amount in plain.split()]  # fmt: skip
    assert compare(workbench, objs) == 13


@given(
    st.lists(
        st.from_regex(r"\A ?[+-]?[0-9]{0,3}\.?[0-9]{0,12}([KMGTPE]i?|[numk]|[eE][+-]?[0-9]{1,5})?\Z"), max_size=200
    )
)
@MANY
def test_drawn_amounts(workbench: Bench, drawn: list[str]) -> None:
    kept = [text for text in drawn if text[-2:] not in ("Pi", "Ei")]  # products of more than 64 bits are left alone
    compare(workbench, texts([pod(container(limits={GPU: amount})) for amount in kept]))


def test_requests_beside_limits(workbench: Bench) -> None:
    pairs = product((0, 1, "2", "2000m", "1.9999", "2.0000000001", "500m", None, "x"), repeat=2)
    both = [{"limits": {GPU: limit, "cpu": 1}, "requests": {GPU: request}} for limit, request in pairs]
    odd = [{"requests": {GPU: 1}}, {"requests": {GPU: 0}}, {"limits": [], "requests": {GPU: 1}}, {"limits": None}, None]
    objs = [pod(container(resources=resources)) for resources in (*both, *odd)]
    assert compare(workbench, texts(objs)) == 6


def test_names(workbench: Bench) -> None:
    names = [*test_resources.NAMES, *rows(test_resources.test_a_look_alike_is_not)]
    names = [name for name in names if isinstance(name, str)]
    objs = [pod(container(limits={name: amount, "cpu": "1"})) for name in names for amount in (1, 0)]
    assert compare(workbench, texts(objs)) == 8


def filled(row: Kind, way: str, value: Any) -> Object:
    """Return an object of a kind in each of its versions that has `value` where the pattern leads."""
    for step in reversed(way.split("/")[1:]):
        value = [value] if step == "*" and not way.startswith("/spec/mpi") else {"x" if step == "*" else step: value}
    return {**value, "kind": row.kind, "metadata": {"name": "w", "labels": {"a": "b"}}}


def test_every_place_of_every_kind_in_every_version(workbench: Bench) -> None:
    template = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container("node", 2)]}}
    service = {"serving.kserve.io/deploymentMode": "Standard"}
    objs: list[Object] = []
    for row in KINDS.values():
        places = [(way, template) for way in row.templates] + [(way, template["spec"]) for way in row.specs]
        for way, value in [*places, *((way, deployment(container("m", 1))) for way in row.objects)]:
            for version in (*row.versions, "v9"):
                obj = filled(row, way, value)
                obj["metadata"]["annotations"] = service
                objs.append({**obj, "apiVersion": f"{row.group}/{version}".removeprefix("/")})
    known = [obj for obj in objs if not obj["apiVersion"].endswith("v9")]
    assert compare(workbench, texts(objs)) == len(known) - 4  # KServe counts nodes by limits where it has a workerSpec


ODD_REQUESTS: tuple[Any, ...] = ([], None, {"cpu": None})


def test_operator_edits(workbench: Bench) -> None:
    objs = [
        *(ops.cluster(ops.group(), ops.group(ops.container(limits), **fields))
          for table in (ops.test_kuberay_number_of_gpus, ops.test_kuberay_reads_something_else)
          for fields, limits, *_ in rows(table)),
        ops.cluster(ops.group(ops.container(), ops.container({GPU: 1}))),
        *(ops.runtime(policy, ops.job(ops.container({GPU: amount}, name="node", cpu="8")))
          for policy, amount, _ in rows(ops.test_trainer_processes_per_node)),
        *(ops.runtime(policy, ops.job(ops.container(dict(taken), name="node", **requests)))
          for policy, taken, requests in rows(ops.test_trainer_needs_no_edit)),
        *(ops.runtime(policy, ops.job(ops.container({GPU: amount}, name="node", **requests)))
          for policy, amount, requests in rows(ops.test_trainer_has_no_field)),
        *(ops.runtime({"flux": {}}, *gpu_in(jobs, losing))
          for jobs, losing, _ in rows(ops.test_trainer_reads_one_container)),
        *(ops.runtime({"torch": {}}, ops.job({"name": "node", "resources": {"limits": {GPU: 1}, "requests": odd}}))
          for odd in ODD_REQUESTS),
        *(ops.mpi_job(version) for version in ("v1", "v2beta1")),
        *(obj for obj, _ in rows(ops.test_kserve_service_must_not_be_knative)),
    ]  # fmt: skip
    for obj in objs:
        obj.setdefault("metadata", {"name": "w"})
    kept = [obj for obj in objs if "${" not in json.dumps(obj)]  # placeholders are not filled in after Helm
    assert compare(workbench, texts(kept)) >= 30


def gpu_in(jobs: list[Object], losing: tuple[int, int]) -> list[Object]:
    """Return jobs of which one container asks for a GPU."""
    jobs = json.loads(json.dumps(jobs))
    spec = jobs[losing[0]]["template"]["spec"]["template"]["spec"]
    spec["containers"][losing[1]]["resources"]["limits"] = {GPU: 1}
    return jobs


def test_reasons_to_leave_a_pod_alone(workbench: Bench) -> None:
    specs = [spec for spec, *_ in rows(test_skips.test_a_pod_spec_that_speaks_against_it)]
    specs += rows(test_skips.test_what_is_no_reason)
    specs += [test_skips.affinity(expression) for expression, _ in rows(test_skips.test_required_node_affinity)]
    specs += [test_skips.affinity({"key": "nvidia.com/mig.strategy", "operator": "Exists"}, required=False)]
    spoken = rows(test_skips.test_an_annotation_of_the_template_or_the_workload_speaks_against_it, 1)
    annotations = [each for each, _ in spoken]
    annotations += rows(test_skips.test_annotations_that_are_no_reason)[:-1]
    objs = [deployment(container(gpu=1), **spec) for spec in specs]
    objs += [deployment(container(gpu=1), meta={"annotations": each}) for each in annotations]
    for each in annotations:
        obj = deployment(container(gpu=1))
        obj["spec"]["template"]["metadata"]["annotations"] = each
        objs.append(obj)
    objs += [deployment(container(gpu=1), meta={"namespace": name}) for name in (*SYSTEM_NAMESPACES, "ml")]
    assert compare(workbench, texts(objs)) == 35


CLAIM_FIELDS = {"ResourceClaim": "resourceClaimName", "ResourceClaimTemplate": "resourceClaimTemplateName"}


def test_claims_of_the_same_text(workbench: Bench) -> None:
    def claim(kind: str, name: str, device_class: str) -> str:
        request = {"name": "r", "exactly": {"deviceClassName": device_class}}
        spec: Object = {"devices": {"requests": [request]}}
        spec = {"spec": spec} if kind.endswith("Template") else spec
        return json.dumps({"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})

    def user(field: str, name: str) -> str:
        holder = container(resources={"limits": {GPU: 1}, "claims": [{"name": "c"}]})
        return json.dumps(pod(holder, resourceClaims=[{"name": "c", field: name}]))

    cases = [
        f"{claim(kind, 'a', device_class)}\n---\n{user(field, name)}\n"
        for kind, field in CLAIM_FIELDS.items()
        for device_class in ("gpu.nvidia.com", "nic.example.com")
        for name in ("a", "b")
    ]  # fmt: skip
    assert compare(workbench, cases) == 6


def test_places_that_hold_no_claims(workbench: Bench) -> None:
    ask = {"limits": {GPU: 1}}
    objs = [
        pod(container(gpu=1), resources=ask),
        pod(container(), resources=ask),
        pod(container(gpu=1), ephemeralContainers=[{"name": "e", "resources": ask}]),
        pod(container(gpu=1), resources={"limits": {"cpu": 1}}, ephemeralContainers=[{"name": "e"}, 1]),
        pod(container("a", 1), container("a", 1)),
        pod(container("a", 1), container("b"), container("b")),
        pod(container("", 1)),
        pod(container(gpu=1), resourceClaims={}),
        pod(container(gpu=1), tolerations="x"),
        pod(container(resources={"limits": {GPU: 1}, "claims": {}})),
        pod(container(gpu=1), resourceClaims=[], tolerations=None),
        pod(container(gpu=1), resourceClaims=[1, {"name": 2}], tolerations=[1, "x", None]),
        pod(container(gpu=1), name=""),
        pod(container(gpu=1), name="UPPER_case.-"),
        {**pod(container(gpu=1)), "metadata": {"generateName": "gen-"}},
        {**pod(container(gpu=1)), "metadata": {}},
    ]
    assert compare(workbench, texts(objs)) == 6


def test_what_templates_take_over(workbench: Bench) -> None:
    hooks: list[Object] = [
        {"helm.sh/hook": "pre-install,pre-upgrade", "helm.sh/hook-weight": weight, "helm.sh/hook-delete-policy": "x"}
        for weight in ("5", "-5", "0", "+3", "007", "0x10", "", "x", "1.5", 4)
    ]
    more: list[Object] = [
        {"helm.sh/hook": "test"},
        {"helm.sh/hook-weight": "3"},
        {"argocd.argoproj.io/sync-wave": "-1"},
    ]
    more += [{"argocd.argoproj.io/hook": "PreSync"}, {"helm.sh/hook": 1}, {"helm.sh/resource-policy": "x"}]
    objs = [deployment(container(gpu=1), kind="Job", meta={"annotations": each}) for each in [*hooks, *more]]
    labels: list[Any] = [{}, None, [], {"app": "x", "release": ""}]
    objs += [deployment(container(gpu=1), meta={"labels": each, "namespace": "ml"}) for each in labels]
    assert compare(workbench, texts(objs)) == len(objs)


def test_wrappers(workbench: Bench) -> None:
    inner = [deployment(container(gpu=1)), {"kind": "ConfigMap"}, 1, deployment(container(gpu="x"), name="bad")]
    inner += [deployment(container("a", 20), container("b", 20), name="two")]
    items = {"apiVersion": "v1", "kind": "List", "items": inner}
    components = [{"template": each} for each in inner]
    metadata = {"name": "w", "namespace": "ml", "labels": {"q": "1"}, "annotations": {"helm.sh/hook": "post-install"}}
    opted_out = {**metadata, "annotations": {"gpu2dra.dev/convert": "false"}}
    wrapper = {"apiVersion": "workload.codeflare.dev/v1beta2", "kind": "AppWrapper", "metadata": metadata}
    objs = [
        items, {**items, "items": {}}, {**items, "items": None}, {**items, "items": [items]},
        {**wrapper, "spec": {"components": components}},
        {**wrapper, "spec": {"components": [{"template": items}]}},
        {**wrapper, "metadata": opted_out, "spec": {"components": components}},
    ]  # fmt: skip
    assert compare(workbench, texts(objs)) == 4


@pytest.mark.parametrize(
    "options",
    [
        Options(api_version=ApiVersion.V1BETA2, keep=(Keep.HELM,), elsewhere=False),
        Options(api_version=ApiVersion.V1BETA1, keep=(Keep.HELM,), elsewhere=False),
        Options(tolerations=False, keep=(Keep.HELM,), elsewhere=False),
        Options(schedulers=frozenset({"volcano"}), keep=(Keep.HELM,), elsewhere=False),
    ],
    ids=["v1beta2", "v1beta1", "no tolerations", "another scheduler"],
)
def test_options(helm: Helm, tmp_path: Path, options: Options) -> None:
    objs = [pod(container("a", 2), container("b", limits={MIGS[0]: 1}), schedulerName=name) for name in ("volcano", "")]
    assert compare(bench(tmp_path / "chart", helm, options), texts(objs), options) in (1, 2)
