"""Values for charts that live elsewhere: what converts, and what is left with which reason."""

from __future__ import annotations

import re
import subprocess
from textwrap import indent
from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra import ApiVersion, Options
from gpu2dra.policy.load import load
from gpu2dra_migrate.config import Config
from gpu2dra_migrate.elsewhere.references import claim_references, pods_namespace
from gpu2dra_migrate.elsewhere.releases import Version, releases, version_of
from gpu2dra_migrate.manifest import Conversion, convert, objects
from gpu2dra_migrate.runner import Mode, Settings, run

if TYPE_CHECKING:
    from pathlib import Path

HEAD = """\
apiVersion: helm.toolkit.fluxcd.io/API
kind: HelmRelease
metadata:
  name: app
  namespace: ml
spec:
  chart:
    spec:
      chart: CHART
      version: VERSION
      sourceRef: {kind: HelmRepository, name: charts}
EXTRA  values:
"""
GPU, MIG = "nvidia.com/gpu", "nvidia.com/mig-1g.5gb"
URL = "oci://example.com/charts/app-template"
MAIN = """\
controllers:
  main:
    containers:
      app:
        resources: {limits: {nvidia.com/gpu: 1}}
"""
TWO = MAIN + MAIN.replace("controllers:\n", "").replace("main", "other")
OLLAMA = """\
ollama:
  gpu:
    enabled: true
resources: {limits: {nvidia.com/gpu: 1}}
"""
ROLES = """\
decode:
  containers:
  - resources: {limits: {nvidia.com/gpu: 1}}
prefill: {create: false}
"""
RAY = "worker:\n  resources: {limits: {nvidia.com/gpu: 1}}\n"
CHARTS = {
    "app-template": ("5.0.0", MAIN),
    "ollama": ("1.26.0", OLLAMA),
    "llm-d-modelservice": ("0.4.1", ROLES),
    "ray-cluster": ("1.6.0", RAY),
}


def release(chart: str, values: str, *, version: str | None = None, extra: str = "", api: str = "v2") -> str:
    """Return a HelmRelease with these values; of a version whose values can say claims, if none is given."""
    text = HEAD.replace("CHART", chart).replace("VERSION", f'"{CHARTS[chart][0] if version is None else version}"')
    return text.replace("API", api).replace("EXTRA", indent(extra, "  ")) + indent(values, "    ")


def codes(done: Conversion) -> list[str]:
    """Return the codes of the findings, in order of lines."""
    return [item.finding.code for item in done.findings]


def values_of(done: Conversion) -> Any:
    """Return the values after the conversion."""
    assert done.text is not None, codes(done)
    return next(obj for obj in objects(done.text) if obj["kind"] == "HelmRelease")["spec"]["values"]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_known_chart_converts_since_its_version(chart: str) -> None:
    version, values = CHARTS[chart]
    for text in (version, f"^{version}", f">={version}", f"v{version}"):
        done = convert(release(chart, values, version=text), Options())
        assert done.text is not None, codes(done)
        assert (done.objects, done.requests) == (1, 1)
        assert f"{GPU}: 1" not in done.text
        assert {code for code in codes(done) if code < "DRA1"} == {"DRA001"}


@pytest.mark.parametrize("chart", ["ollama", "llm-d-modelservice", "ray-cluster"])
@pytest.mark.parametrize("version", ["0.1.0", "*", "", ">=0.1.0", "<9.0.0", "1.x || 2.x"])
def test_an_older_or_unknown_version_is_told(chart: str, version: str) -> None:
    done = convert(release(chart, CHARTS[chart][1], version=version), Options())
    assert (done.text, codes(done)) == (None, ["DRA450"])
    assert f"since {CHARTS[chart][0]}" in done.findings[0].finding.message
    assert "The webhook converts its pods" in done.findings[0].finding.message


