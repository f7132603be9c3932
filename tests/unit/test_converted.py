"""The record of its conversion that an admitted pod carries (R13)."""

from __future__ import annotations

import json
from typing import Any

import jsonpatch
import pytest

from gpu2dra.converted import ANNOTATION, LABEL, Record, read_record, write_record
from unit.build import GPU

SPEC: dict[str, Any] = {
    "resourceClaims": [
        {"name": "gpu", "resourceClaimTemplateName": "gpu-1"},
        {"name": "own", "resourceClaimTemplateName": "other"},
    ],
    "initContainers": [{"name": "init", "resources": {"claims": [{"name": "gpu", "request": "main"}]}}],
    "containers": [
        {"name": "main", "resources": {"claims": [{"name": "own"}, {"name": "gpu", "request": "main"}]}},
        {"name": "side", "resources": {"claims": [{"name": "own"}]}},
    ],
}
RECORD = Record({"main": {GPU: 2}, "init": {GPU: 1}}, {"gpu-1": {"spec": {}}})
TEXT = '{"containers":{"init":{"nvidia.com/gpu":1},"main":{"nvidia.com/gpu":2}},"templates":{"gpu-1":{"spec":{}}}}'


def read(text: object, spec: Any = None) -> Record:
    return read_record({"annotations": {ANNOTATION: text}}, SPEC if spec is None else spec)


@pytest.mark.parametrize(
    "metadata",
    [None, {}, {"annotations": None}, {"annotations": {}}, {"annotations": {"a": "b"}, "labels": {"c": "d"}}],
)
def test_what_is_written_is_read_again(metadata: Any) -> None:
    pod = {"metadata": metadata} if metadata is not None else {}
    written = jsonpatch.apply_patch(pod, write_record(metadata, "", RECORD.text))
    assert written["metadata"]["annotations"][ANNOTATION] == TEXT
    assert written["metadata"]["labels"][LABEL] == "true"
    for field in ("annotations", "labels"):
        assert ((metadata or {}).get(field) or {}).items() <= written["metadata"][field].items()
    assert read_record(written["metadata"], SPEC) == RECORD
    assert write_record(written["metadata"], "", RECORD.text) == []


def test_another_record_replaces_it() -> None:
    metadata = {"annotations": {ANNOTATION: "old"}, "labels": {LABEL: "true"}}
    assert write_record(metadata, "/spec/template", RECORD.text) == [
        {"op": "replace", "path": "/spec/template/metadata/annotations/gpu2dra.dev~1converted", "value": TEXT}
    ]


def test_what_it_serves() -> None:
    assert RECORD.serves("main", GPU) == 2
    assert RECORD.serves("main", "nvidia.com/mig-1g.5gb") is None
    assert RECORD.serves("other", GPU) is None


def test_a_container_without_a_claim_of_ours_is_not_served() -> None:
    text = json.dumps(
        {"containers": {"main": {GPU: 2}, "side": {GPU: 1}, "gone": {GPU: 1}}, "templates": {"gpu-1": {}}}
    )
    assert read(text).containers == {"main": {GPU: 2}}


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"containers": SPEC["containers"]},
        {"resourceClaims": SPEC["resourceClaims"]},
        {**SPEC, "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu-2"}]},
        {**SPEC, "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu-1"}]},
        {**SPEC, "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": ["gpu-1"]}]},
        {**SPEC, "resourceClaims": "gpu"},
        {"resourceClaims": SPEC["resourceClaims"], "containers": [None, {"name": "main", "resources": []}]},
        {
            "resourceClaims": SPEC["resourceClaims"],
            "containers": [{"name": "main", "resources": {"claims": {"name": "gpu"}}}],
        },
        {
            "resourceClaims": SPEC["resourceClaims"],
            "containers": [{"name": ["main"], "resources": {"claims": [{"name": "gpu"}]}}],
        },
    ],
)
def test_a_copied_annotation_serves_nobody(spec: Any) -> None:
    assert read(TEXT, spec) == Record({}, {"gpu-1": {"spec": {}}})


@pytest.mark.parametrize(
    "text",
    [
        None,
        1,
        [],
        "",
        "{",
        "[]",
        "1",
        "null",
        "[" * 100_000,
        '{"containers": 1, "templates": 1}',
        '{"containers": [], "templates": {}}',
        '{"containers": {}}',
        '{"containers": {"main": 1}, "templates": {"gpu-1": 1}}',
        "9" * 5000,
        "NaN",
        r'{"containers": {}, "templates": {"\ud800": {}}}',
        r'{"containers": {}, "templates": {"gpu-1": {"spec": "\ud800"}}}',
    ],
)
def test_a_spoilt_annotation_is_an_empty_record(text: object) -> None:
    assert read(text) == Record()


def test_an_amount_that_is_no_number_is_left_out() -> None:
    assert read(json.dumps({"containers": {"main": {GPU: "2", "x": 1}}, "templates": {"gpu-1": {}}})).containers == {
        "main": {"x": 1}
    }


@pytest.mark.parametrize("metadata", [{}, {"annotations": None}, {"annotations": []}, {"annotations": {"other": TEXT}}])
def test_no_annotation_is_an_empty_record(metadata: Any) -> None:
    assert read_record(metadata, SPEC) == Record()
