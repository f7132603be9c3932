"""Plain URLs inside brackets, which Helm and Kustomize print and our parser refuses: with quotes they are the same."""

from __future__ import annotations

import re

from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.text.nodes import compose

_PROBLEM = "found unexpected ':'"
_BEFORE = re.compile(r"(?:[\[{,]|: |- |^)[ \t]*(?P<head>[^\[\]{},'\"#\s](?:(?!: )[^\[\]{},'\"#\n])*)$")
_AFTER = re.compile(r"[^\[\]{},'\"#\n]*")
_MOST = 1000


def with_quoted_urls(text: str) -> str:
    """Return `text` with quotes around each scalar like `[http://host:80]` that keeps it from being read.

    YAML 1.2 takes them, as do the parsers of Kubernetes. A text that is refused for another reason stays as it is.
    """
    result = text
    for _ in range(_MOST):
        try:
            compose(result)
        except YamlSyntaxError as error:
            if error.problem != _PROBLEM or (quoted := _quoted(result, error)) is None:
                return text
            result = quoted
        else:
            return result
    return text


def _quoted(text: str, error: YamlSyntaxError) -> str | None:
    """Return `text` with the scalar around the place of an error in quotes; None where there is none."""
    lines = text.split("\n")
    line = lines[error.line - 1]
    if line[error.column : error.column + 1] in ("", *" ,[]{}\t\r"):  # the end of a key
        return None
    before, after = _BEFORE.search(line[: error.column - 1]), _AFTER.match(line, error.column - 1)
    if before is None or after is None:
        return None
    start, end = before.start("head"), after.end()
    scalar = line[start:end].rstrip()
    lines[error.line - 1] = f"{line[:start]}'{scalar}'{line[start + len(scalar) :]}"
    return "\n".join(lines)