@pytest.mark.parametrize("api", ["v2", "v2beta2"])
@pytest.mark.parametrize(("version", "selected"), [("4.0.0", True), (">=4.1.0", True), ("3.7.3", False), ("*", False)])
def test_an_older_app_template_gets_a_patch(version: str, api: str, *, selected: bool) -> None:
    done = convert(release("app-template", MAIN, version=version, api=api), Options())
    assert done.text is not None
    template, changed = objects(done.text)
    ((renderer),) = changed["spec"]["postRenderers"]
    (patch,) = renderer["kustomize"]["patches"]
    label = {"labelSelector": "app.kubernetes.io/controller=main"} if selected else {}
    assert patch["target"] == {"kind": "Deployment"} | label
    (inner,) = objects(patch["patch"])
    pod = inner["spec"]["template"]["spec"]
    assert pod == {
        "containers": [{"name": "app", "resources": {"claims": [{"name": "gpu", "request": "app"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template["metadata"]["name"]}],
    }
    assert changed["spec"]["values"]["controllers"]["main"]["containers"] == {"app": {}}


@pytest.mark.parametrize(
    ("values", "version", "api"),
    [(TWO, "3.7.3", "v2"), (TWO, "*", "v2"), (MAIN, "4.0.0", "v2beta1")],
)
def test_a_patch_that_cannot_be_aimed_is_none(values: str, version: str, api: str) -> None:
    done = convert(release("app-template", values, version=version, api=api), Options())
    assert (done.text, set(codes(done))) == (None, {"DRA450"})


@pytest.mark.parametrize(
    ("extra", "code", "words"),
    [
        ("valuesFrom: [{kind: ConfigMap, name: shared}]\n", "DRA451", "ConfigMap shared"),
        ("kubeConfig: {secretRef: {name: other}}\n", "DRA452", "another cluster"),
        ("targetNamespace: new\ninstall: {createNamespace: true}\n", "DRA452", "namespace new is made by the release"),
    ],
)
def test_what_stands_around_may_forbid_it(extra: str, code: str, words: str) -> None:
    done = convert(release("app-template", MAIN, extra=extra), Options())
    assert (done.text, codes(done)) == (None, [code])
    assert words in done.findings[0].finding.message


@pytest.mark.parametrize(
    ("extra", "namespace", "name"),
    [
        ("valuesFrom: [{kind: Secret, name: tokens}]\n", "ml", "app"),
        ("targetNamespace: there\n", "there", "app"),
        ("releaseName: other\n", "ml", "other"),
    ],
)
def test_the_template_goes_where_the_release_goes(extra: str, namespace: str, name: str) -> None:
    done = convert(release("app-template", MAIN, extra=extra), Options())
    assert done.text is not None
    metadata = objects(done.text)[0]["metadata"]
    assert (metadata["namespace"], metadata["name"].partition("-gpu-")[0]) == (namespace, name)


@pytest.mark.parametrize(
    ("chart", "values", "words"),
    [
        ("app-template", MAIN.replace("containers", "type: custom\n    containers"), "is of type custom"),
        ("app-template", MAIN.replace("app:\n", 'app:\n        nameOverride: "{{ x }}"\n'), "name is a template"),
        (
            "app-template",
            MAIN.replace("containers", "initContainers").replace("app:\n", "app:\n        restartPolicy: Always\n"),
            "sidecar",
        ),
        (
            "app-template",
            MAIN.replace("containers:", "defaultContainerOptions: {resources: {limits: {cpu: 1}}}\n    containers:"),
            "shares resources",
        ),
        ("ollama", OLLAMA.replace("enabled: true", "enabled: true\n    type: amd"), "type is amd"),
        ("ollama", OLLAMA.replace("enabled: true", "enabled: true\n    mig: {enabled: true}"), "mig"),
        ("ollama", OLLAMA + "knative: {enabled: true}\n", "Knative"),
        ("ollama", OLLAMA.replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"), "the switch for nvidia.com/gpu"),
        (
            "ollama",
            OLLAMA.replace("enabled: true", "enabled: true\n    nvidiaResource: nvidia.com/gpu").replace(GPU, MIG),
            "needs selectors",
        ),
        ("ollama", OLLAMA.replace("true", "true\n    draEnabled: true\n    number: 2"), "on for 2, beside a limit of"),
        ("llm-d-modelservice", ROLES.replace("gpu: 1", "gpu: 4"), "asks for 4 and would get 1"),
        ("llm-d-modelservice", ROLES + "requester: {enable: true}\n", "requester"),
        ("llm-d-modelservice", ROLES.replace("prefill: {create: false}\n", ""), "prefill has no container"),
        ("llm-d-modelservice", ROLES.replace("containers:\n", "containers:\n  - name: b\n"), "2 containers"),
        ("llm-d-modelservice", ROLES.replace("resources:", "image: llm-d-inference-sim\n    resources:"), "simulator"),
        ("llm-d-modelservice", ROLES + "accelerator: {type: amd}\n", "accelerator of decode is amd"),
        ("llm-d-modelservice", ROLES + "accelerator: {resources: {nvidia: nvidia.com/x}}\n", "nvidia.com/x"),
    ],
)  # fmt: skip
def test_values_that_the_chart_would_read_otherwise(chart: str, values: str, words: str) -> None:
    done = convert(release(chart, values), Options())
    assert (done.text, codes(done)) == (None, ["DRA451"])
    assert words in done.findings[0].finding.message


@pytest.mark.parametrize(
    ("chart", "code"),
    [("app-template", "DRA301"), ("ollama", "DRA301"), ("llm-d-modelservice", "DRA301"), ("ray-cluster", "DRA301")],
)
def test_an_amount_that_nobody_takes_is_told_at_its_place(chart: str, code: str) -> None:
    text = release(chart, CHARTS[chart][1].replace("gpu: 1", "gpu: 500m"))
    done = convert(text, Options())
    assert (done.text, codes(done)) == (None, [code])
    assert "500m" in text.splitlines()[done.findings[0].line - 1]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_zero_stays(chart: str) -> None:
    done = convert(release(chart, CHARTS[chart][1].replace("gpu: 1", "gpu: 0")), Options())
    assert (done.text, codes(done)) == (None, ["DRA101"])


@pytest.mark.parametrize("chart", CHARTS)
def test_an_opt_out_holds(chart: str) -> None:
    text = release(chart, CHARTS[chart][1]).replace(
        "  namespace: ml\n", '  namespace: ml\n  annotations: {gpu2dra.dev/convert: "false"}\n'
    )
    done = convert(text, Options())
    assert (done.text, codes(done)) == (None, ["DRA201"])


@pytest.mark.parametrize("chart", CHARTS)
def test_what_is_converted_stays_as_it_is(chart: str) -> None:
    once = convert(release(chart, CHARTS[chart][1]), Options()).text
    assert once is not None
    again = convert(once, Options())
    assert (again.text, codes(again)) == (None, [])


@pytest.mark.parametrize("chart", CHARTS)
def test_a_comment_leaves_it_alone(chart: str) -> None:
    values = CHARTS[chart][1].replace("gpu: 1}}", "gpu: 1}} # gpu2dra: ignore[DRA001] later")
    done = convert(release(chart, values), Options())
    assert done.text is None


def test_the_switch_of_ollama_takes_the_number_and_class_that_are_asked_for() -> None:
    policy = load({
        "apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy",
        "devices": [{"name": "slice", "deviceClassName": "slice.example.com"}],
        "rules": [{"match": {"resources": [GPU]}, "device": "slice"}],
    })  # fmt: skip
    for version in ApiVersion:
        done = convert(
            release("ollama", OLLAMA.replace("gpu: 1", "gpu: 3")), Options(policy=policy, api_version=version)
        )
        assert values_of(done) == {
            "ollama": {"gpu": {"enabled": True, "draEnabled": True, "number": 3, "draDriverClass": "slice.example.com"}}
        }


def test_a_limit_beside_a_switch_that_is_on_goes() -> None:
    text = OLLAMA.replace("enabled: true", "enabled: true\n    draEnabled: true").replace("gpu: 1}", "gpu: 1, cpu: 2}")
    assert values_of(convert(release("ollama", text), Options())) == {
        "ollama": {"gpu": {"enabled": True, "draEnabled": True}}, "resources": {"limits": {"cpu": 2}},
    }  # fmt: skip


@pytest.mark.parametrize("gpu", ["enabled: false", "enabled: true\n    draEnabled: true"])
def test_a_name_that_nobody_asks_for_is_none(gpu: str) -> None:
    values = OLLAMA.replace("enabled: true", f"{gpu}\n    nvidiaResource: nvidia.com/gpu").partition("resources")[0]
    done = convert(release("ollama", values), Options())
    assert (done.text, codes(done)) == (None, [])


def test_no_tolerations_where_none_are_wanted() -> None:
    for chart, (_, values) in CHARTS.items():
        done = convert(release(chart, values), Options(tolerations=False))
        assert done.text is not None
        assert "tolerations" not in done.text


def test_both_roles_of_a_modelservice_and_their_own_switches() -> None:
    values = (
        "accelerator: {dra: true}\n"
        "decode:\n  accelerator: {dra: false}\n  tolerations: [{key: other, operator: Exists}]\n"
        "  containers:\n  - resources: {limits: {nvidia.com/gpu: 2}}\n"
        "  parallelism: {tensor: 2}\n"
        "prefill:\n  containers:\n  - resources: {limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1, cpu: 1}}\n"
    )
    changed = values_of(convert(release("llm-d-modelservice", values), Options()))
    toleration = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    assert changed["accelerator"] == {"dra": True, "resourceClaimTemplates": {"nvidia": {"name": "app-gpu"}}}
    assert changed["decode"]["accelerator"] == {"dra": True}
    assert changed["decode"]["tolerations"] == [{"key": "other", "operator": "Exists"}, toleration]
    assert changed["decode"]["containers"] == [{}]
    assert changed["prefill"]["containers"] == [{"resources": {"requests": {"cpu": 1}}}]
    assert changed["prefill"]["tolerations"] == [toleration]


def test_what_a_known_chart_does_not_read_is_still_told() -> None:
    values = MAIN + "somewhere: {resources: {limits: {nvidia.com/gpu: 1}}}\n"
    done = convert(release("app-template", values), Options())
    assert done.text is not None
    assert codes(done) == ["DRA001", "DRA403"]


ARGO = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: chat}
spec:
  destination: {namespace: chat}
  source:
    chart: CHART
    targetRevision: VERSION
    helm:
EXTRA      values: |
"""


def application(chart: str, values: str, extra: str = "") -> str:
    """Return an Application whose values are a string."""
    text = ARGO.replace("CHART", chart).replace("VERSION", CHARTS[chart][0]).replace("EXTRA", indent(extra, " " * 6))
    return text + indent(values, " " * 8)


def test_a_string_of_values_is_edited_inside() -> None:
    text = application("ollama", OLLAMA + "# the end\n")
    done = convert(text, Options())
    assert done.text is not None
    gone = [line for line in text.splitlines() if line not in done.text.splitlines()]
    new = [line for line in done.text.splitlines() if line not in text.splitlines()]
    assert (gone, new) == (["        resources: {limits: {nvidia.com/gpu: 1}}"], ["            draEnabled: true"])
    assert text.splitlines()[done.findings[0].line - 1] == gone[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (OLLAMA + "other: {limits: {nvidia.com/gpu: 1}}\n", ["DRA001", "DRA403"]),
        (OLLAMA.replace("enabled: true", "enabled: false"), ["DRA403"]),
        ("ollama: [\n# nvidia.com/gpu: 1\nresources: {limits: {nvidia.com/gpu: 1}}\n", ["DRA403"]),
    ],
)
def test_what_else_stands_in_a_string_is_told(values: str, expected: list[str]) -> None:
    assert codes(convert(application("ollama", values), Options())) == expected


@pytest.mark.parametrize(
    ("chart", "extra", "expected"),
    [
        ("app-template", "", ["DRA452"]),
        ("ray-cluster", "", ["DRA452"]),
        ("ollama", "valueFiles: [gpu.yaml]\n", ["DRA451"]),
        ("ollama", "parameters: [{name: a, value: b}]\n", ["DRA451"]),
        ("llm-d-modelservice", "releaseName: x\n", ["DRA001"]),
    ],
)
def test_an_application_cannot_bring_a_template(chart: str, extra: str, expected: list[str]) -> None:
    assert codes(convert(application(chart, CHARTS[chart][1], extra), Options())) == expected


def test_an_application_set_is_read_as_well() -> None:
    (application_,) = objects(application("ollama", OLLAMA))
    spec = application_.pop("spec")
    application_ |= {"kind": "ApplicationSet", "spec": {"template": {"spec": {"sources": [{}, spec["source"]]}}}}
    (found,) = releases(application_, tuple)
    assert (found.base, found.chart, found.text) == ("/spec/template/spec/sources/1/helm/values", "ollama", OLLAMA)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", ["DRA001"]), ("  - gpu.yaml\n", ["DRA451"]), ("  - {a: 1}\n", ["DRA451"]),
        ("  set: [{name: a, value: b}]\n", ["DRA451"]),
    ],
)  # fmt: skip
def test_a_helmfile(more: str, expected: list[str]) -> None:
    text = (
        "releases:\n- name: chat\n  chart: otwld/ollama\n  version: 1.70.0\n  values:\n  - "
        + indent(OLLAMA, "    ").lstrip()
        + more
    )
    assert codes(convert(text, Options())) == expected


@pytest.mark.parametrize(
    "text",
    [
        "releases: text\n", "releases: [text, {chart: 1}, {chart: a/ollama, values: text}]\n", "releases: {a: 1}\n",
        "kind: HelmRelease\napiVersion: helm.toolkit.fluxcd.io/v2\n", "kind: HelmRelease\nspec: [1]\n",
        "kind: HelmRelease\napiVersion: helm.toolkit.fluxcd.io/v2\nspec: {values: [], chart: 1}\n",
        "kind: Application\napiVersion: argoproj.io/v1alpha1\nspec: {source: 1, sources: {a: 1}}\n",
        "kind: Application\napiVersion: argoproj.io/v1alpha1\nspec: {source: {chart: ollama, helm: {values: 1}}}\n",
        release("app-template", "controllers: [1]\n"),
        release("app-template", "controllers: {a: 1, b: {containers: [1]}}\n"),
        release("ollama", "ollama: {gpu: [1]}\nresources: 3\n"), release("ray-cluster", "head: 3\nworker: [1]\n"),
        release("llm-d-modelservice", "accelerator: {type: cpu}\ndecode: [1]\nprefill: {containers: {a: 1}}\n"),
    ],
)  # fmt: skip
def test_odd_shapes_give_nothing_and_no_traceback(text: str) -> None:
    done = convert(f"{text}# nvidia.com/gpu\n", Options())
    assert (done.text, codes(done)) == (None, [])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2.3", Version((1, 2, 3), True)), ("v1.2", Version((1, 2, 0), True)), ("1.x", Version((1, 0, 0), True)),
        ("~1.2", Version((1, 2, 0), True)), ("^ 1", Version((1, 0, 0), True)),
        (">=1.2.3 <2", Version((1, 2, 3), False)),
        ("<2", None), ("*", None), ("", None), (None, None), (1.2, None), ("1 || 2", None),
    ],
)  # fmt: skip
def test_versions(text: Any, expected: Version | None) -> None:
    assert version_of(text) == expected


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"kind": "OCIRepository", "spec": {"url": URL, "ref": {"tag": "5.0.0"}}}, ("app-template", 5)),
        ({"kind": "OCIRepository", "spec": {"url": URL, "ref": {"semver": "4.x"}}}, ("app-template", 4)),
        ({"kind": "OCIRepository", "spec": {"url": URL}}, ("app-template", None)),
        ({"kind": "HelmChart", "spec": {"chart": "app-template", "version": "5.0.0"}}, ("charts", None)),
        ({"kind": "OCIRepository", "metadata": {"name": "another"}, "spec": {"url": URL}}, ("charts", None)),
    ],
)  # fmt: skip
def test_the_chart_behind_a_reference(other: Any, expected: tuple[str, int | None]) -> None:
    (obj,) = objects(release("app-template", MAIN))
    obj["spec"]["chartRef"] = {"kind": "OCIRepository", "name": "charts"}
    (found,) = releases(obj, lambda: [None, {"metadata": {"name": "charts"}, **other}])
    assert (found.chart, found.version and found.version.low[0]) == expected


def told(folder: Path) -> dict[str, set[str]]:
    """Return the codes by file that a check of a folder finds."""
    settings = Settings(mode=Mode.CHECK, options=Options(), max_size=Config().max_size)
    return {
        each.path.relative_to(folder).as_posix(): {item.finding.code for item in each.findings}
        for each in run([folder], settings)
        if each.findings
    }


def test_the_chart_may_stand_in_another_file_of_the_repository(tmp_path: Path) -> None:
    source = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: app-template}\nspec:\n"
    source += "  url: oci://example.com/charts/app-template\n  ref: {tag: TAG}\n"
    reference = "  chartRef: {kind: OCIRepository, name: app-template}\n"
    text = re.sub("  chart:\n(?:    .*\n)+", reference, release("app-template", TWO))
    tags = {"old": "3.7.3", "new": "5.1.0"}
    for name, tag in tags.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "helmrelease.yaml").write_text(text)
        (folder / "ocirepository.yaml").write_text(source.replace("TAG", tag))
    (tmp_path / "new" / "deeper").mkdir()
    (tmp_path / "new" / "deeper" / "helmrelease.yaml").write_text(text)
    alone = {f"{name}/helmrelease.yaml": {"DRA450"} for name in ("new", "new/deeper", "old")}
    assert told(tmp_path) == alone, "outside a repository nobody looks at other files"
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    assert told(tmp_path) == {**alone, "new/helmrelease.yaml": {"DRA001"}, "new/deeper/helmrelease.yaml": {"DRA001"}}


def test_a_chart_that_asks_by_itself_converts_where_its_file_is_looked_at() -> None:
    decode = "decode:\n  parallelism: {tensor: 4}\n  containers: [{name: vllm}]\nprefill: {create: false}\n"
    done = convert(release("llm-d-modelservice", decode), Options())
    assert values_of(done)["accelerator"]["dra"] is True
    assert "4 × nvidia.com/gpu in decode" in done.findings[0].finding.message
    for values, expected in (
        ("a: 1\n", ["DRA451"]),
        ("accelerator: {type: cpu}\n", []),
        ("accelerator: {dra: true}\n", []),
    ):
        assert codes(convert(release("llm-d-modelservice", values), Options())) == expected
    done = convert(release("ollama", "ollama: {gpu: {enabled: true, number: 3}}\n"), Options())
    assert values_of(done) == {"ollama": {"gpu": {"enabled": True, "number": 3, "draEnabled": True}}}


HELMFILE = "releases:\n- name: chat\n  chart: otwld/ollama\n  version: 1.70.0\n  values: VALUES\n"
MULTI = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: chat}
spec:
  destination: {namespace: chat}
  sources:
  - chart: ollama
    targetRevision: 1.70.0
    helm: {valueFiles: [$values/apps/values.yaml]}
  - {repoURL: https://example.com/this.git, ref: values}
"""


@pytest.mark.parametrize(
    ("name", "text", "code"),
    [
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[values.yaml]"), "DRA001"),
        ("helmfile.d/chat.yaml", HELMFILE.replace("VALUES", "[../apps/values.yaml]"), "DRA001"),
        ("argo/chat.yaml", MULTI, "DRA001"),
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[values.yaml, more.yaml]"), "DRA451"),
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[values.yaml, {a: 1}]"), "DRA451"),
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[values.yaml]\n  set: [{name: a, value: b}]"), "DRA451"),
        ("argo/chat.yaml", MULTI.replace("helm: {", "helm: {parameters: [{name: a}], "), "DRA451"),
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[values.yaml]").replace("1.70.0", "1.2.0"), "DRA450"),
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[other.yaml]"), "DRA403"),
        ("apps/helmfile.yaml", HELMFILE.replace("VALUES", "[values.yaml]").replace("ollama", "whisper"), "DRA403"),
        ("apps/helmfile.yaml", "releases: [1, {chart: 1}]\n--- [1]\n", "DRA403"),
        ("argo/chat.yaml", MULTI.replace("$values/apps", "apps"), "DRA403"),
    ],
)
def test_a_file_of_values_is_read_with_the_release_that_names_it(
    tmp_path: Path, name: str, text: str, code: str
) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    for path, content in {"apps/values.yaml": OLLAMA, name: text}.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(content)
    assert told(tmp_path) == {"apps/values.yaml": {code}}


def test_a_file_of_values_keeps_all_but_what_changes(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "helmfile.yaml").write_text(HELMFILE.replace("VALUES", "[values.yaml]"))
    file = tmp_path / "values.yaml"
    file.write_text("# ours\n" + OLLAMA.replace("1}}", "1, memory: 4Gi}} # one"))
    settings = Settings(mode=Mode.CONVERT, options=Options(), max_size=Config().max_size)
    assert [each.path.name for each in run([tmp_path], settings) if each.changed] == ["values.yaml"]
    assert file.read_text() == (
        "# ours\nollama:\n  gpu:\n    enabled: true\n    draEnabled: true\nresources: {limits: {memory: 4Gi}} # one\n"
    )
    assert told(tmp_path) == {}


K3S = """\
apiVersion: helm.cattle.io/v1
kind: HelmChart
metadata: {name: chat, namespace: kube-system}
spec:
  repo: https://example.com
  chart: CHART
  version: VERSION
  targetNamespace: chat
EXTRA  valuesContent: |-
"""


def k3s(chart: str, values: str, extra: str = "") -> str:
    """Return a HelmChart of k3s with these values."""
    text = K3S.replace("CHART", chart).replace("VERSION", CHARTS[chart][0]).replace("EXTRA", extra)
    return text + indent(values, "    ")


@pytest.mark.parametrize(
    ("chart", "extra", "expected"),
    [
        ("ollama", "", ["DRA001"]), ("app-template", "", ["DRA001"]),
        ("app-template", "  createNamespace: true\n", ["DRA452"]), ("ollama", "  createNamespace: true\n", ["DRA001"]),
        ("ollama", "  set: {a: b}\n", ["DRA451"]),
    ],
)  # fmt: skip
def test_the_helm_chart_of_k3s(chart: str, extra: str, expected: list[str]) -> None:
    text = k3s(chart, CHARTS[chart][1], extra)
    done = convert(text, Options())
    assert codes(done) == expected
    assert f"{GPU}: 1" in text.splitlines()[done.findings[0].line - 1]
    templates = [obj for obj in objects(done.text or "") if obj["kind"] == "ResourceClaimTemplate"]
    assert [obj["metadata"]["namespace"] for obj in templates] == ["chat"] * (
        expected == ["DRA001"] and chart != "ollama"
    )


def test_what_the_defaults_of_an_app_template_say_counts() -> None:
    own = MAIN.replace("containers", "pod: {tolerations: [{key: mine, operator: Exists}]}\n    containers")
    other = MAIN.replace("controllers:\n", "").replace("main", "other")
    default = "defaultPodOptions:\n  tolerations: [{key: all, operator: Exists}]\n  resourceClaims: [{name: net}]\n"
    changed = values_of(convert(release("app-template", default + own + other), Options()))
    pods = [changed["controllers"][name]["pod"] for name in ("main", "other")]
    added = {"key": GPU, "operator": "Exists", "effect": "NoSchedule"}
    assert [pod["tolerations"] for pod in pods] == [
        [{"key": "mine", "operator": "Exists"}, added], [{"key": "all", "operator": "Exists"}, added],
    ]  # fmt: skip
    assert [[claim["name"] for claim in pod["resourceClaims"]] for pod in pods] == [["net", "gpu"]] * 2
    assert changed["defaultPodOptions"] == objects(default)[0]["defaultPodOptions"]


@pytest.mark.parametrize("where", ["defaultPodOptions: {OPTION}\n", "controllers:\n  main:\n    pod: {OPTION}\n"])
@pytest.mark.parametrize(
    ("option", "code"),
    [("schedulerName: other", "DRA206"), ("nodeSelector: {nvidia.com/gpu.product: A-SHARED}", "DRA306")],
)
def test_what_forbids_it_in_a_pod_forbids_it_in_values(where: str, option: str, code: str) -> None:
    where = where.replace("OPTION", option)
    values = where + MAIN.removeprefix("controllers:\n  main:\n") if "controllers" in where else where + MAIN
    done = convert(release("app-template", values), Options())
    assert (done.text, codes(done)) == (None, [code])
    line = release("app-template", values).splitlines()[done.findings[0].line - 1]
    assert option.partition(":")[0] in line


@pytest.mark.parametrize(
    ("api", "kind"),
    [
        ("helm.fluxcd.io/v1", "HelmRelease"), ("app.k8s.io/v1beta1", "Application"),
        ("source.toolkit.fluxcd.io/v1", "HelmChart"), ("argoproj.io/v1alpha1", "Workflow"),
    ],
)  # fmt: skip
def test_another_kind_of_that_name_is_no_release(api: str, kind: str) -> None:
    (obj,) = objects(release("app-template", MAIN))
    spec = {**obj["spec"], "source": {"chart": "ollama", "helm": {"values": OLLAMA}}, "valuesContent": OLLAMA}
    assert list(releases({**obj, "apiVersion": api, "kind": kind, "spec": spec}, tuple)) == []


def test_templates_that_values_name_are_found_wherever_they_stand() -> None:
    done = convert(release("app-template", TWO), Options())
    (changed,) = (obj for obj in objects(done.text or "") if obj["kind"] == "HelmRelease")
    found = dict(claim_references(changed))
    assert set(found) == {
        f"/spec/values/controllers/{name}/pod/resourceClaims/0/resourceClaimTemplateName" for name in ("main", "other")
    }
    assert all(name.startswith("app-") for name in found.values())
    assert list(claim_references({**changed, "kind": "Other"})) == []
    assert pods_namespace(changed) == "ml"
    assert pods_namespace({**changed, "spec": {"targetNamespace": "there"}}) == "there"
    assert pods_namespace({"kind": "Pod", "spec": {"targetNamespace": "there"}}) == ""


@pytest.mark.parametrize(
    ("present", "expected"),
    [
        ("[]", 1), ("null", 1), ("[{kustomize: {patches: []}}]", 2), ("[{other: 1}]", 2), ("text", 1),
        ("[{kustomize: {patches: [{patch: a}]}}]", 1), ("[{kustomize: {patches: [{patch: a}]}}, {kustomize: {}}]", 3),
    ],
)  # fmt: skip
def test_patches_go_behind_those_that_are_there(present: str, expected: int) -> None:
    text = release("app-template", MAIN, version="4.1.0", extra=f"postRenderers: {present}\n")
    done = convert(text, Options())
    assert done.text is not None
    renderers = objects(done.text)[1]["spec"]["postRenderers"]
    assert len(renderers) == expected
    assert "resourceClaimTemplateName" in renderers[-1]["kustomize"]["patches"][-1]["patch"]
    before = objects(present)[0] if present.startswith("[{") else []
    assert renderers[: len(before) - 1] == before[:-1]
    assert convert(done.text, Options()).text is None


def test_requests_must_equal_limits_with_a_switch_as_well() -> None:
    for chart in ("ollama", "llm-d-modelservice"):
        values = CHARTS[chart][1].replace("gpu: 1}}", "gpu: 1}, requests: {nvidia.com/gpu: 2, cpu: 1}}")
        assert codes(convert(release(chart, values), Options())) == ["DRA302"]
        values = values.replace("gpu: 2", "gpu: 1")
        assert "nvidia.com/gpu: 1" not in (convert(release(chart, values), Options()).text or "nvidia.com/gpu: 1")


def test_names_and_classes_of_a_modelservice_that_are_there_stay() -> None:
    own = "accelerator: {resourceClaimTemplates: {nvidia: {name: mine, class: slow.example.com}}}\n"
    policy = load({
        "apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy",
        "devices": [{"name": "slice", "deviceClassName": "slice.example.com"}],
        "rules": [{"match": {"resources": [GPU]}, "device": "slice"}],
    })  # fmt: skip
    for options, expected in ((Options(), "gpu.nvidia.com"), (Options(policy=policy), "slice.example.com")):
        changed = values_of(convert(release("llm-d-modelservice", ROLES + own), options))
        assert changed["accelerator"]["resourceClaimTemplates"] == {"nvidia": {"name": "mine", "class": expected}}
        changed = values_of(convert(release("llm-d-modelservice", ROLES), options))
        named = {"name": "app-gpu"} | ({"class": expected} if options.policy else {})
        assert changed["accelerator"]["resourceClaimTemplates"] == {"nvidia": named}


@pytest.mark.parametrize("parallelism", ["{tensor: x}", "{tensor: 2, dataLocal: x}", "{tensor: 1.5}"])
def test_a_parallelism_that_is_no_number_is_not_guessed(parallelism: str) -> None:
    values = ROLES.replace("decode:\n", f"decode:\n  parallelism: {parallelism}\n")
    assert codes(convert(release("llm-d-modelservice", values), Options())) == ["DRA451"]


def test_other_names_and_resources_of_other_kinds() -> None:
    other = ROLES.replace("nvidia.com/gpu: 1", "nvidia.com/gpu: 1, nvidia.com/mig-1g.5gb: 1")
    done = convert(release("llm-d-modelservice", other), Options())
    assert (codes(done), MIG in done.findings[0].finding.message) == (["DRA451"], True)
    for text in ("resources: text\n", "resources: [1]\n"):
        done = convert(release("ollama", OLLAMA.partition("resources")[0] + text), Options())
        assert codes(done) == ["DRA451"]


@pytest.mark.parametrize(
    ("present", "added"),
    [
        ("[{operator: Exists}]", 0), ("[{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]", 0),
        ("[{key: nvidia.com/gpu, operator: Exists, effect: NoExecute}]", 1), ("[{key: nvidia.com/gpu}]", 1),
        ("[{key: x, operator: Exists}]", 1), ("null", 1), ("[]", 1), ("[text]", 1),
    ],
)  # fmt: skip
def test_the_toleration_comes_once(present: str, added: int) -> None:
    values = ROLES.replace("decode:\n", f"decode:\n  tolerations: {present}\n")
    changed = values_of(convert(release("llm-d-modelservice", values), Options()))
    assert len(changed["decode"]["tolerations"]) == len(objects(present)[0] or []) + added


def test_head_workers_and_disabled_groups_of_a_ray_cluster() -> None:
    group = "resources: {limits: {nvidia.com/gpu: 1}}"
    values = (
        f"head: {{{group}}}\nworker: {{disabled: true, {group}}}\n"
        f"additionalWorkerGroups:\n  big: {{{group}, sidecarContainers: [{{name: s, {group}}}]}}\n"
        f"  idle: {{disabled: true, {group}}}\n"
    )
    done = convert(release("ray-cluster", values), Options())
    assert [code for code in codes(done) if code in {"DRA001", "DRA403"}] == [
        "DRA001",
        "DRA403",
        "DRA001",
        "DRA001",
        "DRA403",
    ]
    changed = values_of(done)
    assert changed["head"]["resources"]["claims"] == [{"name": "gpu", "request": "ray-head"}]
    assert changed["head"]["rayStartParams"] == {"num-gpus": "1"}
    assert changed["worker"] == objects(values)[0]["worker"]
    assert changed["additionalWorkerGroups"]["idle"] == objects(values)[0]["additionalWorkerGroups"]["idle"]
    big = changed["additionalWorkerGroups"]["big"]
    assert (big["resources"]["claims"], big["sidecarContainers"][0]["resources"]["claims"]) == (
        [{"name": "gpu", "request": "ray-worker"}], [{"name": "gpu", "request": "s"}],
    )  # fmt: skip


def test_start_parameters_under_their_old_name_count() -> None:
    done = convert(release("ray-cluster", RAY + '  initArgs: {num-gpus: "0"}\n'), Options())
    assert "rayStartParams" not in values_of(done)["worker"]


LIMIT = "limits: {nvidia.com/gpu: 1}\n"
HERE = {
    "flux": release("ollama", f"resources: {{{LIMIT.strip()}}}\n")
    .replace("kind: HelmRepository", "kind: GitRepository")
    .replace("chart: ollama", "chart: ./charts/vllm"),
    "argo": ARGO.replace("chart: CHART", "path: charts/vllm").replace("EXTRA", "") + f"        {LIMIT}",
    "helmfile": f"releases:\n- chart: ../charts/vllm\n  values:\n  - {LIMIT}",
}


@pytest.mark.parametrize("tool", HERE)
@pytest.mark.parametrize("there", [True, False])
def test_a_value_for_a_chart_of_the_repository_may_stay(tmp_path: Path, tool: str, *, there: bool) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "charts" / "vllm").mkdir(parents=True)
    (tmp_path / "charts" / "vllm" / ("Chart.yaml" if there else "other.yaml")).write_text("name: vllm\n")
    (tmp_path / "apps").mkdir()
    (tmp_path / "apps" / "app.yaml").write_text(HERE[tool])
    assert told(tmp_path) == {"apps/app.yaml": {"DRA453" if there else "DRA403"}}


def test_a_chart_outside_of_the_repository_is_not_here(tmp_path: Path) -> None:
    (tmp_path / "charts" / "vllm").mkdir(parents=True)
    (tmp_path / "charts" / "vllm" / "Chart.yaml").write_text("name: vllm\n")
    apps = tmp_path / "apps"
    subprocess.run(["git", "init", "-q", apps], check=True)
    (apps / "app.yaml").write_text(HERE["helmfile"])
    assert told(apps) == {"app.yaml": {"DRA403"}}
    assert told(tmp_path)["apps/app.yaml"] == {"DRA403"}


def test_what_is_disabled_stays_and_is_told() -> None:
    off = MAIN.replace("controllers:\n", "").replace("main:\n", "idle:\n    enabled: false\n", 1)
    more = "      idle: {enabled: false, resources: {limits: {nvidia.com/gpu: 4}}}\n"
    done = convert(release("app-template", MAIN + more + off), Options())
    assert codes(done) == ["DRA001", "DRA403", "DRA403"]
    before, after = objects(MAIN + more + off)[0]["controllers"], values_of(done)["controllers"]
    assert after["idle"] == before["idle"]
    assert after["main"]["containers"]["idle"] == before["main"]["containers"]["idle"]


def test_a_default_that_asks_is_not_shared_out() -> None:
    default = "defaultContainerOptions: {resources: {limits: {nvidia.com/gpu: 1}}}\n"
    for values in (default + MAIN, MAIN.replace("    containers", f"    {default}    containers")):
        done = convert(release("app-template", values), Options())
        assert done.text is None
        assert sorted(codes(done)) == ["DRA403", "DRA451"]


def test_an_option_of_another_type_is_not_lost() -> None:
    own = MAIN.replace("    containers", "    pod: {tolerations: text}\n    containers")
    for values in ("defaultPodOptions: {resourceClaims: text}\n" + MAIN, own):
        done = convert(release("app-template", values), Options())
        assert (done.text, codes(done)) == (None, ["DRA313"])


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (release("app-template", MAIN), "values"), (release("app-template", MAIN, version="4.1.0"), "patch"),
        (k3s("app-template", MAIN), "text"),
        (release("app-template", MAIN, extra="targetNamespace: there\n"), "values"),
    ],
)  # fmt: skip
def test_a_template_edited_by_hand_is_renamed_where_it_is_used(text: str, mode: str) -> None:
    once = convert(text, Options()).text or ""
    old = objects(once)[0]["metadata"]["name"]
    assert once.count(old) == 2, mode
    again = convert(once.replace("count: 1", "count: 2"), Options())
    assert again.text is not None
    assert codes(again) == ["DRA002"]
    new = objects(again.text)[0]["metadata"]["name"]
    assert (new == old, again.text.count(old), again.text.count(new)) == (False, 0, 2)
    assert again.text == once.replace("count: 1", "count: 2").replace(old, new)
    assert convert(again.text, Options()).text is None


