"""The settings of a run: `.gpu2dra.yaml` at the root of the repository, and what the command line says over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from gpu2dra import ApiVersion, Options

if TYPE_CHECKING:
    from pathlib import Path

    from gpu2dra.policy import Policy

FILE_NAME = ".gpu2dra.yaml"
API_VERSION = "gpu2dra.dev/v1alpha1"
MAX_SIZE = 4 * 1024 * 1024
"""Bytes of a file that is still read, unless the user says otherwise."""
_OLDEST_MINOR = 32
_TARGETS = {32: ApiVersion.V1BETA1, 33: ApiVersion.V1BETA2}
_TARGET = re.compile(r"v?1\.(?P<minor>\d+)(?:\.\d+)?\+?")


class ConfigError(Exception):
    """The configuration cannot be used; the text names file, line, field and what to do."""


def api_version_of(target: str) -> ApiVersion:
    """Return the resource.k8s.io version to write for a Kubernetes version such as `1.33` or `1.34+` (rule R9).

    Raises ConfigError for a version without DRA's structured parameters (before 1.32) or what is no version.
    """
    match = _TARGET.fullmatch(target)
    if match is None:
        raise ConfigError(f'"{target}" is no Kubernetes version; write 1.32, 1.33 or 1.34+')
    minor = int(match["minor"])
    if minor < _OLDEST_MINOR:
        raise ConfigError(
            f"Kubernetes {target} cannot hold converted workloads; the oldest target is 1.{_OLDEST_MINOR}"
        )
    return _TARGETS.get(minor, ApiVersion.V1)


@dataclass(frozen=True, slots=True)
class Config:
    """The content of one `.gpu2dra.yaml`, or nothing at all. Globs are read as in .gitignore, from `root`."""

    root: Path | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    target: str = "1.34+"
    tolerations: bool = True
    schedulers: tuple[str, ...] = ()
    max_size: int = MAX_SIZE
    policy: Policy | None = None

    def options(self) -> Options:
        """Return what these settings mean for the core."""
        return Options(
            api_version=api_version_of(self.target),
            tolerations=self.tolerations,
            schedulers=frozenset({"default-scheduler", *self.schedulers}),
            policy=self.policy,
        )

    def selects(self, path: Path) -> bool:
        """Whether `include` and `exclude` leave `path` in."""
        if self.root is None or not (self.include or self.exclude):
            return True
        try:
            name = path.resolve().relative_to(self.root.resolve()).as_posix()
        except ValueError:
            return True
        included, excluded = _matcher(self.include), _matcher(self.exclude)
        return (not self.include or included(name)) and not excluded(name)


@cache
def _matcher(globs: tuple[str, ...]) -> Callable[[str], bool]:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - few repositories have a configuration

    return GitIgnoreSpec.from_lines(globs).match_file


@cache
def find_config(folder: Path) -> Config:
    """Return the settings that hold in `folder`: of the nearest `.gpu2dra.yaml` up to the root of its repository.

    Raises ConfigError when that file cannot be used.
    """
    candidate = folder / FILE_NAME
    if candidate.is_file():
        return load_config(candidate)
    if (folder / ".git").exists() or folder.parent == folder:
        return Config()
    return find_config(folder.parent)


def load_config(path: Path) -> Config:
    """Return the settings in `path`; raise ConfigError that names file, line and field when they cannot be used."""
    from gpu2dra_migrate.config_schema import load  # noqa: PLC0415 - few repositories have a configuration

    return load(path)
