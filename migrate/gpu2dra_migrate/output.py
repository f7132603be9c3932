"""What a run tells: lines for people, one JSON document for programs, and the exit code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from gpu2dra import CODES, Severity
from gpu2dra_migrate.manifest import CONVERSIONS, Located
from gpu2dra_migrate.terminal import Terminal, printable
from gpu2dra_migrate.worker import FileResult, Mode

JSON_SCHEMA_VERSION = 1
PROVEN = frozenset({"DRA423"})
"""Codes that say that a file of a chart or a kustomization is proven."""
NOT_RENDERED = frozenset({"DRA422", "DRA431", "DRA433", "DRA436", "DRA438", "DRA439", "DRA442", "DRA443"})
"""Codes that say that a proof was not possible: `verify` takes that for an error."""
_COLORS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}


class Exit(IntEnum):
    """Exit codes; of several the highest but USAGE wins, and USAGE over all (design, section 6)."""

    NOTHING = 0
    FINDINGS = 1
    USAGE = 2  # or an internal error
    UNREADABLE = 3


@dataclass(slots=True)
class Tally:
    """The sums over a run."""

    mode: Mode
    files: int = 0
    changed: int = 0
    objects: int = 0
    requests: int = 0
    ignored: int = 0
    created: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def add(self, result: FileResult) -> None:
        """Count one file."""
        self.files += 1
        self.changed += result.changed
        self.objects += result.objects
        self.requests += result.requests
        self.ignored += result.ignored
        self.created += len(result.created) if result.changed else 0
        self.codes.update(located.finding.code for located in result.findings)

    def count(self, severity: Severity) -> int:
        """Return how many findings of this severity there are, conversions aside."""
        return sum(number for _, number in self._rows(severity))

    def exit_code(self) -> Exit:
        """Return the exit code of the run."""
        if self.codes["DRA599"]:
            return Exit.USAGE
        if self.count(Severity.ERROR) or (self.mode is Mode.VERIFY and any(map(self.codes.get, NOT_RENDERED))):
            return Exit.UNREADABLE
        if self.changed or (self.mode is not Mode.CONVERT and self.count(Severity.WARNING)):
            return Exit.FINDINGS
        return Exit.NOTHING

    def sentences(self) -> Iterator[str]:
        """Yield the summary for people: what is converted, what is left and why."""
        requests, objects = _plural(self.requests, "request"), _plural(self.objects, "object")
        files = _plural(self.changed, "file")
        if self.mode is Mode.VERIFY:
            proven = sum(self.codes[code] for code in PROVEN)
            yield f"{_plural(proven, 'file')} of charts and kustomizations proven, {self.files} looked at."
        elif self.mode is Mode.CONVERT:
            yield f"{requests} in {objects} converted; {files} changed, {self.files} looked at."
        else:
            yield f"{requests} in {objects} to convert; {files} would change, {self.files} looked at."
        if self.created:
            made = "written" if self.mode is Mode.CONVERT else "to write"
            yield f"{_plural(self.created, 'file')} {made} beside them for templates."
        for severity, text in ((Severity.WARNING, "left for you"), (Severity.ERROR, "could not be read or converted")):
            if number := self.count(severity):
                yield f"{number} {text}: {self._by_code(severity)}."
        notes = self.count(Severity.INFO)
        if notes or self.ignored:
            how = "" if self.mode is Mode.VERIFY else "; -v tells them"
            told = f"{_plural(notes, 'note')} ({self._by_code(Severity.INFO)}{how})" if notes else "0 notes"
            yield f"{told}, {self.ignored} ignored by comments."
        if self.changed and self.mode is Mode.CHECK:
            yield "`gpu2dra diff` shows the changes, `gpu2dra convert` makes them."
        if self.count(Severity.WARNING) or self.count(Severity.ERROR):
            yield "`gpu2dra explain CODE` tells what is behind a finding and what to do."

    def _rows(self, severity: Severity) -> list[tuple[str, int]]:
        return sorted(
            (code, number) for code, number in self.codes.items()
            if CODES[code].severity is severity and code not in CONVERSIONS
        )  # fmt: skip

    def _by_code(self, severity: Severity) -> str:
        return ", ".join(f"{number} × {code} {CODES[code].name}" for code, number in self._rows(severity))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def line_of(result: FileResult, located: Located, terminal: Terminal, *, err: bool = False) -> str:
    """Return one finding as `file:line:column: severity code object: message`, coloured for a terminal."""
    item = located.finding
    name = printable(str(result.path))
    place = f"{name}:{located.line}:{located.column}" if located.line else name
    label = terminal.style(str(item.severity), _COLORS[item.severity], bold=True, err=err)
    about = f"{printable(located.about)}: " if located.about else ""
    return f"{terminal.style(place, bold=True, err=err)}: {label} {item.code} {about}{printable(item.message)}"


def json_text(results: Iterable[FileResult], tally: Tally) -> str:
    """Return the whole run as one JSON document, in ASCII so that no encoding can break it.

    `schemaVersion` grows when a member goes or changes its meaning; new members may come at any time. The members:
    `mode`; `summary` (files, changed, objects, requests, ignored, codes: number per code, exitCode); `files`, each
    with `path`, `changed`, `created` (paths of new files), `moved` (where the file goes, its bytes as they are, or
    null) and `findings`. A finding has `code`, `name`, `severity`
    (error, warning, info), `line` and `column` (1-based; 0: the file as a whole), `object` (Kind/name or empty),
    `path` (a JSON Pointer into the object), `message` and `todo`.
    """
    import json  # noqa: PLC0415 - text is the rule

    files = [
        {
            "path": str(result.path),
            "changed": result.changed,
            "created": [str(path) for path in result.created] if result.changed else [],
            "moved": str(result.moved) if result.moved else None,
            "findings": [_finding(located) for located in result.findings],
        }
        for result in results
    ]
    summary = {
        "files": tally.files, "changed": tally.changed, "objects": tally.objects, "requests": tally.requests,
        "ignored": tally.ignored, "codes": dict(sorted(tally.codes.items())), "exitCode": int(tally.exit_code()),
    }  # fmt: skip
    document = {"schemaVersion": JSON_SCHEMA_VERSION, "mode": str(tally.mode), "summary": summary, "files": files}
    return json.dumps(document, indent=2)


def _finding(located: Located) -> dict[str, object]:
    item = located.finding
    return {
        "code": item.code, "name": CODES[item.code].name, "severity": str(item.severity), "line": located.line,
        "column": located.column, "object": located.about, "path": item.path, "message": item.message,
        "todo": CODES[item.code].todo,
    }  # fmt: skip
