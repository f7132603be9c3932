"""The conversion policy of a run: a file that `--policy` or `.gpu2dra.yaml` names, or a document inside the latter."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - loaded by then anyway
from typing import Any

import click

from gpu2dra.policy import Policy, PolicyError
from gpu2dra.policy.load import load
from gpu2dra_migrate.config import ConfigError
from gpu2dra_migrate.config_schema import misplaced, read_document
from gpu2dra_migrate.text.nodes import Document


def load_policy(path: Path) -> Policy:
    """Return the policy in a file; raise ConfigError that names everything that is wrong with it, by line."""
    document, data = read_document(path, "ConversionPolicy")
    return policy_in(path, document, data)


def policy_in(path: Path, document: Document, data: Any, base: str = "") -> Policy:
    """Return the policy in `data`, which stands at pointer `base` of a document; raise ConfigError as above."""
    try:
        policy = load(data)
    except PolicyError as error:
        lines = [str(misplaced(path, document, base + each.path, each.message)) for each in error.problems]
        raise ConfigError("\n".join(lines)) from error
    for warning in policy.warnings:
        click.echo(f"warning: {misplaced(path, document, base + warning.path, warning.message)}", err=True)
    return policy
