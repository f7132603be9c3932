"""The squares of releases: real Helm and Kustomize make of converted values what converting their output gives."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from controlplane import build
from elsewhere.charts import MODELSERVICE, OLLAMA, RAY_CLUSTER, app_template
from gpu2dra import Context, Options
from gpu2dra_migrate.helm.program import Helm
from gpu2dra_migrate.helm.reach import Devices, Place, limits_left, reach
from gpu2dra_migrate.helm.square import converted
from gpu2dra_migrate.manifest import convert, objects
from gpu2dra_migrate.text.emit import documents_text

pytestmark = pytest.mark.slow
SHAPES = Path(__file__).resolve().parents[1] / "golden" / "shapes"
CHARTS = {
    "flux-ollama": OLLAMA, "argo-ollama-values-object": OLLAMA, "argo-ollama-values-text": OLLAMA,
    "helmfile-ollama": OLLAMA, "flux-llm-d-modelservice": MODELSERVICE, "flux-ray-cluster": RAY_CLUSTER,
    "flux-app-template": app_template(claims=True), "flux-app-template-older": app_template(claims=False),
}  # fmt: skip


@pytest.fixture(scope="session", params=("helm-3", "helm-4"))
def helm(request: pytest.FixtureRequest) -> Helm:
    """Return each version of helm in turn."""
    return Helm(str(build.ensure(request.param) / "helm"))


@pytest.fixture(scope="session")
def kustomize() -> Path:
    """Return kustomize."""
    return build.ensure("kustomize-5") / "kustomize"


def values_in(found: list[Any]) -> Any:
    """Return the values of the first release among objects."""
    for obj in found:
        spec = obj.get("spec", {})
        helm_: Any = next((each["helm"] for each in (spec.get("source"), *spec.get("sources", ())) if each), {})
        if "values" in helm_:
            return objects(helm_["values"])[0]
        if values := spec.get("values") or helm_.get("valuesObject"):
            return values
        if obj.get("releases"):
            return obj["releases"][0]["values"][0]
    raise AssertionError("no release")


def rendered(helm: Helm, chart: Path, found: list[Any]) -> list[Any]:
    """Return what the chart makes of the values of the release among objects."""
    file = chart.parent / "values.yaml"
    file.write_text(documents_text([values_in(found)]))
    return [obj for each in helm.template(chart, values=[file]) for obj in objects(each.text)]


def post_rendered(kustomize: Path, folder: Path, found: list[Any], made: list[Any]) -> list[Any]:
    """Return objects after the postRenderers of the release among `found`, as Flux carries them out."""
    for obj in found:
        for number, renderer in enumerate(obj.get("spec", {}).get("postRenderers", ())):
            here = folder / f"post-{number}"
            here.mkdir(parents=True)
            (here / "all.yaml").write_text(documents_text(made))
            patches = renderer["kustomize"]["patches"]
            (here / "kustomization.yaml").write_text(documents_text([{"resources": ["all.yaml"], "patches": patches}]))
            done = subprocess.run([kustomize, "build", here], check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            made = objects(done.stdout)
    return made


def without_paths(found: dict[Place, Devices]) -> Counter[tuple[str, ...]]:
    """Return devices by object and container."""
    return Counter({(*place, *device): count for place, each in found.items() for device, count in each.items()})


@pytest.mark.parametrize("shape", CHARTS)
def test_a_converted_release_renders_the_same_devices(helm: Helm, kustomize: Path, tmp_path: Path, shape: str) -> None:
    chart = tmp_path / "chart"
    for name, text in {"Chart.yaml": "apiVersion: v2\nname: app\nversion: 0.1.0\n", **CHARTS[shape]}.items():
        (chart / name).parent.mkdir(parents=True, exist_ok=True)
        (chart / name).write_text(text)
    text = (SHAPES / shape / "input.yaml").read_text()
    done = convert(text, Options())
    assert done.text is not None
    before = post_rendered(kustomize, tmp_path / "before", objects(text), rendered(helm, chart, objects(text)))
    wanted = list(converted(before, Options(), Context()))
    after = objects(done.text)
    made = post_rendered(kustomize, tmp_path / "after", after, rendered(helm, chart, after))
    templates = [obj for obj in after if obj.get("kind") == "ResourceClaimTemplate"]
    assert without_paths(reach([*made, *templates])) == without_paths(reach(wanted))
    assert reach(wanted)
    assert limits_left(made) == []
    assert not any("nvidia.com/gpu" in limits for limits in asked(made))
    assert skeletons(made) == skeletons(wanted), "all that has to do with no device is as it was"


def asked(found: list[Any]) -> list[Any]:
    """Return the limits that are not zero."""
    waiting, result = list(found), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            result += [{key: value for key, value in node["limits"].items() if value}] if "limits" in node else []
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return result


def skeletons(found: list[Any]) -> list[str]:
    """Return workloads without what asks for devices or leads to their nodes."""
    return sorted(repr(_pruned(obj)) for obj in found if obj.get("kind") != "ResourceClaimTemplate")


def _pruned(value: Any) -> Any:
    gone = ("claims", "resourceClaims", "tolerations", "limits", "requests", "resources")
    if isinstance(value, dict):
        return {key: _pruned(value[key]) for key in sorted(value) if key not in gone}
    return [_pruned(item) for item in value] if isinstance(value, list) else value
