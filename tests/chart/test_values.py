"""values.schema.json: what it refuses and how it says so; and the texts and tables that follow from values.yaml."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from chart import generate
from controlplane.client import Object
from controlplane.helm import Helm
from gpu2dra.policy.schema import policy_schema

POLICY = {"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy"}
Fails = Callable[[Callable[[], object]], str]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"replica": 3}, "additional properties 'replica' not allowed"),
        ({"webhook": {"failPolicy": "Ignore"}}, "additional properties 'failPolicy' not allowed"),
        ({"webhook": {"reinvocationPolicy": "Never"}}, "additional properties 'reinvocationPolicy' not allowed"),
        ({"replicas": 0}, "/replicas': minimum: got 0, want 1"),
        ({"replicas": "2"}, "/replicas': got string, want integer"),
        ({"webhook": {"failurePolicy": "fail"}}, "/webhook/failurePolicy': value must be one of 'Fail', 'Ignore'"),
        ({"webhook": {"timeoutSeconds": 31}}, "/webhook/timeoutSeconds': maximum: got 31, want 30"),
        ({"webhook": {"annotations": {"a": True}}}, "/webhook/annotations/a': got boolean, want string"),
        ({"webhook": {"matchConditions": [{"expression": "true"}]}}, "missing property 'name'"),
        ({"namespaces": {"mode": "all"}}, "/namespaces/mode': value must be one of 'opt-in', 'opt-out'"),
        ({"namespaces": {"excluded": ["a.b"]}}, "/namespaces/excluded/0': 'a.b' does not match pattern"),
        ({"conversion": {"onApiFailure": "ignore"}}, "/conversion/onApiFailure': value must be one of"),
        ({"conversion": {"drivers": []}}, "/conversion/drivers': minItems: got 0, want 1"),
        ({"image": {"digest": "0123"}}, "/image/digest': '0123' does not match pattern"),
        ({"image": {"repository": ""}}, "/image/repository': minLength: got 0, want 1"),
        ({"certificates": {"mode": "own"}}, "/certificates/mode': value must be one of"),
        ({"certificates": {"mode": "provided"}}, "/certificates/provided/secretName': minLength"),
        (
            {"certificates": {"provided": {"caBundle": "LS0t"}}},
            "/certificates/provided/caBundle': 'LS0t' does not match",
        ),
        ({"certificates": {"certManager": {"issuerRef": {"kind": "Issuer"}}}}, "missing property 'name'"),
        ({"certificates": {"certManager": {"duration": "90d"}}}, "/certificates/certManager/duration': '90d' does not"),
        ({"server": {"port": 0}}, "/server/port': minimum: got 0, want 1"),
        ({"server": {"preStopSeconds": 0}}, "/server/preStopSeconds': minimum: got 0, want 1"),
        ({"logs": {"level": "trace"}}, "/logs/level': value must be one of"),
        (
            {"podDisruptionBudget": {"maxUnavailable": "one"}},
            "/podDisruptionBudget/maxUnavailable': 'one' does not match",
        ),
        (
            {"podDisruptionBudget": {"maxUnavailable": -1}},
            "/podDisruptionBudget/maxUnavailable': minimum: got -1, want 0",
        ),
        ({"podDisruptionBudget": {"maxUnavailable": "101%"}}, "/podDisruptionBudget/maxUnavailable': '101%' does not"),
        ({"spread": [{"maxSkew": 1}]}, "/spread/0': missing property 'topologyKey'"),
        # Null takes a value away, and with it what the templates decide by.
        ({"namespaces": {"mode": None}}, "/namespaces': missing property 'mode'"),
        ({"namespaces": {"excluded": None}}, "/namespaces': missing property 'excluded'"),
        ({"namespaces": None}, "missing property 'namespaces'"),
        ({"certificates": {"mode": None}}, "/certificates': missing property 'mode'"),
        ({"certificates": {"self": {"leafLifetimeSeconds": None}}}, "missing property 'leafLifetimeSeconds'"),
        ({"policy": None}, "missing property 'policy'"),
        ({"webhook": {"annotations": None}}, "/webhook': missing property 'annotations'"),
        ({"priorityClassName": None}, "missing property 'priorityClassName'"),
        (
            {"namespaces": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            "/namespaces/matchExpressions/0': missing property 'values'",
        ),
        (
            {
                "webhook": {
                    "objectSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
                }
            },
            "/webhook/objectSelector/matchExpressions/0/values': maxItems: got 1, want 0",
        ),
        ({"podLabels": {"a": "b c"}}, "/podLabels/a': 'b c' does not match pattern"),
        ({"server": {"bindAddress": "localhost"}}, "/server/bindAddress': 'localhost' does not match pattern"),
        ({"fullnameOverride": "a" * 56}, "/fullnameOverride': maxLength: got 56, want 55"),
        ({"fullnameOverride": "1a"}, "/fullnameOverride': '1a' does not match pattern"),
        ({"image": {"tag": "v1@sha256:0"}}, "/image/tag': 'v1@sha256:0' does not match pattern"),
        ({"imagePullSecrets": [{}]}, "/imagePullSecrets/0': missing property 'name'"),
        ({"conversion": {"drivers": ["a..b"]}}, "/conversion/drivers/0': 'a..b' does not match pattern"),
        ({"webhook": {"name": "a..b"}}, "/webhook/name': 'a..b' does not match pattern"),
        ({"webhook": {"name": "a.-b"}}, "/webhook/name': 'a.-b' does not match pattern"),
        ({"certificates": {"provided": {"secretName": "a..b"}}}, "/certificates/provided/secretName': 'a..b' does not"),
        ({"certificates": {"client": {"key": "../../x"}}}, "/certificates/client/key': '../../x' does not match"),
        ({"certificates": {"client": {"key": "..x"}}}, "/certificates/client/key': '..x' does not match"),
        ({"webhook": {"matchConditions": [{"name": "a b", "expression": "true"}]}}, "'a b' does not match pattern"),
        ({"policy": {"rules": []}}, "missing properties 'apiVersion', 'kind'"),
        ({"policy": POLICY | {"rule": []}}, "additional properties 'rule' not allowed"),
        ({"policy": POLICY | {"kind": "Policy"}}, "/policy/kind': value must be 'ConversionPolicy'"),
        ({"policy": POLICY | {"rules": [{"match": {}, "skip": "no"}]}}, "/policy/rules/0/match': minProperties"),
        (
            {"policy": POLICY | {"rules": [{"match": {"resources": ["a"]}}]}},
            "/policy/rules/0': missing property 'device'",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(helm: Helm, fails: Fails, values: Object, said: str) -> None:
    assert said in fails(lambda: helm.template(values))


@pytest.mark.parametrize(
    "values",
    [
        {"global": {"imageRegistry": "x"}, "enabled": True},  # what a parent chart hands on
        {"podDisruptionBudget": {"maxUnavailable": "50%"}},
        {"certificates": {"certManager": {"issuerRef": {}}}},
        {"podDisruptionBudget": {"maxUnavailable": 0}},
        {
            "namespaces": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            "spread": [],
            "podLabels": {"a": ""},
        },
        {"webhook": {"name": "zz.gpu2dra.example.com"}, "priorityClassName": "", "resources": {}},
        {"podSecurityContext": {"runAsUser": None}, "nodeSelector": {"kubernetes.io/os": None}},
        {"policy": POLICY},
        {"policy": POLICY | {"rules": [{"match": {"resources": ["nvidia.com/*"]}, "skip": "not yet"}]}},
    ],
)
def test_a_right_value_is_taken(helm: Helm, values: Object) -> None:
    assert helm.render(values)


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads(generate.SCHEMA.read_text("utf-8"))

    def properties(part: Object, prefix: str) -> set[str]:
        inner = part.get("properties", {})
        found = {f"{prefix}{name}" for name in inner}
        return found.union(*(properties(value, f"{prefix}{name}.") for name, value in inner.items()))

    def keys(values: Any, prefix: str) -> set[str]:
        inner = values.items() if isinstance(values, dict) else ()
        return {f"{prefix}{name}" for name, _ in inner}.union(
            *(keys(value, f"{prefix}{name}.") for name, value in inner)
        )

    known = properties(schema, "")
    there = keys(yaml.safe_load(generate.VALUES.read_text("utf-8")), "")
    free = ("resources.", "nodeSelector.", "podSecurityContext.", "securityContext.", "metrics.dashboard.labels.")
    assert {path for path in there if not path.startswith(free)} <= known
    optional = ("webhook.objectSelector.", "certificates.certManager.issuerRef.")
    assert {path for path in known - there if not path.startswith(optional)} == generate.NOT_CHOSEN


def test_every_object_of_the_schema_is_closed() -> None:
    schema = json.loads(generate.SCHEMA.read_text("utf-8"))
    open_ones: list[str] = []

    def look(part: Any, path: str) -> None:
        if isinstance(part, dict):
            conditional = "/if" in path or "/else" in path or "/then" in path.removesuffix("/policy/then")
            if "properties" in part and part.get("additionalProperties") is not False and not conditional:
                open_ones.append(path)
            for key, value in part.items():
                look(value, f"{path}/{key}")
        elif isinstance(part, list):
            for index, value in enumerate(part):
                look(value, f"{path}/{index}")

    look(schema, "")
    assert open_ones == []


def test_the_policy_of_the_schema_is_the_published_one() -> None:
    schema = json.loads(generate.SCHEMA.read_text("utf-8"))
    published = policy_schema()
    del published["$schema"]
    assert schema["properties"]["policy"]["then"] == published


def test_every_value_has_its_comment() -> None:
    texts = generate.comments()
    assert [path for path, _ in generate.leaves() if path not in texts] == []


def test_the_texts_of_the_schema_are_the_comments_of_the_values() -> None:
    assert generate.SCHEMA.read_text("utf-8") == generate.schema(), "make chart writes it again"


def test_the_table_in_the_readme_is_that_of_the_values() -> None:
    assert generate.README.read_text("utf-8") == generate.readme(), "make chart writes it again"
