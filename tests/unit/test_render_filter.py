"""`gpu2dra render-filter`: a stream in, the converted stream out, and nothing half-way."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from gpu2dra import Keep, Options
from gpu2dra_migrate import __version__
from gpu2dra_migrate.cli import cli
from gpu2dra_migrate.filters.stream import convert_stream
from gpu2dra_migrate.manifest import objects

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  containers:
  - name: a
    resources:
      limits:
        nvidia.com/gpu: 2
"""
JSON = json.dumps(
    {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    }
)  # fmt: skip
# Odd layouts, and two that libyaml refuses; none of them asks for a GPU.
PLAIN = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name:   plain,}\n",
    "# only a comment\n",
    "",
    "kind: Odd\nurls: [http://host:80]\n",
    "key: [never closed\n",
    "data: |\n  --- no marker\n  # Source: nothing\n",
)


def run(text: str, *arguments: str) -> Result:
    """Run the filter over a text."""
    return CliRunner().invoke(cli, ["render-filter", *arguments], input=text.encode())


def helm_like(*documents: str, eol: str = "\n") -> str:
    """Return documents as `helm template` prints them."""
    parts = (f"---\n# Source: app/templates/{number}.yaml\n{each}" for number, each in enumerate(documents))
    return "".join(parts).replace("\n", eol)


def sources(text: str) -> list[tuple[str, str]]:
    """Return file and text of each document, split as tools split what Helm prints."""
    pieces = re.split(r"^---\r?\n# Source: (.*?)\r?\n", text, flags=re.MULTILINE)
    assert pieces[0] == ""
    return list(zip(pieces[1::2], pieces[2::2], strict=True))


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_a_document_without_a_gpu_passes_byte_for_byte(eol: str) -> None:
    text = helm_like(*PLAIN, POD, *PLAIN, eol=eol)
    done = run(text)
    assert (done.exit_code, done.stderr) == (0, "")
    before, after = sources(text), sources(done.stdout_bytes.decode())
    assert [each for each in after if each in before] == [each for each in before if "nvidia.com/gpu: 2" not in each[1]]
    new = [each for each in after if each not in before]
    file = f"app/templates/{len(PLAIN)}.yaml"
    assert [name for name, _ in new] == [file, file]
    assert [obj["kind"] for _, each in new for obj in objects(each)] == ["ResourceClaimTemplate", "Pod"]
    assert all(each.endswith(eol) and each.count("\n") == each.count(eol) for _, each in new)


@pytest.mark.parametrize("text", ["", "---\n", "\ufeff", helm_like(*PLAIN), "a: 1", "%YAML 1.2\n---\na: 1\n...\n"])
def test_without_a_gpu_nothing_changes(text: str) -> None:
    done = run(text)
    assert (done.exit_code, done.stdout_bytes, done.stderr) == (0, text.encode(), "")


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (POD, ["ResourceClaimTemplate", "Pod"]),
        (f"\ufeff{POD}", ["ResourceClaimTemplate", "Pod"]),
        (f"{POD}---\n{POD.replace('one', 'two')}", ["ResourceClaimTemplate", "Pod"] * 2),
        (f"a: 1\n--- # gpu\n{POD}", [None, "ResourceClaimTemplate", "Pod"]),
        (f"a: 1\n...\n---\n{POD}", [None, "ResourceClaimTemplate", "Pod"]),
        (f"a: 1\n---\n{POD.replace('name: one', 'generateName: one-')}", [None, "ResourceClaimTemplate", "Pod"]),
        (f"a: 1\n--- {JSON.replace('name', 'generateName', 1)}\n", [None, "ResourceClaimTemplate", "Pod"]),
        (JSON, ["ResourceClaimTemplate", "Pod"]),
    ],
)
def test_streams_of_every_form(text: str, kinds: list[str | None]) -> None:
    done = run(text)
    assert done.exit_code == 0
    found = objects(done.stdout)
    assert [obj.get("kind") for obj in found] == kinds
    assert found[-1]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == found[-2]["metadata"]["name"]
    again = run(done.stdout)
    assert again.stdout_bytes == done.stdout_bytes, "what is converted passes"


def test_the_template_goes_into_the_file_and_the_hook_of_its_workload() -> None:
    annotations = {
        "postrenderer.helm.sh/postrender-filename": "app/templates/test.yaml", "helm.sh/hook": "test",
        "helm.sh/hook-weight": "5",
    }  # fmt: skip
    lines = "".join(f"    {key}: {value!r}\n" for key, value in annotations.items())
    done = run(POD.replace("  name: one\n", f"  name: one\n  annotations:\n{lines}"))
    template, pod = objects(done.stdout)
    assert pod["metadata"]["annotations"] == annotations
    assert template["metadata"]["annotations"] == {
        **annotations, "helm.sh/hook-weight": "4", "helm.sh/resource-policy": "keep",
        "gpu2dra.dev/workload": "Pod/one",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "arguments", "kept"),
    [
        (helm_like(POD), (), {"helm.sh/resource-policy"}),
        (POD, (), set()),
        (POD, ("--keep", "helm"), {"helm.sh/resource-policy"}),
        (helm_like(POD), ("--keep", "none"), set()),
        (helm_like(POD), ("--keep", "flux"), {"kustomize.toolkit.fluxcd.io/prune"}),
    ],
)
def test_what_the_template_is_kept_by(text: str, arguments: tuple[str, ...], kept: set[str]) -> None:
    template = next(obj for obj in objects(run(text, *arguments).stdout) if obj["kind"] == "ResourceClaimTemplate")
    assert {*template["metadata"]["annotations"]} - {"gpu2dra.dev/workload"} == kept


