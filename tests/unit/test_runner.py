"""Runs over many files: order, processes, what is written, names that change over file borders, and failures."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpu2dra import Options
from gpu2dra_migrate import files, manifest, runner, worker
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.runner import FileResult, Mode, Settings, run
from gpu2dra_migrate.search import discover

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: NAME
spec:
  containers:
  - name: a
    resources:
      limits:
        nvidia.com/gpu: 1
"""


def settings(mode: Mode = Mode.CONVERT, *, jobs: int = 1, max_size: int = MAX_SIZE) -> Settings:
    return Settings(mode=mode, options=Options(), max_size=max_size, jobs=jobs)


def go(*paths: Path, mode: Mode = Mode.CONVERT, jobs: int = 1, max_size: int = MAX_SIZE) -> list[FileResult]:
    return list(run(paths, settings(mode, jobs=jobs, max_size=max_size)))


def codes(results: Sequence[FileResult], severity: str = "") -> list[str]:
    return [
        item.finding.code for result in results for item in result.findings if severity in ("", item.finding.severity)
    ]


def pods(folder: Path, *names: str) -> list[Path]:
    paths = [folder / f"{name}.yaml" for name in names]
    for path, name in zip(paths, names, strict=True):
        path.write_text(POD.replace("NAME", name))
    return paths


@pytest.mark.parametrize("mode", [Mode.CHECK, Mode.DIFF])
def test_check_and_diff_write_nothing(tmp_path: Path, mode: Mode) -> None:
    (path,) = pods(tmp_path, "one")
    (result,) = go(tmp_path, mode=mode)
    assert result.changed
    assert path.read_text() == POD.replace("NAME", "one")
    assert (result.before, result.after is not None) == (
        (path.read_text(), True) if mode is Mode.DIFF else (None, False)
    )


def test_convert_writes_and_a_second_run_finds_nothing(tmp_path: Path) -> None:
    pods(tmp_path, "one", "two")
    results = go(tmp_path)
    assert [(result.path.name, result.changed, result.objects, result.requests) for result in results] == [
        ("one.yaml", True, 1, 1), ("two.yaml", True, 1, 1),
    ]  # fmt: skip
    assert [(result.changed, result.findings) for result in go(tmp_path)] == [(False, [])] * 2


def test_several_processes_tell_the_same_in_the_same_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_FILES_PER_PROCESS", 10)
    for folder in ("alone", "together"):
        (tmp_path / folder).mkdir()
        pods(tmp_path / folder, *(f"p{number:03}" for number in range(60)))
        (tmp_path / folder / "p0305.yaml").write_text("nvidia.com/gpu: [\n")
        (tmp_path / folder / "p0306.yaml").write_bytes(b"nvidia.com/gpu: \xff\n")
    told = {
        folder: [(result.path.name, result.changed, result.findings) for result in go(tmp_path / folder, jobs=jobs)]
        for folder, jobs in (("alone", 1), ("together", 3))
    }
    assert told["alone"] == told["together"]
    assert len(told["alone"]) == 62
    for path in (tmp_path / "alone").iterdir():
        assert path.read_bytes() == (tmp_path / "together" / path.name).read_bytes()


def test_small_runs_load_only_what_they_need(root: Path, tmp_path: Path) -> None:
    pods(tmp_path, "one")
    code = (
        "import sys\nfrom gpu2dra_migrate.cli import cli\n"
        f"try: cli(['check', {str(tmp_path / 'one.yaml')!r}])\nexcept SystemExit: pass\n"
        "late = {'multiprocessing', 'concurrent.futures', 'msgspec', 'pathspec', 'rich', 'difflib', 'yaml12'}\n"
        "print(sorted(late & set(sys.modules)))"
    )
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'migrate'}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"nvidia.com/gpu: [\n", "DRA501"), (b"nvidia.com/gpu: \xff\n", "DRA502"), (b"nvidia.com/gpu: \0\n", "DRA502"),
        (b"nvidia.com/gpu: 1" + b" " * 2000, "DRA503"),
    ],
)  # fmt: skip
def test_a_bad_file_does_not_stop_the_others(tmp_path: Path, content: bytes, code: str) -> None:
    pods(tmp_path, "a", "c")
    (tmp_path / "b.yaml").write_bytes(content)
    results = go(tmp_path, max_size=1000)
    assert [(result.path.name, result.changed) for result in results] == [
        ("a.yaml", True), ("b.yaml", False), ("c.yaml", True),
    ]  # fmt: skip
    assert codes(results, "error") == [code]
    assert (tmp_path / "b.yaml").read_bytes() == content


