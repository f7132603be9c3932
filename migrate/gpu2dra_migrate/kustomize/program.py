"""Runs `kustomize build`: kustomizations are other people's files, so with a time limit and without a network."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpu2dra_migrate import programs
from gpu2dra_migrate.kustomize.files import parsed

if TYPE_CHECKING:
    from pathlib import Path

BuildError = programs.ProgramError
"""The kustomization does not build; the text is what kustomize says, in one paragraph."""


@dataclass(frozen=True, slots=True)
class Kustomize:
    """The command in front of the folder to build: `kustomize build`, or `kubectl kustomize`."""

    command: tuple[str, ...]

    def build(self, folder: Path, *, anywhere: bool = False) -> list[Any]:
        """Return the objects that the kustomization in `folder` makes; raise BuildError.

        Plugins, functions and charts stay off, as they are by default. With `anywhere` it may take files from outside
        of `folder`, as Flux lets it, and as users may.
        """
        more = ("--load-restrictor", "LoadRestrictionsNone") if anywhere else ()
        # kustomize keeps what it fetched in here, and asks git for the version of a base.
        text = programs.run([*self.command, *more, str(folder)], environment={"GIT_TERMINAL_PROMPT": "0"})
        objects = [obj for obj in parsed(text) if isinstance(obj, dict)]
        if text.strip() and not objects:
            raise BuildError("what it prints holds no objects")
        return objects


def find_kustomize() -> Kustomize | None:
    """Return kustomize, or the one inside kubectl; None where there is neither, or GPU2DRA_KUSTOMIZE is empty."""
    if program := programs.find("kustomize"):
        return Kustomize((program, "build"))
    if os.environ.get("GPU2DRA_KUSTOMIZE") is None and (program := programs.find("kubectl")):
        return Kustomize((program, "kustomize"))
    return None
