"""The `gpu2dra` command: check (the default), diff, convert, verify, explain, and the filters."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import click

from gpu2dra_migrate import __version__
from gpu2dra_migrate.terminal import discard, prepare_streams

_USAGE = 2
_INTERRUPTED, _BROKEN_PIPE = 130, 141
"""128 and the number of the signal, as a shell reports it."""


class _DefaultCheck(click.Group):
    """A group that reads `gpu2dra PATH…` as `gpu2dra check PATH…`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that name none."""
        own = {option for parameter in self.get_params(ctx) for option in parameter.opts}
        if not args or (args[0] not in self.commands and args[0] not in own):
            args = ["check", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_DefaultCheck, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="gpu2dra")
def cli() -> None:
    """Move Kubernetes manifests from the nvidia.com/gpu extended resource to Dynamic Resource Allocation.

    Without a command: check. Exit codes: 0 nothing to do, 1 findings or changed files, 2 wrong use or internal error,
    3 something could not be read or converted.
    """


_Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
_WHAT: tuple[_Decorator, ...] = (
    click.option("--target", metavar="VERSION", help="Kubernetes of the cluster: 1.32, 1.33 or 1.34+ (the default)."),
    click.option(
        "--tolerations/--no-tolerations", default=None, help="Add the toleration that the admission plugin added."
    ),
    click.option(
        "--scheduler", multiple=True, metavar="NAME", help="Another scheduler that allocates claims (repeatable)."
    ),
    click.option("--policy", type=click.Path(path_type=Path), help="ConversionPolicy: what becomes of which request."),
    click.option(
        "--config", type=click.Path(path_type=Path), help="Use this file, not the .gpu2dra.yaml of the repository."
    ),
)
"""What is converted, and to what."""
_TOLD: tuple[_Decorator, ...] = (
    click.option("-q", "--quiet", is_flag=True, help="Tell errors only."),
    click.option("-v", "--verbose", is_flag=True, help="Tell notes, too."),
    click.option("--no-color", is_flag=True, help="No colours, also on a terminal."),
)
_RUN: tuple[_Decorator, ...] = (
    click.argument("paths", nargs=-1, type=click.Path(path_type=Path, allow_dash=True)),
    *_WHAT,
    click.option("--max-size", type=click.IntRange(min=1), metavar="BYTES", help="Largest file that is read (4 MiB)."),
    click.option(
        "--force-exclude", is_flag=True, help="Apply include and exclude to files named on the command line, too."
    ),
    click.option(
        "--jobs", type=click.IntRange(min=0), default=0, metavar="N", help="Processes; 0 (default): one per core."
    ),
    click.option(
        "--values",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Values for a chart, to render it with as well (repeatable).",
    ),
    click.option(
        "--dra-default",
        type=click.Choice(["auto", "true", "false"]),
        default="auto",
        help="What dra.enabled gets in a chart's values (auto: on from Kubernetes 1.34).",
    ),
    click.option(
        "--helm-style",
        type=click.Choice(["wrap", "inline"]),
        default="wrap",
        help="wrap: templates render through a helper; inline: claims are written into those of known patterns.",
    ),
    click.option("--output", type=click.Choice(["text", "json"]), default="text", help="Format of what is told."),
    *_TOLD,
)
_FILTER: tuple[_Decorator, ...] = (
    click.option(
        "--keep",
        multiple=True,
        type=click.Choice(["helm", "argocd", "flux", "none"]),
        help="Tell this tool not to prune the templates (default: helm where Helm rendered the input).",
    ),
    click.option(
        "--max-size", type=click.IntRange(min=1), metavar="BYTES", help="Largest input that is read (64 MiB)."
    ),
    *_WHAT,
    *_TOLD,
)


def _given(parameters: Sequence[_Decorator]) -> _Decorator:
    """Return the decorator that gives a command these parameters, in their order."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        for parameter in reversed(parameters):
            command = parameter(command)
        return command

    return decorate


@cli.command()
@_given(_RUN)
def check(paths: tuple[Path, ...], **flags: Any) -> None:
    """Find legacy GPU requests in PATHS (default: here; - reads standard input) and say what becomes of them."""
    _execute("check", paths, flags)


@cli.command()
@_given(_RUN)
def diff(paths: tuple[Path, ...], **flags: Any) -> None:
    """Print what convert would change in PATHS, as a unified diff."""
    _execute("diff", paths, flags)


@cli.command()
@_given(_RUN)
def convert(paths: tuple[Path, ...], **flags: Any) -> None:
    """Convert PATHS in place; with - the converted text goes to standard output."""
    _execute("convert", paths, flags)


@cli.command()
@_given(_RUN)
def verify(paths: tuple[Path, ...], **flags: Any) -> None:
    """Prove for the charts and kustomizations in PATHS that they render converted what converting their output gives.

    Nothing is written. Exit codes: 0 all proven, 1 something is not equal, 3 something could not be rendered.
    """
    _execute("verify", paths, flags)