class Pair:
    """A group of two files, as a chart is one."""

    def __init__(self, folder: Path, *, broken: bool = False) -> None:
        self.files = frozenset({folder / "b.yaml", folder / "c.yaml"})
        self._broken = broken

    def results(self) -> Iterator[FileResult]:
        """Yield a change, then nothing or a failure."""
        yield FileResult(min(self.files), changed=True)
        if self._broken:
            raise ZeroDivisionError("oh")
        yield FileResult(max(self.files))


def test_files_of_a_group_convert_with_it_where_the_first_of_them_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pods(tmp_path, "a", "b", "c", "d")
    monkeypatch.setattr(runner, "find_groups", lambda jobs: [Pair(tmp_path)])
    for mode, names in ((Mode.CONVERT, "abcd"), (Mode.VERIFY, "bc")):
        assert "".join(result.path.stem for result in go(Path(), mode=mode)) == names
    assert [result.changed for result in go(Path())] == [False, True, False, False]
    assert "nvidia.com/gpu" in (tmp_path / "b.yaml").read_text()
    assert "nvidia.com/gpu: 1" not in (tmp_path / "d.yaml").read_text()


def test_definitions_without_a_chart_are_nobodys(tmp_path: Path) -> None:
    (tmp_path / "templates").mkdir()
    named = tmp_path / "templates" / "_x.tpl"
    named.write_text("nvidia.com/gpu: [\n")
    assert go(tmp_path) == []
    assert codes(go(named), "error") == ["DRA501"]


