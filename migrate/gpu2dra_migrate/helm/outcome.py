"""What the user chooses for charts, and what the conversion of one gives back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from gpu2dra import Options

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.chart import Chart
    from gpu2dra_migrate.helm.edits import Edits
    from gpu2dra_migrate.helm.program import Rendered


class Reason(StrEnum):
    """What a note is about."""

    NOT_A_CHART = "not-a-chart"  # Chart.yaml or a template cannot be read
    NO_RENDER = "does-not-render"  # with the chart's own values
    VALUES_FAIL = "values-do-not-render"  # with one of the values files
    ARCHIVE = "packed-dependency"  # asks for a GPU and cannot be edited
    TWICE = "defined-twice"  # moving the template might change which definition counts
    TAKEN = "name-taken"  # a partial has the name that the template would get
    LINK = "link"  # the template stands elsewhere, where others may use it
    KUSTOMIZED = "kustomized"  # a kustomization takes the template as a manifest
    NOT_INLINE = "not-inline"  # of no pattern that is written into the template itself
    OWN_DRA = "own-dra-values"  # values under the key of the switch mean something else here
    POLICY = "policy-in-chart"  # the helper knows the built-in policy only
    NOT_EQUAL = "square"  # does not render what converting its output would give
    NO_SWITCH = "values-rendered-whole"  # the chart would print the switch
    CANNOT_EDIT = "cannot-edit"  # values or schema in a layout that is not edited
    UNPROVEN = "not-proven"  # nothing renders, so nothing could be compared
    OWN_SWITCH = "own-switch"  # the chart has a switch for DRA: whether it is set, and why not
    NO_HELM = "no-helm"  # only a render could tell
    IGNORED = "ignored"  # a comment silences another request of the template
    NO_WORKLOAD = "value-without-workload"  # a value names a resource, and no template makes a request of it


class Template(NamedTuple):
    """A template: the folder of its chart and its name below `templates`."""

    chart: Path
    name: str

    @property
    def path(self) -> Path:
        """Its file."""
        return self.chart / "templates" / self.name


@dataclass(frozen=True, slots=True)
class Note:
    """One thing to tell about one file or folder of the chart, and a line and a column of it (0: none)."""

    reason: Reason
    path: Path
    message: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One set of values, the copy of the chart that renders with it, and what it renders before the conversion."""

    values: tuple[Path, ...]
    folder: Path
    before: tuple[Rendered, ...]


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user wants.

    `mode` is the value of `dra.enabled` (auto, true, false) that goes into values.yaml. `everything` converts all
    templates of workloads, not only those that ask for a GPU here: for charts whose users bring the request.
    `selects` says of a template's path whether it may change, `kustomized` which kustomization takes it as a manifest.
    `inline` writes claims into the templates themselves.
    """

    options: Options = field(default_factory=Options)
    mode: str = "auto"
    everything: bool = False
    selects: Callable[[Path], bool] = lambda _: True
    kustomized: Callable[[Path], Path | None] = lambda _: None
    inline: bool = False


@dataclass(slots=True)
class ChartConversion:
    """What becomes of a chart folder with its subcharts.

    `edits` have to be carried out in order. `converted` are the templates that render through the helper afterwards,
    `squares` counts the sets of values for which both ways around the square give the same, and `requests` the
    documents with a GPU request that were compared there. `ignored` counts requests that a comment silences. `chart`
    is as it was before, `cases` what it rendered then.
    """

    edits: list[Edits] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    converted: list[Path] = field(default_factory=list)
    squares: int = 0
    requests: int = 0
    ignored: int = 0
    chart: Chart | None = None
    cases: Sequence[Case] = ()

    def tell(self, reason: Reason, path: Path, message: str, line: int = 0, column: int = 0) -> None:
        """Add a note."""
        self.notes.append(Note(reason, path, message, line, column))
