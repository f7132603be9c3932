"""What a run tells: lines for people, one JSON document for programs, unified diffs, and the exit code."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from difflib import unified_diff
from enum import IntEnum

import click

from gpu2dra import CODES, Severity

from gpu2dra_migrate.manifest import CONVERSIONS, Located
from gpu2dra_migrate.runner import FileResult, Mode

JSON_SCHEMA_VERSION = 1
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


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
        return sum(
            number for code, number in self.codes.items()
            if CODES[code].severity is severity and code not in CONVERSIONS
        )  # fmt: skip

    def exit_code(self) -> Exit:
        """Return the exit code of the run."""
        if self.codes["DRA599"]:
            return Exit.USAGE
        if self.count(Severity.ERROR):
            return Exit.UNREADABLE
        if self.changed or (self.mode is not Mode.CONVERT and self.count(Severity.WARNING)):
            return Exit.FINDINGS
        return Exit.NOTHING

    def sentences(self) -> Iterator[str]:
        """Yield the summary for people."""
        verb = "converted" if self.mode is Mode.CONVERT else "to convert"
        requests, objects = _plural(self.requests, "request"), _plural(self.objects, "object")
        yield f"{requests} in {objects} {verb}, {_plural(self.changed, 'file')} of {self.files} looked at."
        if self.created:
            made = "written" if self.mode is Mode.CONVERT else "to write"
            yield f"{_plural(self.created, 'file')} {made} beside them for templates."
        for severity, text in ((Severity.WARNING, "left for you"), (Severity.ERROR, "could not be read or converted")):
            if number := self.count(severity):
                yield f"{number} {text}: {self._by_code(severity)}."
        notes = self.count(Severity.INFO)
        if notes or self.ignored:
            yield f"{_plural(notes, 'note')} ({self._by_code(Severity.INFO)}), {self.ignored} ignored by comments."

    def _by_code(self, severity: Severity) -> str:
        rows = sorted(
            (code, number) for code, number in self.codes.items()
            if CODES[code].severity is severity and code not in CONVERSIONS
        )  # fmt: skip
        return ", ".join(f"{number} × {code} {CODES[code].name}" for code, number in rows) or "none"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def line_of(result: FileResult, located: Located, *, name: str = "") -> str:
    """Return one finding as `file:line:column: severity code object: message`, coloured for a terminal."""
    item = located.finding
    place = f"{name or result.path}:{located.line}:{located.column}" if located.line else f"{name or result.path}"
    label = click.style(str(item.severity), fg=_COLOURS[item.severity], bold=True)
    about = f"{located.about}: " if located.about else ""
    return f"{click.style(place, bold=True)}: {label} {item.code} {about}{printable(item.message)}"


def printable(text: str) -> str:
    """Return `text` without control characters: what stands in a manifest must not steer a terminal."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def diff_of(result: FileResult) -> Iterator[str]:
    """Yield the lines of a unified diff of the file and of the files made beside it."""
    for path, text in result.created.items():
        yield from _diff("", text, "/dev/null", f"b/{path}")
    if result.before is not None and result.after is not None:
        yield from _diff(result.before, result.after, f"a/{result.path}", f"b/{result.path}")


def _diff(before: str, after: str, old: str, new: str) -> Iterator[str]:
    lines = unified_diff(_lines(before), _lines(after), old, new)
    for line in lines:
        text = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        header = line.startswith(("--- ", "+++ "))
        yield click.style(text, bold=True) if header else click.style(text, fg=_DIFF_COLOURS.get(line[:1]))


def _lines(text: str) -> list[str]:
    """Split at \\n only, as diff and patch do; a carriage return stays part of its line."""
    return [line + "\n" for line in text.split("\n")[:-1]] + ([text.rsplit("\n", 1)[-1]] if not text.endswith("\n") and text else [])


def json_text(results: Iterable[FileResult], tally: Tally) -> str:
    """Return the whole run as one JSON document; findings hold code, place, object, message and what to do."""
    files = [
        {
            "path": str(result.path),
            "changed": result.changed,
            "created": [str(path) for path in result.created] if result.changed else [],
            "findings": [_finding(located) for located in result.findings],
        }
        for result in results
    ]
    summary = {
        "files": tally.files, "changed": tally.changed, "objects": tally.objects, "requests": tally.requests,
        "ignored": tally.ignored, "codes": dict(sorted(tally.codes.items())), "exitCode": int(tally.exit_code()),
    }  # fmt: skip
    document = {"schemaVersion": JSON_SCHEMA_VERSION, "mode": str(tally.mode), "summary": summary, "files": files}
    return json.dumps(document, indent=2, ensure_ascii=False)


def _finding(located: Located) -> dict[str, object]:
    item = located.finding
    return {
        "code": item.code, "name": CODES[item.code].name, "severity": str(item.severity), "line": located.line,
        "column": located.column, "object": located.about, "path": item.path, "message": item.message,
        "todo": CODES[item.code].todo,
    }  # fmt: skip
