"""The objects in what Helm reads or renders, from texts that never have to be edited."""

from __future__ import annotations

from typing import Any

import yaml12

from gpu2dra_migrate.manifest import objects

_BOM = "\ufeff"


def objects_in(text: str) -> list[Any]:
    """Return the documents of `text` as plain data; none when no parser reads it.

    They are read as kubectl does. Flow sequences such as `[http://host:80]`, which libyaml refuses and Helm takes, are
    left to a parser of YAML 1.2.
    """
    if found := objects(text):
        return found
    try:
        read: list[Any] = yaml12.parse_yaml(text.removeprefix(_BOM), multi=True)
    except ValueError:
        return []
    return [item for item in read if item is not None]


def first_mapping(text: str) -> dict[str, Any]:
    """Return the first document of `text`; an empty mapping when it is none."""
    found = objects_in(text)
    return found[0] if found and isinstance(found[0], dict) else {}
