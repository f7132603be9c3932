"""Charts as the user of the command meets them: in a repository, beside other files, with and without helm."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from gpu2dra_migrate.cli import cli
from helm.charts import DEPLOYMENT, DESCRIBED, HEAD, VALUES, make_chart, rendered, tree

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow

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
        nvidia.com/gpu: 1
"""
LONG = DEPLOYMENT + "".join(f"      # line {number} of a template of ordinary length\n" for number in range(12))
HELPERS = '{{- define "llm.resources" }}\nlimits:\n  nvidia.com/gpu: {{ .Values.gpus }}\n{{- end }}\n'
WITH_HELPER = HEAD + '        resources: {{- include "llm.resources" . | nindent 10 }}\n'
Call = Callable[..., Result]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with two charts, values for one of them elsewhere, and a plain manifest."""
    folder = tmp_path / "repo"
    app = {
        "templates/app.yaml": LONG, "values.yaml": "image: a\n" + VALUES, "values-big.yaml": VALUES.replace("2", "8"),
        "templates/config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n",
    }  # fmt: skip
    make_chart(folder / "charts/app", app)
    llm = {"templates/_helpers.tpl": HELPERS, "templates/llm.yaml": WITH_HELPER, "values.yaml": "gpus: 1\n"}
    make_chart(folder / "charts/llm", {"Chart.yaml": DESCRIBED.replace("app", "llm"), **llm})
    make_chart(folder, {"envs/prod-values.yaml": "image: b\n" + VALUES.replace("2", "4"), "pod.yaml": POD})
    (folder / "Chart.yaml").unlink()
    git(folder, "init", "-q")
    commit(folder, "before")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return folder


@pytest.fixture
def call(helm: Helm, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Return the command, with the helm of the test."""
    monkeypatch.setenv("GPU2DRA_HELM", helm.program)

    def run(*arguments: str, exit_code: int) -> Result:
        result = CliRunner().invoke(cli, arguments)
        assert result.exit_code == exit_code, (result.output, result.exception)
        return result

    return run


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=n", "-c", "user.email=e@example.com", *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


def written(folder: Path, old: str, new: str) -> None:
    """Replace a text in a file of the tree in which it stands."""
    for file in folder.rglob("*.yaml"):
        text = file.read_text()
        file.write_text(text.replace(old, new))


# A repository


@pytest.mark.parametrize("style", ["wrap", "inline"])
@pytest.mark.parametrize(
    "files",
    [
        {"charts/app/kustomization.yaml": "resources: [templates/pod.yaml]\n"},
        {"charts/app/templates/kustomization.yaml": "resources: [pod.yaml]\n",
         "k/kustomization.yaml": "resources: [../charts/app/templates]\n"},
        {"k/kustomization.yml": "resources: [../charts/app/templates/pod.yaml]\n"},
    ],
)  # fmt: skip
def test_a_template_that_a_kustomization_takes_stays_a_manifest(
    repo: Path, call: Call, files: dict[str, str], style: str
) -> None:
    files = {"charts/app/templates/pod.yaml": POD, **files}
    for name, text in files.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(text)
    result = call("convert", "--helm-style", style, exit_code=1)
    assert {name: (repo / name).read_text() for name in files} == files
    assert "DRA425" in result.output
    assert result.output.count("takes it as a manifest") == 1
    assert (repo / "charts/app/templates/app.yaml").read_text() != LONG


def test_a_repository_converts_with_its_charts_and_a_second_run_changes_nothing(
    helm: Helm, repo: Path, call: Call
) -> None:
    charts = [repo / "charts" / name for name in ("app", "llm")]
    values = [(), (repo / "envs/prod-values.yaml",), (repo / "charts/app/values-big.yaml",)]
    before = [helm.template(charts[0], values=each) for each in values] + [helm.template(charts[1])]
    call("convert", exit_code=1)
    git(repo, "add", "-A")
    # Git takes what moved for a copy, since another file stands in its place.
    assert git(repo, "diff", "--cached", "-C", "--name-status").splitlines() == [
        "C100\tcharts/app/templates/app.yaml\tcharts/app/templates/_app.yaml",
        "A\tcharts/app/templates/_gpu2dra.tpl",
        "M\tcharts/app/templates/app.yaml",
        "M\tcharts/app/values.yaml",
        "A\tcharts/llm/templates/_gpu2dra.tpl",
        "C100\tcharts/llm/templates/llm.yaml\tcharts/llm/templates/_llm.yaml",
        "M\tcharts/llm/templates/llm.yaml",
        "M\tcharts/llm/values.yaml",
        "M\tpod.yaml",
    ]
    commit(repo, "converted")
    for command, code in (("convert", 0), ("check", 0), ("diff", 0), ("verify", 0)):
        call(command, exit_code=code)
        assert git(repo, "status", "--porcelain") == ""
    off = repo.parent / "off.json"
    off.write_text('{"dra": {"enabled": false}}')
    left = [helm.template(charts[0], values=[*each, off]) for each in values] + [helm.template(charts[1], values=[off])]
    assert left == before
    for each, count in zip(values, (2, 4, 8), strict=True):
        template = next(obj for obj in rendered(helm, charts[0], each) if obj["kind"] == "ResourceClaimTemplate")
        assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["count"] == count


