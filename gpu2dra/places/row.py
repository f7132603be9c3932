"""What one row of the places table says and how it is matched; the rows are in `operators` and `table`."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple

from gpu2dra.places.text import TEXT_FORMS, Form

FILE = "file"
"""Stands for the apiVersion of documents that have none; their kind is the one that `gpu2dra.places` reads off them."""

KEYS = frozenset({Form.KEY})
NAMES = frozenset({Form.KEY, Form.NAME})
TEXT = frozenset(TEXT_FORMS)
ANY = frozenset(Form)


class Place(NamedTuple):
    """One row of the table; a row without a code says that the place is no finding.

    `api` and `kind` are globs on apiVersion and kind (alternatives by `|`); `path` is a JSON Pointer of the name's key
    or scalar in which `*` stands for a part of one token, `**` for any number of tokens and `|` for alternatives.
    `text` must be found in the string, for the forms that live in strings. `whole`: one finding for all hits of the
    row in one object, because the advice is about the object; else one for each place.
    """

    api: str
    kind: str
    path: str
    code: str
    advice: str
    forms: frozenset[Form] = ANY
    text: str = ""
    whole: bool = False

    def applies(self, api: str, kind: str) -> bool:
        """Whether the row is about objects of this apiVersion and kind."""
        return _fits(api, self.api) and _fits(kind, self.kind)

    def hits(self, form: Form, pointer: str, text: str) -> bool:
        """Whether the row is about a name of this form at `pointer`, in the string `text`."""
        return (
            form in self.forms
            and _pattern(self.path).fullmatch(pointer) is not None
            and (not self.text or re.search(self.text, text, re.MULTILINE) is not None)
        )


def _fits(name: str, globs: str) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs.split("|"))


@cache
def _pattern(path: str) -> re.Pattern[str]:
    parts = []
    for part in path.removeprefix("/").split("/"):
        if part == "**":
            parts.append("(?:/[^/]*)*")
        else:
            names = (re.escape(name).replace(r"\*", "[^/]*") for name in part.split("|"))
            parts.append(f"/(?:{'|'.join(names)})")
    return re.compile("".join(parts))
