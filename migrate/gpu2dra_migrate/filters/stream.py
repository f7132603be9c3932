"""A stream of manifests, as `helm template` and `kustomize build` print it: converted document by document.

Each document is read by itself, so one without a GPU passes byte for byte, even where our parser would refuse it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from gpu2dra import Context, Finding, Keep, Options
from gpu2dra.codes import finding
from gpu2dra_migrate.filters.flow_urls import with_quoted_urls
from gpu2dra_migrate.manifest import Conversion, Located, convert, objects, with_neighbours
from gpu2dra_migrate.search.discover import may_hold_legacy
from gpu2dra_migrate.text.emit import documents_text

_MARKER = re.compile(r"^---(?=[ \t\r\n]|\Z)", re.MULTILINE)
_BARE = re.compile(r"\A---[ \t]*\r?\n")
_ENDS = re.compile(r"^(?:%|\.\.\.(?=\s|\Z))", re.MULTILINE)
"""Directives and `...`: there a line of three dashes is not all that parts one document from the next."""
_HEAD = re.compile(r"---[ \t]*\r?\n(?:# Source: [^\n]*\n)?")
"""What Helm writes above each document: a template gets the same, so that tools which split by file keep both."""
_HELM = re.compile(r"^# Source: |postrenderer\.helm\.sh/postrender-filename", re.MULTILINE)
_NEIGHBOUR = re.compile(
    r"^[ \t]*[\"']?kind[\"']?:[ \t]*[\"']?(?:ResourceClaim|ComputeDomain|PriorityClass)", re.MULTILINE
)
_OWN_FILE = "DRA105"
_IN_STREAM = "The template stands before it: apply this stream, since a second `kubectl create` fails on the template."


@dataclass(slots=True)
class Filtered:
    """The whole stream after the conversion, what is told about it, and how much was converted."""

    text: str
    findings: list[Located] = field(default_factory=list)
    objects: int = 0
    requests: int = 0


def convert_stream(text: str, options: Options, keep: Sequence[Keep] | None = None) -> Filtered:
    """Return the converted stream; a document that cannot be converted stands in it as it came, with a finding.

    `keep`: the tools that must not prune the templates. None: Helm, if the stream shows that Helm rendered it.
    """
    if keep is None:
        keep = (Keep.HELM,) if _HELM.search(text) else ()
    options = replace(options, keep=tuple(keep))
    pieces = list(_pieces(text))
    context = Context()
    for piece in pieces:
        if _NEIGHBOUR.search(piece):
            context = with_neighbours(context, objects(piece))
    result = Filtered("")
    parts: list[str] = []
    line = 0
    for piece in pieces:
        parts.append(_converted(piece, line, options, context, result) if may_hold_legacy(piece) else piece)
        line += piece.count("\n")
    result.text = "".join(parts)
    return result


def _pieces(text: str) -> Iterator[str]:
    """Yield the documents of a stream, each with the `---` above it; together they are the stream."""
    if _ENDS.search(text):
        yield text
        return
    starts = [match.start() for match in _MARKER.finditer(text)]
    bounds = [0, *(start for start in starts if start > 0), len(text)]
    for start, end in pairwise(bounds):
        yield text[start:end]


def _converted(piece: str, line: int, options: Options, context: Context, result: Filtered) -> str:
    """Return one document converted, its templates before it under the same head; add to `result`."""
    match = _HEAD.match(piece)
    head = match[0] if match else ""
    done = convert(with_quoted_urls(piece[len(head) :]), options, context)
    above = line + head.count("\n")
    result.findings += [_placed(item, above) for item in done.findings]
    if done.text is None:
        return piece
    result.objects += done.objects
    result.requests += done.requests
    return _joined(done, head)


def _placed(item: Located, above: int) -> Located:
    """Return a finding with its line in the whole stream, of which `above` lines come before its document."""
    told: Finding = item.finding
    if told.code == _OWN_FILE:
        told = finding(_OWN_FILE, told.path, _IN_STREAM)
    return replace(item, finding=told, line=max(item.line, 1) + above)


def _joined(done: Conversion, head: str) -> str:
    """Return the documents of a conversion, each under `head`."""
    text = done.text or ""
    if done.beside:
        marked = _MARKER.match(text) is not None
        text = "---\n" * marked + documents_text(done.beside) + "---\n" * (not marked) + text
    if not head:
        return text
    return head + head.join(
        _BARE.sub("", each, count=1) if number else each for number, each in enumerate(_pieces(text))
    )