def test_check_names_the_line_that_asks_and_what_becomes_of_it(repo: Path, call: Call) -> None:
    told = call("check", exit_code=1).stdout.splitlines()
    assert [line.split(": ")[0] for line in told if " DRA001 " in line] == [
        "charts/app/values-big.yaml:3:5", "charts/app/values.yaml:4:5", "envs/prod-values.yaml:4:5",
        "charts/llm/templates/_helpers.tpl:3:3", "pod.yaml:10:9",
    ]  # fmt: skip
    first = next(line for line in told if line.startswith("charts/app/values.yaml"))
    assert 'Deployment/release-app: Container "main" asks for 2 × nvidia.com/gpu: becomes request' in first
    assert first.endswith("(rendered by templates/app.yaml).")
    assert "5 requests in 5 objects" not in told
    assert git(repo, "status", "--porcelain") == ""


def test_values_elsewhere_go_with_the_chart_that_they_are_for(repo: Path, call: Call) -> None:
    """By their name, or by several keys; one key that many charts have says nothing, and so does a key of no chart."""
    (repo / "envs/prod-values.yaml").unlink()
    texts = {
        "envs/x-values.yaml": "image: b\n" + VALUES.replace("2", "4"),
        "envs/prod.yaml": "image: b\n" + VALUES.replace("2", "6"),
        "envs/short.yaml": VALUES,
        "envs/other-values.yaml": "image: b\nmore: 1\n" + VALUES,
    }
    make_chart(repo, texts)
    (repo / "Chart.yaml").unlink()
    told = call("check", exit_code=1).stdout.splitlines()
    assert {line.split(":")[0]: line.split()[2] for line in told if line.startswith("envs/")} == {
        "envs/x-values.yaml": "DRA001", "envs/prod.yaml": "DRA001", "envs/short.yaml": "DRA403",
        "envs/other-values.yaml": "DRA403",
    }  # fmt: skip
    told = call("verify", exit_code=0).stdout.splitlines()
    assert "charts/app/templates/app.yaml: info DRA423 The square commutes with 4 sets of values." in told


def test_of_several_requests_in_values_the_one_with_the_amount_is_named(repo: Path, call: Call) -> None:
    more = DEPLOYMENT.replace("-app", "-b").replace(".Values.resources", ".Values.b")
    (repo / "charts/app/templates/b.yaml").write_text(more)
    with (repo / "charts/app/values.yaml").open("a") as file:
        file.write("b:\n  limits:\n    nvidia.com/gpu: 3\n")
    told = call("check", "charts/app", exit_code=1).stdout
    assert "values.yaml:4:5: warning DRA001 Deployment/release-app: " in told
    assert "values.yaml:7:5: warning DRA001 Deployment/release-b: " in told


def test_the_diff_is_what_git_applies(repo: Path, call: Call) -> None:
    patch = call("diff", exit_code=1).stdout
    call("convert", exit_code=1)
    converted = tree(repo)
    git(repo, "checkout", "-q", ".")
    git(repo, "clean", "-qfd")
    subprocess.run(["git", "apply", "-"], cwd=repo, input=patch.encode(), check=True)
    assert {name: data for name, data in tree(repo).items() if not name.startswith(".git/")} == {
        name: data for name, data in converted.items() if not name.startswith(".git/")
    }


@pytest.mark.parametrize("place", [".", "charts", "charts/app", "charts/app/values.yaml"])
def test_a_part_of_a_chart_stands_for_all_of_it(repo: Path, call: Call, place: str) -> None:
    call("convert", place, exit_code=1)
    assert (repo / "charts/app/templates/_app.yaml").read_text() == LONG
    assert (repo / "charts/llm/templates/_llm.yaml").exists() == (place in (".", "charts"))


