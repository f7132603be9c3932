"""The builder: what is in the cache is whole, built once, and of the pinned version. A stand-in plays Go's part."""

from __future__ import annotations

import multiprocessing
import os
import sys
from typing import TYPE_CHECKING

import pytest

from controlplane import build

if TYPE_CHECKING:
    from pathlib import Path

# Answers `go env GOVERSION`; writes what `go build` should, slowly; notes each call; fails where the name says so.
_FAKE_GO = f"""#!{sys.executable}
import os, sys, time
if sys.argv[1] == "env":
    print(os.environ["FAKE_GO_VERSION"])
    sys.exit()
with open(os.environ["FAKE_GO_CALLS"], "a") as calls:
    print(sys.argv[-1], os.environ["GOTOOLCHAIN"], os.environ["CGO_ENABLED"], file=calls)
time.sleep(0.2)
if sys.argv[-1] == os.environ.get("FAKE_GO_FAILS"):
    sys.exit("no such package")
with open(sys.argv[sys.argv.index("-o") + 1], "w") as program:
    program.write(" ".join(sys.argv))
"""


@pytest.fixture
def go_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put the stand-in first on PATH, with an empty cache; return the file with its calls."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "go").write_text(_FAKE_GO)
    (tmp_path / "bin" / "go").chmod(0o755)
    calls = tmp_path / "calls"
    calls.touch()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_GO_CALLS", str(calls))
    monkeypatch.setenv("FAKE_GO_VERSION", "go1.99.0")
    return calls


def test_a_control_plane_is_built_once(go_calls: Path) -> None:
    lines: list[str] = []
    folder = build.ensure("kubernetes-1.37", lines.append)
    programs = {*build.CONTROL_PLANE, "kubectl"}
    assert {path.name for path in folder.iterdir()} == programs
    assert len([line for line in lines if " MiB in " in line]) == len(programs)
    assert build.ensure("kubernetes-1.37", pytest.fail) == folder
    assert len(go_calls.read_text().splitlines()) == len(programs)
    assert all(line.endswith(" local 0") for line in go_calls.read_text().splitlines())


def test_the_version_is_linked_in(go_calls: Path) -> None:
    folder = build.ensure("kubernetes-1.37", lambda line: None)
    version = build.PINS["kubernetes-1.37"].version
    assert folder.name.startswith(f"kubernetes-1.37-{version}-")
    assert f"-X k8s.io/component-base/version.gitVersion={version} " in (folder / "kube-apiserver").read_text()
    assert "version.gitMinor=37" in (folder / "kube-apiserver").read_text()
    # Else charts see a cluster of Kubernetes 1.20: the release of client-go that helm itself was made with.
    client = build.PINS["helm-3"].required("k8s.io/client-go").split(".")[1]
    linked = (build.ensure("helm-3", lambda line: None) / "helm").read_text()
    assert f"chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor={client}" in linked


def test_a_build_that_fails_leaves_nothing(go_calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_GO_FAILS", build.CONTROL_PLANE["kube-scheduler"])
    with pytest.raises(build.BuildError, match="kube-scheduler"):
        build.ensure("kubernetes-1.34", lambda line: None)
    assert [path.name for path in build.cache().iterdir()] == ["build.lock"]


def test_a_killed_build_is_cleaned_up_by_the_next(go_calls: Path) -> None:
    started = multiprocessing.get_context("spawn").Process(target=build.ensure, args=("kubernetes-1.34",))
    started.start()
    while not go_calls.read_text():
        started.join(0.01)
        assert started.is_alive()
    started.kill()
    started.join()
    assert list(build.cache().glob(".building-*"))
    folder = build.ensure("helm-4", lambda line: None)
    assert sorted(path.name for path in build.cache().iterdir()) == ["build.lock", folder.name]


def test_two_processes_build_once(go_calls: Path) -> None:
    context = multiprocessing.get_context("spawn")
    both = [context.Process(target=build.ensure, args=("kubernetes-1.34",)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    calls = go_calls.read_text().splitlines()
    assert len(calls) == len(set(calls)) == len(build.CONTROL_PLANE) + 1


def test_a_changed_pin_is_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin = build.PINS["kustomize-5"]
    before = pin.digest()
    (tmp_path / pin.folder).mkdir()
    for name in ("go.mod", "go.sum"):
        (tmp_path / pin.folder / name).write_text((build.VERSIONS / pin.folder / name).read_text())
    monkeypatch.setattr(build, "VERSIONS", tmp_path)
    assert pin.digest() == before
    with (tmp_path / pin.folder / "go.sum").open("a") as go_sum:
        go_sum.write("example.org/module v1.0.0 h1:AAAA\n")
    assert pin.digest() != before


@pytest.mark.parametrize(("installed", "new_enough"), [("go1.25.9", False), ("go1.26.0", True), ("go1.27.3", True)])
def test_an_old_go_is_not_used(
    go_calls: Path, monkeypatch: pytest.MonkeyPatch, installed: str, *, new_enough: bool
) -> None:
    monkeypatch.setenv("FAKE_GO_VERSION", installed)
    wheel = build.cache() / build.GO_WHEEL.replace("==", "-") / "go" / "bin"
    wheel.mkdir(parents=True)
    (wheel / "go").write_text(_FAKE_GO)
    expected = go_calls.parent / "bin" / "go" if new_enough else wheel / "go"
    assert build._go(build.PINS["kubernetes-1.37"], pytest.fail) == str(expected)


def test_ready_made_programs_take_the_place_of_all_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"1.33": tmp_path / "a", "1.37": tmp_path / "b"}
    for release, folder in folders.items():
        folder.mkdir()
        for program in build.CONTROL_PLANE:
            (folder / program).write_text(f"#!/bin/sh\necho Kubernetes v{release}.1\n")
            (folder / program).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", os.pathsep.join(map(str, folders.values())))
    assert {release: give(pytest.fail) for release, give in build.control_planes().items()} == folders
    (folders["1.33"] / "kube-scheduler").unlink()
    with pytest.raises(build.BuildError, match="holds no kube-scheduler"):
        build.control_planes()
