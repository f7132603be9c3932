"""Durations as Go prints them (`1m0s`, `500ms`): the API server says so how long it waits, people what they want."""

from __future__ import annotations

import re
from collections.abc import Mapping

_UNITS: Mapping[str, float] = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_PART = re.compile(rf"(\d+\.?\d*|\.\d+)({'|'.join(sorted(_UNITS, key=len, reverse=True))})", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


def seconds(text: str) -> float | None:
    """Return the seconds of a duration as Go's time.ParseDuration reads it, without sign; None where it reads none."""
    if text == "0":
        return 0.0
    if not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
