"""ResourceClaimTemplates: shape, name, labels, annotations, and how an edited one is known (R8, R9)."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from gpu2dra import ApiVersion, Keep, Object, Options, Style
from gpu2dra.allocation import Claim, Request
from gpu2dra.devices import Device
from gpu2dra.templates import Workload, build, canonical_spec, fitting_name

CLAIM = Claim("gpu", (Request("main", Device("gpu.nvidia.com"), 2),))
SELECTED = Claim("mig", (Request("main", Device("mig.nvidia.com", ("true",)), 1),))
CANONICAL = (
    '{"spec":{"devices":{"requests":[{"exactly":{"allocationMode":"ExactCount","count":2,'
    '"deviceClassName":"gpu.nvidia.com"},"name":"main"}]}}}'
)
"""Written by hand: the spec of CLAIM as the API server keeps it, keys sorted."""
VERSIONS = list(ApiVersion)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def workload(
    kind: str = "Deployment", name: str = "web", namespace: str = "", group: str = "apps", **metadata: Any
) -> Workload:
    return Workload(group, kind, name, namespace, {"name": name, **metadata})


def test_a_template_of_the_converter() -> None:
    made = build(CLAIM, workload(namespace="ml", labels={"app": "web"}), Options())
    assert made == {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": "web-gpu-9faae2ab",
            "namespace": "ml",
            "labels": {"app": "web"},
            "annotations": {"gpu2dra.dev/workload": "Deployment.apps/web"},
        },
        "spec": {
            "spec": {
                "devices": {
                    "requests": [
                        {
                            "name": "main",
                            "exactly": {
                                "deviceClassName": "gpu.nvidia.com",
                                "allocationMode": "ExactCount",
                                "count": 2,
                            },
                        }
                    ]
                }
            }
        },
    }
    assert list(made) == ["apiVersion", "kind", "metadata", "spec"]


def test_a_template_of_the_webhook_has_neither_namespace_nor_anything_of_the_pods() -> None:
    pod = workload(
        "Pod", "web-7d4-x2", "ml", "", labels={"app": "web"}, annotations={"argocd.argoproj.io/hook": "Sync"}
    )
    made = build(CLAIM, pod, Options(style=Style.ADMISSION, keep=(Keep.ARGOCD,)))
    assert made["metadata"] == {"name": "gpu-1188f0b6", "labels": {"app.kubernetes.io/managed-by": "gpu2dra"}}


def test_the_digest_is_pinned() -> None:
    assert sha(CANONICAL) == "1188f0b6"
    assert sha(f'{{"group":"apps","kind":"Deployment","spec":{CANONICAL}}}') == "9faae2ab"


@pytest.mark.parametrize("style", list(Style))
def test_the_digest_is_the_same_for_every_version_that_is_written(style: Style) -> None:
    assert (
        len({build(CLAIM, workload(), Options(style=style, api_version=v))["metadata"]["name"] for v in VERSIONS}) == 1
    )


def test_the_digest_covers_group_and_kind_but_not_the_name() -> None:
    names = {
        build(CLAIM, workload(kind, name, group=group), Options())["metadata"]["name"].removeprefix(f"{name}-gpu-")
        for kind, name, group in [
            ("Deployment", "a", "apps"),
            ("Deployment", "b", "apps"),
            ("Job", "a", "batch"),
            ("Job", "a", "volcano"),
        ]
    }
    assert len(names) == 3


@pytest.mark.parametrize(
    ("version", "requests"),
    [
        (
            ApiVersion.V1,
            [
                {
                    "name": "main",
                    "exactly": {
                        "deviceClassName": "mig.nvidia.com",
                        "allocationMode": "ExactCount",
                        "count": 1,
                        "selectors": [{"cel": {"expression": "true"}}],
                    },
                }
            ],
        ),
        (
            ApiVersion.V1BETA2,
            [
                {
                    "name": "main",
                    "exactly": {
                        "deviceClassName": "mig.nvidia.com",
                        "allocationMode": "ExactCount",
                        "count": 1,
                        "selectors": [{"cel": {"expression": "true"}}],
                    },
                }
            ],
        ),
        (
            ApiVersion.V1BETA1,
            [
                {
                    "name": "main",
                    "deviceClassName": "mig.nvidia.com",
                    "allocationMode": "ExactCount",
                    "count": 1,
                    "selectors": [{"cel": {"expression": "true"}}],
                }
            ],
        ),
    ],
)
def test_the_shape_of_each_version(version: ApiVersion, requests: list[Object]) -> None:
    made = build(SELECTED, workload(), Options(api_version=version))
    assert made["apiVersion"] == version.value
    assert type(made["apiVersion"]) is str
    assert made["spec"] == {"spec": {"devices": {"requests": requests}}}


@pytest.mark.parametrize("length", [240, 241, 253])
def test_a_long_name_is_cut_before_the_digest(length: int) -> None:
    name = build(CLAIM, workload(name="w" * length), Options())["metadata"]["name"]
    assert name == "w" * 240 + "-gpu-9faae2ab"
    assert len(name) == 253


@pytest.mark.parametrize(
    ("name", "stem"), [("My_App", "my-app"), ("${APP}", "${APP}"), ("a.b", "a.b"), ("w" * 239 + ".xyz", "w" * 239)]
)
def test_the_name_of_the_workload_in_the_letters_of_a_subdomain(name: str, stem: str) -> None:
    assert build(CLAIM, workload(name=name), Options())["metadata"]["name"] == f"{stem}-gpu-9faae2ab"


OURS = "gpu2dra.dev/workload"


@pytest.mark.parametrize(
    ("annotations", "options", "expected"),
    [
        (None, {}, {}),
        ("text", {}, {}),
        ({"other": "x"}, {}, {}),
        (
            {"postrenderer.helm.sh/postrender-filename": "app/templates/job.yaml"},
            {},
            {"postrenderer.helm.sh/postrender-filename": "app/templates/job.yaml"},
        ),
        ({"helm.sh/hook": "pre-install"}, {}, {"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "-1"}),
        (
            {"helm.sh/hook": "test", "helm.sh/hook-weight": "5", "helm.sh/hook-delete-policy": "hook-succeeded"},
            {},
            {"helm.sh/hook": "test", "helm.sh/hook-weight": "4"},
        ),
        (
            {"helm.sh/hook": "test", "helm.sh/hook-weight": "-5"},
            {},
            {"helm.sh/hook": "test", "helm.sh/hook-weight": "-6"},
        ),
        (
            {"helm.sh/hook": "test", "helm.sh/hook-weight": "x"},
            {},
            {"helm.sh/hook": "test", "helm.sh/hook-weight": "-1"},
        ),
        (
            {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "2"},
            {},
            {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/sync-wave": "1"},
        ),
        (
            {"argocd.argoproj.io/hook": "Sync"},
            {},
            {"argocd.argoproj.io/hook": "Sync", "argocd.argoproj.io/sync-wave": "-1"},
        ),
        ({"argocd.argoproj.io/sync-wave": "0"}, {}, {"argocd.argoproj.io/sync-wave": "-1"}),
        ({"argocd.argoproj.io/sync-wave": 3}, {}, {"argocd.argoproj.io/sync-wave": "2"}),
        ({"argocd.argoproj.io/sync-options": "Replace=true"}, {}, {}),
        (None, {"keep": (Keep.HELM,)}, {"helm.sh/resource-policy": "keep"}),
        (None, {"keep": (Keep.ARGOCD,)}, {"argocd.argoproj.io/sync-options": "Prune=false"}),
        (None, {"keep": (Keep.FLUX,)}, {"kustomize.toolkit.fluxcd.io/prune": "disabled"}),
        (
            {"helm.sh/hook": "test"},
            {"keep": (Keep.ARGOCD, Keep.FLUX)},
            {
                "helm.sh/hook": "test",
                "helm.sh/hook-weight": "-1",
                "argocd.argoproj.io/sync-options": "Prune=false",
                "kustomize.toolkit.fluxcd.io/prune": "disabled",
            },
        ),
    ],
)
def test_annotations_of_hooks_waves_and_pruning(annotations: Any, options: Any, expected: dict[str, str]) -> None:
    made = build(CLAIM, workload(annotations=annotations), Options(**options))
    assert made["metadata"]["annotations"] == {OURS: "Deployment.apps/web", **expected}


@pytest.mark.parametrize(("labels", "copied"), [(None, None), ({}, None), ("x", None), ({"a": "1"}, {"a": "1"})])
def test_labels_are_copied(labels: Any, copied: Any) -> None:
    given = workload(labels=labels)
    made = build(CLAIM, given, Options())["metadata"].get("labels")
    assert made == copied
    assert made is None or made is not given.metadata["labels"]


def test_the_reference_of_a_core_kind_has_no_group() -> None:
    assert workload("Pod", "p", group="").reference == "Pod/p"


# The canonical form


@pytest.mark.parametrize(
    ("request_", "canonical"),
    [
        (
            {"name": "a", "exactly": {"count": 2}},
            {"name": "a", "exactly": {"allocationMode": "ExactCount", "count": 2}},
        ),
        ({"name": "a", "exactly": {}}, {"name": "a", "exactly": {"allocationMode": "ExactCount", "count": 1}}),
        (
            {"name": "a", "exactly": {"count": 0}},
            {"name": "a", "exactly": {"allocationMode": "ExactCount", "count": 1}},
        ),
        ({"name": "a", "exactly": {"allocationMode": "All"}}, {"name": "a", "exactly": {"allocationMode": "All"}}),
        ({"name": "a", "exactly": "x"}, {"name": "a", "exactly": "x"}),
        (
            {"name": "a", "deviceClassName": ""},
            {"name": "a", "exactly": {"deviceClassName": "", "allocationMode": "ExactCount", "count": 1}},
        ),
        (
            {"name": "a", "deviceClassName": "c", "firstAvailable": 1},
            {
                "name": "a",
                "exactly": {"deviceClassName": "c", "firstAvailable": 1, "allocationMode": "ExactCount", "count": 1},
            },
        ),
        (
            {"name": "a", "deviceClassName": "c", "count": 2},
            {"name": "a", "exactly": {"deviceClassName": "c", "allocationMode": "ExactCount", "count": 2}},
        ),
        (
            {"name": "a", "firstAvailable": [{"name": "s"}, "x", {"allocationMode": "All"}]},
            {
                "name": "a",
                "firstAvailable": [
                    {"name": "s", "allocationMode": "ExactCount", "count": 1},
                    "x",
                    {"allocationMode": "All"},
                ],
            },
        ),
        (
            {"name": "a", "deviceClassName": "", "firstAvailable": [{"allocationMode": "All"}]},
            {"name": "a", "firstAvailable": [{"allocationMode": "All"}]},
        ),
        (
            {"exactly": {"count": 1, "tolerations": [{"key": "a"}, {"operator": "Exists"}, 1]}},
            {
                "exactly": {
                    "allocationMode": "ExactCount",
                    "count": 1,
                    "tolerations": [{"key": "a", "operator": "Equal"}, {"operator": "Exists"}, 1],
                }
            },
        ),
        ("x", "x"),
    ],
)
def test_defaults_are_filled_in(request_: Any, canonical: Any) -> None:
    labels = {"labels": {"a": "b"}}
    given = {"metadata": labels, "spec": {"devices": {"requests": [request_], "config": [1]}, "x": 1}}
    assert canonical_spec(given) == {
        "metadata": labels,
        "spec": {"devices": {"requests": [canonical], "config": [1]}, "x": 1},
    }


@pytest.mark.parametrize("metadata", [None, {}, {"labels": {}}, {"creationTimestamp": None}], ids=repr)
def test_metadata_without_values_as_the_server_gives_it_back_is_left_out(metadata: Any) -> None:
    spec = {"devices": {"requests": [{"name": "a", "exactly": {"allocationMode": "All"}}]}}
    assert canonical_spec({"metadata": metadata, "spec": spec}) == {"spec": spec}


@pytest.mark.parametrize("spec", [{}, {"spec": 1}, {"spec": {"devices": []}}, {"spec": {"devices": {"requests": {}}}}])
def test_what_is_no_claim_spec_is_its_own_canonical_form(spec: Any) -> None:
    assert canonical_spec(spec) == spec


# A template of ours whose spec was edited


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", [("apps", "Deployment"), ("", "Pod"), ("batch.volcano.sh", "Job")])
def test_our_own_template_fits(version: ApiVersion, kind: tuple[str, str]) -> None:
    made = build(CLAIM, workload(kind[1], group=kind[0]), Options(api_version=version))
    assert fitting_name(made) == made["metadata"]["name"]


@pytest.mark.parametrize(
    ("name", "fitting"),
    [
        ("web-gpu-00000000", "web-gpu-9faae2ab"),
        ("prod-web-gpu-00000000", "prod-web-gpu-9faae2ab"),
        ("web", "web-gpu-9faae2ab"),
        ("web-gpu-0000", "web-gpu-0000-gpu-9faae2ab"),
        ("web-mig-00000000", "web-mig-00000000-gpu-9faae2ab"),
        ("w" * 253, "w" * 240 + "-gpu-9faae2ab"),
    ],
)
def test_the_name_that_the_spec_should_have(name: str, fitting: str) -> None:
    made = build(CLAIM, workload(), Options())
    made["metadata"]["name"] = name
    assert fitting_name(made) == fitting


def spoilt(**changes: Any) -> Object:
    made = build(CLAIM, workload(), Options())
    return {**made, **changes}


CYCLE: dict[str, Any] = {}
CYCLE["spec"] = CYCLE


@pytest.mark.parametrize(
    "template",
    [
        {},
        spoilt(kind="ResourceClaim"),
        spoilt(metadata=None),
        spoilt(metadata=[]),
        spoilt(metadata={"name": "web-gpu-00000000"}),
        spoilt(metadata={"name": "x", "annotations": []}),
        spoilt(metadata={"name": "x", "annotations": {OURS: 1}}),
        spoilt(metadata={"name": "x", "annotations": {OURS: "no-slash"}}),
        spoilt(metadata={"annotations": {OURS: "Pod/p"}}),
        spoilt(metadata={"name": 1, "annotations": {OURS: "Pod/p"}}),
        spoilt(spec=None),
        spoilt(spec=[]),
        spoilt(spec={"spec": {1: 2, "a": 3}}),
        spoilt(spec={"spec": {("a",): 1}}),
        spoilt(spec={"spec": {1, 2}}),
        spoilt(spec=CYCLE),
    ],
)
def test_what_is_no_template_of_ours_has_no_fitting_name(template: Any) -> None:
    assert fitting_name(template) is None
