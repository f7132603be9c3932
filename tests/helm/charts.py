"""Builds charts from texts, converts them and judges the outcome without the converter's own proof."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu2dra import Keep, Options, plan
from gpu2dra_migrate.helm.convert import convert_chart
from gpu2dra_migrate.helm.edits import carry_out
from gpu2dra_migrate.helm.outcome import ChartConversion, Choices
from gpu2dra_migrate.helm.square import sorted_keys
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.text.patch import copied, patched

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.program import Helm

DESCRIBED = "apiVersion: v2\nname: app\nversion: 0.1.0\n"
HEAD = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-app
  labels: {app: app}
spec:
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      containers:
      - name: main
        image: registry.example.com/app:1
"""
DEPLOYMENT = HEAD + "        resources:\n          {{- toYaml .Values.resources | nindent 10 }}\n"
VALUES = "resources:\n  limits:\n    nvidia.com/gpu: 2\n"


def make_chart(folder: Path, files: Mapping[str, str]) -> Path:
    """Write a chart: `files` by their path in it, over a deployment that takes its resources from the values."""
    chosen = {"Chart.yaml": DESCRIBED, **files}
    for name, text in chosen.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def tree(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder."""
    return {
        file.relative_to(folder).as_posix(): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()
    }


@dataclass(frozen=True, slots=True)
class Converted:
    """A chart after its conversion: what happened, its files before, and the objects of both renders."""

    folder: Path
    outcome: ChartConversion
    files: dict[str, bytes]
    before: list[Any]
    after: list[Any]

    @property
    def reasons(self) -> list[str]:
        """The reasons of the notes."""
        return [note.reason.value for note in self.outcome.notes]

    @property
    def names(self) -> list[str]:
        """The converted templates, as paths in the chart."""
        return [path.relative_to(self.folder).as_posix() for path in self.outcome.converted]

    def kinds(self) -> list[str]:
        """Return the kinds that the converted chart renders."""
        return sorted(obj["kind"] for obj in self.after)


def convert(
    folder: Path, helm: Helm, *, choices: Choices | None = None, values: Sequence[Path] = (), judge: bool = True
) -> Converted:
    """Convert the chart in `folder` in place; with `judge` its render must be what the core makes of the one before."""
    files = tree(folder)
    before = rendered(helm, folder) if judge else []
    outcome = convert_chart(folder, choices or Choices(), helm, values)
    assert tree(folder) == files, "nothing is written before the edits are carried out"
    for edits in outcome.edits:
        carry_out(edits)
    after = rendered(helm, folder) if judge else []
    if judge:
        options = (choices or Choices()).options
        assert keys(after) == keys(by_core(before, options))
    return Converted(folder, outcome, files, before, after)


def rendered(helm: Helm, folder: Path, values: Sequence[Path] = (), **flags: Any) -> list[Any]:
    """Return the objects that a chart renders."""
    return [obj for each in helm.template(folder, values=values, **flags) for obj in objects(each.text)]


def by_core(objs: Sequence[Any], options: Options) -> list[Any]:
    """Return what the core makes of objects, for Helm."""
    chosen = Options(keep=(Keep.HELM,), elsewhere=False, api_version=options.api_version)
    result: list[Any] = []
    for obj in map(sorted_keys, objs):
        made = plan(obj, chosen)
        result += [*made.templates, patched(copied(obj), made.operations)]
    return result


def keys(objs: Sequence[Any]) -> list[str]:
    """Return objects so that lists of them can be compared whatever their order."""
    return sorted(json.dumps(obj, sort_keys=True) for obj in objs)
