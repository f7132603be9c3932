"""The alerts of the chart, evaluated by Prometheus' own promtool: each fires when it has to, and stays quiet else."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from chart import generate
from controlplane.client import Object
from controlplane.helm import Helm, objects, one

if TYPE_CHECKING:
    from pathlib import Path

DAY = 24 * 60
ERRORS = 'gpu2dra_errors_total{where="mutate",instance="a"}'
DENIED = 'gpu2dra_admission_requests_total{operation="CREATE",outcome="denied",reason="full",instance="%s"}'
LEFT = 'gpu2dra_admission_requests_total{operation="CREATE",outcome="unconverted",reason="mixed-nodes",instance="a"}'
PROBLEMS = 'gpu2dra_policy_problems{instance="%s"}'
EXPIRY = 'gpu2dra_certificate_expiry_timestamp_seconds{instance="%s"}'
MISSING = 'gpu2dra_device_class_missing{device_class="%s"}'
BUCKET = 'gpu2dra_admission_duration_seconds_bucket{instance="a",le="%s"}'
RUNS = {'gpu2dra_build_info{instance="a"}': "1x4000"}


@dataclass(frozen=True, slots=True)
class Case:
    """What happens minute by minute, in promtool's notation (`_`: no sample), and when one alert fires over it."""

    what: str
    alert: str
    series: dict[str, str]
    firing: tuple[int, ...] = ()
    quiet: tuple[int, ...] = ()
    values: Object = field(default_factory=dict)


def renewed(every: int, lasts: int, count: int) -> str:
    """Return when the certificate ends that is served, where each lasts so many minutes and is exchanged in time."""
    return " ".join(f"{60 * (every * number + lasts)}x{every - 1}" for number in range(count))


