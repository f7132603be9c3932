"""The fields of `.gpu2dra.yaml` (`kind: Config`), read strictly: an unknown field or a wrong type is an error."""

from __future__ import annotations

import re
from pathlib import Path  # noqa: TC003 - loaded by then anyway
from typing import Annotated, Any, Literal

import msgspec
from pathspec import GitIgnoreSpec

from gpu2dra.policy import Policy
from gpu2dra_migrate.config import API_VERSION, MAX_SIZE, Config, ConfigError, api_version_of
from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.files import Unreadable, read_text
from gpu2dra_migrate.text.edits import locate
from gpu2dra_migrate.text.nodes import Document, compose
from gpu2dra_migrate.text.values import repeated_keys, to_data

_AT = re.compile(r" - at `\$(?P<path>[^`]*)`$")
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`")
_HINTS = {"/apiVersion": "write gpu2dra.dev/v1alpha1", "/kind": "write Config", "/target": 'quote it: "1.34+"'}
"""What to do about a wrong value, where the message of the validator does not say it."""


class ConfigFile(msgspec.Struct, forbid_unknown_fields=True, rename="camel", kw_only=True, frozen=True):
    """One configuration document. `include` and `exclude` hold globs as in .gitignore.

    `policy` is a ConversionPolicy, or the path of one from the folder of this file.
    """

    api_version: Literal["gpu2dra.dev/v1alpha1"]
    kind: Literal["Config"]
    include: list[str] = []
    exclude: list[str] = []
    target: str = "1.34+"
    tolerations: bool = True
    schedulers: list[str] = []
    max_size: Annotated[int, msgspec.Meta(gt=0)] = MAX_SIZE
    policy: str | dict[str, Any] = ""


def load(path: Path) -> Config:
    """Return the settings in `path`; raise ConfigError that names file, line and field when they cannot be used."""
    document, data = read_document(path, "Config")
    return config_in(path, document, data)


def config_in(path: Path, document: Document, data: Any, base: str = "") -> Config:
    """Return the settings in `data`, which stands at pointer `base` of a document; raise ConfigError as above."""
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
        raise misplaced(path, document, base + pointer, f"{message}; {hint}" if hint else message) from error
    try:
        api_version_of(file.target)
    except ConfigError as error:
        raise misplaced(path, document, f"{base}/target", str(error)) from error
    for key, globs in (("include", file.include), ("exclude", file.exclude)):
        for index, glob in enumerate(globs):
            try:
                GitIgnoreSpec.from_lines([glob])
            except ValueError as error:
                place = f"{base}/{key}/{index}"
                raise misplaced(path, document, place, f"{error}; write it as in .gitignore") from error
    return Config(
        path.parent, tuple(file.include), tuple(file.exclude), file.target, file.tolerations, tuple(file.schedulers),
        file.max_size, _policy(path, document, file.policy, f"{base}/policy"),
    )  # fmt: skip


def _policy(path: Path, document: Document, named: str | dict[str, Any], base: str) -> Policy | None:
    if named == "":
        return None
    from gpu2dra_migrate.policy_file import load_policy, policy_in  # noqa: PLC0415 - few configurations name a policy

    if isinstance(named, str):
        return load_policy(path.parent / named)
    return policy_in(path, document, named, base)


def read_document(path: Path, kind: str) -> tuple[Document, Any]:
    """Return the only document of a file and its data; raise ConfigError where there is none to read, or several."""
    try:
        documents = compose(read_text(path, MAX_SIZE))
        data = [to_data(document) for document in documents]
    except Unreadable as error:
        raise ConfigError(f"{path}: {error.message}") from error
    except YamlSyntaxError as error:
        raise ConfigError(f"{path}:{error.line}:{error.column}: {error.problem}") from error
    filled = [index for index, document in enumerate(documents) if document.root is not None]
    if not filled:
        raise ConfigError(f"{path}:1:1: the file is empty; it begins with apiVersion: {API_VERSION}, kind: {kind}")
    if len(filled) > 1:
        line, column = locate(documents[filled[1]], "")
        raise ConfigError(f"{path}:{line}:{column}: the file holds {len(filled)} documents; write one, of kind {kind}")
    document = documents[filled[0]]
    for name, key in repeated_keys(document):
        raise ConfigError(f"{path}:{key.line + 1}:{key.column + 1}: /{name}: stands twice; remove one")
    return document, data[filled[0]]


def misplaced(path: Path, document: Document, pointer: str, message: str) -> ConfigError:
    """Return the error about what stands at `pointer` of a document, with its line and column."""
    line, column = locate(document, pointer)
    return ConfigError(f"{path}:{line}:{column}: {pointer or '/'}: {message}")


def _pointer(path: str) -> str:
    """Turn msgspec's `.include[0]` into the JSON Pointer `/include/0`."""
    return re.sub(r"\[(\d+|\.\.\.)\]", r"/\1", path).replace(".", "/").rstrip("/").replace("//", "/")
