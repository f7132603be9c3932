"""Runs `helm template`: charts are other people's programs, so with the limits of `gpu2dra_migrate.programs`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu2dra_migrate import programs

if TYPE_CHECKING:
    from pathlib import Path

_SOURCE = re.compile(r"^---\n# Source: (?P<source>.*)\n", re.MULTILINE)


class RenderError(programs.ProgramError):
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

        `kube_version` is the server that the chart sees. Raises RenderError when it does not render in time.
        """
        command = [self.program, "template", "release", str(chart), "--namespace", namespace, "--include-crds=false"]
        command += ["--kube-version", kube_version, *(f"--values={file}" for file in values)]
        return [Rendered(*each) for each in split(self.run(command[1:]))]

    def run(self, arguments: Sequence[str]) -> str:
        """Run helm and return what it prints; RenderError when it fails.

        It sees no cluster, no plugins and no settings or caches of the user, who may have credentials there. Rendering
        itself opens no connection, whether or not the system can take the network away: DNS look-ups of templates are
        off unless --enable-dns is given, and `template` downloads nothing.
        """
        try:
            return programs.run([self.program, *arguments])
        except programs.ProgramError as error:
            said = str(error).removesuffix("Use --debug flag to render out invalid YAML").strip()
            raise RenderError(said) from None


def split(text: str) -> list[tuple[str, str]]:
    """Return source and text of each document that `helm template` printed.

    How many line ends follow one depends on whether it is the last, so all texts end in one.
    """
    pieces = _SOURCE.split(text)
    return [(source, each.rstrip("\n") + "\n") for source, each in zip(pieces[1::2], pieces[2::2], strict=True)]