CASES = [
    Case("no replica is there", "Gpu2draAbsent", {}, firing=(6,), quiet=(4,)),
    Case("the last replica goes", "Gpu2draAbsent", {next(iter(RUNS)): "1x10"}, firing=(25,), quiet=(8,)),
    Case("a replica is there", "Gpu2draAbsent", RUNS, quiet=(6, 60)),
    Case("the first error", "Gpu2draErrors", {ERRORS: "_x30 1x60"}, firing=(31, 38), quiet=(29, 45)),
    Case("an error after others", "Gpu2draErrors", {ERRORS: "3x30 4x60"}, firing=(33, 38), quiet=(29, 45)),
    Case("an error where none was", "Gpu2draErrors", {ERRORS: "0x30 1x60"}, firing=(33,), quiet=(1, 29, 45)),
    Case(
        "pods are refused again and again", "Gpu2draDeniesPods",
        {DENIED % "a": "_x30 1+1x30", DENIED % "b": "_x36 1+1x30"}, firing=(42, 55), quiet=(29, 38),
    ),
    Case("one pod was refused", "Gpu2draDeniesPods", {DENIED % "a": "_x30 1x60"}, quiet=(31, 39, 41, 50)),
    Case(
        "pods stay as they are, each of the first of its replica", "Gpu2draLeavesPodsUnconverted",
        {LEFT.replace('"a"', f'"{number}"'): f"_x{30 + 20 * number} 1x240" for number in range(8)},
        firing=(92, 160), quiet=(31, 85),
    ),
    Case("one pod stayed as it is", "Gpu2draLeavesPodsUnconverted", {LEFT: "_x30 1x240"}, quiet=(31, 89, 91, 150)),
    Case(
        "one in fifty takes two seconds", "Gpu2draSlow",
        {BUCKET % "0.001": "0+49x60", BUCKET % "1": "0+49x60", BUCKET % "2.5": "0+50x60", BUCKET % "+Inf": "0+50x60"},
        firing=(20, 50), quiet=(5,),
    ),
    Case(
        "all take a millisecond", "Gpu2draSlow",
        {BUCKET % "0.001": "0+50x60", BUCKET % "1": "0+50x60", BUCKET % "+Inf": "0+50x60"}, quiet=(20, 50),
    ),
    Case(
        "a day's certificate of one replica is not renewed", "Gpu2draCertificateExpiresSoon",
        {EXPIRY % "a": f"{60 * DAY}x{DAY}", EXPIRY % "b": renewed(960, DAY, 2)},
        firing=(DAY - 230,), quiet=(10, DAY - 245),
    ),
    Case(
        "the same, later", "Gpu2draCertificateExpires", {EXPIRY % "a": f"{60 * DAY}x{DAY}"},
        firing=(DAY - 50,), quiet=(10, DAY - 65),
    ),
    *(
        Case(
            "three hours' certificates that are renewed in time", alert, {EXPIRY % "a": renewed(120, 180, 5)},
            quiet=(6, 60, 119, 121, 239, 400),
            values={"certificates": {"self": {"leafLifetimeSeconds": 10_800}}},
        )
        for alert in ("Gpu2draCertificateExpiresSoon", "Gpu2draCertificateExpires")
    ),
    Case(
        "a certificate of cert-manager's that is renewed as late as was said", "Gpu2draCertificateExpiresSoon",
        {EXPIRY % "a": renewed(DAY - 90, DAY, 2)}, quiet=(10, DAY - 91, DAY, DAY + 200),
        values={"certificates": {"mode": "certManager", "certManager": {"duration": "24h", "renewBefore": "1h30m"}}},
    ),
    Case(
        "the same, not renewed", "Gpu2draCertificateExpiresSoon", {EXPIRY % "a": f"{60 * DAY}x{DAY}"},
        firing=(DAY - 39,), quiet=(DAY - 46,),
        values={"certificates": {"mode": "certManager", "certManager": {"duration": "24h", "renewBefore": "1h30m"}}},
    ),
    *(
        Case(
            "a certificate of the user's own ends in days", alert, {EXPIRY % "a": f"{60 * 9 * DAY}x{9 * DAY}"},
            firing=(9 * DAY - before + 6,), quiet=(9 * DAY - before - 1,),
            values={"certificates": {"mode": "provided", "provided": {"secretName": "s"}}},
        )
        for alert, before in (("Gpu2draCertificateExpiresSoon", 7 * DAY), ("Gpu2draCertificateExpires", 7 * DAY // 4))
    ),
    Case("a mixed node", "Gpu2draMixedNodes", {"gpu2dra_mixed_nodes": "0x10 1x60"}, firing=(27,), quiet=(9, 20)),
    Case("no mixed node", "Gpu2draMixedNodes", {"gpu2dra_mixed_nodes": "0x60"}, quiet=(30,)),
    Case(
        "a class is missing", "Gpu2draDeviceClassMissing",
        {MISSING % "a": "0x60", MISSING % "b": "1x60"}, firing=(16,), quiet=(10,),
    ),
    Case(
        "a changed policy is refused, then put right", "Gpu2draPolicyRefused",
        {PROBLEMS % "a": "0x30 2x60 0x30", PROBLEMS % "b": "0x120"}, firing=(31, 60, 89), quiet=(29, 95),
    ),
    Case(
        "a cache is stale", "Gpu2draCachesStale",
        {'gpu2dra_informer_synced{cache="pods",instance="a"}': "1x10 0x60"}, firing=(22,), quiet=(9, 15),
    ),
]  # fmt: skip


def rule(helm: Helm, values: Object) -> Object:
    """Return the spec of the PrometheusRule, which is a rule file of Prometheus."""
    rendered = helm.render(values | {"metrics": {"prometheusRule": {"enabled": True}}})
    spec: Object = one(rendered, "PrometheusRule")["spec"]
    return spec


def evaluation(case: Case) -> Object:
    """Return a case as promtool reads it: how many alerts of the name fire at each time."""
    firing = f'ALERTS{{alertname="{case.alert}",alertstate="firing"}}'
    looks = [(minute, 1) for minute in case.firing] + [(minute, 0) for minute in case.quiet]
    return {
        "name": case.what,
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in case.series.items()],
        "promql_expr_test": [
            {
                "expr": f"count({firing}) or vector(0)",
                "eval_time": f"{minute}m",
                "exp_samples": [{"labels": "{}", "value": count}],
            }
            for minute, count in looks
        ],
    }


def test_every_alert_fires_when_it_has_to_and_then_alone(newest: Helm, promtool: Path, tmp_path: Path) -> None:
    by_values: dict[str, list[Case]] = {}
    for case in CASES:
        by_values.setdefault(json.dumps(case.values), []).append(case)
    for number, (values, cases) in enumerate(by_values.items()):
        (tmp_path / f"rule-{number}.yaml").write_text(json.dumps(rule(newest, json.loads(values))), "utf-8")
        asked = {"rule_files": [f"rule-{number}.yaml"], "evaluation_interval": "1m", "tests": [*map(evaluation, cases)]}
        (tmp_path / f"test-{number}.yaml").write_text(json.dumps(asked), "utf-8")
    files = sorted(tmp_path.glob("test-*.yaml"))
    done = subprocess.run([promtool, "test", "rules", *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case_for_it_and_one_against_it() -> None:
    alerts = {alert["alert"] for group in _kept()["groups"] for alert in group["rules"]}
    assert {case.alert for case in CASES if case.firing} == alerts
    assert {case.alert for case in CASES if case.quiet} == alerts


@pytest.mark.parametrize("name", sorted(generate.value_sets()))
def test_prometheus_takes_the_rules_and_expands_their_texts(
    newest: Helm, promtool: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "rule.yaml"
    file.write_text(json.dumps(rule(newest, generate.value_sets()[name])), "utf-8")
    done = subprocess.run([promtool, "check", "rules", "--lint=all", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("values", "alert", "said", "unsaid"),
    [
        ({"webhook": {"name": "zz-ours"}}, "Gpu2draAbsent", "configuration zz-ours`", "zz-gpu2dra"),
        ({}, "Gpu2draAbsent", "are refused", "created unconverted"),
        ({"webhook": {"failurePolicy": "Ignore"}}, "Gpu2draAbsent", "created unconverted", "are refused"),
        ({}, "Gpu2draMixedNodes", "Nothing is converted", "all the same"),
        ({"conversion": {"allowMixedNodes": True}}, "Gpu2draMixedNodes", "all the same", "Nothing is converted"),
    ],
)
def test_a_text_is_right_for_the_values(newest: Helm, values: Object, alert: str, said: str, unsaid: str) -> None:
    (found,) = (each for group in rule(newest, values)["groups"] for each in group["rules"] if each["alert"] == alert)
    assert said in found["annotations"]["description"]
    assert unsaid not in found["annotations"]["description"]


def _kept() -> Object:
    rendered = objects((generate.GOLDEN / "everything.yaml").read_text("utf-8"))
    spec: Object = one(rendered, "PrometheusRule")["spec"]
    return spec
