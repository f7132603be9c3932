"""`gpu2dra render-filter`: standard input to standard output, all of it or nothing; what is told goes to the other one.

It stands in other programs' pipelines, so findings alone are no failure: what cannot be converted passes as it came.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from gpu2dra import Keep, Severity
from gpu2dra_migrate.files import Unreadable, decode
from gpu2dra_migrate.filters.stream import convert_stream
from gpu2dra_migrate.manifest import CONVERSIONS, Located
from gpu2dra_migrate.output import Exit, line_of
from gpu2dra_migrate.session import Flags, settings_here
from gpu2dra_migrate.terminal import Terminal
from gpu2dra_migrate.worker import FileResult, failed

STDIN = Path("<stdin>")
MAX_SIZE = 64 * 1024 * 1024
"""Bytes that are read unless --max-size says otherwise: a stream holds what many files do."""
_UNREAD = frozenset({"DRA501", "DRA505", "DRA509", "DRA511"})
"""Nobody knows what a document with one of these asks for, or it could not be written: it must not pass as if fine."""


def render_filter(flags: Flags, keep: Sequence[Keep] | None, *, strict: bool) -> int:
    """Run the filter and return its exit code; raises ConfigError for settings that cannot be used.

    With `strict` nothing passes while a request for a GPU is left as it is.
    """
    settings = settings_here(flags)
    data = sys.stdin.buffer.read()
    limit = flags.max_size or MAX_SIZE
    if len(data) > limit:
        message = f"{len(data):,} bytes, more than {limit:,}; raise --max-size."
        return _refused(failed(STDIN, "DRA503", message).findings, flags)
    try:
        text = decode(data)
    except Unreadable as error:
        return _refused(failed(STDIN, error.code, error.message).findings, flags)
    done = convert_stream(text, settings.options, keep)
    if bad := [item for item in done.findings if _stops(item, strict=strict)]:
        return _refused(bad, flags)
    tell(done.findings, flags)
    sys.stdout.flush()
    sys.stdout.buffer.write(done.text.encode())
    sys.stdout.buffer.flush()
    return int(Exit.NOTHING)


def _stops(item: Located, *, strict: bool) -> bool:
    found = item.finding
    if not strict:
        return found.code in _UNREAD
    return found.severity is not Severity.INFO and found.code not in CONVERSIONS and not found.code.startswith("DRA1")


def _refused(findings: Sequence[Located], flags: Flags) -> int:
    tell(findings, flags, always=True)
    click.echo("gpu2dra: nothing is passed on.", err=True)
    return int(Exit.UNREADABLE)


def tell(findings: Iterable[Located], flags: Flags, *, always: bool = False) -> None:
    """Print findings to standard error: errors, without `quiet` warnings as well, with `verbose` notes and all."""
    shown = {Severity.ERROR}
    if not flags.quiet or always:
        shown.add(Severity.WARNING)
    if flags.verbose:
        shown.add(Severity.INFO)
    terminal = Terminal(color=not flags.no_color, progress=False)
    for item in findings:
        if item.finding.severity in shown and item.finding.code not in CONVERSIONS:
            terminal.line(line_of(FileResult(STDIN), item, terminal, err=True), err=True)