def test_what_asks_by_itself_is_told_where_it_is_switched_on() -> None:
    text = release("ollama", "ollama:\n  gpu:\n    number: 2\n    enabled: true\n", version="1.0.0")
    done = convert(text, Options())
    assert codes(done) == ["DRA450"]
    assert text.splitlines()[done.findings[0].line - 1].strip() == "enabled: true"


@pytest.mark.parametrize("empty", [{}, None, "text"])
def test_an_empty_object_of_values_leaves_the_word_to_the_text(empty: Any) -> None:
    (obj,) = objects(application("ollama", OLLAMA))
    helm = obj["spec"]["source"]["helm"]
    helm["valuesObject"] = empty
    (found,) = releases(obj, tuple)
    assert (found.base, found.text) == ("/spec/source/helm/values", OLLAMA)
    helm["valuesObject"] = {"a": 1}
    (found,) = releases(obj, tuple)
    assert (found.base, found.text) == ("/spec/source/helm/valuesObject", None)


def test_several_claims_come_behind_those_of_all_pods() -> None:
    values = "defaultPodOptions: {resourceClaims: [{name: net}]}\n" + MAIN.replace("gpu: 1", "gpu: 20")
    values += "      more: {resources: {limits: {nvidia.com/gpu: 20}}}\n"
    pod = values_of(convert(release("app-template", values), Options()))["controllers"]["main"]["pod"]
    assert [claim["name"] for claim in pod["resourceClaims"]] == ["net", "gpu", "gpu-2"]


