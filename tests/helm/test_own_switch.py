"""Charts that can render claims by themselves: their switch is set where that gives what a conversion gives."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.helm.own_switch import set_on
from gpu2dra_migrate.helm.reach import limits_left, reach
from gpu2dra_migrate.manifest import objects
from helm.charts import HEAD, Converted, convert, make_chart

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

SWITCHED = (
    HEAD
    + """\
        resources:
          {{- if .Values.accelerator.dra }}
          claims: [{name: gpu}]
          LEFT
          {{- else if .Values.gpus }}
          limits: {nvidia.com/gpu: {{ .Values.gpus }}}
          {{- end }}
      {{- if .Values.accelerator.dra }}
      resourceClaims: [{name: gpu, resourceClaimTemplateName: own}]
      {{- end }}
"""
)
CLAIM = """\
{{- if .Values.accelerator.dra }}
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: own}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: COUNT}}]}}}
{{- end }}
"""


def switched(
    tmp_path: Path, helm: Helm, *, gpus: str = "2", count: str = "{{ .Values.gpus }}", left: str = ""
) -> Converted:
    """Convert a chart with a switch of its own, which writes `count` devices and leaves `left` beside the claim."""
    files = {
        "templates/app.yaml": SWITCHED.replace("LEFT", left),
        "templates/claim.yaml": CLAIM.replace("COUNT", count),
        "values.yaml": f"accelerator:\n  dra: false # by device plugin\ngpus: {gpus}\n",
    }
    return convert(make_chart(tmp_path / "app", files), helm, judge=False)


def told(done: Converted) -> list[str]:
    """Return the messages of the notes, which are all about the switch."""
    assert set(done.reasons) == {"own-switch"}
    return [note.message for note in done.outcome.notes]


@pytest.mark.slow
def test_the_switch_is_set_where_it_gives_the_same_devices(helm: Helm, tmp_path: Path) -> None:
    done = switched(tmp_path, helm)
    assert told(done) == ["The chart has a switch of its own, accelerator.dra, which is now on."]
    assert (done.folder / "values.yaml").read_text() == "accelerator:\n  dra: true # by device plugin\ngpus: 2\n"
    assert [[*edits.writes] for edits in done.outcome.edits] == [[done.folder / "values.yaml"]]
    assert (done.names, done.outcome.squares) == ([], 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "left", "why"),
    [
        ("1", "", 'container "main" of Deployment/release-app would reach 1 devices by it, not 2'),
        (
            "{{ .Values.gpus }}",
            "limits: {nvidia.com/gpu: 2}",
            'container "main" of Deployment/release-app would keep its limit beside the claim',
        ),
    ],
)
def test_the_switch_stays_off_where_it_gives_others(
    helm: Helm, tmp_path: Path, count: str, left: str, why: str
) -> None:
    done = switched(tmp_path, helm, count=count, left=left)
    assert told(done) == [f"The chart's own switch, accelerator.dra, stays off, and its templates convert: {why}."]
    assert done.names == ["templates/app.yaml"]
    assert b"dra: false # by device plugin" in (done.folder / "values.yaml").read_bytes()


@pytest.mark.slow
def test_where_nothing_asks_the_switch_is_only_told(helm: Helm, tmp_path: Path) -> None:
    done = switched(tmp_path, helm, gpus="0")
    assert told(done) == ["The chart has a switch of its own, accelerator.dra: set it where values ask for a GPU."]
    assert (done.names, done.outcome.edits) == ([], [])


@pytest.mark.parametrize("text", ["", "a: 1\n", "accelerator: text\n", "accelerator: {}\n"])
def test_a_switch_that_does_not_stand_in_the_values_is_not_set(text: str) -> None:
    with pytest.raises(FileError, match=r"values\.yaml has no accelerator\.dra"):
        set_on(text, "accelerator.dra")


def test_a_switch_that_is_on_stays() -> None:
    assert set_on("accelerator: {dra: true}\n", "accelerator.dra") == "accelerator: {dra: true}\n"


TEMPLATES = """\
kind: ResourceClaimTemplate
metadata: {name: flat}
spec: {spec: {devices: {requests: [{name: a, deviceClassName: one}, {name: b, deviceClassName: two, count: 3}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  resourceClaims: [{name: c, resourceClaimTemplateName: flat}, {name: other, resourceClaimName: z}]
  initContainers: [{name: i, resources: {claims: [{name: c, request: b}]}}]
  containers:
  - {name: all, resources: {claims: [{name: c}, {name: other}, {name: absent}]}}
  - {name: none, resources: {limits: {nvidia.com/gpu: 1}}}
  - {name: both, resources: {claims: [{name: c, request: a}], limits: {nvidia.com/gpu: 1}}}
"""


def test_what_a_container_reaches_is_told_by_devices() -> None:
    found = objects(TEMPLATES)
    assert {container: devices for (*_, container), devices in reach(found).items()} == {
        "i": Counter({("two",): 3}),
        "all": Counter({("one",): 1, ("two",): 3}),
        "both": Counter({("one",): 1}),
    }
    assert limits_left(found) == [("Pod", "p", "/spec", "both")]
