"""Runs `helm template`: charts are other people's programs, so with a time limit and away from cluster and settings."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TIME_LIMIT = 60.0
"""Seconds that one chart may take; the largest public ones take two."""
_SOURCE = re.compile(r"^---\n# Source: (?P<source>.*)\n", re.MULTILINE)


class RenderError(Exception):
    """The chart does not render; the text is what helm says, in one paragraph."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """One document that a chart renders: the template that it comes from (`chart/templates/x.yaml`) and its text."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Helm:
    """One helm program, of version 3 or 4."""

    program: str

    def template(
        self, chart: Path, *, values: Sequence[Path] = (), kube_version: str = "1.34.0", namespace: str = "default"
    ) -> list[Rendered]:
        """Return what `chart` renders with these values files, hooks included, in helm's order.

        `kube_version` is the server that the chart sees. Raises RenderError when it does not render, in TIME_LIMIT.
        """
        command = [self.program, "template", "release", str(chart), "--namespace", namespace, "--include-crds=false"]
        command += ["--kube-version", kube_version, *(f"--values={file}" for file in values)]
        return [Rendered(*each) for each in split(self.run(command[1:]))]

    def run(self, arguments: Sequence[str]) -> str:
        """Run helm and return what it prints; RenderError when it fails.

        It sees no cluster, no plugins and no settings or caches of the user, who may have credentials there. Rendering
        itself opens no connection: DNS look-ups of templates are off unless --enable-dns is given, and `template`
        downloads nothing.
        """
        with tempfile.TemporaryDirectory(prefix="gpu2dra-helm-") as home:
            homes = {f"HELM_{name}_HOME": home for name in ("CACHE", "CONFIG", "DATA")}
            environment = {"PATH": os.defpath, "HOME": home, "HELM_PLUGINS": home, "KUBECONFIG": os.devnull, **homes}
            try:
                done = subprocess.run(  # noqa: S603 - the user's helm
                    [self.program, *arguments], env=environment, capture_output=True, timeout=TIME_LIMIT, check=False,
                    stdin=subprocess.DEVNULL,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise RenderError(f"helm takes more than {TIME_LIMIT:.0f} s") from None
            except OSError as error:
                raise RenderError(f"{self.program} cannot be run: {error.strerror}") from None
        if done.returncode:
            said = " ".join(done.stderr.decode("utf-8", "replace").split())
            raise RenderError(said.removesuffix("Use --debug flag to render out invalid YAML").strip())
        return done.stdout.decode("utf-8", "replace")


def split(text: str) -> list[tuple[str, str]]:
    """Return source and text of each document that `helm template` printed."""
    pieces = _SOURCE.split(text)
    return list(zip(pieces[1::2], pieces[2::2], strict=True))
