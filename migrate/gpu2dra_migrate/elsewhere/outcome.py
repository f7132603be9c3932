"""What becomes of the values of one release: edits, templates and findings, all with pointers into the values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpu2dra import Access, Finding, Object, Operation, Plan
from gpu2dra.codes import finding
from gpu2dra_migrate.elsewhere.releases import Release

_WEBHOOK = "The webhook converts its pods in any case, as does"
WAYS_OUT = {
    "Flux": f"{_WEBHOOK} a patch in postRenderers that you write.",
    "Argo CD": f"{_WEBHOOK} a plugin of Argo CD that runs `gpu2dra render-filter`.",
    "k3s": f"{_WEBHOOK} `gpu2dra render-filter` for what `helm template` prints.",
    "helmfile": f"{_WEBHOOK} `gpu2dra render-filter` as the release's postRenderer.",
}
"""What else there is, by who installs the chart: only helmfile can run a post-renderer."""


@dataclass(slots=True)
class Outcome:
    """The sum over a release that `tool` installs.

    `seen` holds the legacy keys that are dealt with, `patches` those that a post-renderer is to make.
    """

    tool: str
    operations: list[Operation] = field(default_factory=list)
    templates: list[Object] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    access: list[Access] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    patches: list[Object] = field(default_factory=list)

    def add(self, made: Plan, operations: Iterable[Operation] | None = None) -> None:
        """Add a plan; `operations` stand for its own where they are others."""
        self.operations += made.operations if operations is None else operations
        self.templates += made.templates
        self.findings += made.findings
        self.access += made.access

    def refuse(self, keys: Iterable[str], code: str, why: str) -> None:
        """Add the finding that the request at `keys` stays, and what else there is."""
        place = min(keys, key=lambda key: ("/limits/" not in key, key))
        self.findings.append(finding(code, place, f"{why} {WAYS_OUT[self.tool]}"))


def too_old(release: Release, since: tuple[int, int, int]) -> str:
    """Return that a release names a version of its chart before `since`, or none that can be seen."""
    named = ".".join(map(str, release.version.low)) if release.version else "no version that can be seen from here"
    return f"{release.chart} can say claims since {'.'.join(map(str, since))}; this release names {named}."
