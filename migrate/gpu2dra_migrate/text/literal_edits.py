"""Texts of several lines that stand as block scalars: they get new lines, and keep header and indent."""

from __future__ import annotations

import re

from gpu2dra_migrate.text.nodes import Document, Mapping, Node, Raw, Scalar, Sequence
from gpu2dra_migrate.text.patch import tokens_of
from gpu2dra_migrate.text.source import Source, Splice
from gpu2dra_migrate.text.values import key_names

_HEADER = re.compile(r"\|(?P<chomp>-?)[ \t]*(?:[ \t]#[^\n]*)?\r?\n")
_SAFE = re.compile(r"[\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]*")


def literal_splice(source: Source, node: Node, data: object) -> Splice | None:
    """Return the splice that makes `data` the value of the scalar `node`; None where it stands or reads otherwise."""
    if not isinstance(node, Scalar) or node.style != "|" or not isinstance(data, str) or not _SAFE.fullmatch(data):
        return None
    header = _HEADER.match(source.text, source.content_start(node))
    body = data.removesuffix("\n")
    if header is None or data.endswith("\n") == bool(header["chomp"]) or not body.strip() or body.endswith("\n"):
        return None
    lines = source.text[header.end() : node.end].split("\n")
    old = next((line for line in lines if line.strip()), "")
    indent = old[: len(old) - len(old.lstrip(" "))]
    if not indent or body.lstrip("\n").startswith(" "):  # the first line would say another indent
        return None
    eol = source.eol(header.end())
    end = node.end
    while source.text[end - 1] in " \t\r\n":  # blank lines behind it stay where they are
        end -= 1
    new = eol.join(indent + line if line else "" for line in body.split("\n"))
    return Splice(header.end(), end, new)


def stands_below(document: Document, pointer: str) -> bool:
    """Tell whether the value at a JSON pointer is a block scalar, so that its text begins in the line below its key."""
    node: Raw | None = document.root
    for token in tokens_of(pointer):
        if isinstance(node, Mapping):
            names = key_names(node)
            if token not in names:
                return False
            node = node.raw[2 * (len(names) - 1 - names[::-1].index(token)) + 1]
        elif isinstance(node, Sequence) and token.isdigit() and int(token) < len(node.raw):
            node = node.raw[int(token)]
        else:
            return False
    return _style(node) in {"|", ">"}


def _style(node: Raw | None) -> str:
    return str(getattr(node, "style", "") or "")
