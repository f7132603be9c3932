"""Candidates are found by git in a repository, by a walk elsewhere, and what cannot be looked at is told."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.search import discover, git, walk
from gpu2dra_migrate.search.discover import Found, ask_ahead, find, is_manifest_name, may_hold_legacy

if TYPE_CHECKING:
    from collections.abc import Callable

GPU = "limits: {nvidia.com/gpu: 1}\n"
PLAIN = "limits: {cpu: 1}\n"


@pytest.fixture(autouse=True)
def _own_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests."""
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(git, "_PLAIN", (*git._PLAIN, "-c", "safe.directory=*"))


def run_git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def put(folder: Path, *names: str, text: str = GPU) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def names(folder: Path, *paths: Path) -> list[str]:
    found = list(find(paths or [folder]))
    assert [item for item in found if item.code] == []
    return [os.fspath(item.path.relative_to(folder)) for item in found]


def in_git(folder: Path) -> Path:
    run_git(folder, "init", "-q")
    return folder


def without_git(folder: Path) -> Path:
    return folder


EVERYWHERE = pytest.mark.parametrize("prepare", [in_git, without_git])
Prepare = "Callable[[Path], Path]"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("a.yaml", True), ("a.yml", True), ("A.YAML", True), ("a.json", True), ("a.yaml.tmpl", True),
        ("a.yaml.j2", True),
        ("a.json.in", True), ("a.yaml.j2.tmpl", True), ("a.txt", False), ("yaml", False), ("a.yaml.bak", False),
        ("a.yaml.template", True), ("a.Yml.Tpl", True), (".yaml", True), ("a.jsonl", False),
    ],
)  # fmt: skip
def test_names(name: str, wanted: bool) -> None:
    assert is_manifest_name(name) is wanted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (GPU, True), (PLAIN, False), ('{"nvidia.com\\u002Fgpu": 1}', True), ('{"nvidia.com\\/gpu": 1}', True),
        ("path: /limits/nvidia.com~1gpu", True),
        ("volcano.sh/vgpu-number: 1", True), ("gpu2dra.dev/workload: Pod/a", True), ("nvidia-smi", False),
    ],
)  # fmt: skip
def test_terms(text: str, expected: bool) -> None:
    assert may_hold_legacy(text) is expected


@EVERYWHERE
def test_only_manifests_that_may_hold_a_request(tmp_path: Path, prepare: Callable[[Path], Path]) -> None:
    put(prepare(tmp_path), "b.yaml", "a.yml", "sub/deep/c.JSON", "d.txt", "e.yaml.tmpl")
    put(tmp_path, "plain.yaml", text=PLAIN)
    assert names(tmp_path) == ["a.yml", "b.yaml", "e.yaml.tmpl", "sub/deep/c.JSON"]
    assert names(tmp_path, tmp_path / "sub") == ["sub/deep/c.JSON"]


@EVERYWHERE
def test_definitions_of_charts_are_found_for_charts(tmp_path: Path, prepare: Callable[[Path], Path]) -> None:
    put(prepare(tmp_path), "app/templates/_helpers.tpl", "app/templates/deep/er.tpl", "infra/pod.tpl")
    put(tmp_path, "app/templates/_plain.tpl", text=PLAIN)
    assert names(tmp_path) == ["app/templates/_helpers.tpl", "app/templates/deep/er.tpl"]
    assert not any(is_manifest_name(name) for name in ("_helpers.tpl", "er.tpl"))


@EVERYWHERE
def test_strange_names(tmp_path: Path, prepare: Callable[[Path], Path]) -> None:
    strange = ["with blank.yaml", "with\nline.yaml", "with'quote\".yaml", "-dash.yaml", "ünï.yaml", ":(top)x.yaml"]
    put(prepare(tmp_path), *strange)
    raw = os.fsencode(tmp_path) + b"/not-utf8-\xff.yaml"
    Path(os.fsdecode(raw)).write_text(GPU)
    assert sorted(names(tmp_path)) == sorted([*strange, os.fsdecode(b"not-utf8-\xff.yaml")])


@EVERYWHERE
def test_a_named_file_is_a_candidate_whatever_it_is(tmp_path: Path, prepare: Callable[[Path], Path]) -> None:
    put(prepare(tmp_path), "notes.txt", "plain.yaml", text=PLAIN)
    paths = [tmp_path / "plain.yaml", tmp_path / "notes.txt"]
    assert names(tmp_path, *paths) == ["plain.yaml", "notes.txt"]


@EVERYWHERE
def test_each_file_once(tmp_path: Path, prepare: Callable[[Path], Path]) -> None:
    put(prepare(tmp_path), "sub/a.yaml")
    (tmp_path / "link.yaml").symlink_to("sub/a.yaml")
    paths = [tmp_path / "sub" / "a.yaml", tmp_path, tmp_path / "sub", tmp_path / "link.yaml", tmp_path / "sub/../sub"]
    assert names(tmp_path, *paths) == ["sub/a.yaml"]


