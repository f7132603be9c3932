"""A chart that runs the helper over texts: many cases in one run of helm, each with a result of its own."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu2dra import Context, Keep, Options, plan
from gpu2dra.kinds import KINDS
from gpu2dra_migrate.helm.helper import entrance, helper
from gpu2dra_migrate.helm.program import Helm
from gpu2dra_migrate.helm.square import sorted_keys
from gpu2dra_migrate.manifest import objects, with_neighbours
from gpu2dra_migrate.text.patch import copied, patched

if TYPE_CHECKING:
    from pathlib import Path

GROUPS = frozenset(group for group, _ in KINDS)
HELM_OPTIONS = Options(keep=(Keep.HELM,), elsewhere=False)
_RESULTS = """\
{{- $settings := dict }}
{{- template "PREFIX.settings" (dict "root" $ "to" $settings) }}
{{- $results := list }}
{{- range .Files.Get "cases.json" | fromJsonArray }}
{{- $results = append $results (include "PREFIX.documents" (dict "text" . "settings" $settings)) }}
{{- end }}
apiVersion: v1
kind: ConfigMap
metadata: {name: results}
data: {results: {{ toRawJson $results | b64enc }}}
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """A chart at `folder` whose only template prints what the helper makes of the texts in `cases.json`."""

    folder: Path
    helm: Helm

    def convert(self, texts: Sequence[str]) -> list[str]:
        """Return what the helper prints for each text."""
        (self.folder / "cases.json").write_text(json.dumps(texts), "utf-8")
        (rendered,) = self.helm.template(self.folder)
        (data,) = objects(rendered.text)
        results: list[str] = json.loads(b64decode(data["data"]["results"]))
        return results


def bench(folder: Path, helm: Helm, options: Options = HELM_OPTIONS) -> Bench:
    """Write the chart into `folder` and return it."""
    text = helper(options, GROUPS)
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text("apiVersion: v2\nname: bench\nversion: 0.1.0\n", "utf-8")
    (folder / "templates" / "_gpu2dra.tpl").write_text(text, "utf-8")
    prefix = entrance(text).removesuffix(".file")
    (folder / "templates" / "results.yaml").write_text(_RESULTS.replace("PREFIX", prefix), "utf-8")
    return Bench(folder, helm)


def by_core(text: str, options: Options = HELM_OPTIONS) -> list[Any]:
    """Return the objects that the core makes of a text, each with its templates before it."""
    found = [sorted_keys(obj) for obj in objects(text)]
    context = with_neighbours(Context(), found)
    result: list[Any] = []
    for obj in found:
        made = plan(obj, options, context)
        result += [*made.templates, patched(copied(obj), made.operations)]
    return result