def test_neighbours_in_other_documents_count() -> None:
    claim = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: mine}
spec: {devices: {requests: [{name: x, exactly: {deviceClassName: CLASS}}]}}
"""
    pod = POD.replace("limits:", "claims: [{name: c}]\n      limits:")
    pod += "  resourceClaims: [{name: c, resourceClaimName: mine}]\n"
    other, same = (run(f"{claim.replace('CLASS', name)}---\n{pod}") for name in ("other.com", "gpu.nvidia.com"))
    assert (other.exit_code, other.stderr) == (0, "")
    assert "nvidia.com/gpu: 2" not in other.stdout
    assert "nvidia.com/gpu: 2" in same.stdout
    assert "DRA307" in same.stderr


def test_what_stays_is_told_with_its_line_and_passes() -> None:
    unknown = "apiVersion: example.com/v1\nkind: Unknown\nspec: {limits: {nvidia.com/gpu: 1}}\n"
    text = helm_like(PLAIN[0], unknown, POD.replace("gpu: 2", "gpu: 500m"))
    done = run(text)
    assert (done.exit_code, done.stdout) == (0, text)
    lines = [line.split(": ")[:2] for line in done.stderr.splitlines()]
    assert lines == [["<stdin>:10:17", "warning DRA402 Unknown"], ["<stdin>:22:9", "error DRA301 Pod/one"]]
    assert "DRA402" not in run(text, "--quiet").stderr


@pytest.mark.parametrize(
    ("text", "arguments", "code"),
    [
        (helm_like(PLAIN[0], "nvidia.com/gpu: [\n"), (), "DRA501"),
        (POD.replace("gpu: 2", "gpu: {{ .Values.n }}"), (), "DRA509"),
        (POD, ("--max-size", "20"), "DRA503"),
        (POD + "\0", (), "DRA502"),
        (POD.replace("gpu: 2", "gpu: 500m"), ("--strict",), "DRA301"),
        ("apiVersion: example.com/v1\nkind: Unknown\nspec: {limits: {nvidia.com/gpu: 1}}\n", ("--strict",), "DRA402"),
    ],
)
def test_nothing_is_passed_on_where_it_must_not(text: str, arguments: tuple[str, ...], code: str) -> None:
    done = run(helm_like(POD) + "---\n" + text if "--max-size" not in arguments else text, *arguments)
    assert (done.exit_code, done.stdout) == (3, "")
    assert code in done.stderr
    assert done.stderr.endswith("gpu2dra: nothing is passed on.\n")


def test_strict_passes_what_converts_and_zeros() -> None:
    done = run(helm_like(POD, POD.replace("gpu: 2", "gpu: 0")), "--strict")
    assert (done.exit_code, done.stderr) == (0, "")


def test_options_and_settings_are_those_of_convert(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".gpu2dra.yaml").write_text('apiVersion: gpu2dra.dev/v1alpha1\nkind: Config\ntarget: "1.33"\n')
    assert "resource.k8s.io/v1beta2" in run(POD).stdout
    assert "resource.k8s.io/v1beta1" in run(POD, "--target", "1.32").stdout
    assert "tolerations" not in run(POD, "--no-tolerations").stdout
    broken = run(POD, "--target", "1.20")
    assert (broken.exit_code, broken.stdout) == (2, "")


def test_many_documents_are_converted_one_by_one() -> None:
    text = helm_like(*(POD.replace("one", f"pod-{number}") for number in range(20)))
    done = convert_stream(text, Options(), [Keep.NONE])
    assert (done.objects, done.requests) == (20, 20)
    assert [item.line for item in done.findings if item.finding.code == "DRA001"] == [12 * n + 12 for n in range(20)]


def test_the_plugin_has_the_version_of_the_tool(root: Path) -> None:
    plugin = objects((root / "migrate/plugins/helm/plugin.yaml").read_text("utf-8"))[0]
    assert plugin["version"] == __version__


def test_what_helm_takes_and_our_parser_refuses_converts_all_the_same() -> None:
    odd = POD.replace("    resources:", "    args: [--url, http://host:80] # where\n    resources:")
    done = run(helm_like(odd, PLAIN[3]))
    assert (done.exit_code, done.stderr) == (0, "")
    assert "args: [--url, 'http://host:80'] # where\n" in done.stdout
    assert done.stdout.endswith(PLAIN[3])
    assert [obj["kind"] for obj in objects(sources(done.stdout)[1][1])] == ["Pod"]