def test_from_inside_a_chart(repo: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repo / "charts/app/templates")
    assert "../values.yaml:4:5: warning DRA001" in call("check", "..", exit_code=1).stdout
    assert f"{repo}/charts/app/values.yaml:4:5: " in call("check", str(repo / "charts/app"), exit_code=1).stdout


def test_json(repo: Path, call: Call) -> None:
    document = json.loads(call("check", "--output", "json", exit_code=1).stdout)
    files = {each["path"]: each for each in document["files"]}
    assert files["charts/app/templates/app.yaml"]["moved"] == "charts/app/templates/_app.yaml"
    assert files["charts/app/templates/_gpu2dra.tpl"]["changed"]
    assert document["summary"]["codes"]["DRA001"] == 5
    assert (document["summary"]["objects"], document["summary"]["requests"]) == (3, 3)


# What the user wants


def test_a_comment_leaves_a_template_alone(repo: Path, call: Call) -> None:
    written(repo / "charts", "nvidia.com/gpu: 2", "nvidia.com/gpu: 2 # gpu2dra: ignore[DRA001] next year")
    text = call("convert", "charts/app", "-v", exit_code=0).stdout
    assert "1 ignored by comments" in text
    assert "DRA207" in text  # the request of values-big.yaml goes through the same template
    assert (repo / "charts/app/templates/app.yaml").read_text() == LONG


def test_a_comment_in_a_template_does_so_as_well(repo: Path, call: Call) -> None:
    text = HEAD + "        resources: {limits: {nvidia.com/gpu: 1}} # gpu2dra: ignore\n"
    (repo / "charts/app/templates/app.yaml").write_text(text)
    assert "1 ignored by comments" in call("convert", "charts/app", exit_code=0).stdout
    assert (repo / "charts/app/templates/app.yaml").read_text() == text


@pytest.mark.parametrize("glob", ["charts/app/", "charts/app/templates/app.yaml", "charts/app/templates"])
def test_the_configuration_leaves_charts_and_templates_out(repo: Path, call: Call, glob: str) -> None:
    (repo / ".gpu2dra.yaml").write_text(f"apiVersion: gpu2dra.dev/v1alpha1\nkind: Config\nexclude: ['{glob}']\n")
    call("convert", exit_code=1)
    assert (repo / "charts/app/templates/app.yaml").read_text() == LONG
    assert (repo / "charts/llm/templates/_llm.yaml").exists()


def test_a_workload_that_opts_out_is_told(repo: Path, call: Call) -> None:
    out = LONG.replace("metadata: {labels", 'metadata: {annotations: {gpu2dra.dev/convert: "false"}, labels')
    (repo / "charts/app/templates/app.yaml").write_text(out)
    assert "DRA201" in call("check", "charts/app", "-v", exit_code=1).stdout


def test_the_default_of_the_switch_and_more_values(repo: Path, call: Call) -> None:
    (repo / "charts/app/values.yaml").write_text("image: a\nresources: {}\n")
    (repo / "charts/app/values-big.yaml").unlink()
    (repo / "envs/prod-values.yaml").unlink()
    mine = repo.parent / "mine.yaml"
    mine.write_text(VALUES)
    call("check", "charts/app", exit_code=0)
    call("convert", "charts/app", "--values", str(mine), "--dra-default", "false", exit_code=1)
    assert "enabled: false" in (repo / "charts/app/values.yaml").read_text()
    assert (repo / "charts/app/templates/_app.yaml").exists()


def test_wrong_use(repo: Path, call: Call) -> None:
    assert "no such file" in call("check", "--values", "missing.yaml", exit_code=2).stderr
    assert "folders" in call("verify", "-", exit_code=2).stderr


def test_a_policy_is_no_policy_of_a_chart(repo: Path, call: Call) -> None:
    policy = repo.parent / "policy.yaml"
    policy.write_text("apiVersion: gpu2dra.dev/v1alpha1\nkind: ConversionPolicy\n")
    text = call("convert", "charts/llm", "--policy", str(policy), exit_code=0).stdout
    assert "charts/llm/templates/llm.yaml: warning DRA428" in text
    assert not (repo / "charts/llm/templates/_llm.yaml").exists()


# What goes wrong


