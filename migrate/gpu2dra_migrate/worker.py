"""What a run does with one file: read it, convert it, and write it or tell what would be written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from gpu2dra import Context, Finding, Object, Options
from gpu2dra.codes import finding
from gpu2dra_migrate import manifest
from gpu2dra_migrate.config import Config
from gpu2dra_migrate.files import Unreadable, absolute, read_text, write_text
from gpu2dra_migrate.manifest import CONVERSIONS, Located
from gpu2dra_migrate.search.discover import may_hold_legacy
from gpu2dra_migrate.surroundings import Surroundings

if TYPE_CHECKING:
    from pathlib import Path


class Mode(StrEnum):
    """What a run does with what it finds."""

    CHECK = "check"
    DIFF = "diff"
    CONVERT = "convert"
    VERIFY = "verify"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for a file: of the command line, else of the configuration nearest to it.

    `jobs`, the number of processes (0: one per core), holds for a whole run. `config` says which files a group may
    change besides those that were found. For charts: `values` are files that the user names, `dra_default` is what
    `dra.enabled` gets (auto, true, false), `helm_style` is wrap or inline.
    """

    mode: Mode
    options: Options
    max_size: int
    jobs: int = 0
    config: Config = field(default_factory=Config)
    values: tuple[Path, ...] = ()
    dra_default: str = "auto"
    helm_style: str = "wrap"


@dataclass(frozen=True, slots=True)
class Job:
    """One file to look at. `named`: it stands on the command line, so that it must be there.

    `within` holds the files and folders that the run is about; nothing outside of them is written.
    """

    path: Path
    settings: Settings
    named: bool = False
    within: tuple[Path, ...] = ()


@dataclass(slots=True)
class FileResult:
    """What became of one file: its findings, and its text before and after where it changes.

    `created` holds the files that stand beside it, with their text. `changed` says that the file changes, or would.
    A file that goes to another path with the bytes that it has is `moved`; `after` is then what stands in its place. A
    text with none before it is a new file.
    """

    path: Path
    findings: list[Located] = field(default_factory=list)
    changed: bool = False
    before: str | None = None
    after: str | None = None
    created: dict[Path, str] = field(default_factory=dict)
    moved: Path | None = None
    objects: int = 0
    requests: int = 0
    ignored: int = 0


Renames = Mapping[tuple[str, str], str]
"""New name per `(namespace, old name)` of a template, as in `gpu2dra.Context`."""


class Worker:
    """Converts one file after another; what it knows of repositories is asked once per process."""

    def __init__(self, renames: Renames) -> None:
        self._context = Context(renames=dict(renames))
        self._surroundings = Surroundings()

    def __call__(self, job: Job) -> FileResult:
        """Convert one file. An error of our own is told like one of the file, so that the others are still done."""
        try:
            return self._convert(job)
        except Exception as error:
            if os.environ.get("GPU2DRA_DEBUG"):
                raise
            return failed(job.path, "DRA599", f"Nothing was written: {type(error).__name__}: {error}")

    def _convert(self, job: Job) -> FileResult:
        try:
            text = read_text(job.path, job.settings.max_size)
        except Unreadable as error:
            gone = not job.named and not os.path.lexists(job.path)  # since it was found: then it holds nothing
            return FileResult(job.path) if gone else failed(job.path, error.code, error.message)
        if not may_hold_legacy(text) and not any(old in text for _, old in self._context.renames):
            return FileResult(job.path)
        path, mode = absolute(job.path), job.settings.mode
        conversion = manifest.convert(
            text,
            job.settings.options,
            self._context,
            # Only annotations of templates depend on what is kept, and check shows none.
            keep=tuple if mode is Mode.CHECK else lambda: self._surroundings.keeps(path),
            around=self._surroundings.around(path),
            write=mode is not Mode.CHECK,
        )
        result = FileResult(job.path, conversion.findings, ignored=conversion.ignored)
        if conversion.text is None:
            return result
        created = beside_files(job.path, conversion.beside)
        if problem := _in_the_way(created, job.settings.max_size):
            return _without_conversion(result, problem)
        if mode is Mode.CONVERT and (problem := _write(job.path, conversion.text, created)):
            return _without_conversion(result, problem)
        result.changed = True
        result.created = created
        result.objects, result.requests = conversion.objects, conversion.requests
        if mode is Mode.DIFF:
            result.before, result.after = text, conversion.text
        return result


def failed(path: Path, code: str, message: str) -> FileResult:
    """Return the result of a file, or of a place, that could not be looked at."""
    return FileResult(path, [Located(finding(code, "", message), 0, 0, "")])


def _without_conversion(result: FileResult, problem: Finding) -> FileResult:
    """Return a result in which `problem` stands for what would have been converted."""
    kept = [item for item in result.findings if item.finding.code not in CONVERSIONS]
    return FileResult(result.path, [Located(problem, 0, 0, ""), *kept], ignored=result.ignored)


def beside_files(path: Path, templates: Sequence[Object]) -> dict[Path, str]:
    """Return the file for templates that cannot stand in `path`, beside it: `pod.yaml`, `pod-gpu-template.yaml`."""
    if not templates:
        return {}
    if path.suffix.lower() == ".json":
        import json  # noqa: PLC0415 - rare

        body = templates[0] if len(templates) == 1 else {"apiVersion": "v1", "kind": "List", "items": list(templates)}
        text = json.dumps(body, indent=2, ensure_ascii=False) + "\n"
    else:
        from gpu2dra_migrate.text.emit import documents_text  # noqa: PLC0415 - rare

        text = documents_text(templates)
    ending = path.suffix if path.suffix.lower() in (".json", ".yaml", ".yml") else ".yaml"
    return {path.with_name(f"{path.stem}-gpu-template{ending}"): text}


def _in_the_way(created: Mapping[Path, str], max_size: int) -> Finding | None:
    for path, text in created.items():
        try:
            same = not os.path.lexists(path) or read_text(path, max_size) == text
        except Unreadable:
            same = False
        if not same:
            return finding(
                "DRA511", "", f"The template would go into {path.name}, which is there already; move it first."
            )
    return None


def _write(path: Path, text: str, created: Mapping[Path, str]) -> Finding | None:
    """Write the new files first: a template without a user does no harm, a user without its template waits for ever.

    Return why it did not work, and then everything is as it was.
    """
    written: list[Path] = []
    try:
        for new, content in created.items():
            if not new.exists():
                write_text(new, content)
                written.append(new)
        write_text(path, text)
    except OSError as error:
        for new in written:
            new.unlink(missing_ok=True)
        reason = (
            f"Could not be written ({error.strerror or error}), and is as it was; check permissions and free space."
        )
        return finding("DRA510", "", reason)
    return None
