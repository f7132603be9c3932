"""How much memory reviews may take once they are decoded: forty times their bytes, if somebody wants it so.

`{"":{"":0}}` is eleven bytes and two dictionaries of 200. So reviews are weighed before they are decoded, and one that
would take more than half of the room that the others leave is refused: a few huge ones keep no ordinary one out.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from gpu2dra_webhook.reviews import BadReview
from gpu2dra_webhook.settings import MEBIBYTE

ROOM = 96 * MEBIBYTE
"""For all reviews that are being answered. One alone may have half of it: a pod with 15,000 environment variables,
and what the API server notes about each, is just as large as etcd takes, and fits."""
PER_VALUE = 200
"""Bytes that a dictionary takes, which is more than other values do (measured: 36 to 190 for each counted byte)."""
_MARKS = b",{["
"""One of these stands before each value but for the first of a level."""
_WIDE = 4
"""Bytes for each letter of a text, once one of its letters is beyond Latin."""


class TooLarge(BadReview):
    """A review that would take too much memory at any time."""

    status = 413


class TooMany(BadReview):
    """A review that takes too much memory now, and may not do so later."""

    status = 503


class Room:
    """Counts what the reviews that are being answered may take; safe from any thread."""

    def __init__(self, size: int = ROOM) -> None:
        self._size = size
        self._taken = 0
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def taken(self, body: bytes) -> Iterator[None]:
        """Hold the room for a review while the block runs; TooLarge or TooMany when there is not enough."""
        wanted = weight(body)
        if wanted > self._size // 2:
            raise TooLarge("The review holds too many values.")
        with self._lock:
            if wanted > (self._size - self._taken) // 2:
                raise TooMany("Too many large reviews at once; try again.")
            self._taken += wanted
        try:
            yield
        finally:
            with self._lock:
                self._taken -= wanted


def weight(body: bytes) -> int:
    """Return how many bytes the review in `body` takes at most once it is decoded, give or take a tenth."""
    # Of several ways the fastest: each review takes this.
    wide = not body.isascii() or (b"\\" in body and b"\\u" in body)
    return len(body) * (_WIDE if wide else 1) + PER_VALUE * (len(body) - len(body.translate(None, _MARKS)))
