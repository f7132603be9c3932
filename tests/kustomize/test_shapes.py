"""Overlays of every shape: afterwards they build claims, nothing else has changed, and a second run changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu2dra import ApiVersion, Options
from gpu2dra_migrate.kustomize.program import Kustomize
from gpu2dra_migrate.policy_file import load_policy
from gpu2dra_migrate.runner import Mode, run
from kustomize.shapes import BASE, SHAPES, over
from kustomize.trees import convert, judge, read, requests, settings, write

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", SHAPES)
def test_the_square_commutes(kustomize: Kustomize, tmp_path: Path, name: str) -> None:
    shape = SHAPES[name]
    done = convert(write(tmp_path, shape.files), kustomize)
    told = {
        code
        for code in done.codes()
        if code not in {"DRA001", "DRA435", "DRA423", "DRA101", "DRA102", "DRA103", "DRA449"}
    }
    assert told - {"DRA105", "DRA111", "DRA106", "DRA107"} == set(), [done.messages(code) for code in told]
    for folder, (before, after) in done.built.items():
        assert judge(before, after) == [], folder
        assert folder not in shape.gets or requests(after) == shape.gets[folder]
    if shape.changed:
        assert done.changed == shape.changed
    assert "nvidia.com/gpu:" not in "".join(text for name, text in done.after.items() if name in done.changed).replace(
        "nvidia.com/gpu: 0", ""
    )
    assert [result.path for result in run([tmp_path], settings(Mode.CONVERT)) if result.changed] == []
    assert read(tmp_path) == done.after


@pytest.mark.parametrize("version", [ApiVersion.V1BETA1, ApiVersion.V1BETA2])
@pytest.mark.parametrize("name", ["merge-file", "operations-inline", "prefix", "namespace-replaced-and-patched"])
def test_older_targets_have_their_own_shape(
    kustomize: Kustomize, tmp_path: Path, name: str, version: ApiVersion
) -> None:
    options = Options(api_version=version, tolerations=False)
    done = convert(write(tmp_path, SHAPES[name].files), kustomize, options=options)
    for before, after in done.built.values():
        assert judge(before, after, options) == []
        made = {obj["apiVersion"] for obj in after if obj["kind"] == "ResourceClaimTemplate"}
        assert made == {str(version)}
        assert "tolerations" not in str(after)


POLICY = """\
apiVersion: gpu2dra.dev/v1alpha1
kind: ConversionPolicy
devices:
- {name: slice, deviceClassName: slice.example.com}
rules:
- {match: {resources: [nvidia.com/gpu], namespaces: [dev-*]}, device: slice}
- {match: {namespaces: [later]}, skip: moves with the next driver}
"""


def test_a_policy_by_namespace_decides_in_each_overlay(kustomize: Kustomize, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    options = Options(policy=load_policy(tmp_path / "policy.yaml"))
    files = {**BASE, **over("namespace: dev-a\n"), "prod/kustomization.yaml": "resources: [../base]\nnamespace: prod\n"}
    done = convert(write(tmp_path / "tree", files), kustomize, options=options)
    classes = {}
    for name, (before, after) in done.built.items():
        assert judge(before, after, options) == []
        (deployment,) = (obj for obj in after if obj["kind"] == "Deployment")
        (claim,) = deployment["spec"]["template"]["spec"]["resourceClaims"]
        (spec,) = (
            obj["spec"]["spec"]["devices"]["requests"][0]["exactly"]
            for obj in after
            if obj["metadata"]["name"] == claim["resourceClaimTemplateName"]
        )
        classes[name] = spec["deviceClassName"]
    assert classes == {"base": "gpu.nvidia.com", "over": "slice.example.com", "prod": "gpu.nvidia.com"}


def test_a_policy_that_skips_a_namespace_holds_the_base_back(kustomize: Kustomize, tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    options = Options(policy=load_policy(tmp_path / "policy.yaml"))
    done = convert(write(tmp_path / "tree", {**BASE, **over("namespace: later\n")}), kustomize, options=options)
    assert done.changed == set()
    assert any("next driver" in message for message in done.messages("DRA437"))