@pytest.mark.parametrize(
    ("name", "make"),
    [("nothing.yaml", None), ("broken.yaml", "nowhere"), ("loop.yaml", "loop.yaml")],
)
def test_bad_paths_are_told(tmp_path: Path, name: str, make: str | None) -> None:
    if make:
        (tmp_path / name).symlink_to(make)
    (found,) = find([tmp_path / name])
    assert (found.path, found.code) == (tmp_path / name, "DRA510")


def test_a_named_pipe_is_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    (found,) = find([tmp_path / "pipe.yaml"])
    assert found.code == "DRA510"
    assert "a named pipe" in found.message


@EVERYWHERE
def test_pipes_and_sockets_and_broken_links_are_passed_by(
    tmp_path: Path, prepare: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(prepare(tmp_path), "a.yaml")
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "broken.yaml").symlink_to("nowhere")
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "up").symlink_to("..")  # of the test's own folder, so it leads out
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.yaml")
        found = list(find([tmp_path]))
    assert [item.path.name for item in found if not item.code] == ["a.yaml"]
    assert [(item.path.name, item.code) for item in found if item.code] == [("up", "DRA504")]


@EVERYWHERE
def test_links_that_lead_out_are_told_not_followed(tmp_path: Path, prepare: Callable[[Path], Path]) -> None:
    put(tmp_path, "outside/x.yaml")
    tree = tmp_path / "tree"
    put(tree, "inside.yaml")
    prepare(tree)
    (tree / "out.yaml").symlink_to("../outside/x.yaml")
    (tree / "folder").symlink_to("../outside")
    (tree / "in.yaml").symlink_to("inside.yaml")
    (tree / "other.txt").symlink_to("../outside/x.yaml")
    found = list(find([tree]))
    assert [item.path.name for item in found if not item.code] == ["inside.yaml"]
    assert sorted((item.path.name, item.code) for item in found if item.code) == [
        ("folder", "DRA504"), ("out.yaml", "DRA504"),
    ]  # fmt: skip
    if prepare is in_git:
        run_git(tree, "add", "-A")
        assert {item.path.name for item in find([tree]) if item.code} == {"folder", "out.yaml"}


def test_git_decides_what_is_ignored(tmp_path: Path) -> None:
    put(in_git(tmp_path), "tracked.yaml", "new.yaml", "build/a.yaml", "x.secret.yaml")
    put(tmp_path, ".gitignore", text="build/\n*.secret.yaml\n")
    run_git(tmp_path, "add", "tracked.yaml")
    assert names(tmp_path) == ["new.yaml", "tracked.yaml"]
    # What is named is meant.
    assert names(tmp_path, tmp_path / "build") == ["build/a.yaml"]
    assert names(tmp_path, tmp_path / "x.secret.yaml") == ["x.secret.yaml"]


@pytest.mark.parametrize(
    "setting",
    ["color.ui=always", "color.grep=always", "grep.fullName=true", "submodule.recurse=true", "grep.lineNumber=true",
     "grep.patternType=perl", "core.quotePath=false", "grep.column=true"],
)  # fmt: skip
def test_settings_of_git_change_nothing(tmp_path: Path, setting: str) -> None:
    put(in_git(tmp_path), "sub/a.yaml")
    run_git(tmp_path, "config", *setting.split("="))
    assert names(tmp_path, tmp_path / "sub") == ["sub/a.yaml"]


def test_variables_of_a_hook_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "other", "x.yaml")
    in_git(tmp_path / "other")
    tree = tmp_path / "tree"
    put(tree, "a.yaml")
    in_git(tree)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    assert names(tree) == ["a.yaml"]


def test_files_that_attributes_call_binary_are_searched(tmp_path: Path) -> None:
    put(in_git(tmp_path), "a.yaml")
    put(tmp_path, ".gitattributes", text="*.yaml binary\n")
    assert names(tmp_path) == ["a.yaml"]


def test_submodules_and_repositories_inside_are_searched(tmp_path: Path) -> None:
    put(tmp_path / "library", "sub.yaml", "build/no.yaml")
    put(tmp_path / "library", ".gitignore", text="build/\n")
    run_git(in_git(tmp_path / "library"), "add", "-A")
    run_git(tmp_path / "library", "commit", "-q", "-m", "all")
    tree = tmp_path / "tree"
    put(tree, "a.yaml", "clone/b.yaml")
    in_git(tree / "clone")
    run_git(in_git(tree), "submodule", "--quiet", "add", str(tmp_path / "library"), "vendor/library")
    put(tree / "vendor" / "library", "build/no.yaml")
    assert names(tree) == ["a.yaml", "clone/b.yaml", "vendor/library/sub.yaml"]


