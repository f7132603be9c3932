"""What a conversion does to the files of a chart: templates move without a changed byte, few files are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpu2dra.model import Object
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.files import LARGEST, Unreadable, read_text, write_all
from gpu2dra_migrate.helm.chart import raw
from gpu2dra_migrate.helm.helper import FILE_NAME, entrance
from gpu2dra_migrate.helm.values import with_schema, with_switch

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """What one chart is to hold: `converted` templates, the `helper`, and the value of the switch (None: no switch).

    `nested` is the way to the values of each chart in this one whose switch the schema has to allow as well. `inline`
    are new texts of templates that stay where they are, for which `helper` holds the definitions.
    """

    converted: frozenset[str]
    helper: str
    switch: Object | None
    nested: tuple[tuple[str, ...], ...] = ()
    inline: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> frozenset[str]:
        """The templates that render claims."""
        return self.converted | self.inline.keys()


@dataclass(frozen=True, slots=True)
class Edits:
    """Files to move and, after that, files to write."""

    moves: Mapping[Path, Path] = field(default_factory=dict)
    writes: Mapping[Path, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.moves or self.writes)


def edits_of(folder: Path, target: Target) -> Edits:
    """Return what turns the chart in `folder`, converted or not, into `target`.

    Raises FileError for values or a schema that cannot be edited.
    """
    base = folder / "templates"
    moves: dict[Path, Path] = {}
    writes: dict[Path, str] = {}
    for name in sorted(target.converted):
        if not (base / raw(name)).exists():
            moves[base / name] = base / raw(name)
        writes[base / name] = f'{{{{ include "{entrance(target.helper)}" (list . {json.dumps(name)}) -}}}}\n'
    writes |= {base / name: text for name, text in target.inline.items()}
    if target.names:
        writes[base / FILE_NAME] = target.helper
    if target.names and target.switch is not None:
        values = folder / "values.yaml"
        writes[values] = with_switch(_text(values), target.switch)
    schema = folder / "values.schema.json"
    if schema.is_file() and target.switch is not None:
        ways: Iterable[tuple[str, ...]] = ((), *target.nested) if target.names else target.nested
        writes[schema] = text = _text(schema)
        for way in ways:
            writes[schema] = text = with_schema(text, way)
    changed = {path: text for path, text in writes.items() if path in moves or _text(path) != text}
    return Edits(moves, changed)


def carry_out(*edits: Edits) -> None:
    """Move and write the files; raise OSError when one cannot be written, and then all of them are as they were."""
    moves = {old: new for each in edits for old, new in each.moves.items()}
    write_all({path: text for each in edits for path, text in each.writes.items()}, moves)


def _text(path: Path) -> str:
    if not path.exists():
        return ""
    try:
        return read_text(path, LARGEST)
    except Unreadable as error:
        raise FileError(f"{path.name}: {error.message}") from None
