"""The settings of a run: `.gpu2dra.yaml` at the root of the repository, and what the command line says over it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gpu2dra import ApiVersion, Options

FILE_NAME = ".gpu2dra.yaml"
API_VERSION = "gpu2dra.dev/v1alpha1"
MAX_SIZE = 4 * 1024 * 1024
"""Bytes of a file that is still read, unless the user says otherwise."""
_OLDEST_MINOR = 32
_TARGETS = {32: ApiVersion.V1BETA1, 33: ApiVersion.V1BETA2}
_TARGET = re.compile(r"v?1\.(?P<minor>\d+)(?:\.\d+)?\+?")
_PATH_IN_MESSAGE = re.compile(r" - at `\$(?P<path>[^`]*)`$")


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
        raise ConfigError(f"Kubernetes {target} cannot hold converted workloads; the oldest target is 1.{_OLDEST_MINOR}")
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

    def options(self) -> Options:
        """Return what these settings mean for the core."""
        return Options(
            api_version=api_version_of(self.target),
            tolerations=self.tolerations,
            schedulers=frozenset({"default-scheduler", *self.schedulers}),
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
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only repositories with globs pay for it

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
    import msgspec  # noqa: PLC0415 - only repositories with a configuration pay for it

    from gpu2dra_migrate.config_schema import ConfigFile  # noqa: PLC0415 - needs msgspec
    from gpu2dra_migrate.edits import locate  # noqa: PLC0415 - only a bad file needs positions
    from gpu2dra_migrate.errors import YamlSyntaxError  # noqa: PLC0415 - as above
    from gpu2dra_migrate.files import Unreadable, read_text  # noqa: PLC0415 - as above
    from gpu2dra_migrate.yaml_nodes import compose  # noqa: PLC0415 - as above
    from gpu2dra_migrate.yaml_values import to_data  # noqa: PLC0415 - as above

    try:
        documents = compose(read_text(path, MAX_SIZE))
        data = [to_data(document) for document in documents]
    except Unreadable as error:
        raise ConfigError(f"{path}: {error.message}") from error
    except YamlSyntaxError as error:
        raise ConfigError(f"{path}:{error.line}:{error.column}: {error.problem}") from error
    if len(documents) != 1:
        raise ConfigError(f"{path}: holds {len(documents)} documents; a configuration is one document of kind Config")
    try:
        file = msgspec.convert(data[0], ConfigFile)
        config = Config(
            path.parent, tuple(file.include), tuple(file.exclude), file.target, file.tolerations,
            tuple(file.schedulers), file.max_size,
        )  # fmt: skip
    except msgspec.ValidationError as error:
        text = str(error)
        match = _PATH_IN_MESSAGE.search(text)
        pointer = _pointer(match["path"]) if match else ""
        line, column = locate(documents[0], pointer)
        where = f"{pointer or '/'}: " if match else ""
        raise ConfigError(f"{path}:{line}:{column}: {where}{_PATH_IN_MESSAGE.sub('', text)}") from error
    try:
        api_version_of(config.target)
    except ConfigError as error:
        line, column = locate(documents[0], "/target")
        raise ConfigError(f"{path}:{line}:{column}: /target: {error}") from error
    return config


def _pointer(path: str) -> str:
    """Turn msgspec's `.include[0]` into the JSON Pointer `/include/0`."""
    return re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", path).replace(".", "/").rstrip("/").replace("//", "/")
