"""How long to wait before something that failed is tried again."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(slots=True)
class Backoff:
    """Doubles from `first` to `last` seconds and shakes each wait, so that replicas do not come back in step."""

    first: float
    last: float
    failures: int = 0

    def next(self, at_least: float = 0) -> float:
        """Count a failure and return the seconds to wait; `at_least` is what the server asked for (Retry-After)."""
        wait = min(self.last, self.first * 2.0 ** min(self.failures, 30))
        self.failures += 1
        return max(at_least, wait * random.uniform(0.5, 1.0))  # noqa: S311 - no secret depends on it

    def reset(self) -> None:
        """Begin anew: it worked."""
        self.failures = 0
