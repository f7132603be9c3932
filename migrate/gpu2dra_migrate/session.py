"""One call of check, diff, convert or verify: settings from flags and configuration, the run, what is told of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from gpu2dra import Context, Severity
from gpu2dra.codes import finding
from gpu2dra.policy import Policy
from gpu2dra_migrate.config import Config, find_config, load_config
from gpu2dra_migrate.files import Unreadable, absolute, decode
from gpu2dra_migrate.manifest import CONVERSIONS, Located, convert
from gpu2dra_migrate.output import Tally, json_text, line_of
from gpu2dra_migrate.runner import Configure, FileResult, Mode, Settings, run
from gpu2dra_migrate.terminal import Terminal, printable
from gpu2dra_migrate.worker import failed

STDIN = Path("-")
_STDIN_NAME = Path("<stdin>")
_SIGPIPE = 141
"""Exit code of a program that a closed pipe ends: 128 and the signal's number."""
_DIFF_COLORS = {"+": "green", "-": "red", "@": "cyan"}


class WrongUse(Exception):
    """The arguments do not fit together; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flags:
    """The options that the commands of a run share; None and empty leave it to the configuration."""

    target: str | None = None
    tolerations: bool | None = None
    scheduler: tuple[str, ...] = ()
    policy: Path | None = None
    config: Path | None = None
    max_size: int | None = None
    force_exclude: bool = False
    jobs: int = 0
    values: tuple[Path, ...] = ()
    dra_default: str = "auto"
    helm_style: str = "wrap"
    output: str = "text"
    quiet: bool = False
    verbose: bool = False
    no_color: bool = False


def execute(mode_name: str, paths: tuple[Path, ...], flags: Flags) -> int:
    """Run and tell; return the exit code. Raises WrongUse, and ConfigError for settings that cannot be used."""
    mode = Mode(mode_name)
    if STDIN in paths and len(paths) > 1:
        raise WrongUse("- (standard input) cannot be combined with other paths.")
    if STDIN in paths and mode is Mode.VERIFY:
        raise WrongUse("verify proves charts and kustomizations, which are folders; name one.")
    for file in flags.values:
        if not file.is_file():
            raise WrongUse(f"--values {file}: there is no such file.")
    color = not flags.no_color and not os.environ.get("NO_COLOR")
    terminal = Terminal(color=color, progress=not flags.quiet)
    settings, configure = _configure(mode, paths, flags)
    if paths == (STDIN,):
        data = sys.stdin.buffer.read()
        result, piped = _convert_input(data, settings)
        if mode is Mode.CONVERT:
            terminal.raw(piped)
        return _Teller(mode, flags, terminal, err=mode is Mode.CONVERT).tell(iter([result]))
    paths = paths or (Path(),)
    if flags.values:
        from gpu2dra_migrate.helm.find import charts_below  # noqa: PLC0415 - few runs bring values

        paths = (*paths, *charts_below(paths))  # they may ask for a GPU only with these values
    return _Teller(mode, flags, terminal).tell(run(paths, settings, configure))


def _configure(mode: Mode, paths: tuple[Path, ...], flags: Flags) -> tuple[Settings, Configure]:
    """Return the settings here, and the function that gives those of a file: the nearest configuration is its own.

    Raises ConfigError for a configuration around `paths` that cannot be used, even where there is nothing to convert.
    """
    only = load_config(flags.config) if flags.config else None
    policy = _policy(flags.policy)

    @cache
    def of_folder(folder: Path) -> tuple[Config, Settings]:
        config = only or find_config(folder)
        merged = replace(
            config,
            target=config.target if flags.target is None else flags.target,
            tolerations=config.tolerations if flags.tolerations is None else flags.tolerations,
            schedulers=(*config.schedulers, *flags.scheduler),
            policy=policy or config.policy,
        )
        size = flags.max_size or config.max_size
        settings = Settings(
            mode=mode, options=merged.options(), max_size=size, jobs=flags.jobs, config=config, values=flags.values,
            dra_default=flags.dra_default, helm_style=flags.helm_style,
        )  # fmt: skip
        return config, settings

    def configure(path: Path, named: bool) -> Settings | None:
        file = absolute(path)
        config, settings = of_folder(file.parent)
        asked = flags.force_exclude or not named
        return settings if not asked or config.selects(file) else None

    here = of_folder(Path.cwd())[1]
    for path in paths:
        if path.is_dir():
            of_folder(absolute(path))
    return here, configure


def settings_here(flags: Flags) -> Settings:
    """Return the settings for a filter: those of the working folder, under what `flags` say. Raises ConfigError."""
    return _configure(Mode.CONVERT, (), flags)[0]


def _policy(path: Path | None) -> Policy | None:
    if path is None:
        return None
    from gpu2dra_migrate.policy_file import load_policy  # noqa: PLC0415 - most runs name no policy

    return load_policy(path)


def _convert_input(data: bytes, settings: Settings) -> tuple[FileResult, bytes]:
    """Return the result for standard input and the bytes to pass on: the converted text, else `data` as it is."""
    if len(data) > settings.max_size:
        message = f"{len(data):,} bytes, more than {settings.max_size:,}; raise --max-size."
        return failed(_STDIN_NAME, "DRA503", message), data
    try:
        text = decode(data)
    except Unreadable as error:
        return failed(_STDIN_NAME, error.code, error.message), data
    conversion = convert(text, settings.options, Context(), write=settings.mode is not Mode.CHECK)
    result = FileResult(_STDIN_NAME, conversion.findings, ignored=conversion.ignored)
    new = conversion.text
    if new is not None and conversion.beside:
        if text.lstrip("\ufeff \t\r\n").startswith("{"):
            message = "One JSON document cannot hold its template as well; convert a file, or pipe YAML."
            result.findings = [item for item in result.findings if item.finding.code not in CONVERSIONS]
            result.findings.append(Located(finding("DRA511", "", message), 0, 0, ""))
            return result, data
        from gpu2dra_migrate.text.emit import documents_text  # noqa: PLC0415 - rare

        bom = "\ufeff" * new.startswith("\ufeff")
        body = new.removeprefix(bom)
        new = bom + documents_text(conversion.beside) + "---\n" * (not body.startswith(("---", "%"))) + body
    if new is None:
        return result, data
    result.changed = True
    result.objects, result.requests = conversion.objects, conversion.requests
    result.before, result.after = text, new
    return result, new.encode()


class _Teller:
    """Tells each result as it comes, and the sum. `err`: standard output is the converted text, so tell elsewhere."""

    def __init__(self, mode: Mode, flags: Flags, terminal: Terminal, *, err: bool = False) -> None:
        self._mode = mode
        self._flags = flags
        self._terminal = terminal
        self._json = flags.output == "json"
        self._err = err
        self._err_text = err or mode is Mode.DIFF  # then standard output is the diff
        self._shown = {Severity.ERROR}
        if not flags.quiet:
            self._shown.add(Severity.WARNING)
        if flags.verbose or (mode is Mode.VERIFY and not flags.quiet):
            self._shown.add(Severity.INFO)

    def tell(self, results: Iterator[FileResult]) -> int:
        """Return the exit code of the run."""
        tally = Tally(self._mode)
        kept: list[FileResult] = []
        for result in results:
            tally.add(result)
            self._terminal.advance()
            if self._json:
                kept.append(result)
            else:
                self._tell_file(result)
            if self._terminal.gone and self._mode is not Mode.CONVERT:
                break
        if self._json:
            self._terminal.line(json_text(kept, tally), err=self._err)
        elif not self._flags.quiet and (self._mode is Mode.CONVERT or not self._terminal.gone):
            for sentence in tally.sentences():
                self._terminal.line(sentence, err=self._err_text)
        self._terminal.close()
        return _SIGPIPE if self._terminal.gone else int(tally.exit_code())

    def _tell_file(self, result: FileResult) -> None:
        if self._mode is Mode.DIFF and result.changed:
            self._tell_diff(result)
        err = self._err_text
        for located in result.findings:
            conversion = located.finding.code in CONVERSIONS and self._mode is not Mode.CHECK
            if located.finding.severity in self._shown and not conversion:
                self._terminal.line(line_of(result, located, self._terminal, err=err), err=err)
        if self._mode is Mode.CONVERT and result.changed and not self._flags.quiet:
            for path in result.created:
                self._terminal.line(f"wrote {printable(str(path))}", err=err)
            name = printable(str(result.path))
            if result.moved:
                self._terminal.line(f"converted {name} (moved to {printable(result.moved.name)})", err=err)
            elif result.before is None and result.after is not None:
                self._terminal.line(f"wrote {name}", err=err)
            elif result.path != _STDIN_NAME:
                self._terminal.line(f"converted {name}", err=err)

    def _tell_diff(self, result: FileResult) -> None:
        from gpu2dra_migrate.differences import diff_of  # noqa: PLC0415 - the other commands need no diff

        if not sys.stdout.isatty():
            self._terminal.raw("".join(diff_of(result)).encode("utf-8", "surrogateescape"))
            return
        for line in diff_of(result):
            text = printable(line.rstrip("\r\n"))
            header = line.startswith(("--- ", "+++ "))
            self._terminal.line(self._terminal.style(text, None if header else _DIFF_COLORS.get(line[:1]), bold=header))
