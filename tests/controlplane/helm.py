"""Runs the real helm on the chart of this repository: renders it, installs it, and gives back plain objects."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import yaml

from controlplane.client import Object

CHART = Path(__file__).resolve().parents[2] / "charts" / "gpu2dra"
RELEASE = "gpu2dra"
NAMESPACE = "gpu2dra-system"
# What charts see where no cluster is asked; without it each version of helm names the one that it was built with.
_KUBERNETES = "1.34.0"


class HelmError(Exception):
    """Helm ended with an error; the message is what it printed."""


@dataclass(frozen=True, slots=True)
class Helm:
    """One helm program; `home` keeps its caches away from the user's."""

    program: Path
    home: Path

    @property
    def major(self) -> int:
        """The major version."""
        return int(self.run("version", "--template", "{{.Version}}").removeprefix("v").split(".")[0])

    def run(self, *arguments: str | Path, values: Object | None = None) -> str:
        """Run helm and return what it printed; HelmError when it fails. `values` are for commands that take some."""
        homes = {name: str(self.home / name) for name in ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.home), **homes}
        command = [str(self.program), *map(str, arguments), *([] if values is None else ["--values=-"])]
        sent = json.dumps(values)  # JSON is YAML
        done = subprocess.run(
            command, input=sent, capture_output=True, text=True, check=False, timeout=120, env=environment
        )
        if done.returncode:
            raise HelmError(done.stderr or done.stdout)
        return done.stdout

    def template(self, values: Object | None = None, *arguments: str) -> str:
        """Return what the chart renders to, as text: the objects of a release that has these values."""
        place = ("--namespace", NAMESPACE, "--kube-version", _KUBERNETES)
        return self.run("template", RELEASE, CHART, *place, *arguments, values=values or {})

    def render(self, values: Object | None = None, *arguments: str) -> list[Object]:
        """Return the objects that the chart renders to, in the order of helm."""
        return objects(self.template(values, *arguments))

    def notes(self, values: Object | None = None) -> str:
        """Return what `helm install` tells its user; Helm 3 would ask a cluster first."""
        how = ("--namespace", NAMESPACE, "--dry-run=client", "--output=json")
        printed = self.run("install", RELEASE, CHART, *how, values=values or {})
        return str(json.loads(printed)["info"]["notes"])


def objects(text: str) -> list[Object]:
    """Return the objects in a stream of YAML documents."""
    return [obj for obj in yaml.safe_load_all(text) if obj is not None]


def one(rendered: list[Object], kind: str, name: str | None = None) -> Object:
    """Return the object of a kind, and of a name if there are several; LookupError when it is not exactly one."""
    found = [obj for obj in rendered if obj["kind"] == kind and name in (None, obj["metadata"]["name"])]
    if len(found) != 1:
        msg = f"{len(found)} objects are a {kind} {name or ''}"
        raise LookupError(msg)
    return found[0]