def test_a_bug_in_a_group_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPU2DRA_DEBUG", raising=False)
    pods(tmp_path, "a", "b", "c", "d")
    monkeypatch.setattr(runner, "find_groups", lambda jobs: [Pair(tmp_path, broken=True)])
    results = go(tmp_path)
    assert ["".join(result.path.stem for result in results), *codes(results, "error")] == ["abbd", "DRA599"]
    monkeypatch.setenv("GPU2DRA_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        go(tmp_path)


def test_a_bug_in_one_file_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = manifest.convert

    def convert(text: str, *args: Any, **more: Any) -> object:
        if "name: b" in text:
            raise ZeroDivisionError("oh")
        return real(text, *args, **more)

    monkeypatch.delenv("GPU2DRA_DEBUG", raising=False)
    monkeypatch.setattr(manifest, "convert", convert)
    pods(tmp_path, "a", "b", "c")
    results = go(tmp_path)
    assert [result.changed for result in results] == [True, False, True]
    assert codes(results, "error") == ["DRA599"]
    assert "ZeroDivisionError: oh" in results[1].findings[0].finding.message
    monkeypatch.setenv("GPU2DRA_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        go(tmp_path)


def test_a_file_that_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, found = pods(tmp_path, "named", "found")
    real = discover.find

    def find(paths: Sequence[Path]) -> object:
        result = list(real(paths))
        named.unlink()
        found.unlink()
        return result

    monkeypatch.setattr(runner, "find", find)
    results = go(named, tmp_path)
    assert [(result.path.name, codes([result])) for result in results] == [
        ("named.yaml", ["DRA510"]),
        ("found.yaml", []),
    ]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, text: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    (path,) = pods(tmp_path, "one")
    monkeypatch.setattr(worker, "write_text", refuse)
    (result,) = go(path)
    assert not result.changed
    assert codes([result], "error") == ["DRA510"]
    assert "DRA001" not in codes([result])
    assert path.read_text() == POD.replace("NAME", "one")


GENERATED = POD.replace("name: NAME", "generateName: one-")
JSON = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, '
    '"spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]}}\n'
)


@pytest.mark.parametrize(
    ("name", "text", "beside"),
    [
        ("pod.yaml", GENERATED, "pod-gpu-template.yaml"), ("pod.yml", GENERATED, "pod-gpu-template.yml"),
        ("pod.json", JSON, "pod-gpu-template.json"), ("pod.yaml.tmpl", GENERATED, "pod.yaml-gpu-template.yaml"),
    ],
)  # fmt: skip
def test_templates_that_go_into_a_file_of_their_own(tmp_path: Path, name: str, text: str, beside: str) -> None:
    path, new = tmp_path / name, tmp_path / beside
    path.write_text(text)
    (checked,) = go(path, mode=Mode.CHECK)
    assert list(checked.created) == [new]
    assert not new.exists()
    (result,) = go(path)
    assert result.changed
    (template,) = objects(new.read_text())
    (pod,) = objects(path.read_text())
    assert template["kind"] == "ResourceClaimTemplate"
    assert pod["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert not any(result.changed for result in go(tmp_path))


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_what_stands_where_the_template_would_go_is_not_touched(tmp_path: Path, kind: str) -> None:
    path, new = tmp_path / "pod.yaml", tmp_path / "pod-gpu-template.yaml"
    path.write_text(GENERATED)
    if kind == "file":
        new.write_text("mine\n")
    elif kind == "folder":
        new.mkdir()
    else:
        new.symlink_to("nowhere")
    (result,) = go(path)
    assert (result.changed, codes([result], "error")) == (False, ["DRA511"])
    assert path.read_text() == GENERATED
    assert kind != "file" or new.read_text() == "mine\n"


def test_a_template_that_stands_there_already_will_do(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(GENERATED)
    go(path)
    path.write_text(GENERATED)  # `kubectl create` again from the old text
    (result,) = go(path)
    assert result.changed


def test_a_failure_takes_the_new_file_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(GENERATED)
    real = files.write_text

    def full(where: Path, text: str) -> None:
        if where == path:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(where, text)

    monkeypatch.setattr(worker, "write_text", full)
    (result,) = go(path)
    assert codes([result], "error") == ["DRA510"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["pod.yaml"]


# Templates of ours that were edited by hand (rule R8).


def edited(folder: Path, *, git: bool) -> tuple[Path, Path, str]:
    """Return a template whose count was edited, the Deployment in another file that uses it, and the old name."""
    if git:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (path,) = pods(folder, "one")
    go(path)
    template, marker, pod = path.read_text().partition("---\n")
    assert marker
    path.unlink()
    a, b = folder / "a.yaml", folder / "b.yaml"
    a.write_text(template.replace("count: 1", "count: 2"))
    b.write_text(pod.replace("gpu2dra", "x"))
    return a, b, objects(template)[0]["metadata"]["name"]


@pytest.mark.parametrize("git", [True, False], ids=["git", "no-git"])
@pytest.mark.parametrize("named", ["folder", "both", "both-turned", "folder-and-file"])
def test_a_rename_reaches_the_references_in_other_files(tmp_path: Path, git: bool, named: str) -> None:
    a, b, old = edited(tmp_path, git=git)
    paths = {"folder": [tmp_path], "both": [a, b], "both-turned": [b, a], "folder-and-file": [tmp_path, b]}[named]
    found = go(*paths, mode=Mode.CHECK)
    assert "DRA002" in codes(found)
    results = go(*paths)
    assert {result.path for result in results if result.changed} == {a, b}
    new = objects(a.read_text())[0]["metadata"]["name"]
    assert new != old
    assert objects(b.read_text())[0]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == new
    assert old not in b.read_text()
    assert [(result.changed, result.findings) for result in go(*paths) if result.changed or result.findings] == []


def test_another_namespace_keeps_its_reference(tmp_path: Path) -> None:
    a, b, old = edited(tmp_path, git=False)
    b.write_text(b.read_text().replace("metadata:\n", "metadata:\n  namespace: other\n"))
    assert {result.path for result in go(tmp_path) if result.changed} == {a}
    assert old in b.read_text()


def test_a_rename_of_one_file_tells_who_else_must_follow(tmp_path: Path) -> None:
    a, b, _ = edited(tmp_path, git=True)
    (result,) = go(a, mode=Mode.CHECK)
    (renamed,) = [item.finding.message for item in result.findings if item.finding.code == "DRA002"]
    assert "b.yaml" in renamed
    b.unlink()
    (result,) = go(a, mode=Mode.CHECK)
    (renamed,) = [item.finding.message for item in result.findings if item.finding.code == "DRA002"]
    assert "b.yaml" not in renamed


def test_outside_a_repository_it_tells_that_nobody_looked(tmp_path: Path) -> None:
    a, _, _ = edited(tmp_path, git=False)
    (result,) = go(a, mode=Mode.CHECK)
    (renamed,) = [item.finding.message for item in result.findings if item.finding.code == "DRA002"]
    assert "must follow" in renamed


# Tools that apply a repository and prune what it no longer holds (rule R8).

FLUX = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
ARGO = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a, namespace: argocd}\n"


@pytest.mark.parametrize(
    ("signs", "annotations"),
    [
        ([], []),
        ([FLUX], ["kustomize.toolkit.fluxcd.io/prune"]),
        ([ARGO], ["argocd.argoproj.io/sync-options"]),
        ([FLUX, ARGO], ["argocd.argoproj.io/sync-options", "kustomize.toolkit.fluxcd.io/prune"]),
    ],
)
@pytest.mark.parametrize("git", [True, False], ids=["git", "no-git"])
def test_templates_are_kept_from_the_tools_that_the_repository_shows(
    tmp_path: Path, signs: list[str], annotations: list[str], git: bool
) -> None:
    if git:
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "apps").mkdir()
    for number, sign in enumerate(signs):
        (tmp_path / f"sign{number}.yaml").write_text(sign)
    for path in pods(tmp_path / "apps", "one", "two"):
        go(path)
        template = objects(path.read_text())[0]
        kept = sorted(set(template["metadata"]["annotations"]) - {"gpu2dra.dev/workload"})
        assert kept == (annotations if git else [])
