"""`gpu2dra krm-function`: a function of the KRM Functions Specification, for kustomize, kpt and their like.

A ResourceList comes in on standard input and goes out, converted, on standard output; nothing else is written there.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from gpu2dra import Keep, Object, Severity
from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.files import Unreadable, decode
from gpu2dra_migrate.filters.command import MAX_SIZE
from gpu2dra_migrate.filters.flow_urls import with_quoted_urls
from gpu2dra_migrate.filters.function_config import options_of
from gpu2dra_migrate.filters.resource_list import Converted, convert_list
from gpu2dra_migrate.output import Exit
from gpu2dra_migrate.session import Flags, settings_here
from gpu2dra_migrate.terminal import Terminal, printable
from gpu2dra_migrate.text.nodes import Document, compose
from gpu2dra_migrate.text.values import to_data

_GROUP = "config.kubernetes.io/"


class NoResourceList(Exception):
    """What came in is no ResourceList; the text says what it is."""


def krm_function(flags: Flags, keep: Sequence[Keep]) -> int:
    """Run the function and return its exit code; raises ConfigError for settings that cannot be used."""
    settings = settings_here(flags)
    options = replace(settings.options, keep=tuple(keep))
    raw = sys.stdin.buffer.read()
    limit = flags.max_size or MAX_SIZE
    if len(raw) > limit:
        return _refused(f"{len(raw):,} bytes came in, more than {limit:,}; raise --max-size")
    try:
        text = with_quoted_urls(decode(raw))
        documents, data = resource_list(text)
    except Unreadable as error:
        return _refused(error.message)
    except NoResourceList as error:
        return _refused(str(error))
    done = convert_list(text, documents, data, options_of(documents[0], data, options))
    _tell(done, flags)
    sys.stdout.flush()
    sys.stdout.buffer.write(done.text.encode())
    sys.stdout.buffer.flush()
    return int(Exit.FINDINGS if done.failed else Exit.NOTHING)


def resource_list(text: str) -> tuple[list[Document], Object]:
    """Return the only document of `text` and its data; raise NoResourceList for anything but a ResourceList."""
    try:
        documents = compose(text)
        data: list[Any] = [to_data(document) for document in documents]
    except YamlSyntaxError as error:
        raise NoResourceList(f"line {error.line}, column {error.column}: {error.problem}") from None
    if len(data) != 1 or not isinstance(data[0], dict):
        raise NoResourceList("standard input holds no ResourceList; `gpu2dra render-filter` reads streams of manifests")
    (listed,) = data
    api, kind = listed.get("apiVersion"), listed.get("kind")
    if kind != "ResourceList" or not isinstance(api, str) or not api.startswith(_GROUP):
        raise NoResourceList(f"standard input holds {kind or 'no object'}, not a ResourceList of {_GROUP}v1")
    if not isinstance(listed.setdefault("items", []), list):
        raise NoResourceList("the items of the ResourceList are no list")
    return documents, listed


def _refused(message: str) -> int:
    click.echo(f"gpu2dra: {printable(message)}.", err=True)
    return int(Exit.UNREADABLE)


def _tell(done: Converted, flags: Flags) -> None:
    """Print results to standard error: orchestrators show them, or show this."""
    shown = {Severity.ERROR} | ({Severity.WARNING} if not flags.quiet else set())
    terminal = Terminal(color=False, progress=False)
    for result in done.results:
        if result["severity"] in shown:
            reference, file = result.get("resourceRef", {}), result.get("file", {}).get("path", "")
            about = f"{reference['kind']}/{reference['name']}: " if reference else ""
            where = f"{file}: " if file else ""
            text = f"{where}{result['severity']} {result['tags']['code']} {about}{result['message']}"
            terminal.line(printable(text), err=True)
