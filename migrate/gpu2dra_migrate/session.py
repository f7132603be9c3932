"""One call of check, diff or convert: settings from flags and configuration, the run, and what is told about it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TextIO

import click

from gpu2dra import Context, Severity
from gpu2dra.codes import finding

from gpu2dra_migrate.config import Config, ConfigError, find_config, load_config
from gpu2dra_migrate.files import Unreadable, decode
from gpu2dra_migrate.manifest import CONVERSIONS, Located, convert
from gpu2dra_migrate.output import Tally, diff_of, json_text, line_of
from gpu2dra_migrate.runner import FileResult, Mode, Settings, run

STDIN = Path("-")
_STDIN_NAME = "<stdin>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options that check, diff and convert share; None and empty leave it to the configuration."""

    target: str | None = None
    tolerations: bool | None = None
    scheduler: tuple[str, ...] = ()
    config: Path | None = None
    max_size: int | None = None
    force_exclude: bool = False
    jobs: int = 0
    output: str = "text"
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False


def execute(mode_name: str, paths: tuple[Path, ...], flags: Flags) -> int:
    """Run and tell; return the exit code. Raises click.UsageError for wrong use."""
    mode = Mode(mode_name)
    if flags.no_color or os.environ.get("NO_COLOR"):
        click.get_current_context().color = False
    if STDIN in paths and len(paths) > 1:
        raise click.UsageError("- (standard input) cannot be combined with other paths.")
    try:
        results = _standard_input(mode, flags) if paths == (STDIN,) else _files(mode, paths or (Path(),), flags)
        return _tell(results, Tally(mode), flags, piped=paths == (STDIN,) and mode is Mode.CONVERT)
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def _settings(mode: Mode, config: Config, flags: Flags) -> Settings:
    config = replace(
        config,
        target=config.target if flags.target is None else flags.target,
        tolerations=config.tolerations if flags.tolerations is None else flags.tolerations,
        schedulers=(*config.schedulers, *flags.scheduler),
        max_size=flags.max_size or config.max_size,
    )
    return Settings(mode=mode, options=config.options(), max_size=config.max_size, jobs=flags.jobs)


def _files(mode: Mode, paths: tuple[Path, ...], flags: Flags) -> Iterator[FileResult]:
    """Return the results for `paths`, in groups that share a configuration; bad settings are told before any work."""
    groups: dict[Config, list[Path]] = {}
    for path in dict.fromkeys(paths):
        folder = Path(os.path.abspath(path if path.is_dir() else path.parent))  # noqa: PTH100 - links stay links
        config = load_config(flags.config) if flags.config else find_config(folder)
        groups.setdefault(config, []).append(path)
    runs = [
        run(members, _settings(mode, config, flags), config.selects, select_named=flags.force_exclude)
        for config, members in groups.items()
    ]
    return chain.from_iterable(runs)


def _standard_input(mode: Mode, flags: Flags) -> Iterator[FileResult]:
    """Convert standard input; convert passes text that does not change through."""
    config = load_config(flags.config) if flags.config else find_config(Path.cwd())
    settings = _settings(mode, config, flags)
    result = FileResult(Path(_STDIN_NAME))
    data = sys.stdin.buffer.read(settings.max_size + 1)
    try:
        if len(data) > settings.max_size:
            raise Unreadable("DRA503", f"Larger than {settings.max_size:,} bytes; raise --max-size.")
        text = decode(data)
    except Unreadable as error:
        result.findings.append(Located(finding(error.code, "", error.message), 0, 0, ""))
        if mode is Mode.CONVERT and len(data) <= settings.max_size:
            sys.stdout.buffer.write(data)
        yield result
        return
    conversion = convert(text, settings.options, Context())
    result.findings, result.ignored = conversion.findings, conversion.ignored
    new = conversion.text
    if new is not None and conversion.beside:
        if text.lstrip("\ufeff \t\r\n").startswith("{"):
            message = "One JSON document cannot hold its template as well; convert a file, or pipe YAML."
            result.findings = [item for item in result.findings if item.finding.code not in CONVERSIONS]
            result.findings.append(Located(finding("DRA511", "", message), 0, 0, ""))
            new = None
        else:
            from gpu2dra_migrate.emit import documents_text  # noqa: PLC0415 - rare

            separator = "" if new.startswith("---") else "---\n"
            new = documents_text(conversion.beside) + separator + new
    if new is not None:
        result.objects, result.requests = conversion.objects, conversion.requests
        result.before, result.after = text, new
    if mode is Mode.CONVERT:
        sys.stdout.buffer.write((text if new is None else new).encode())
        sys.stdout.buffer.flush()
    yield result


def _tell(results: Iterator[FileResult], tally: Tally, flags: Flags, *, piped: bool) -> int:
    """Print each result as it comes and the summary; return the exit code. `piped`: standard output is the text."""
    kept: list[FileResult] = []
    for result in _with_progress(results, flags):
        tally.add(result)
        if flags.output == "json":
            kept.append(result)
        else:
            _tell_file(result, tally.mode, flags, err=piped)
    if flags.output == "json":
        click.echo(json_text(kept, tally), err=piped)
    elif not flags.quiet:
        for sentence in tally.sentences():
            click.echo(sentence, err=piped or tally.mode is Mode.DIFF)
    return int(tally.exit_code())


def _tell_file(result: FileResult, mode: Mode, flags: Flags, *, err: bool) -> None:
    if mode is Mode.DIFF and result.changed:
        for line in diff_of(result):
            click.echo(line, nl=False)
    shown = {Severity.ERROR}
    if not flags.quiet:
        shown.add(Severity.WARNING)
    if flags.verbose:
        shown.add(Severity.INFO)
    for located in result.findings:
        conversion = located.finding.code in CONVERSIONS and mode is not Mode.CHECK
        if located.finding.severity in shown and not conversion:
            click.echo(line_of(result, located), err=err or mode is Mode.DIFF)
    if mode is Mode.CONVERT and result.changed and not flags.quiet:
        for path in result.created:
            click.echo(f"wrote {path}", err=err)
        click.echo(f"converted {result.path}", err=err)


def _with_progress(results: Iterator[FileResult], flags: Flags) -> Iterator[FileResult]:
    """Show on a terminal how many files are done, while it takes longer than a moment."""
    stream: TextIO = sys.stderr
    if flags.quiet or flags.output == "json" or not stream.isatty() or sys.stdout.isatty():
        yield from results  # on a terminal the findings themselves show the progress
        return
    from rich.console import Console  # noqa: PLC0415 - only a terminal pays for it
    from rich.progress import Progress, SpinnerColumn, TextColumn  # noqa: PLC0415 - as above

    columns = (SpinnerColumn(), TextColumn("{task.completed} files looked at"))
    with Progress(*columns, console=Console(file=stream, no_color=flags.no_color), transient=True) as progress:
        task = progress.add_task("files", total=None)
        for result in results:
            progress.advance(task)
            yield result