def test_a_chart_that_cannot_be_written_is_as_it_was(repo: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {name: data for name, data in tree(repo).items() if name.startswith("charts/app/")}
    real = os.replace
    put_back: list[str] = []

    def replace(old: str, new: str) -> None:
        if str(new) == str(repo / "charts/app/values.yaml") and not put_back:
            put_back.append(new)
            raise OSError(28, "No space left on device", new)
        real(old, new)

    monkeypatch.setattr(os, "replace", replace)
    text = call("convert", "charts", exit_code=3).stdout
    assert "charts/app/Chart.yaml: error DRA510" in text
    assert "No space left on device" in text
    assert {name: data for name, data in tree(repo).items() if name.startswith("charts/app/")} == before
    assert (repo / "charts/llm/templates/_llm.yaml").exists()  # the others are still done


def test_a_disk_that_is_full_is_no_bug(repo: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def copytree(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copytree", copytree)
    assert "charts/app/Chart.yaml: error DRA510" in call("check", "charts/app", exit_code=3).stdout


def test_a_folder_that_is_no_chart(repo: Path, call: Call) -> None:
    (repo / "charts/app/Chart.yaml").write_text("name: [\n")
    assert "charts/app/Chart.yaml: error DRA421" in call("check", "charts", exit_code=3).stdout


def test_values_that_no_workload_takes(repo: Path, call: Call) -> None:
    text = "image: a\nprofiles:\n  large:\n    limits:\n      nvidia.com/gpu: 1\n"
    (repo / "charts/app/values.yaml").write_text(text)
    (repo / "charts/app/values-big.yaml").unlink()
    (repo / "envs/prod-values.yaml").unlink()
    told = call("check", "charts/app", exit_code=1).stdout
    assert "charts/app/values.yaml:5:7: warning DRA434 nvidia.com/gpu is no request in any workload" in told
    call("verify", "charts/app", exit_code=0)  # that is no matter of the proof


def test_values_that_are_off_by_default_convert_the_templates_that_may_take_them(
    helm: Helm, repo: Path, call: Call
) -> None:
    off = "{{- if .Values.worker.enabled }}\n" + DEPLOYMENT.replace(".Values.resources", ".Values.worker.resources")
    (repo / "charts/app/templates/worker.yaml").write_text(off.replace("-app", "-worker") + "{{- end }}\n")
    values = "image: a\nworker:\n  enabled: false\n  resources:\n    limits:\n      nvidia.com/gpu: 1\n"
    (repo / "charts/app/values.yaml").write_text(values)
    (repo / "charts/app/values-big.yaml").unlink()
    (repo / "envs/prod-values.yaml").unlink()
    call("convert", "charts/app", exit_code=1)
    assert not (repo / "charts/app/templates/_app.yaml").exists()
    on = repo.parent / "on.yaml"
    on.write_text("worker: {enabled: true}\n")
    kinds = [obj["kind"] for obj in rendered(helm, repo / "charts/app", [on])]
    assert sorted(kinds) == ["ConfigMap", "Deployment", "Deployment", "ResourceClaimTemplate"]


# verify


def test_verify_writes_nothing_and_tells_what_is_proven(repo: Path, call: Call) -> None:
    for code in (1, 0):
        before = tree(repo)
        text = call("verify", "charts", exit_code=0).stdout
        assert "charts/app/templates/app.yaml: info DRA423 The square commutes with 3 sets of values." in text
        assert "2 files of charts and kustomizations proven" in text
        assert tree(repo) == before
        call("convert", exit_code=code)


def test_verify_sees_what_was_changed_after_the_conversion(repo: Path, call: Call) -> None:
    call("convert", exit_code=1)
    helper = repo / "charts/app/templates/_gpu2dra.tpl"
    helper.write_text(helper.read_text().replace('"count" .count', '"count" 1'))
    document = json.loads(call("verify", "charts", "--output", "json", exit_code=1).stdout)
    assert document["summary"]["codes"] == {"DRA423": 1, "DRA429": 1}
    (bad,) = (each for each in document["files"] if [found["code"] for found in each["findings"]] == ["DRA429"])
    assert bad["path"] == "charts/app/templates/app.yaml"


def test_verify_holds_whatever_the_user_has_set_since(repo: Path, call: Call) -> None:
    call("convert", exit_code=1)
    written(repo / "charts", "enabled: auto", "enabled: false")
    written(repo / "charts", "deviceClassName: gpu.nvidia.com", "deviceClassName: mine.example.com")
    written(repo / "charts", "target: 1.34+", 'target: "1.32"')
    for command in ("verify", "check", "convert"):
        call(command, "charts", exit_code=0)


def test_verify_of_what_does_not_render(repo: Path, call: Call) -> None:
    text = HEAD + "        resources: {limits: {nvidia.com/gpu: {{ .Values.some.thing }}}}\n"
    (repo / "charts/llm/templates/llm.yaml").write_text(text)
    assert "DRA422" in call("verify", "charts/llm", exit_code=3).stdout


# Without helm


def test_without_helm_it_says_so_once_and_converts_what_is_right_by_construction(
    repo: Path, call: Call, helm: Helm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", "")
    text = call("convert", exit_code=1).stdout
    assert text.count("warning DRA433") == 1
    assert (repo / "charts/app/templates/_app.yaml").read_text() == LONG
    assert (repo / "charts/llm/templates/_llm.yaml").read_text() == WITH_HELPER
    assert not (repo / "charts/app/templates/_config.yaml").exists()
    assert "DRA433" not in call("check", "charts", exit_code=0).stdout  # nothing is left that helm could tell
    assert call("verify", exit_code=3).stdout.count("warning DRA433") == 1
    monkeypatch.setenv("GPU2DRA_HELM", helm.program)
    commit(repo, "converted")
    call("verify", exit_code=0)
    call("convert", exit_code=0)
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"templates/claim.yaml": "kind: ResourceClaimTemplate\n"}, "DRA433"),
        ({"templates/x.yaml": "{{ .Values.dra.x }}\n"}, "DRA427"),
        ({"templates/_x.tpl": '{{ define "x" }}{{ end }}', "templates/app.yaml": '{{ define "x" }}{{ end }}' + LONG},
         "DRA425"),
        ({"templates/app.yaml": '{{ define "x" }}{{ end }}' + LONG,
          "Chart.yaml": DESCRIBED + "dependencies: [{name: gone, version: 1.0.0, repository: 'https://example.com'}]\n"},
         "DRA433"),
        ({"templates/_app.yaml": ""}, "DRA425"),
    ],
)  # fmt: skip
def test_without_helm_what_only_a_render_could_tell_stays(
    repo: Path, call: Call, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], code: str
) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", "")
    make_chart(repo / "charts/app", {"Chart.yaml": DESCRIBED, **files})
    commit(repo, "more")
    assert f"charts/app/templates/app.yaml: warning {code} " in call("convert", "charts/app", exit_code=0).stdout
    assert git(repo, "status", "--porcelain") == ""


