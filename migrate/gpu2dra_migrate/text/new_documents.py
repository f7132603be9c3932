"""Where a new document goes: before its workload, so that comments stay with what they speak of."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence as Items
from typing import Any

from gpu2dra_migrate.errors import NO_ROOM_FOR_DOCUMENT, CannotEdit
from gpu2dra_migrate.text.emit import Layout, block_value
from gpu2dra_migrate.text.nodes import Document, Mapping, Sequence
from gpu2dra_migrate.text.source import Source, Splice

_LICENCE = re.compile(r"copyright|spdx-license-identifier|licen[sc]e", re.IGNORECASE)


def insertion(source: Source, documents: list[Document], index: int, new: Items[Any], layout: Layout) -> Splice:
    """Return the splice that puts the documents `new` before document `index`.

    A document that begins with `---` keeps that line: the new ones come behind it, followed by a `---` of their own.
    Comments directly above the workload stay with it; a licence at the very top, and comment paragraphs there that a
    blank line follows, stay on top. Raise CannotEdit where a second document would change what the first one is: a
    JSON file, a document with directives.
    """
    document = documents[index]
    root = document.root
    if root is None:
        raise CannotEdit(NO_ROOM_FOR_DOCUMENT, "the document is empty", 1, 1)
    if document.directives:
        raise source.refuse(root, "the document has directives of its own", NO_ROOM_FOR_DOCUMENT)
    if len(documents) == 1 and _is_json(source, document):
        raise source.refuse(root, "a JSON file holds one document only", NO_ROOM_FOR_DOCUMENT)
    if document.marker >= 0:
        at = source.next_line(document.marker)
        if root.start < at:  # `--- {a: b}`: no room on the line
            return _before(source, document.marker, new, layout, "---")
        if index == 0:
            at = _behind_licence(source, at, source.line_start(root.start))
        return _before(source, at, new, layout)
    content = source.line_start(root.start)
    top = source.line_start(documents[index - 1].end) if index else source.first
    at = _paragraph_start(source, content, top)
    return _before(source, _behind_licence(source, at, content) if at == source.first else at, new, layout)


def _before(source: Source, at: int, new: Items[Any], layout: Layout, head: str = "") -> Splice:
    lines = [head] if head else []
    for position, data in enumerate(new):
        lines += ["---"] * (position > 0) + block_value(data, layout, 0)
    if not head:
        lines.append("---")
    eol = source.eol(at)
    return Splice(at, at, "".join(line + eol for line in lines))


def _paragraph_start(source: Source, content: int, top: int) -> int:
    """Return where the comment lines begin that stand directly above `content`, not above `top`."""
    at = content
    while at > top:
        above = source.line_start(at - 1)
        if above < top or not source.is_comment(above):
            break
        at = above
    return at


def _behind_licence(source: Source, top: int, content: int) -> int:
    """Return where the comment block at `top` ends, blank lines included, if it is a licence; else `top`."""
    at, paragraph = top, ""
    while at < content and source.is_comment(at):
        following = source.next_line(at)
        paragraph += source.text[at:following]
        at = following
    if not _LICENCE.search(paragraph):
        return top
    while at < content and not source.text[at : source.next_line(at)].strip():
        at = source.next_line(at)
    return at


def _is_json(source: Source, document: Document) -> bool:
    if not (isinstance(document.root, Mapping | Sequence) and document.root.flow):
        return False
    try:
        json.loads(source.text[source.first :])
    except ValueError:
        return False
    return True
