"""The fields of `.gpu2dra.yaml` (`kind: Config`), read strictly: an unknown field or a wrong type is an error."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 - loaded by then anyway
from typing import Annotated, Any, Literal

import msgspec
from pathspec import GitIgnoreSpec

from gpu2dra_migrate.config import MAX_SIZE, Config, ConfigError, api_version_of
from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.files import Unreadable, read_text
from gpu2dra_migrate.text.edits import locate
from gpu2dra_migrate.text.nodes import Document, compose
from gpu2dra_migrate.text.values import repeated_keys, to_data

_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`")
_FIRST_LINES = "apiVersion: gpu2dra.dev/v1alpha1, kind: Config"
_HINTS = {"/apiVersion": "write gpu2dra.dev/v1alpha1", "/kind": "write Config", "/target": 'quote it: "1.34+"'}
"""What to do about a wrong value, where the message of the validator does not say it."""


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


def load(path: Path) -> Config:
    """Return the settings in `path`; raise ConfigError that names file, line and field when they cannot be used."""
    document, data = _read(path)
    try:
        file = msgspec.convert(data, ConfigFile)
    except msgspec.ValidationError as error:
        message = str(error)
        match = _AT.search(message)
        pointer = _pointer(match["path"]) if match else ""
        message = _AT.sub("", message)
        if unknown := _UNKNOWN.search(message):
            pointer = f"{pointer}/{unknown['field']}"
            known = ", ".join(field.encode_name for field in msgspec.structs.fields(ConfigFile))
            message = f"unknown field; the fields are {known}"
        hint = _HINTS.get(pointer)
        raise _error(path, document, pointer, f"{message}; {hint}" if hint else message) from error
    try:
        api_version_of(file.target)
    except ConfigError as error:
        raise _error(path, document, "/target", str(error)) from error
    for key, globs in (("include", file.include), ("exclude", file.exclude)):
        for index, glob in enumerate(globs):
            try:
                GitIgnoreSpec.from_lines([glob])
            except ValueError as error:
                raise _error(path, document, f"/{key}/{index}", f"{error}; write it as in .gitignore") from error
    return Config(
        path.parent, tuple(file.include), tuple(file.exclude), file.target, file.tolerations, tuple(file.schedulers),
        file.max_size,
    )  # fmt: skip


def _read(path: Path) -> tuple[Document, Any]:
    try:
        documents = compose(read_text(path, MAX_SIZE))
        data = [to_data(document) for document in documents]
    except Unreadable as error:
        raise ConfigError(f"{path}: {error.message}") from error
    except YamlSyntaxError as error:
        raise ConfigError(f"{path}:{error.line}:{error.column}: {error.problem}") from error
    filled = [index for index, document in enumerate(documents) if document.root is not None]
    if not filled:
        raise ConfigError(f"{path}:1:1: the file is empty; it begins with {_FIRST_LINES}")
    if len(filled) > 1:
        line, column = locate(documents[filled[1]], "")
        raise ConfigError(f"{path}:{line}:{column}: the file holds {len(filled)} documents; write one, of kind Config")
    document = documents[filled[0]]
    for name, key in repeated_keys(document):
        raise ConfigError(f"{path}:{key.line + 1}:{key.column + 1}: /{name}: stands twice; remove one")
    return document, data[filled[0]]


def _error(path: Path, document: Document, pointer: str, message: str) -> ConfigError:
    line, column = locate(document, pointer)
    return ConfigError(f"{path}:{line}:{column}: {pointer or '/'}: {message}")


def _pointer(path: str) -> str:
    """Turn msgspec's `.include[0]` into the JSON Pointer `/include/0`."""
    return re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", path).replace(".", "/").rstrip("/").replace("//", "/")