def test_without_helm_a_chart_that_prints_its_values_gets_no_switch_in_them(
    repo: Path, call: Call, helm: Helm, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", "")
    (repo / "charts/app/templates/config.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: {{ toJson .Values | quote }}}\n"
    )
    assert "DRA430" in call("convert", "charts/app", "-v", exit_code=1).stdout
    assert "dra" not in (repo / "charts/app/values.yaml").read_text()
    monkeypatch.setenv("GPU2DRA_HELM", helm.program)
    call("verify", "charts/app", exit_code=0)


# Packed charts


@pytest.mark.parametrize("with_helm", [True, False])
@pytest.mark.parametrize("asks", [True, False])
def test_a_packed_chart_is_told(
    repo: Path, call: Call, helm: Helm, monkeypatch: pytest.MonkeyPatch, *, with_helm: bool, asks: bool
) -> None:
    """In a chart that holds no other request, and where nothing else stands."""
    child = {"templates/pod.yaml": POD, "values.yaml": ""}
    if not asks:
        child = {"templates/pod.yaml": POD.replace("nvidia.com/gpu", "cpu"), "values.yaml": "# nvidia.com/gpu\n"}
    made = make_chart(repo.parent / "child", {"Chart.yaml": DESCRIBED.replace("app", "child"), **child})
    for chart in ("charts/app", "charts/llm"):
        shutil.rmtree(repo / chart)
    make_chart(repo / "charts/umbrella", {"templates/a.yaml": ""})
    for folder in ("charts/umbrella/charts", "vendor"):
        (repo / folder).mkdir()
        helm.run(["package", str(made), "--destination", str(repo / folder)])
    (repo / "pod.yaml").unlink()
    (repo / "envs/prod-values.yaml").unlink()
    monkeypatch.setenv("GPU2DRA_HELM", helm.program if with_helm else "")
    told = call("check", exit_code=int(asks or not with_helm)).stdout
    for name in ("charts/umbrella/charts/child-0.1.0.tgz", "vendor/child-0.1.0.tgz"):
        assert (f"{name}: warning DRA424 " in told) == (asks or not with_helm)
    shutil.rmtree(repo / ".git")
    assert call("check", exit_code=int(asks or not with_helm)).stdout == told