def test_other_limits_stay_where_a_patch_brings_the_claims() -> None:
    values = MAIN.replace("gpu: 1}", "gpu: 1, memory: 1Gi}")
    values += (
        "      other: {resources: {limits: {memory: 2Gi}}}\n      last: {resources: {limits: {nvidia.com/gpu: 2}}}\n"
    )
    changed = values_of(convert(release("app-template", values, version="4.1.0"), Options()))
    assert changed["controllers"]["main"]["containers"] == {
        "app": {"resources": {"limits": {"memory": "1Gi"}}}, "other": {"resources": {"limits": {"memory": "2Gi"}}},
        "last": {},
    }  # fmt: skip


def test_one_controller_may_get_a_patch_where_another_cannot() -> None:
    nightly = MAIN.replace("controllers:\n", "").replace("main:\n", "nightly:\n    type: cronjob\n")
    done = convert(release("app-template", TWO + nightly, version="*"), Options())
    assert codes(done) == ["DRA450", "DRA450", "DRA001"]
    before = objects(TWO)[0]["controllers"]
    changed = values_of(done)["controllers"]
    assert {name: changed[name] for name in before} == before
    assert changed["nightly"]["containers"] == {"app": {}}
    (release_,) = (obj for obj in objects(done.text or "") if obj["kind"] == "HelmRelease")
    (patch,) = release_["spec"]["postRenderers"][0]["kustomize"]["patches"]
    assert patch["target"] == {"kind": "CronJob"}


