"""The command line: every choice is an option and a variable, with the default of Settings."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import requires
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpu2dra_migrate import __version__
from gpu2dra_webhook import cli
from gpu2dra_webhook.settings import Settings


def chosen(*arguments: str, environment: dict[str, str] | None = None) -> Settings:
    """Return the settings that a command line gives."""
    found: list[Settings] = []
    result = CliRunner().invoke(cli.command(found.append), arguments, env=environment, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0]


def test_every_choice_has_an_option() -> None:
    assert set(cli._OPTIONS) == {field.name for field in dataclasses.fields(Settings)}


def test_without_options_the_settings_are_those_that_it_comes_with() -> None:
    assert chosen() == Settings()


@pytest.mark.parametrize(
    ("arguments", "field", "expected"),
    [
        ("--port=0", "port", 0),
        ("--kubeconfig=a/b", "kubeconfig", Path("a/b")),
        ("--namespace-mode=opt-out", "namespace_mode", "opt-out"),
        ("--excluded-namespaces=a --excluded-namespaces=b", "excluded_namespaces", frozenset({"a", "b"})),
        ("--drivers=x --drivers=y", "drivers", ("x", "y")),
        ("--allow-mixed-nodes", "allow_mixed_nodes", True),
        ("--no-janitor", "janitor", False),
        ("--template-grace=24h", "template_grace", 86_400),
        ("--template-grace=60", "template_grace", 60),
        ("--leaf-lifetime=1h30m", "leaf_lifetime", 5_400),
        ("--body-limit=1Mi", "body_limit", 1_048_576),
        ("--body-limit=1000", "body_limit", 1_000),
        ("--client-names=kube-apiserver --client-names=front", "client_names", ("kube-apiserver", "front")),
        ("--certificates=files", "manage_ca_bundle", False),
        ("--certificates=files --manage-ca-bundle", "manage_ca_bundle", True),
        ("--no-manage-ca-bundle", "manage_ca_bundle", False),
        ("--log-format=text", "log_format", "text"),
    ],
)
def test_an_option_changes_its_setting(arguments: str, field: str, expected: Any) -> None:
    assert getattr(chosen(*arguments.split()), field) == expected


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("GPU2DRA_WEBHOOK_PORT", "1234", "port", 1234),
        ("GPU2DRA_WEBHOOK_JANITOR", "false", "janitor", False),
        ("GPU2DRA_WEBHOOK_ALLOW_MIXED_NODES", "true", "allow_mixed_nodes", True),
        ("GPU2DRA_WEBHOOK_DRIVERS", "x y", "drivers", ("x", "y")),
        ("GPU2DRA_WEBHOOK_DRAIN_SECONDS", "1m", "drain_seconds", 60),
        ("GPU2DRA_WEBHOOK_NAMESPACE", "gpus", "namespace", "gpus"),
        ("POD_NAMESPACE", "gpus", "namespace", "gpus"),
        ("POD_NAME", "gpu2dra-0", "pod_name", "gpu2dra-0"),
    ],
)
def test_a_variable_changes_its_setting(variable: str, value: str, field: str, expected: Any) -> None:
    assert getattr(chosen(environment={variable: value}), field) == expected


def test_an_option_wins_over_its_variable() -> None:
    assert chosen("--port=1", environment={"GPU2DRA_WEBHOOK_PORT": "2"}).port == 1


def test_the_help_names_each_option_with_its_variable_and_its_default() -> None:
    result = CliRunner().invoke(cli.command(lambda settings: None), ["--help"], terminal_width=10_000)
    text = " ".join(result.output.split())
    for name, option in cli._OPTIONS.items():
        assert f"--{name.replace('_', '-')}" in text
        assert f"GPU2DRA_WEBHOOK_{name.upper()}" in text
        assert option.help.endswith(".")
    for default in ("9443", "opt-in", "deny", "7340032", "86400", "zz-gpu2dra"):
        assert f"default: {default}" in text


@pytest.mark.parametrize("value", ["", "0", "-5", "abc", "1 h", "0s"])
def test_what_is_no_duration_is_wrong_use(value: str) -> None:
    result = CliRunner().invoke(cli.command(lambda settings: None), [f"--idle-timeout={value}"])
    assert result.exit_code == 2
    assert f"{value!r} is no duration above zero, such as 95, 95s or 24h" in result.output


@pytest.mark.parametrize("value", ["", "0", "-5", "abc", "0.5", "1000m1"])
def test_what_is_no_size_is_wrong_use(value: str) -> None:
    result = CliRunner().invoke(cli.command(lambda settings: None), [f"--body-limit={value}"])
    assert result.exit_code == 2
    assert f"{value!r} is no size, such as 7340032 or 7Mi" in result.output


def test_the_version_is_that_of_the_distribution() -> None:
    result = CliRunner().invoke(cli.command(lambda settings: None), ["--version"])
    assert result.output == f"gpu2dra-webhook, version {__version__}\n"


@pytest.mark.parametrize("missing", [cli._EXTRA, ("kubernetes",)])
@pytest.mark.parametrize("arguments", [["--help"], ["--store=memory"]])
def test_without_the_extra_it_says_which_one_is_needed(missing: Sequence[str], arguments: list[str]) -> None:
    hidden = f"import sys; sys.modules |= dict.fromkeys({missing!r})"  # as if they were not installed
    program = f"{hidden}; from gpu2dra_webhook.cli import main; main()"
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"gpu2dra-webhook: The webhook needs {', '.join(missing)}; install gpu2dra with its extra [webhook], as in: "
        "pip install 'gpu2dra[webhook]'.\n"
    )


def test_the_extra_is_what_the_distribution_says() -> None:
    [*wanted] = requires("gpu2dra") or ()
    of_extra = {re.split("[^a-z0-9-]", each)[0] for each in wanted if each.endswith('extra == "webhook"')}
    assert {name.replace("-", "_") for name in of_extra} == set(cli._EXTRA)