def _execute(mode: str, paths: tuple[Path, ...], flags: dict[str, Any]) -> None:
    # Before the modules of a run are loaded, so that git searches meanwhile.
    from gpu2dra_migrate.search.discover import ask_ahead  # noqa: PLC0415 - `--version` and `explain` need none of it

    ask_ahead(paths or (Path(),))
    from gpu2dra_migrate.session import Flags, execute  # noqa: PLC0415 - `--version` and `explain` need none of it

    _exit_with(lambda: execute(mode, paths, Flags(**flags)))


def _exit_with(run: Callable[[], int]) -> NoReturn:
    """Exit with the code that `run` returns; settings and arguments that cannot be used are a UsageError."""
    from gpu2dra_migrate.config import ConfigError  # noqa: PLC0415 - `--version` and `explain` need none of it
    from gpu2dra_migrate.session import WrongUse  # noqa: PLC0415 - `--version` and `explain` need none of it

    try:
        code = run()
    except (ConfigError, WrongUse) as error:
        raise click.UsageError(str(error)) from error
    sys.exit(code)


@cli.command("render-filter")
@click.option("--strict", is_flag=True, help="Pass nothing on while a request for a GPU is left as it is.")
@_given(_FILTER)
def render_filter(keep: tuple[str, ...], strict: bool, **flags: Any) -> None:
    """Convert a stream of manifests from standard input to standard output, e.g. as a post-renderer of Helm.

    Documents without a GPU pass byte for byte; what is left as it is is told on standard error. Exit codes: 0 passed
    on, 2 wrong use or internal error, 3 the stream could not be read (then nothing is passed on).
    """
    from gpu2dra_migrate.filters import command  # noqa: PLC0415 - `--version` and `explain` need none of it

    _filter(lambda given, kept: command.render_filter(given, kept or None, strict=strict), flags, keep)


@cli.command("krm-function")
@_given(_FILTER)
def krm_function(keep: tuple[str, ...], **flags: Any) -> None:
    """Convert the items of a ResourceList, as a KRM function of kustomize or kpt.

    What its functionConfig (ConversionPolicy, Config or ConfigMap) says goes before these options. Exit codes: 0
    done, 1 an error is among the results, 2 wrong use or internal error, 3 no ResourceList came in.
    """
    from gpu2dra_migrate.filters import function  # noqa: PLC0415 - `--version` and `explain` need none of it

    _filter(function.krm_function, flags, keep)


def _filter(run: Callable[[Any, list[Any]], int], flags: dict[str, Any], keep: tuple[str, ...]) -> None:
    """Run a filter with its settings; exit with its code."""
    from gpu2dra import Keep  # noqa: PLC0415 - `--version` and `explain` need none of it
    from gpu2dra_migrate.session import Flags  # noqa: PLC0415 - `--version` and `explain` need none of it

    _exit_with(lambda: run(Flags(**flags), [Keep(tool) for tool in keep]))


@cli.command()
@click.argument("code", required=False)
def explain(code: str | None) -> None:
    """Tell what is behind a finding's CODE and what to do about it; without a code, list them all."""
    from gpu2dra import CODES  # noqa: PLC0415 - `--version` and `explain` need none of it

    if code is None:
        for row in CODES.values():
            click.echo(f"{row.code} {row.name} ({row.severity})")
        return
    wanted = next((row for row in CODES.values() if code.upper() == row.code or code.lower() == row.name), None)
    if wanted is None:
        raise click.UsageError(f'There is no code "{code}"; `gpu2dra explain` lists them.')
    click.echo(f"{wanted.code} {wanted.name} ({wanted.severity})\n")
    for text in (wanted.why, wanted.todo):
        click.echo(click.wrap_text(text, width=88))


def main() -> None:
    """Run the command; an error of our own is told in one line and exits with 2, never with a traceback."""
    prepare_streams()
    signal.signal(signal.SIGTERM, _terminate)
    try:
        code = cli.main(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("gpu2dra: interrupted; each file is either converted or as it was.", err=True)
        code = _INTERRUPTED
    except BrokenPipeError:
        discard(sys.stdout)
        code = _BROKEN_PIPE
    except Exception as error:
        if os.environ.get("GPU2DRA_DEBUG"):
            raise
        click.echo(f"gpu2dra: internal error: {type(error).__name__}: {error}", err=True)
        click.echo("This is a bug: please report it with the file. GPU2DRA_DEBUG=1 shows where it happened.", err=True)
        code = _USAGE
    sys.exit(code)


def _terminate(number: int, frame: object) -> None:
    """Leave in order, so that no temporary file stays behind."""
    sys.exit(128 + number)
