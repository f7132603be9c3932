"""What the documents that a chart renders ask for, and where in its templates and values that stands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from gpu2dra import Finding, Options, plan
from gpu2dra.pointers import segments, value_at
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate import manifest
from gpu2dra_migrate.files import text_of
from gpu2dra_migrate.helm.documents import first_mapping, objects_in
from gpu2dra_migrate.helm.outcome import Case, Template
from gpu2dra_migrate.helm.selection import template_of
from gpu2dra_migrate.helm.square import surroundings
from gpu2dra_migrate.ignores import ignores, is_ignored
from gpu2dra_migrate.search.discover import may_hold_legacy

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra_migrate.helm.chart import Chart

REQUEST = "DRA001"
_COMMENT_LINE = re.compile(r"\s*(?:#|\{\{-?\s*/\*)")
_ANY_NAME = r"nvidia\.com(?:/|~1)[\w.-]+"


class Place(NamedTuple):
    """A place in a file; line and column count from 1, or are 0 for the file as a whole."""

    path: Path
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Told:
    """One finding about a document of a template: the object, what was asked for by name, and the values it takes.

    `amount` is what stands in the object at the place of the finding.
    """

    template: Template
    about: str
    finding: Finding
    names: frozenset[str]
    values: tuple[Path, ...]
    amount: str


@dataclass(frozen=True, slots=True)
class Named:
    """A legacy resource that stands in a values file: where, the keys that lead to it, and its amount."""

    place: Place
    keys: tuple[str, ...]
    name: str
    amount: str


@dataclass(slots=True)
class Size:
    """How much of a template converts: the most with one set of values."""

    objects: int = 0
    requests: int = 0


class Survey:
    """The findings of the core on everything that a chart renders with each set of values."""

    def __init__(self, chart: Chart, cases: Sequence[Case], options: Options) -> None:
        self._chart = chart
        self._texts: dict[Path, str] = {
            Template(member.folder, name).path: text
            for member in chart.family() for name, text in member.templates.items()
        }  # fmt: skip
        self.asked: list[tuple[tuple[Path, ...], frozenset[str]]] = []
        self.sizes: dict[Template, Size] = {}
        self.told: list[Told] = []
        seen: set[tuple[Template, str, str]] = set()
        for case in cases:
            for told in self._read(case, replace(options, elsewhere=True)):
                key = (told.template, told.about, told.finding.message)
                if key not in seen:
                    seen.add(key)
                    self.told.append(told)

    def _read(self, case: Case, options: Options) -> Iterator[Told]:
        """Yield the findings of one case; add to `asked` and `sizes`."""
        documents = [
            (template_of(self._chart, each.source), objects_in(each.text))
            for each in case.before if may_hold_legacy(each.text)
        ]  # fmt: skip
        context = surroundings(case.before)
        names: set[str] = set()
        sizes: dict[Template, Size] = {}
        for template, objs in documents:
            for obj in objs:
                made = plan(obj, options, context)
                asked = {str(name) for access in made.access for name, _ in access.legacy}
                names |= asked or set(re.findall(_ANY_NAME, " ".join(found.message for found in made.findings)))
                if template is None:
                    continue
                size = sizes.setdefault(template, Size())
                size.objects += bool(made)
                size.requests += sum(len(access.legacy) for access in made.access)
                about = manifest.describe(obj)
                for found in made.findings:
                    amount = str(value_at(obj, found.path))
                    yield Told(template, about, found, frozenset(asked), case.values, amount)
        self.asked.append((case.values, frozenset(names)))
        for template, size in sizes.items():
            best = self.sizes.setdefault(template, Size())
            best.objects, best.requests = max(best.objects, size.objects), max(best.requests, size.requests)

    @cached_property
    def _named(self) -> dict[Path, list[Named]]:
        files = {member.folder / "values.yaml" for member in self._chart.family()}
        files |= {file for values, _ in self.asked for file in values}
        return {file: list(named_in(file)) for file in sorted(files)}

    def unseen(self, more: Sequence[Path] = ()) -> list[Named]:
        """Return the resources named in values (also in those of `more`) that nothing asks for which renders."""
        found = []
        for file in dict.fromkeys((*self._named, *more)):
            asked = [names for values, names in self.asked if file in values or file.name == "values.yaml"]
            found += [
                named for named in self._named.get(file) or named_in(file)
                if not any(named.name in names for names in asked)
            ]  # fmt: skip
        return found

    def place(self, told: Told) -> Place:
        """Return where the request stands: in the template, the values that it takes, a partial, else nowhere."""
        path = told.template.path
        names = "|".join(map(re.escape, sorted(told.names))) or _ANY_NAME
        if found := _line_of(self._texts.get(path, ""), names):
            return Place(path, *found)
        own = [member.folder / "values.yaml" for member in self._chart.family()]
        nearest = sorted(own, key=lambda file: (file.parent != told.template.chart, len(file.parts)))
        for file in (*told.values, *nearest):
            here = [named for named in self._named.get(file) or named_in(file) if named.name in told.names]
            for named in sorted(here, key=lambda named: named.amount != told.amount):
                return named.place
        partials = (file for file in self._texts if file.name.startswith("_"))
        found_in = ((file, _line_of(self._texts[file], names)) for file in partials)
        return next((Place(file, *found) for file, found in found_in if found), Place(path))

    def mention(self, template: Path) -> Place:
        """Return where a template names a legacy resource."""
        found = _line_of(self._texts.get(template, ""), _ANY_NAME)
        return Place(template, *found) if found else Place(template)

    def ignored(self, place: Place, code: str) -> bool:
        """Whether a comment at `place` silences `code`."""
        text = self._texts.get(place.path)
        return is_ignored(code, place.line, ignores(text_of(place.path) if text is None else text))


def named_in(file: Path) -> Iterator[Named]:
    """Yield the legacy resources that stand in a values file as requests, in its order; no tolerations, no labels."""
    text = text_of(file)
    if not may_hold_legacy(text):
        return
    data = first_mapping(text)
    for located in manifest.convert(text, Options(), write=False).findings:
        keys = segments(located.finding.path)
        amount = str(value_at(data, located.finding.path))
        value = keys[-1:] if legacy_resource(keys[-1] if keys else "") else re.findall(_ANY_NAME, amount)
        for name in dict.fromkeys(value):
            yield Named(Place(file, located.line, located.column), tuple(keys), name, amount)


def _line_of(text: str, names: str) -> tuple[int, int] | None:
    """Return line and column of the first request for one of `names` (an expression), or of its first mention."""
    mentions: list[tuple[int, int]] = []
    for pattern in (rf"[\"']?(?:{names})[\"']?\s*:", rf"(?<![\w./-])(?:{names})(?![\w./-])"):
        for number, line in enumerate(text.splitlines(), start=1):
            match = None if _COMMENT_LINE.match(line) else re.search(pattern, line)
            if match and not re.match(r"\s*-?\s*key:", line):
                mentions.append((number, match.start() + 1))
    return mentions[0] if mentions else None