def refused(*_: object) -> tuple[int, bytes, str]:
    return 128, b"", "fatal: detected dubious ownership in repository at '/somewhere'\n"


def missing(*_: object) -> None:
    return None


@pytest.mark.parametrize("answer", [refused, missing])
def test_without_the_help_of_git_the_folder_is_walked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Callable[..., object]
) -> None:
    put(in_git(tmp_path), "a.yaml", "build/b.yaml", "node_modules/c.yaml", ".git/d.yaml", ".github/e.yaml")
    put(tmp_path, ".gitignore", text="build/\n")
    monkeypatch.setattr(git, "run", answer)
    assert names(tmp_path) == ["a.yaml", ".github/e.yaml", "build/b.yaml"]


def test_git_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git.run(tmp_path, "status") is None


def test_what_git_could_not_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    complaints = (
        "error: 'sub/secret.yaml': Permission denied\n"
        "warning: could not open directory 'private/': Permission denied\n"
        "hint: something else\n"
    )
    real = git.run

    def run(folder: Path, *arguments: str) -> tuple[int, bytes, str] | None:
        return (0, b"a.yaml\0", complaints) if arguments[0] == "grep" else real(folder, *arguments)

    put(in_git(tmp_path), "a.yaml")
    monkeypatch.setattr(git, "run", run)
    found = list(find([tmp_path]))
    assert [(item.path.relative_to(tmp_path).as_posix(), item.code) for item in found] == [
        ("a.yaml", ""), ("sub/secret.yaml", "DRA510"), ("private", "DRA510"),
    ]  # fmt: skip
    assert all("Permission denied" in item.message for item in found if item.code)


def test_what_the_walk_could_not_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "a.yaml", "secret.yaml", "private/b.yaml")
    real_open, real_scandir = os.open, os.scandir

    def refusing_open(path: str | Path, *more: int) -> int:
        if Path(path).name == "secret.yaml":
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, *more)

    def refusing_scandir(path: str) -> object:
        if Path(path).name == "private":
            raise PermissionError(13, "Permission denied", path)
        return real_scandir(path)

    monkeypatch.setattr(os, "open", refusing_open)
    monkeypatch.setattr(os, "scandir", refusing_scandir)
    found = {item.path.name: item.code for item in find([tmp_path])}
    assert found == {"a.yaml": "", "secret.yaml": "DRA510", "private": "DRA510"}


def test_a_file_that_goes_while_the_walk_looks_holds_nothing(tmp_path: Path) -> None:
    assert walk.holds(tmp_path / "gone.yaml", [b"x"]) is False


@pytest.mark.parametrize("before", [0, 1, (1 << 20) - 12, (1 << 20) - 5, 1 << 20, (3 << 20) - 1])
def test_terms_are_found_wherever_the_blocks_end(tmp_path: Path, before: int) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"#" * before + b"nvidia.com/gpu: 1\n" + b"#" * 100)
    terms = [term.encode() for term in discover.SEARCH_TERMS]
    assert walk.holds(path, terms)
    path.write_bytes(b"#" * before + b"nvidia.org/gpu: 1\n" + b"#" * 100)
    assert not walk.holds(path, terms)


def test_nothing_found_is_nothing(tmp_path: Path) -> None:
    put(in_git(tmp_path), "a.yaml", text=PLAIN)
    assert list(find([tmp_path])) == []
    assert list(find([])) == []
    assert Found(tmp_path) == Found(tmp_path, "", "")


def test_what_was_asked_ahead_is_asked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(in_git(tmp_path), "a.yaml")
    asked: list[str] = []
    real = git.run

    def run(folder: Path, *arguments: str) -> tuple[int, bytes, str] | None:
        asked.append(arguments[0])
        return real(folder, *arguments)

    monkeypatch.setattr(git, "run", run)
    ask_ahead([tmp_path, tmp_path / "a.yaml", tmp_path / "none"])
    assert names(tmp_path) == ["a.yaml"]
    assert sorted(asked) == ["grep", "ls-files"]
    assert names(tmp_path) == ["a.yaml"]  # what was said once is not said again: files may have changed
    assert sorted(asked) == ["grep", "grep", "ls-files", "ls-files"]


def test_an_error_of_what_was_asked_ahead_is_raised_where_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(folder: Path, *arguments: str) -> None:
        raise RuntimeError("broken")

    put(in_git(tmp_path), "a.yaml")
    monkeypatch.setattr(git, "grep", run)
    ask_ahead([tmp_path])
    with pytest.raises(RuntimeError, match="broken"):
        list(find([tmp_path]))
