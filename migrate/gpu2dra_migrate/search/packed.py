"""Packed charts: whether a .tgz is one and may ask for a GPU, without unpacking it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ENDING = ".tgz"
_CHART = "/Chart.yaml"
_LARGEST = 64 * 1024 * 1024
"""Bytes, unpacked, that are looked at: no chart is of that size, and a small archive may hold any number."""


def holds(path: Path, terms: Iterable[bytes]) -> bool:
    """Whether `path` is a packed chart with one of `terms` in a file of it. What is no archive holds nothing.

    Raises OSError for a file that cannot be read.
    """
    import tarfile  # noqa: PLC0415 - few repositories hold any

    found = is_chart = False
    left = _LARGEST
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                left -= member.size
                if left < 0:
                    break
                is_chart = is_chart or member.name.endswith(_CHART)
                if not found and member.isfile() and (file := archive.extractfile(member)):
                    data = file.read()
                    found = any(term in data for term in terms)
    except (tarfile.TarError, EOFError, zlib.error):
        return False
    return found and is_chart
