"""`gpu2dra krm-function`: a ResourceList in and out, results, settings by functionConfig."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gpu2dra import CODES
from gpu2dra_migrate.cli import cli
from gpu2dra_migrate.filters.resource_list import json_path
from gpu2dra_migrate.manifest import objects

LIST = """\
# The list
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
  - apiVersion: v1
    kind: ConfigMap
    metadata: {name:   plain} # untouched
  - apiVersion: v1
    kind: Pod
    metadata:
      name: one # kept
      namespace: ml
      annotations:
        internal.config.kubernetes.io/path: pods/one.yaml
        config.kubernetes.io/path: pods/one.yaml
        internal.config.kubernetes.io/index: "2"
        internal.config.kubernetes.io/seqindent: wide
    spec:
      containers:
        - name: a
          resources:
            limits:
              nvidia.com/gpu: GPUS
"""


def run(text: str, *arguments: str) -> Result:
    """Run the function over a text."""
    return CliRunner().invoke(cli, ["krm-function", *arguments], input=text.encode())


def read(done: Result) -> Any:
    """Return the only document that was printed."""
    (found,) = objects(done.stdout)
    return found


def with_config(config: object) -> str:
    """Return the list with a functionConfig."""
    return LIST.replace("GPUS", "2") + f"functionConfig: {json.dumps(config)}\n"


def test_an_item_gets_its_template_before_it_and_comments_stay() -> None:
    done = run(LIST.replace("GPUS", "2"))
    assert (done.exit_code, done.stderr) == (0, "")
    found = read(done)
    plain, template, pod = found["items"]
    assert (plain["kind"], template["kind"], pod["kind"]) == ("ConfigMap", "ResourceClaimTemplate", "Pod")
    assert pod["spec"]["resourceClaims"] == [{"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}]
    assert "limits" not in pod["spec"]["containers"][0]["resources"]
    assert template["metadata"]["namespace"] == "ml"
    assert template["metadata"]["annotations"] == {
        "gpu2dra.dev/workload": "Pod/one", "internal.config.kubernetes.io/path": "pods/one.yaml",
        "config.kubernetes.io/path": "pods/one.yaml", "internal.config.kubernetes.io/index": "2",
    }  # fmt: skip
    removed = {line for line in LIST.splitlines() if line not in done.stdout.splitlines()}
    assert removed == {"            limits:", "              nvidia.com/gpu: GPUS"}


def test_the_results_say_what_was_done() -> None:
    results = read(run(LIST.replace("GPUS", "2")))["results"]
    assert [(each["severity"], each["tags"]["code"]) for each in results] == [("info", "DRA001"), ("info", "DRA103")]
    assert results[0]["resourceRef"] == {"apiVersion": "v1", "kind": "Pod", "name": "one", "namespace": "ml"}
    assert results[0]["field"] == {"path": 'spec.containers[0].resources.limits["nvidia.com/gpu"]'}
    assert results[0]["file"] == {"path": "pods/one.yaml", "index": 2}
    assert results[0]["tags"]["name"] == CODES["DRA001"].name


@pytest.mark.parametrize(
    "text", [LIST.split("  - apiVersion: v1\n    kind: Pod", maxsplit=1)[0], LIST.split("items", maxsplit=1)[0]]
)
def test_without_a_gpu_the_list_passes_byte_for_byte(text: str) -> None:
    done = run(text)
    assert (done.exit_code, done.stdout_bytes, done.stderr) == (0, text.encode(), "")


def test_what_is_converted_stays_and_results_add_up() -> None:
    first = run(LIST.replace("GPUS", "2"))
    again = run(first.stdout)
    assert again.stdout_bytes == first.stdout_bytes
    bad = run(first.stdout.replace("kind: ConfigMap", "spec: {limits: {nvidia.com/gpu: 1}}\n    kind: Odd"))
    assert [each["tags"]["code"] for each in read(bad)["results"]] == ["DRA001", "DRA103", "DRA420"]


def test_an_error_fails_the_function_and_the_rest_is_converted() -> None:
    text = LIST.replace("GPUS", "2") + LIST.partition("items:\n")[2].replace("one", "two").replace("GPUS", "500m")
    done = run(text)
    assert done.exit_code == 1
    assert done.stderr == (
        'pods/two.yaml: error DRA301 Pod/two: nvidia.com/gpu: "500m" is not a whole number; the API server takes '
        "whole numbers from 0 up.\n"
    )
    found = read(done)
    assert [obj["kind"] for obj in found["items"]] == ["ConfigMap", "ResourceClaimTemplate", "Pod", "ConfigMap", "Pod"]
    assert [each["severity"] for each in found["results"]] == ["info", "info", "error"]


def test_a_warning_is_told_and_does_not_fail() -> None:
    text = (
        LIST.replace("GPUS", "2")
        .replace("kind: Pod", "kind: Odd")
        .replace("v1\n    kind: Odd", "x.com/v1\n    kind: Odd")
    )
    done = run(text)
    assert done.exit_code == 0
    assert [each["severity"] for each in read(done)["results"]] == ["warning"]
    assert done.stderr.startswith("pods/one.yaml: warning DRA401 Odd/one: ")
    assert run(text, "--quiet").stderr == ""


def test_generate_name_gets_a_file_of_its_own() -> None:
    found = read(run(LIST.replace("GPUS", "2").replace("name: one #", "generateName: one- #")))
    assert found["items"][1]["metadata"]["annotations"] == {
        "gpu2dra.dev/workload": "Pod/one", "internal.config.kubernetes.io/path": "pods/one-gpu-template.yaml",
        "config.kubernetes.io/path": "pods/one-gpu-template.yaml",
    }  # fmt: skip


def test_a_comment_leaves_its_item_alone_and_no_other() -> None:
    item = LIST.partition("items:\n")[2]
    text = LIST.replace("GPUS", "2 # gpu2dra: ignore[DRA001] later") + item.replace("one", "two").replace("GPUS", "1")
    found = read(run(text))
    assert [obj["kind"] for obj in found["items"]] == ["ConfigMap", "Pod", "ConfigMap", "ResourceClaimTemplate", "Pod"]
    assert {each["resourceRef"]["name"] for each in found["results"]} == {"two"}


@pytest.mark.parametrize(
    "wrap", [lambda text: json.dumps(objects(text)[0]), lambda text: json.dumps(objects(text)[0], indent=4)]
)
def test_json_stays_json(wrap: Any) -> None:
    done = run(wrap(LIST.replace("GPUS", "2")))
    found = json.loads(done.stdout)
    assert [obj["kind"] for obj in found["items"]] == ["ConfigMap", "ResourceClaimTemplate", "Pod"]


def test_a_layout_that_cannot_be_edited_is_written_anew() -> None:
    text = LIST.replace("limits:\n", "limits: &both\n").replace("GPUS", "2") + "            requests: *both\n"
    done = run(text)
    assert done.exit_code == 0
    assert read(done)["items"][2]["spec"]["containers"][0]["resources"] == {"claims": [{"name": "gpu", "request": "a"}]}


POLICY = {
    "apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy", "metadata": {"name": "mine"},
    "devices": [{"name": "slice", "deviceClassName": "slice.example.com"}],
    "rules": [{"match": {"resources": ["nvidia.com/gpu"]}, "device": "slice"}],
}  # fmt: skip
CONFIG = {"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "Config", "metadata": {"name": "mine"}}
MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine"}}


@pytest.mark.parametrize(
    ("config", "arguments", "words", "absent"),
    [
        (POLICY, (), ["deviceClassName: slice.example.com", "tolerations:"], ["gpu.nvidia.com"]),
        ({**CONFIG, "policy": {k: v for k, v in POLICY.items() if k != "metadata"}}, (), ["slice.example.com"], []),
        ({**CONFIG, "target": "1.33", "tolerations": False}, (), ["resource.k8s.io/v1beta2"], ["tolerations:"]),
        (CONFIG, ("--target", "1.32"), ["resource.k8s.io/v1beta1"], []),
        ({**MAP, "data": {"target": "1.33", "tolerations": "false"}}, (), ["k8s.io/v1beta2"], ["tolerations:"]),
        ({**MAP, "data": {"keep": "argocd, flux"}}, (), ["Prune=false", "prune: disabled"], []),
        ({**MAP, "data": {"policy": "policy.json"}}, (), ["slice.example.com"], []),
        (MAP, ("--keep", "helm"), ["helm.sh/resource-policy: keep"], []),
    ],
)  # fmt: skip
def test_function_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Any, arguments: tuple[str, ...], words: list[str],
    absent: list[str],
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("policy.json").write_text(json.dumps(POLICY))
    done = run(with_config(config), *arguments)
    assert done.exit_code == 0, done.stderr
    items = done.stdout.partition("functionConfig")[0]
    assert [word for word in words if word not in items] == []
    assert [word for word in absent if word in items] == []


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("text", "/functionConfig/kind: this is no object; write a ConversionPolicy, a Config or a ConfigMap"),
        ({"kind": "Other"}, "/functionConfig/kind: this is Other; write a ConversionPolicy"),
        ({**CONFIG, "colour": 1}, "/functionConfig/colour: unknown field"),
        ({**CONFIG, "target": "1.20"}, "/functionConfig/target: Kubernetes 1.20 cannot hold"),
        ({**MAP, "data": {"colour": "x"}}, "/functionConfig/data/colour: unknown key; the keys are target, "),
        ({**MAP, "data": {"target": 1.33}}, "/functionConfig/data/target: the data of a ConfigMap are texts"),
        ({**MAP, "data": {"tolerations": "no"}}, "/functionConfig/data/tolerations: write true or false"),
        ({**MAP, "data": {"keep": "all"}}, "/functionConfig/data/keep: write one of none, helm, argocd, flux"),
        ({**POLICY, "rules": [{"match": {}, "device": "other"}]}, "/functionConfig/rules/0"),
    ],
)
def test_a_function_config_that_cannot_be_used(config: Any, message: str) -> None:
    done = run(with_config(config))
    assert (done.exit_code, done.stdout) == (2, "")
    assert "functionConfig:24:" in done.stderr.replace("\n", " ")
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no ResourceList"),
        (LIST + "---\n" + LIST, "`gpu2dra render-filter` reads streams"),
        (LIST.replace("ResourceList", "List"), "holds List, not a ResourceList"),
        ("a: 1\n", "holds no object, not a ResourceList"),
        (LIST.replace("config.kubernetes.io/v1", "example.com/v1"), "not a ResourceList of config.kubernetes.io/v1"),
        ("items: [\n", "line 2, column 1: "),
        ("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: {}\n", "no list"),
        (LIST + "\0", "NUL bytes"),
    ],
)
def test_what_is_no_resource_list(text: str, message: str) -> None:
    done = run(text)
    assert (done.exit_code, done.stdout) == (3, "")
    assert message in done.stderr


def test_too_much() -> None:
    done = run(LIST, "--max-size", "20")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "raise --max-size" in done.stderr


@pytest.mark.parametrize(
    ("place", "path"),
    [("", ""), ("/a/0/b", "a[0].b"), ("/a/x.y~1z/0", 'a["x.y/z"][0]'), ("/0", "[0]")],
)
def test_json_path(place: str, path: str) -> None:
    assert json_path(place) == path


def test_values_of_a_known_chart_convert_as_well() -> None:
    text = """\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: helm.toolkit.fluxcd.io/v2
  kind: HelmRelease
  metadata: {name: app, annotations: {config.kubernetes.io/path: app.yaml}}
  spec:
    chartRef: {kind: OCIRepository, name: source}
    values:
      controllers: {main: {containers: {app: {resources: {limits: {nvidia.com/gpu: 1}}}}}}
- apiVersion: source.toolkit.fluxcd.io/v1
  kind: OCIRepository
  metadata: {name: source}
  spec: {url: oci://example.com/app-template, ref: {tag: 5.0.0}}
"""
    found = read(run(text))
    template, release, _ = found["items"]
    assert template["metadata"]["annotations"]["config.kubernetes.io/path"] == "app.yaml"
    claims = [{"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}]
    assert release["spec"]["values"]["controllers"]["main"]["pod"]["resourceClaims"] == claims
