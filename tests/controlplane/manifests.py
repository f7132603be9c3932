"""Manifests from files, made fit for a server: placeholders filled in, everything in one namespace."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import yaml

from controlplane.client import Client, Object

_PLACEHOLDER = re.compile(r"\$\{(?P<braced>[A-Za-z_]\w*)(?::?[=-](?P<default>[^}]*))?\}|\$(?P<bare>[A-Za-z_]\w*)")
_NUMBERS = frozenset(
    {
        "backoffLimit", "completions", "containerPort", "count", "maxReplicas", "minReplicas", "num-gpus", "numHosts",
        "parallelism", "port", "replicas", "size", "targetPort",
    }
)  # fmt: skip
"""Fields whose placeholder stands for a number; so does every key of a resource list."""
_RESOURCE_LISTS = frozenset({"limits", "requests", "capacity"})


def load(text: str) -> list[Object]:
    """Return the objects of a text with placeholders filled in; those of a List one by one."""
    return [obj for document in yaml.load_all(text, Loader=yaml.CSafeLoader) for obj in _objects(document)]


def _objects(document: Any) -> Iterator[Object]:
    if isinstance(document, dict) and document.get("kind") == "List":
        for item in document.get("items") or []:
            yield from _objects(item)
    elif isinstance(document, dict) and "kind" in document:
        yield fill(document)


def fill(value: Any, key: str = "", within: str = "") -> Any:
    """Return a value with its placeholders filled in: by their own default, else 1 for a number, else `name`."""
    if isinstance(value, dict):
        return {fill(name): fill(item, str(name), key) for name, item in value.items()}
    if isinstance(value, list):
        return [fill(item, key, within) for item in value]
    if not isinstance(value, str) or "$" not in value:
        return value
    number = key in _NUMBERS or within in _RESOURCE_LISTS
    whole = _PLACEHOLDER.fullmatch(value)
    if whole and (number or whole["default"]):
        return yaml.safe_load(whole["default"] or "1")
    return _PLACEHOLDER.sub(lambda found: found["default"] or "name", value)


def placed(client: Client, obj: Object, namespace: str) -> Object:
    """Return a copy of an object with a name, and in a namespace where its kind has one."""
    metadata = dict(obj.get("metadata") or {})
    if "name" not in metadata:
        metadata["name"] = f"{metadata.pop('generateName', 'unnamed-')}1"
    metadata.pop("namespace", None)
    if client.namespaced(obj["apiVersion"], obj["kind"]):
        metadata["namespace"] = namespace
    return {**copy.deepcopy(obj), "metadata": metadata}


def at(value: Any, pointer: str) -> Any:
    """Return what a JSON Pointer without escapes leads to."""
    for step in pointer.split("/")[1:]:
        value = value[int(step) if isinstance(value, list) else step]
    return value
