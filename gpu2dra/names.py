"""Names that the conversion makes up: unique, inside the API's limits, and the same in every process (R8, R14)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection
from typing import Any

LABEL_LENGTH = 63
"""Longest DNS label (RFC 1123): claim entries and request names of a pod."""
SUBDOMAIN_LENGTH = 253
"""Longest DNS subdomain: metadata.name of a ResourceClaimTemplate."""
DIGEST_LENGTH = 8


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no blanks in UTF-8 text, as Helm's `toRawJson` writes it (R8)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: Any) -> str:
    """Return the first 8 hex digits of SHA-256 over the canonical JSON of `value` (R8)."""
    return hashlib.sha256(canonical_json(value).encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LENGTH]


def shorten(name: str, limit: int, tail: str = "") -> str:
    """Return `name` + `tail`, cut before the tail to fit `limit`; a cut never ends in `-` or `.`.

    A name that holds a placeholder (`${NAME}`) is not cut: its real length is known only when it is filled in.
    """
    room = limit - len(tail)
    if len(name) <= room or "$" in name:
        return name + tail
    return name[:room].rstrip("-.") + tail


def unique(name: str, taken: Collection[str], limit: int = LABEL_LENGTH) -> str:
    """Return `name`, or `name-2`, `name-3`, … : the first that is not in `taken`, at most `limit` long."""
    candidate, number = shorten(name, limit), 2
    while candidate in taken:
        candidate = shorten(name, limit, f"-{number}")
        number += 1
    return candidate


def subdomain(name: str) -> str:
    """Return `name` in the letters of a DNS subdomain; placeholders stay as they are."""
    if "$" in name or "{" in name:
        return name
    return re.sub(r"[^a-z0-9.-]+", "-", name.lower()).strip("-.")


def namer(taken: Collection[str]) -> Callable[[str], str]:
    """Return a function that makes names unique among `taken` and all names that it has given out."""
    used = set(taken)

    def name(wish: str) -> str:
        given = unique(wish, used)
        used.add(given)
        return given

    return name
