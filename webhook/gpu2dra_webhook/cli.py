"""The `gpu2dra-webhook` command: every choice as an option and as an environment variable."""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

import click

from gpu2dra.quantity import AmountError, parse_quantity
from gpu2dra_webhook import durations
from gpu2dra_webhook import settings as choices
from gpu2dra_webhook.settings import Settings, SettingsError

PREFIX = "GPU2DRA_WEBHOOK"
WRONG_USE = 2
_EXTRA = ("cryptography", "flask", "gevent", "gunicorn", "kubernetes", "packaging", "prometheus_client")
"""What the extra [webhook] of the distribution brings, by its name in an import."""


class _Duration(click.ParamType):  # type: ignore[type-arg] # generic in new releases only
    """Seconds, or a duration as Go prints them."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return value
        found = float(value) if value.isascii() and value.isdigit() else durations.seconds(value)
        if not found:
            self.fail(f"{value!r} is no duration above zero, such as 95, 95s or 24h", param, ctx)
        return found


class _Size(click.ParamType):  # type: ignore[type-arg] # as above
    """Bytes, or a quantity."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            found = parse_quantity(value)
        except AmountError:
            found = None
        if not found or found.denominator != 1 or found < 0:
            self.fail(f"{value!r} is no size, such as 7340032 or 7Mi", param, ctx)
        return int(found)


@dataclass(frozen=True, slots=True)
class _Option:
    """How a choice is read; the default is that of Settings, the name that of the field."""

    help: str
    values: Any = str
    multiple: Callable[[Iterable[str]], Collection[str]] | None = None
    variable: str = ""
    flag: bool = False


def _one_of(choice: Any) -> click.Choice[str]:
    return click.Choice(get_args(choice))


_FILE = click.Path(path_type=Path)
_PORT = click.IntRange(0, 65535)
_COUNT = click.IntRange(min=1)
_SECONDS = _Duration()

_OPTIONS: Mapping[str, _Option] = {
    "bind_address": _Option("Address to listen on; `::` is every one, of IPv4 as well."),
    "port": _Option("Port for admission reviews, /livez and /readyz, by TLS; 0 takes a free one.", _PORT),
    "metrics_port": _Option("Port for /metrics, /livez and /readyz, without TLS; 0 takes a free one.", _PORT),
    "namespace": _Option("Namespace that the webhook runs in.", variable="POD_NAMESPACE"),
    "pod_name": _Option("Name of this replica.", variable="POD_NAME"),
    "service_name": _Option("Service that the API server calls; also names the Secret and the Lease."),
    "webhook_configuration": _Option("MutatingWebhookConfiguration whose caBundle is kept right."),
    "kubeconfig": _Option("How to reach the API server from outside of a cluster.", _FILE),
    "namespace_mode": _Option(
        'Convert in namespaces labelled gpu2dra.dev/convert: "true" only (opt-in), or in all but those '
        'labelled "false" (opt-out).',
        _one_of(choices.NamespaceMode),
    ),
    "excluded_namespaces": _Option("Never convert in this namespace (repeatable).", multiple=frozenset),
    "policy_file": _Option("ConversionPolicy; read again when it changes.", _FILE),
    "quota": _Option(
        "Where a ResourceQuota counts the legacy resource and would not count claims: leave pods as they are, or "
        "convert them.",
        _one_of(choices.QuotaChoice),
    ),
    "allow_mixed_nodes": _Option(
        "Convert although a node hands its GPUs out both by device plugin and by DRA driver.", flag=True
    ),
    "drivers": _Option("DRA driver whose devices count (repeatable).", multiple=tuple),
    "store": _Option(
        "Where templates go; memory needs no cluster and is for trying it out.", _one_of(choices.StoreKind)
    ),
    "on_api_failure": _Option(
        "When a template cannot be made: deny the pod, or allow it unconverted.", _one_of(choices.OnApiFailure)
    ),
    "max_templates_per_namespace": _Option("Most templates of ours in a namespace.", _COUNT),
    "template_grace": _Option("How long a template that nobody uses is kept.", _SECONDS),
    "janitor": _Option("Delete unused templates, put back missing ones (one replica does it).", flag=True),
    "certificates": _Option(
        "Make the serving certificate (self), or take that in --certificate-dir (files).",
        _one_of(choices.CertificateSource),
    ),
    "certificate_dir": _Option("Folder with tls.crt, tls.key and perhaps ca.crt; read again when they change.", _FILE),
    "manage_ca_bundle": _Option(
        "Keep the caBundle of the webhook configuration right; by default for certificates of our own only.", flag=True
    ),
    "ca_lifetime": _Option("Life of a certificate authority of ours.", _SECONDS),
    "leaf_lifetime": _Option("Life of a serving certificate of ours.", _SECONDS),
    "server_names": _Option("Another name or address in our serving certificate (repeatable).", multiple=tuple),
    "client_ca_file": _Option("Ask clients for a certificate of this authority.", _FILE),
    "client_names": _Option("Name that a client's certificate must have (repeatable); none: any.", multiple=tuple),
    "body_limit": _Option("Largest admission review.", _Size()),
    "max_connections": _Option("Most connections; at the limit those go that have been silent longest.", _COUNT),
    "handshake_timeout": _Option("Time for a TLS handshake.", _SECONDS),
    "header_timeout": _Option("Time for the header of a request, from its first byte on.", _SECONDS),
    "body_timeout": _Option("Time for the body of a request.", _SECONDS),
    "idle_timeout": _Option("Time without a request; the API server closes at 90 s, so it has to be more.", _SECONDS),
    "drain_seconds": _Option("Time to answer on open connections after SIGTERM.", _SECONDS),
    "log_level": _Option("Least level that is logged.", _one_of(choices.LogLevel)),
    "log_format": _Option("JSON for machines, text for people.", _one_of(choices.LogFormat)),
}


