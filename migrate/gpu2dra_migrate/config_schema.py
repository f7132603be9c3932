"""The fields of `.gpu2dra.yaml` (`kind: Config`), read strictly: an unknown field or a wrong type is an error."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from gpu2dra_migrate.config import MAX_SIZE


class ConfigFile(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """One configuration document. `include` and `exclude` hold globs as in .gitignore."""

    api_version: Literal["gpu2dra.dev/v1alpha1"]
    kind: Literal["Config"]
    include: list[str] = []
    exclude: list[str] = []
    target: str = "1.34+"
    tolerations: bool = True
    schedulers: list[str] = []
    max_size: Annotated[int, msgspec.Meta(gt=0)] = MAX_SIZE
