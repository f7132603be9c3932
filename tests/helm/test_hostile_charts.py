"""Charts that mean harm, or look like it: the run ends in time, leaves the machine alone and tells about them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate import programs
from gpu2dra_migrate.helm import workspace
from gpu2dra_migrate.helm.chart import read_chart
from helm.charts import DEPLOYMENT, DESCRIBED, HEAD, VALUES, convert, make_chart, tree

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

pytestmark = pytest.mark.slow


def chart(tmp_path: Path, **more: str) -> Path:
    files = {"templates/app.yaml": DEPLOYMENT, "values.yaml": VALUES}
    return make_chart(tmp_path / "app", {**files, **{f"templates/{name}.yaml": text for name, text in more.items()}})


@pytest.mark.parametrize("link", ["loop", "templates/loop", "charts/loop"])
def test_links_that_lead_back_end(helm: Helm, tmp_path: Path, link: str) -> None:
    folder = chart(tmp_path)
    (folder / "charts").mkdir()
    (folder / link).symlink_to(folder, target_is_directory=True)
    done = convert(folder, helm, judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], [])


@pytest.mark.parametrize("folder", ["", "templates/", "charts/"])
def test_links_that_lead_to_each_other_or_nowhere(helm: Helm, tmp_path: Path, folder: str) -> None:
    app = chart(tmp_path)
    (app / "charts").mkdir()
    for name, target in (("a.yaml", "b.yaml"), ("b.yaml", "a.yaml"), ("c.yaml", "gone.yaml")):
        (app / f"{folder}{name}").symlink_to(target)
    done = convert(app, helm, judge=False)
    assert (done.names, done.reasons) == (["templates/app.yaml"], [])


def test_links_that_lead_out_are_not_copied(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    make_chart(outside, {"secret": "x", "deep/secret": "x"})
    folder = chart(tmp_path)
    (folder / ".git").mkdir()
    (folder / "out").symlink_to(outside, target_is_directory=True)
    (folder / "file").symlink_to(outside / "secret")
    (folder / "inside").symlink_to(folder / "values.yaml")
    workspace.copy(read_chart(folder), tmp_path / "copy")
    assert sorted(tree(tmp_path / "copy")) == ["Chart.yaml", "inside", "templates/app.yaml", "values.yaml"]


def test_large_files_are_not_copied(tmp_path: Path) -> None:
    folder = chart(tmp_path)
    with (folder / "weights.bin").open("wb") as file:
        file.truncate(20 << 20)
    workspace.copy(read_chart(folder), tmp_path / "copy")
    assert sorted(tree(tmp_path / "copy")) == ["Chart.yaml", "templates/app.yaml", "values.yaml"]


def test_a_template_that_a_link_shares_stays(helm: Helm, tmp_path: Path) -> None:
    shared = make_chart(tmp_path / "shared", {"app.yaml": DEPLOYMENT})
    folder = make_chart(tmp_path / "app", {"values.yaml": VALUES, "templates/x.yaml": ""})
    (folder / ".git").mkdir()
    for link in ("linked", "app.yaml"):
        (folder / "templates" / link).symlink_to(shared if link == "linked" else shared / "app.yaml")
    (tmp_path / ".git").mkdir()
    (folder / ".git").rmdir()
    done = convert(folder, helm, judge=False)
    assert (done.names, set(done.reasons)) == ([], {"link"})
    assert (shared / "app.yaml").read_text() == DEPLOYMENT


@pytest.mark.parametrize(
    "bomb",
    [
        '{{ range until 100000 }}{{ range until 100000 }}{{ printf "%s" "xxxxxxxxxxxxxxxx" }}{{ end }}{{ end }}',
        '{{ $x := list "x" }}{{ range until 40 }}{{ $x = concat $x $x }}{{ end }}{{ toJson $x }}',
        '{{ define "again" }}{{ include "again" . }}{{ end }}{{ include "again" . }}',
        "{{ repeat 2000000000 .Chart.Name }}",
    ],
)
def test_a_template_without_end_ends(helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: str) -> None:
    monkeypatch.setattr(programs, "TIME_LIMIT", 3.0)
    monkeypatch.setattr(programs, "MEMORY_LIMIT", 1 << 30)
    done = convert(chart(tmp_path, bomb=bomb), helm, judge=False)
    assert "does-not-render" in done.reasons


def test_templates_see_no_cluster_and_no_environment(
    helm: Helm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    text = '# {{ lookup "v1" "Secret" "a" "x" }} {{ getHostByName "localhost" }} {{ .Files.Get "/etc/hostname" }}\n'
    folder = chart(tmp_path, look=f"{text}apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\n")
    (look,) = (each.text for each in helm.template(folder) if each.source.endswith("look.yaml"))
    assert look.startswith("# map[]  \n")


@pytest.mark.parametrize(
    "name", ["a b.yaml", "ünï.yaml", "quote'.yaml", "{{ x }}.yaml", "deep/er/$(touch x).yaml", "-rf.yaml"]
)
def test_strange_names(helm: Helm, tmp_path: Path, name: str) -> None:
    folder = make_chart(tmp_path / "app", {f"templates/{name}": DEPLOYMENT, "values.yaml": VALUES})
    done = convert(folder, helm)
    assert done.names == [f"templates/{name}"]
    assert not os.path.lexists("x")


def test_names_that_yaml_and_templates_read_in_their_own_way(helm: Helm, tmp_path: Path) -> None:
    folder = make_chart(
        tmp_path / "app",
        {"Chart.yaml": DESCRIBED.replace("name: app", "name: '0'"), "templates/app.yaml": HEAD + VALUES_INLINE},
    )
    done = convert(folder, helm)
    assert done.names == ["templates/app.yaml"]


VALUES_INLINE = "        resources: {limits: {nvidia.com/gpu: 1}}\n"