def _parameter(name: str, option: _Option, default: Any) -> click.Option:
    flag = name.replace("_", "-")
    variables = [f"{PREFIX}_{name.upper()}", *([option.variable] if option.variable else [])]
    return click.Option(
        [f"--{flag}/--no-{flag}" if option.flag else f"--{flag}"],
        type=bool if option.flag else option.values,
        default=sorted(default) if option.multiple else default,
        multiple=option.multiple is not None,
        envvar=variables,
        help=option.help,
        show_default=default is not None and default not in ((), frozenset()),
        show_envvar=True,
    )


def command(run: Callable[[Settings], None]) -> click.Command:
    """Return the command; `run` gets the choices."""
    defaults = {field.name: field.default for field in dataclasses.fields(Settings)}
    # Files come with a CA of somebody else, who keeps the caBundle, too.
    defaults["manage_ca_bundle"] = None

    def callback(**values: Any) -> None:
        for name, option in _OPTIONS.items():
            if option.multiple:
                values[name] = option.multiple(values[name])
        if values["manage_ca_bundle"] is None:
            values["manage_ca_bundle"] = values["certificates"] == "self"
        run(Settings(**values))

    parameters: list[click.Parameter] = [_parameter(name, option, defaults[name]) for name, option in _OPTIONS.items()]
    return click.version_option(version("gpu2dra"), prog_name="gpu2dra-webhook")(
        click.Command(
            "gpu2dra-webhook",
            params=parameters,
            callback=callback,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
            help=_HELP,
        )
    )


_HELP = """Convert Pods that ask for nvidia.com/gpu as the API server admits them.

A ResourceClaimTemplate is made, and the pod gets a claim in place of the extended resource.

Each option can also be given by the environment variable that is named with it; values of a repeatable one stand
there with blanks between them. Times are seconds or durations (95s, 24h), sizes are bytes or quantities (7Mi).

Exit codes: 0 after SIGTERM, 2 when a choice is wrong or cannot be kept (the last line says which), 1 else."""


def serve(settings: Settings) -> None:
    """Run the webhook until it is told to end."""
    from gpu2dra_webhook import logs  # noqa: PLC0415 - see `_look_for_extra`
    from gpu2dra_webhook.server import Server  # noqa: PLC0415 - as above

    logs.set_up(settings.log_level, settings.log_format)
    Server(settings).run()


def _look_for_extra() -> None:
    """Raise SettingsError without the distributions of the extra: `pip install gpu2dra` brings this command as well.

    They are looked for, not imported: most of them are, only when gevent is in place.
    """
    if missing := [name for name in _EXTRA if importlib.util.find_spec(name) is None]:
        extra = "install gpu2dra with its extra [webhook], as in: pip install 'gpu2dra[webhook]'"
        raise SettingsError(f"The webhook needs {', '.join(missing)}; {extra}.")


def main() -> None:
    """Run the command; what is wrong with the choices is told in one line and exits with 2."""
    try:
        _look_for_extra()
        command(serve).main(prog_name="gpu2dra-webhook", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except SettingsError as error:
        click.echo(f"gpu2dra-webhook: {error}", err=True)
        sys.exit(WRONG_USE)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
