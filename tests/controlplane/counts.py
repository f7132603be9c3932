"""What became of Pods that many clients have created: converted or not, refused by us, or lost to the outage."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import msgspec

from gpu2dra.converted import ANNOTATION


class _Metadata(msgspec.Struct):
    annotations: dict[str, str] = {}


class _Resources(msgspec.Struct):
    limits: dict[str, str] = {}


class _Container(msgspec.Struct):
    resources: _Resources = msgspec.field(default_factory=_Resources)


class _Spec(msgspec.Struct):
    containers: list[_Container]
    initContainers: list[_Container] = []  # noqa: N815 -- the field's name in the API


class _Stored(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec

    @property
    def converted(self) -> bool:
        """Whether it carries our record and asks for no legacy resource any more."""
        asking = [each for each in (*self.spec.containers, *self.spec.initContainers)
                  if any(name.startswith("nvidia.com/") for name in each.resources.limits)]  # fmt: skip
        return ANNOTATION in self.metadata.annotations and not asking


_decode = msgspec.json.Decoder(_Stored).decode


@dataclass(slots=True)
class Counts:
    """What became of all creations. `created` is `converted` and `unconverted` together.

    `by_us` are refusals that name the webhook, `by_outage` what the API server could not answer by itself: broken
    connections and its own 429 and 5xx. Those were tried again. `seconds` holds how long each successful one took.
    """

    converted: int = 0
    unconverted: int = 0
    by_us: int = 0
    by_outage: int = 0
    messages: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    @property
    def created(self) -> int:
        """How many Pods exist."""
        return self.converted + self.unconverted

    def count(self, stored: bytes) -> None:
        """Count a Pod that the server has stored, by its answer."""
        if _decode(stored).converted:
            self.converted += 1
        else:
            self.unconverted += 1

    def add(self, other: Counts) -> None:
        """Count in what another client has seen."""
        self.converted += other.converted
        self.unconverted += other.unconverted
        self.by_us += other.by_us
        self.by_outage += other.by_outage
        self.messages.update(other.messages)
        self.seconds += other.seconds

    def __str__(self) -> str:
        """Return them in one line, with the most frequent messages behind."""
        told = "".join(f"\n  {count} x {message}" for message, count in self.messages.most_common(5))
        return (
            f"created {self.created}, converted {self.converted}, unconverted {self.unconverted}, "
            f"failed by us {self.by_us}, failed by the outage {self.by_outage}{told}"
        )
