"""Why a kustomization stays as it is, or is not proven."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """What is told at the file of a kustomization; `code` is a key of `gpu2dra.CODES`."""

    code: str
    message: str
