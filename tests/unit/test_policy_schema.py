"""The published JSON Schema of policies, held to the types that read them; run as a script, this writes it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from gpu2dra.policy import PolicyError
from gpu2dra.policy.load import load
from gpu2dra.policy.schema import policy_schema

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "schemas" / "conversion-policy.schema.json"
POLICIES = sorted((ROOT / "examples" / "policies").glob("*.yaml"))


def text() -> str:
    return json.dumps(policy_schema(), indent=2) + "\n"


def test_the_published_schema_is_that_of_the_types() -> None:
    assert PUBLISHED.read_text("utf-8") == text(), "if the change is meant, run this file as a script"


def test_it_is_a_schema_without_references() -> None:
    jsonschema.Draft7Validator.check_schema(policy_schema())
    assert "$ref" not in text()


def test_every_field_is_described() -> None:
    def undescribed(node: Any, path: str) -> list[str]:
        fields = node.get("properties", {})
        here = [f"{path}/{name}" for name, field in fields.items() if not field.get("description")]
        inner = {f"{path}/{name}": field for name, field in fields.items()}
        inner |= {f"{path}[]": node["items"]} if "items" in node else {}
        return here + [found for where, field in inner.items() for found in undescribed(field, where)]

    assert undescribed(policy_schema(), "") == []


BASE: dict[str, Any] = {"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy"}
RULE = {"match": {"resources": ["nvidia.com/gpu"]}}


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "Config"},
        {"apiVersion": 1},
        {"unknown": 1},
        {"devices": [{"name": "a"}]},
        {"devices": [{"name": "A", "deviceClassName": "a"}]},
        {"devices": [{"name": "a", "deviceClassName": "a."}]},
        {"rules": [RULE]},
        {"rules": [RULE | {"device": "a", "skip": "b"}]},
        {"rules": [{"match": {}, "skip": "b"}]},
        {"rules": [{"match": {"resources": []}, "skip": "b"}]},
        {"rules": [{"match": {"resources": ["a b"]}, "skip": "b"}]},
        {"rules": [RULE | {"skip": ""}]},
        {"rules": [{"skip": "b"}]},
        {"schedulers": ["A"]},
        {"preemption": "no"},
        {"metadata": {"labels": {"a": 1}}},
    ],
)
def test_it_refuses_what_the_loader_refuses(fields: Any) -> None:
    document = BASE | fields
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, policy_schema())
    with pytest.raises(PolicyError):
        load(document)


@pytest.mark.parametrize("path", POLICIES, ids=lambda path: path.name)
def test_it_takes_the_policies_of_the_examples(path: Path) -> None:
    jsonschema.validate(yaml.safe_load(path.read_text("utf-8")), policy_schema())


def test_it_takes_the_shortest_policy() -> None:
    jsonschema.validate(BASE, policy_schema())


if __name__ == "__main__":
    PUBLISHED.write_text(text(), "utf-8")