@pytest.mark.parametrize("version", [ApiVersion.V1BETA1, ApiVersion.V1BETA2])
def test_an_older_target_gets_what_it_serves(version: ApiVersion) -> None:
    for chart, (_, values) in CHARTS.items():
        done = convert(release(chart, values), Options(api_version=version))
        if chart == "llm-d-modelservice":
            assert codes(done) == ["DRA451"]
            assert "serves since 1.34" in done.findings[0].finding.message
        else:
            made = {obj["apiVersion"] for obj in objects(done.text or "") if obj["kind"] == "ResourceClaimTemplate"}
            assert made == ({str(version)} if chart != "ollama" else set())


@pytest.mark.parametrize("number", ["", "    number: 0\n", "    number: 1\n"])
def test_ollama_asks_for_one_where_no_number_stands(number: str) -> None:
    text = release("ollama", f"ollama:\n  gpu:\n    enabled: true\n{number}    nvidiaResource: nvidia.com/gpu\n")
    done = convert(text, Options())
    assert "ask for 1 × nvidia.com/gpu" in done.findings[0].finding.message
    new = [line.strip() for line in (done.text or "").splitlines() if line not in text.splitlines()]
    assert new == ["draEnabled: true"], "the chart takes 0 for its default, with the switch and without"


@pytest.mark.parametrize("where", ["schedulerName: other\n", "decode:\n  schedulerName: other\n"])
def test_another_scheduler_of_a_modelservice(where: str) -> None:
    values = ROLES.replace("decode:\n", where, 1) if where.startswith("decode") else where + ROLES
    assert codes(convert(release("llm-d-modelservice", values), Options())) == ["DRA206"]
    assert convert(release("llm-d-modelservice", values), Options(schedulers=frozenset({"other"}))).text is not None


def test_what_a_ray_group_has_counts() -> None:
    group = "  tolerations: [{operator: Exists}]\n  resourceClaims: [{name: gpu}]\n  rayStartParams: {}\n"
    changed = values_of(convert(release("ray-cluster", RAY + group), Options()))["worker"]
    assert changed["tolerations"] == [{"operator": "Exists"}]
    assert [claim["name"] for claim in changed["resourceClaims"]] == ["gpu", "gpu-2"]
    assert changed["rayStartParams"] == {"num-gpus": "1"}
    sized = RAY + '  rayStartParams: {num-gpus: "4", block: "true"}\n'
    assert values_of(convert(release("ray-cluster", sized), Options()))["worker"]["rayStartParams"]["num-gpus"] == "4"
    skipped = convert(release("ray-cluster", RAY + "  nodeSelector: {nvidia.com/gpu.product: A-SHARED}\n"), Options())
    assert (skipped.text, codes(skipped)) == (None, ["DRA306"])
