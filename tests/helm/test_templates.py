"""What is told about templates without rendering them."""

from __future__ import annotations

import pytest

from gpu2dra_migrate.helm.templates import (
    defined,
    included,
    mentions_request,
    prints_values,
    stabilised,
    takes_resources,
)


@pytest.mark.parametrize(
    ("text", "stable"),
    [
        ("a: {{ randAlphaNum 8 }}", 'a: {{ printf "random%v" 8 }}'),
        ("a: {{ randAlphaNum 8 | b64enc | quote }}", 'a: {{ printf "random%v" 8 | b64enc | quote }}'),
        ("a: {{ 8 | randNumeric }}", 'a: {{ 8 | printf "1%v" }}'),
        ("a: {{ randInt 1 10 }}", "a: {{ max 1 10 }}"),
        ("a: {{uuidv4|upper}}", 'a: {{"00000000-0000-4000-8000-000000000000"|upper}}'),
        ('a: {{ now | date "2006" }}', 'a: {{ (toDate "2006-01-02" "2020-01-01") | date "2006" }}'),
        ('{{ $ca := genCA "x" 365 }}', '{{ $ca := dict "Cert" "certificate" "Key" "key" "x" 365 }}'),
        ('{{- $x := "randAlphaNum 8 }}" -}}', '{{- $x := "randAlphaNum 8 }}" -}}'),
        ("now: uuidv4 {{ .Values.now }} {{ $.uuidv4 }} {{ $now }} {{ nowhere }}", None),
        ("{{ `uuidv4` }} {{ 'n' }} {{ \"a\\\"now\" }}", None),
        ('a: {{ required "x" .Values.y }}{{ fail "z" }}', None),
    ],
)  # fmt: skip
def test_functions_that_vary_are_constants(text: str, stable: str | None) -> None:
    assert stabilised(text) == (text if stable is None else stable)
    assert stabilised(stabilised(text)) == stabilised(text)


def test_a_lenient_template_demands_nothing() -> None:
    text = '{{ required "a name" .Values.y | quote }}{{- fail (printf "%s" .x) }}'
    assert stabilised(text, lenient=True) == (
        '{{ default "a name" .Values.y | quote }}{{- printf "%.0s" (printf "%s" .x) }}'
    )


def test_definitions_and_includes() -> None:
    text = """{{- define "a" }}{{ include "x.y" . }}{{ end -}}
{{define `b`}}{{ template "z" }}{{ include (print .a "/b") . }}{{end}}{{ block "c" . }}{{ end }}
{{/* {{ define "no" }} */}}{{- /* include "no" */ -}} define "no"
"""
    assert defined(text) == ["a", "b", "c"]
    assert included(text) == {"x.y", "z", "c"}


WORKLOAD = "kind: Deployment\n"
Q = '{{ include "q" . }}'
R = '{{ define "r" }}nvidia.com/gpu: 1{{ end }}'


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        ({"t": WORKLOAD + "nvidia.com/gpu: 1"}, True),
        ({"t": '"kind": "Job"\nnvidia.com/gpu: 1'}, True),
        ({"t": "nvidia.com/gpu: 1"}, False),
        ({"t": "kind: ConfigMap\nnvidia.com/gpu: 1"}, False),
        ({"t": "mankind: Job\nnvidia.com/gpu: 1"}, False),
        ({"t": WORKLOAD}, False),
        ({"t": WORKLOAD + '{{ include "r" . }}', "h": '{{ define "r" }}nvidia.com/gpu: 1{{ end }}'}, True),
        ({"t": f"{WORKLOAD}{Q}", "h": '{{ define "q" }}{{ template "r" }}{{ end }}', "r": R}, True),
        ({"t": f"{WORKLOAD}{Q}", "h": '{{ define "q" }}{{ end }}' + R}, False),
        ({"t": WORKLOAD + '{{ include "q" . }}', "h": '{{ define "q" }}{{ include "q" . }}{{ end }}'}, False),
        ({"t": WORKLOAD, "u": "nvidia.com/gpu: 1"}, False),
    ],
)  # fmt: skip
def test_a_template_of_a_workload_that_names_a_resource(texts: dict[str, str], *, found: bool) -> None:
    assert mentions_request("t", texts) == found


DEFINED = '{{ define "r" }}resources: {{ .Values.server }}{{ end }}'
TAKES = "kind: Deployment\nresources: {{ toYaml .Values.server.resources }}\n"


@pytest.mark.parametrize(
    ("texts", "keys", "found"),
    [
        ({"t": TAKES}, [], True),
        ({"t": TAKES}, ["server"], True),
        ({"t": TAKES}, ["worker"], False),
        ({"t": TAKES}, ["serve"], False),
        ({"t": TAKES.replace("Deployment", "ConfigMap")}, ["server"], False),
        ({"t": TAKES.replace("resources", "limits")}, ["server"], False),
        ({"t": 'kind: Pod\n{{ include "r" . }}', "u": DEFINED}, ["server"], True),
        ({"t": "{{ tpl .Values.extra . }}"}, ["extra"], True),
        ({"t": "{{ tpl .Values.extra . }}"}, ["other"], False),
        ({"t": "{{ range .Values.extra }}{{ . }}{{ end }}"}, ["extra"], False),
    ],
)  # fmt: skip
def test_a_template_that_may_take_resources_from_values(texts: dict[str, str], keys: list[str], *, found: bool) -> None:
    assert takes_resources("t", texts, keys) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{{ toYaml .Values }}", True), ("{{ .Values | toJson }}", True), ("{{- range $k, $v := $.Values }}", True),
        ("{{ .Values.a }}", False), ('{{ index .Values "a-b" }}', False), ('{{ hasKey .Values "a" }}', False),
        ('{{ get .Values "a" }}', False), ("{{/* .Values */}} .Values", False), ("{{ .ValuesFrom }}", False),
    ],
)  # fmt: skip
def test_a_template_that_may_print_all_values(text: str, *, found: bool) -> None:
    assert prints_values(text) == found
