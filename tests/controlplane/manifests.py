"""Manifests from files, made fit for a server: placeholders filled in, everything in one namespace."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import yaml

from controlplane.client import Client, Object

_PLACEHOLDER = re.compile(
    r"\$\{[A-Za-z_]\w*(?::?[=-](?P<default>[^}]*))?\}|\$[A-Za-z_]\w*"  # envsubst, Flux
    r"|\bV_[A-Z][A-Z0-9_]*\b|<[A-Z][A-Z0-9_]*>"  # what READMEs tell people to replace with sed, or by hand
)
_KEY = re.compile(r"""([\w./-]+)["']?\s*:\s*["']?$""")
"""The key of a value that begins where the text ends."""
_GPUS = re.compile(r"nvidia\.com/(?:gpu|mig-[\w.]+)")
_NUMBERS = frozenset(
    {
        "backoffLimit", "completions", "containerPort", "count", "cpu", "ephemeral-storage", "maxReplicas", "memory",
        "minReplicas", "num-gpus", "numHosts", "numProcPerNode", "parallelism", "port", "replicas", "size",
        "targetPort",
    }
)  # fmt: skip
"""Fields whose placeholder stands for a number; so do the amounts of GPUs."""


def load(text: str) -> list[Object]:
    """Return the objects of a text with placeholders filled in; those of a List one by one."""
    documents = yaml.load_all(fill(text), Loader=yaml.CSafeLoader)
    return [obj for document in documents for obj in _objects(document)]


def _objects(document: Any) -> Iterator[Object]:
    if isinstance(document, dict) and document.get("kind") == "List":
        for item in document.get("items") or []:
            yield from _objects(item)
    elif isinstance(document, dict) and "kind" in document:
        yield document


def fill(text: str) -> str:
    """Return a text with its placeholders filled in: by their own default, else 1 for a number, else `name`."""
    return _PLACEHOLDER.sub(lambda found: found["default"] or _value(text, found.start()), text)


def _value(text: str, position: int) -> str:
    found = _KEY.search(text[text.rfind("\n", 0, position) + 1 : position])
    return "1" if found and (found[1] in _NUMBERS or _GPUS.fullmatch(found[1])) else "name"


def placed(client: Client, obj: Object, namespace: str) -> Object:
    """Return a copy of an object with a name, and in a namespace where its kind has one."""
    metadata = dict(obj.get("metadata") or {})
    if "name" not in metadata:
        metadata["name"] = f"{metadata.pop('generateName', 'unnamed-')}1"
    metadata.pop("namespace", None)
    if "/namespaces/" in client.path(obj["apiVersion"], obj["kind"], namespace):
        metadata["namespace"] = namespace
    return {**copy.deepcopy(obj), "metadata": metadata}


def at(value: Any, pointer: str) -> Any:
    """Return what a JSON Pointer without escapes leads to."""
    for step in pointer.split("/")[1:]:
        value = value[int(step) if isinstance(value, list) else step]
    return value
