"""The conversion of a chart as a whole: its switch, its values, charts inside it, and what is left as it is."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra import ApiVersion, Options
from gpu2dra_migrate.files import write_text
from gpu2dra_migrate.helm import edits
from gpu2dra_migrate.helm.convert import convert_chart, values_files
from gpu2dra_migrate.helm.outcome import Choices
from gpu2dra_migrate.helm.program import RenderError
from helm.charts import DEPLOYMENT, DESCRIBED, HEAD, VALUES, convert, make_chart, rendered, tree

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: config # a comment\ndata: { a:   b }\n"
POD = """\
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 1}}}]}
"""


def as_path(name: str) -> str:
    """Return the path that a keyword stands for: `templates__app_yaml` is `templates/app.yaml`."""
    return re.sub(r"_(yaml|schema|json)(?=_|$)", r".\1", name.replace("__", "/"))


def chart(tmp_path: Path, **files: str) -> Path:
    """Return a chart with a deployment that asks for two GPUs; `files` are keywords of `as_path`."""
    named = {as_path(name): text for name, text in files.items()}
    return make_chart(tmp_path / "app", {"templates/app.yaml": DEPLOYMENT, "values.yaml": VALUES, **named})


def test_the_switch_chooses_and_off_is_every_byte_as_before(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, templates__config_yaml=CONFIG)
    before = {version: helm.template(folder, kube_version=version) for version in ("1.33.9", "1.34.0")}
    convert(folder, helm)
    values = {name: tmp_path / f"{name}.json" for name in ("true", "false", "auto")}
    for name, file in values.items():
        file.write_text(f'{{"dra": {{"enabled": {name if name != "auto" else chr(34) + "auto" + chr(34)}}}}}')
    for version, old in before.items():
        assert helm.template(folder, kube_version=version, values=[values["false"]]) == old
        assert "ResourceClaimTemplate" in str(helm.template(folder, kube_version=version, values=[values["true"]]))
    assert helm.template(folder, kube_version="1.33.9", values=[values["auto"]]) == before["1.33.9"]
    assert helm.template(folder, kube_version="1.33.9") == before["1.33.9"]
    for version in ("1.34.0", "v1.34.0-gke.100", "1.37.2"):
        assert "ResourceClaimTemplate" in str(helm.template(folder, kube_version=version))


def test_target_and_class_are_values(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path)
    convert(folder, helm)
    file = tmp_path / "more.yaml"
    file.write_text('dra: {target: "1.32", deviceClassName: vgpu.example.com}\n')
    template = next(obj for obj in rendered(helm, folder, [file], kube_version="1.32.1") if obj["kind"] != "Deployment")
    assert template["apiVersion"] == "resource.k8s.io/v1beta1"
    (request,) = template["spec"]["spec"]["devices"]["requests"]
    assert request == {
        "name": "main",
        "deviceClassName": "vgpu.example.com",
        "allocationMode": "ExactCount",
        "count": 2,
    }
    assert template["metadata"]["annotations"] == {
        "gpu2dra.dev/workload": "Deployment.apps/release-app",
        "helm.sh/resource-policy": "keep",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dra: {enabled: maybe}\n", 'dra.enabled is "maybe": write auto, true or false'),
        ("dra: {target: 1.35}\n", 'dra.target is "1.35": write one of 1.32, 1.33, 1.34+, in quotes'),
    ],
)
def test_a_bad_value_is_an_error_that_says_what_to_write(helm: Helm, tmp_path: Path, text: str, message: str) -> None:
    folder = chart(tmp_path)
    convert(folder, helm)
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(RenderError) as caught:
        helm.template(folder, values=[file])
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["dra: null\n", "dra: text\n", "dra: {}\n", "dra: {enabled: null, target: null}\n"])
def test_without_a_usable_value_the_defaults_hold(helm: Helm, tmp_path: Path, text: str) -> None:
    folder = chart(tmp_path)
    convert(folder, helm)
    file = tmp_path / "odd.yaml"
    file.write_text(text)
    assert sorted(obj["kind"] for obj in rendered(helm, folder, [file])) == ["Deployment", "ResourceClaimTemplate"]


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt(), SystemExit(143)])
def test_what_cannot_be_carried_out_to_its_end_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, problem: BaseException
) -> None:
    folder = chart(tmp_path, values_schema_json='{"additionalProperties": false, "properties": {"resources": {}}}')
    before = tree(folder)
    outcome = convert_chart(folder, Choices(), None)
    count = 0

    def write(path: Path, text: str) -> None:
        nonlocal count
        count += 1
        if count == number + 1:
            raise problem
        write_text(path, text)

    monkeypatch.setattr("gpu2dra_migrate.files.write_text", write)
    with pytest.raises(type(problem)):
        edits.carry_out(*outcome.edits)
    assert tree(folder) == before
    monkeypatch.undo()
    edits.carry_out(*outcome.edits)
    assert len(tree(folder)) == len(before) + 2


def test_values_of_others_come_out_as_claims(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, values_yaml="resources: {}\n")
    (folder / "values-gpu.yaml").write_text(VALUES)
    done = convert(folder, helm, values=values_files(folder))
    assert (done.names, done.outcome.squares, done.outcome.requests) == (["templates/app.yaml"], 2, 1)
    mine = tmp_path / "mine.yaml"
    mine.write_text("resources: {limits: {nvidia.com/mig-1g.5gb: 7}}\n")
    assert "'1g.5gb'" in str(rendered(helm, folder, [mine]))


def test_everything_converts_templates_that_do_not_ask_yet(helm: Helm, tmp_path: Path) -> None:
    files = {"values_yaml": "resources: {}\n", "templates__config_yaml": CONFIG}
    assert convert(chart(tmp_path / "a", **files), helm).names == []
    done = convert(chart(tmp_path / "b", **files), helm, choices=Choices(everything=True))
    assert done.names == ["templates/app.yaml"]


def test_the_mode_in_the_values_is_the_users(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path)
    before = rendered(helm, folder)
    done = convert(folder, helm, choices=Choices(mode="false"), judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], [])
    assert "enabled: false" in (folder / "values.yaml").read_text()
    assert rendered(helm, folder) == before


def test_an_older_target(helm: Helm, tmp_path: Path) -> None:
    choices = Choices(Options(api_version=ApiVersion.V1BETA2))
    done = convert(chart(tmp_path), helm, choices=choices)
    assert 'target: "1.33"' in (done.folder / "values.yaml").read_text()
    assert {obj["apiVersion"] for obj in done.after} == {"resource.k8s.io/v1beta2", "apps/v1"}


# Several charts in one


def family(tmp_path: Path, *, dependencies: str = "", **files: str) -> Path:
    """Return a chart whose subchart `child` asks for GPUs."""
    child = {"charts/child/Chart.yaml": DESCRIBED.replace("app", "child"), "charts/child/values.yaml": VALUES}
    child["charts/child/templates/app.yaml"] = DEPLOYMENT.replace("-app", "-{{ .Chart.Name }}")
    named = {as_path(name): text for name, text in files.items()}
    return make_chart(tmp_path / "app", {"Chart.yaml": DESCRIBED + dependencies, **child, **named})


def test_a_subchart_in_a_folder_gets_a_helper_of_its_own(helm: Helm, tmp_path: Path) -> None:
    done = convert(family(tmp_path, templates__app_yaml=DEPLOYMENT, values_yaml=VALUES), helm)
    assert done.names == ["charts/child/templates/app.yaml", "templates/app.yaml"]
    assert done.kinds() == ["Deployment", "Deployment", "ResourceClaimTemplate", "ResourceClaimTemplate"]
    helpers = [text for name, text in tree(done.folder).items() if name.endswith("_gpu2dra.tpl")]
    assert len(helpers) == 2
    assert len(set(helpers)) == 1
    off = tmp_path / "off.yaml"
    off.write_text("child: {dra: {enabled: false}}\n")
    assert len(rendered(helm, done.folder, [off])) == 3


def test_a_subchart_under_two_names(helm: Helm, tmp_path: Path) -> None:
    twice = "dependencies:\n" + "".join(
        f"- {{name: child, version: 0.1.0, alias: {alias}, repository: ''}}\n" for alias in ("one", "two")
    )
    done = convert(family(tmp_path, dependencies=twice), helm)
    assert done.names == ["charts/child/templates/app.yaml"]
    assert [obj["metadata"]["name"] for obj in done.after if obj["kind"] == "Deployment"] == [
        "release-one",
        "release-two",
    ]


def test_a_closed_schema_above_allows_the_switch_of_a_subchart(helm: Helm, tmp_path: Path) -> None:
    child = {"additionalProperties": False, "properties": {"resources": {}, "global": {}}}
    schema = {"additionalProperties": False, "properties": {"child": child, "global": {}}}
    done = convert(family(tmp_path, values_schema_json=json.dumps(schema, indent=2)), helm)
    assert (done.names, done.reasons) == (["charts/child/templates/app.yaml"], [])
    allowed = json.loads((done.folder / "values.schema.json").read_text())["properties"]["child"]["properties"]
    assert list(allowed) == ["resources", "global", "dra"]


@pytest.mark.parametrize(
    ("schema", "edited"),
    [
        ({"additionalProperties": False, "properties": {"resources": {}}}, True),
        ({"unevaluatedProperties": False, "properties": {"resources": {}}}, True),
        (
            {"$ref": "#/$defs/all", "$defs": {"all": {"additionalProperties": False, "properties": {"resources": {}}}}},
            True,
        ),
        ({"additionalProperties": {"type": "object", "required": ["limits"]}}, True),
        ({"properties": {"resources": {}}}, False),
        ({"additionalProperties": True, "properties": {"resources": {}}}, False),
    ],
)
def test_a_schema_that_is_closed_allows_the_switch(
    helm: Helm, tmp_path: Path, schema: dict[str, Any], *, edited: bool
) -> None:
    folder = chart(tmp_path, values_schema_json=json.dumps(schema, indent=2) + "\n")
    done = convert(folder, helm)
    assert (done.names, done.reasons) == (["templates/app.yaml"], [])
    assert ((folder / "values.schema.json").read_bytes() != done.files["values.schema.json"]) == edited
    bad = tmp_path / "bad.yaml"
    bad.write_text("dra: {enabled: 7}\n")
    with pytest.raises(RenderError, match="dra"):
        helm.template(folder, values=[bad])


def test_definitions_of_a_library_stay(helm: Helm, tmp_path: Path) -> None:
    library = {
        "charts/lib/Chart.yaml": "apiVersion: v2\nname: lib\nversion: 0.1.0\ntype: library\n",
        "charts/lib/templates/_workload.yaml": '{{- define "lib.workload" }}\n' + DEPLOYMENT + "{{- end }}\n",
    }
    files = {"templates/app.yaml": '{{ include "lib.workload" . }}\n', "values.yaml": VALUES, **library}
    done = convert(make_chart(tmp_path / "app", files), helm)
    assert (done.names, done.kinds()) == (["templates/app.yaml"], ["Deployment", "ResourceClaimTemplate"])
    after = tree(done.folder)
    assert [name for name in after if name.startswith("charts/")] == [*library]


def test_a_dependency_beside_the_chart_is_used_and_stays_out_of_it(helm: Helm, tmp_path: Path) -> None:
    library = {"templates/_l.tpl": '{{ define "lib.x" }}x{{ end }}', "templates/pod.yaml": POD.replace("NAME", "lib")}
    make_chart(tmp_path / "lib", {"Chart.yaml": DESCRIBED.replace("app", "lib"), **library})
    depends = "dependencies:\n- {name: lib, version: 0.1.0, repository: 'file://../lib'}\n"
    depends += "- {name: gone, version: 1.0.0, repository: 'https://example.com'}\n"
    app = DEPLOYMENT.replace("app:1", 'app:{{ include "lib.x" . }}')
    folder = make_chart(
        tmp_path / "app", {"Chart.yaml": DESCRIBED + depends, "templates/app.yaml": app, "values.yaml": VALUES}
    )
    done = convert(folder, helm, judge=False)
    assert (done.names, done.reasons, done.outcome.squares) == (["templates/app.yaml"], [], 1)
    assert not (folder / "charts").exists()


def test_a_packed_dependency_is_told(helm: Helm, tmp_path: Path) -> None:
    packed = make_chart(
        tmp_path / "child",
        {"Chart.yaml": DESCRIBED.replace("app", "child"), "templates/pod.yaml": POD.replace("NAME", "a")},
    )
    folder = chart(tmp_path)
    (folder / "charts").mkdir()
    helm.run(["package", str(packed), "--destination", str(folder / "charts")])
    done = convert(folder, helm, judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], ["packed-dependency"])
    (note,) = done.outcome.notes
    assert note.path == folder / "charts" / "child-0.1.0.tgz"
    assert note.message == (
        "app/charts/child/templates/pod.yaml asks for a GPU and is packed; "
        "unpack it here, or let the webhook convert its pods."
    )


# What is left as it is


DEFINE = '{{- define "x" }}{{ end }}'
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: mine}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""


@pytest.mark.parametrize(
    ("files", "reason", "message"),
    [
        pytest.param(
            {"templates__app_yaml": DEFINE + DEPLOYMENT, "templates___x.tpl": DEFINE},
            "defined-twice", '"x" is defined twice; which one counts depends on names of files. Rename one.',
            id="twice",
        ),
        pytest.param(
            {"templates___app_yaml": "{{/* a partial */}}"},
            "name-taken", "_app.yaml is where its text would go, and exists. Rename that one.", id="taken",
        ),
        pytest.param(
            {"templates__x_yaml": "{{- if .Values.dra }}{{ end }}"},
            "own-dra-values", "The chart has values of its own under `dra`, where the helper has its switch.",
            id="own values",
        ),
        pytest.param(
            {
                "templates__app_yaml": DEPLOYMENT.replace("{{- toYaml", "claims: [{name: gpu}]\n          {{- toYaml")
                + "      resourceClaims: [{name: gpu, resourceClaimTemplateName: mine}]\n",
                "templates__claim_yaml": CLAIM,
            },
            "square",
            "Deployment/release-app would not be what converting the rendered manifest gives; left as it was.",
            id="a claim from another file",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_converted_safely_is_left_and_told(
    helm: Helm, tmp_path: Path, files: dict[str, str], reason: str, message: str
) -> None:
    folder = chart(tmp_path, **files)
    done = convert(folder, helm, judge=False)
    assert (done.outcome.edits, [(note.reason.value, note.message) for note in done.outcome.notes]) == (
        [],
        [(reason, message)],
    )
    (note,) = done.outcome.notes
    assert note.path == folder / "templates" / "app.yaml"


def test_a_document_that_is_no_longer_the_last_has_the_same_text(helm: Helm, tmp_path: Path) -> None:
    """Helm ends the last document with fewer line ends, and puts templates of claims behind everything it knows."""
    last = (
        POD.replace("NAME", "z")
        .replace("v1\nkind: Pod", "example.com/v1\nkind: Other")
        .replace("nvidia.com/gpu", "cpu")
    )
    done = convert(chart(tmp_path, templates__z_yaml=last), helm)
    assert (done.names, done.reasons) == (["templates/app.yaml"], [])


def test_one_template_that_fails_does_not_hold_back_the_others(helm: Helm, tmp_path: Path) -> None:
    taken = {"templates__bad_yaml": DEFINE + POD.replace("NAME", "bad"), "templates___x.tpl": DEFINE}
    done = convert(chart(tmp_path, **taken), helm, judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], ["defined-twice"])


def test_a_chart_that_prints_its_values_gets_no_switch_in_them(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, templates__all_yaml=CONFIG.replace("b }", "{{ .Values | toJson | quote }} }"))
    done = convert(folder, helm)
    assert (done.names, done.reasons) == (["templates/app.yaml"], ["values-rendered-whole"])
    assert "values.yaml" not in {path.name for edits in done.outcome.edits for path in edits.writes}


def test_values_that_cannot_be_edited_stay_and_the_templates_convert(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, values_yaml=VALUES + "urls: [http://example.com:80]\n")
    done = convert(folder, helm)
    assert (done.names, done.reasons) == (["templates/app.yaml"], ["cannot-edit"])


def test_a_template_that_renders_no_yaml_is_left_to_helm(helm: Helm, tmp_path: Path) -> None:
    broken = DEPLOYMENT + "    broken: {{ .Values.broken }}\n"
    folder = chart(tmp_path, templates__app_yaml=broken, values_yaml=VALUES + "broken: ''\n")
    done = convert(folder, helm)
    bad = tmp_path / "bad.yaml"
    bad.write_text("broken: 'a: b: ['\n")
    with pytest.raises(RenderError, match=r"YAML parse error on app/templates/app\.yaml"):
        helm.template(folder, values=[bad])
    assert done.reasons == []


def test_without_values_that_render_nothing_is_proven_and_that_is_told(helm: Helm, tmp_path: Path) -> None:
    text = HEAD + "        resources: {limits: {nvidia.com/gpu: {{ .Values.some.thing }}}}\n"
    folder = make_chart(tmp_path / "app", {"templates/app.yaml": text})
    done = convert(folder, helm, judge=False)
    assert (done.names, done.reasons, done.outcome.squares) == (
        ["templates/app.yaml"],
        ["does-not-render", "not-proven"],
        0,
    )
    values = tmp_path / "some.yaml"
    values.write_text("some: {thing: 4}\n")
    assert sorted(obj["kind"] for obj in rendered(helm, folder, [values])) == ["Deployment", "ResourceClaimTemplate"]


def test_a_chart_for_newer_servers_only(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, Chart_yaml=DESCRIBED + "kubeVersion: '>=1.36.0-0'\n")
    done = convert(folder, helm, judge=False)
    assert (done.names, done.reasons, done.outcome.squares) == (["templates/app.yaml"], [], 1)
    assert "kubeVersion" in (folder / "Chart.yaml").read_text()


def test_a_chart_without_its_dependencies_says_which(helm: Helm, tmp_path: Path) -> None:
    depends = "dependencies:\n- {name: common, version: 0.1.0, repository: 'https://example.com'}\n"
    folder = make_chart(
        tmp_path / "app", {"Chart.yaml": DESCRIBED + depends, "templates/a.yaml": '{{ include "common.all" . }}'}
    )
    (note,) = convert(folder, helm, judge=False).outcome.notes
    assert note.message.endswith(". Not in its charts folder: common; `helm dependency build` brings them.")


def test_values_files_that_do_not_render_are_told_by_name(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path, templates__x_yaml="{{ .Values.a.b.c }}", values_yaml=VALUES + "a: {b: {}}\n")
    file = folder / "bad-values.yaml"
    file.write_text("a: {b: text}\n")
    done = convert(folder, helm, values=[file])
    assert [(note.reason.value, note.path) for note in done.outcome.notes] == [("values-do-not-render", file)]
    assert done.names == ["templates/app.yaml"]


@pytest.mark.parametrize("text", ["", "name: [", "version: 1\n"])
def test_a_folder_that_is_no_chart_is_told(helm: Helm, tmp_path: Path, text: str) -> None:
    folder = make_chart(tmp_path / "app", {"Chart.yaml": text})
    done = convert(folder, helm, judge=False)
    assert (done.reasons, done.outcome.edits) == (["not-a-chart"], [])


def test_a_helper_of_another_version_is_replaced(helm: Helm, tmp_path: Path) -> None:
    folder = chart(tmp_path)
    convert(folder, helm, choices=Choices(Options(schedulers=frozenset({"other"}))), judge=False)
    old = tree(folder)
    done = convert(folder, helm, judge=False)
    new = tree(folder)
    assert {name for name in new if new[name] != old[name]} == {"templates/app.yaml", "templates/_gpu2dra.tpl"}
    assert (done.names, done.reasons, [*old]) == (["templates/app.yaml"], [], [*new])
