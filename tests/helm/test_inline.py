"""Claims in the templates themselves: the patterns that are taken, what they become, and why others are refused."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from gpu2dra import ApiVersion, Options
from gpu2dra_migrate.cli import cli
from gpu2dra_migrate.helm.inline import Refused, inline, is_inline
from gpu2dra_migrate.helm.outcome import Choices
from gpu2dra_migrate.helm.reach import limits_left, reach
from helm.charts import DEPLOYMENT, DESCRIBED, HEAD, VALUES, convert, make_chart, rendered, tree

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow

INLINE = Choices(inline=True)
WITH = (
    HEAD
    + """\
        {{- with .Values.resources }}
        resources:
          {{- toYaml . | nindent 10 }}
        {{- end }}
"""
)
TOLERATIONS = """\
      {{- with .Values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
"""
LITERAL = (
    HEAD
    + """\
        resources:
          limits:
            memory: 1Gi
            nvidia.com/gpu: {{ .Values.gpus }} # cards
          requests:
            nvidia.com/gpu: {{ .Values.gpus }}
"""
)
TAKEN = {
    "whole": (DEPLOYMENT, VALUES),
    "whole in one line": (
        HEAD + "        resources: {{- toYaml .Values.resources | nindent 10 }}\n", VALUES
    ),
    "indent": (HEAD + "        resources:\n{{ toYaml .Values.resources | indent 10 }}\n", VALUES),
    "with": (WITH, VALUES),
    "more in the map": (WITH, VALUES + "  requests: {cpu: 2, nvidia.com/gpu: 2}\n"),
    "tolerations": (WITH + TOLERATIONS, VALUES + "tolerations: [{key: a, operator: Exists, tolerationSeconds: 300}]\n"),
    "tolerated": (WITH + TOLERATIONS, VALUES + "tolerations: [{operator: Exists}]\n"),
    "no tolerations": (WITH + TOLERATIONS, VALUES + "tolerations: []\n"),
    "literal": (LITERAL, "gpus: 3\n"),
    "literal text": (LITERAL.replace(".Values.gpus }}", ".Values.gpus | quote }}"), "gpus: '3'\n"),
    "number": (HEAD + "        resources:\n          limits:\n            nvidia.com/gpu: 4\n", ""),
    "guarded": ("{{- if .Values.enabled }}\n" + LITERAL + "{{- end }}\n", "enabled: true\ngpus: 1\n"),
    "behind a separator": ("# a comment\n---\n" + LITERAL, "gpus: 1\n"),
    "named by a field": (LITERAL.replace("name: main", "name: {{ .Chart.Name }}"), "gpus: 1\n"),
    "named by a field, whole": (WITH.replace("name: main", "name: {{ .Chart.Name }}"), VALUES),
    "namespaced": (LITERAL.replace("metadata:\n  name", "metadata:\n  namespace: ml\n  name"), "gpus: 1\n"),
    "wide lists": (re.sub(r"(?m)^(?= {8}| {6}-)", "  ", LITERAL), "gpus: 1\n"),
}  # fmt: skip


def chart(tmp_path: Path, text: str, values: str, **more: str) -> Path:
    return make_chart(tmp_path / "app", {"templates/app.yaml": text, "values.yaml": values, **more})


def devices(objects: list[Any]) -> Any:
    return {key[3]: sum(value.values()) for key, value in reach(objects).items()}


@pytest.mark.parametrize("name", [*TAKEN])
def test_patterns_that_are_taken(helm: Helm, tmp_path: Path, name: str) -> None:
    text, values = TAKEN[name]
    folder = chart(tmp_path, text, values)
    before = helm.template(folder)
    wrapped = convert(make_chart(tmp_path / "other", {"templates/app.yaml": text, "values.yaml": values}), helm)
    done = convert(folder, helm, choices=INLINE, judge=False)
    assert (done.names, done.reasons, done.outcome.squares) == (["templates/app.yaml"], [], 1)
    objects = rendered(helm, folder)
    assert devices(objects) == devices(wrapped.after) != {}
    assert limits_left(objects) == []
    own, other = (next(obj for obj in each if "Template" not in obj["kind"]) for each in (objects, wrapped.after))
    for obj in (own, other):
        for claim in obj["spec"]["template"]["spec"]["resourceClaims"]:
            assert claim.pop("resourceClaimTemplateName").startswith("release-app-gpu-")
    assert own == other
    off = tmp_path / "off.yaml"
    off.write_text("dra: {enabled: false}\n")
    assert helm.template(folder, values=[off]) == before == helm.template(folder, kube_version="1.33.9")
    lines = set(text.splitlines())
    assert len(lines - set((folder / "templates/app.yaml").read_text().splitlines())) <= 2


def test_a_changed_amount_is_another_template(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, WITH, VALUES)
    convert(folder, helm, choices=INLINE, judge=False)
    names = []
    for values in ("resources: {limits: {nvidia.com/gpu: 1}}", "resources: {limits: {nvidia.com/gpu: '32'}}",
                   "dra: {deviceClassName: other.example.com}"):  # fmt: skip
        file = tmp_path / "more.yaml"
        file.write_text(values)
        objects = rendered(helm, folder, [file])
        names += [obj["metadata"]["name"] for obj in objects if obj["kind"] == "ResourceClaimTemplate"]
    assert len(set(names)) == 3


@pytest.mark.parametrize("amount", ["0", "33", "500m", "-1", "x", "1.5", "{}", "null"])
def test_what_is_no_number_of_gpus_stays(helm: Helm, tmp_path: Path, amount: str) -> None:
    folder = chart(tmp_path, WITH, VALUES)
    convert(folder, helm, choices=INLINE, judge=False)
    file = tmp_path / "more.yaml"
    file.write_text(f"resources: {{limits: {{nvidia.com/gpu: {amount}, memory: 1Gi}}}}\n")
    off = tmp_path / "off.yaml"
    off.write_text("dra: {enabled: false}\n")
    assert helm.template(folder, values=[file]) == helm.template(folder, values=[file, off])


@pytest.mark.parametrize("version", [ApiVersion.V1BETA1, ApiVersion.V1BETA2])
def test_an_older_target(helm: Helm, tmp_path: Path, version: ApiVersion) -> None:
    folder = chart(tmp_path, LITERAL, "gpus: 1\n")
    done = convert(folder, helm, choices=Choices(Options(api_version=version), inline=True), judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], [])
    assert f"apiVersion: {version}\n" in (folder / "templates/app.yaml").read_text()
    assert "target" not in (folder / "values.yaml").read_text()


CONDITION = "            {{- if .Values.x }}\n            a: 1\n            {{- end }}\n"
REFUSED = {
    "definitions": '{{- define "x" }}{{ end }}\n' + LITERAL,
    "claims already": LITERAL + "      resourceClaims: []\n",
    "a hook": LITERAL.replace("labels: {app: app}\nspec", "annotations: {helm.sh/hook: test}\nspec"),
    "CRLF": LITERAL.replace("\n", "\r\n"),
    "several documents": LITERAL + "---\napiVersion: v1\nkind: ConfigMap\n",
    "none of Kubernetes' own": LITERAL.replace("kind: Deployment", "kind: RayCluster"),
    "without quotes": LITERAL.replace("name: {{ .Release.Name }}-app", 'name: "{{ .Release.Name }}"'),
    "a way that is not": LITERAL + "        env: [{name: X, value: nvidia.com/gpu}]\n",
    "limits and requests differ": LITERAL.replace("{{ .Values.gpus }} # cards", "2"),
    "computed": LITERAL.replace(".Values.gpus }}", ".Values.gpus | mul 2 }}"),
    "not exactly one container": DEPLOYMENT + "      - name: b\n        resources: {{ toYaml .Values.b | indent 9 }}\n",
    "somewhere else": HEAD + "        resources: {{- toYaml . | nindent 10 }}\n",
    "in block style": LITERAL.replace("limits:\n            memory", "limits: &x\n            memory"),
    "no plain name": LITERAL.replace("name: main", "name: 'main'"),
    "a condition of its own": HEAD + "{{- if .Values.x }}\n        resources:\n          limits:\n"
                              "            nvidia.com/gpu: 1\n{{- end }}\n",
    "have conditions": LITERAL.replace("limits:\n", f"limits:\n{CONDITION}", 1),
    "tolerations": LITERAL + "      tolerations: []\n",
    "containers": LITERAL.replace("      containers:", "      initContainers:"),
}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_patterns_that_are_refused(why: str) -> None:
    with pytest.raises(Refused, match=why):
        inline(REFUSED[why], Options())


def test_a_refused_template_stays_and_others_convert(helm: Helm, tmp_path: Path) -> None:
    files = {"templates/job.yaml": LITERAL.replace("-app", "-b") + "      tolerations: []\n"}
    folder = chart(tmp_path, LITERAL, "gpus: 1\n", **files)
    done = convert(folder, helm, choices=INLINE, judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], ["not-inline"])
    assert done.outcome.notes[0].message == (
        "Not written inline: its tolerations do not come from the values as a whole."
    )


def test_what_is_written_inline_does_not_do_is_undone_by_the_square(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, WITH, "resources: {limits: {nvidia.com/mig-1g.5gb: 1}}\n")
    done = convert(folder, helm, choices=INLINE, judge=False)
    assert (done.names, done.reasons, done.outcome.edits) == ([], ["square"], [])


def test_a_second_run_changes_nothing_and_verify_proves_it(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", helm.program)
    monkeypatch.chdir(tmp_path)
    folder = chart(tmp_path, WITH + TOLERATIONS, VALUES + "tolerations: []\n")
    (folder / "values-more.yaml").write_text(VALUES.replace("2", "4"))
    assert call("convert", "--helm-style", "inline", exit_code=1).count("converted app/templates/app.yaml\n") == 1
    done = tree(folder)
    assert is_inline(done["templates/app.yaml"].decode())
    for command in (("convert",), ("convert", "--helm-style", "inline"), ("check",)):
        call(*command, exit_code=0)
        assert tree(folder) == done
    assert "The square commutes with 2 sets of values." in call("verify", exit_code=0)
    file = folder / "templates/app.yaml"
    file.write_text(file.read_text().replace("count: {{ $gpus }}", "count: 1"))
    assert "DRA429" in call("verify", exit_code=1)


def test_the_style_of_a_chart_is_that_of_its_first_conversion(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", helm.program)
    monkeypatch.chdir(tmp_path)
    folder = chart(tmp_path, LITERAL, "gpus: 1\n")
    call("convert", "--helm-style", "inline", exit_code=1)
    (folder / "templates/b.yaml").write_text(LITERAL.replace("-app", "-b"))
    call("convert", exit_code=1)
    assert is_inline((folder / "templates/b.yaml").read_text())
    other = make_chart(
        tmp_path / "z", {"Chart.yaml": DESCRIBED, "templates/app.yaml": LITERAL, "values.yaml": "gpus: 1\n"}
    )
    call("convert", "z", exit_code=1)
    done = tree(other)
    assert "DRA426" in call("convert", "z", "--helm-style", "inline", exit_code=0)
    assert tree(other) == done


def test_without_helm_nothing_is_written_inline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU2DRA_HELM", "")
    monkeypatch.chdir(tmp_path)
    folder = chart(tmp_path, LITERAL, "gpus: 1\n")
    before = tree(folder)
    assert "needs the proof, and so helm" in call("convert", "--helm-style", "inline", exit_code=0)
    assert tree(folder) == before


def call(*arguments: str, exit_code: int) -> str:
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == exit_code, (result.output, result.exception)
    return result.stdout
