"""The metrics: each thing that happens moves one sample, and no label can take any value that a user chooses."""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pytest
from prometheus_client.parser import text_string_to_metric_families

from gpu2dra_migrate import __version__
from gpu2dra_webhook.cluster.template_api import Operation
from gpu2dra_webhook.connections import Cut, Phase
from gpu2dra_webhook.metrics import Metrics


def samples(metrics: Metrics) -> dict[str, float]:
    """Return what is rendered, `name{label=value}` to value; without when each counter began."""
    found = {}
    for family in text_string_to_metric_families(metrics.render().decode()):
        for sample in family.samples:
            if sample.name.startswith("gpu2dra_") and not sample.name.endswith("_created"):
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


@pytest.mark.parametrize(
    ("happens", "expected"),
    [
        (
            lambda metrics: metrics.reviewed("CREATE", "converted", "none", 0.003),
            {
                "gpu2dra_admission_requests_total{operation=CREATE,outcome=converted,reason=none}": 1,
                "gpu2dra_admission_duration_seconds_count": 1,
                "gpu2dra_admission_duration_seconds_sum": 0.003,
                **{
                    f"gpu2dra_admission_duration_seconds_bucket{{le={bound}}}": 1
                    for bound in (
                        "0.004",
                        "0.008",
                        "0.015",
                        "0.03",
                        "0.06",
                        "0.125",
                        "0.25",
                        "0.5",
                        "1.0",
                        "2.5",
                        "5.0",
                        "10.0",
                        "+Inf",
                    )
                },
            },
        ),
        (lambda metrics: metrics.failed("admission"), {"gpu2dra_errors_total{where=admission}": 1}),
        (
            lambda metrics: metrics.template_operation("create", "ok"),
            {"gpu2dra_template_operations_total{operation=create,result=ok}": 1},
        ),
        (lambda metrics: metrics.template_cache_hit(), {"gpu2dra_template_cache_hits_total": 1}),
        (lambda metrics: metrics.templates("unused", 3), {"gpu2dra_templates{state=unused}": 3}),
        (
            lambda metrics: metrics.informer_synced("nodes", synced=True),
            {"gpu2dra_informer_synced{cache=nodes}": 1},
        ),
        (lambda metrics: metrics.mixed_nodes(2), {"gpu2dra_mixed_nodes": 2}),
        (
            lambda metrics: metrics.device_class_missing("gpu.nvidia.com", missing=True),
            {"gpu2dra_device_class_missing{device_class=gpu.nvidia.com}": 1},
        ),
        (lambda metrics: metrics.api_up(up=True), {"gpu2dra_api_up": 1}),
        (lambda metrics: metrics.event_dropped(), {"gpu2dra_events_dropped_total": 1}),
        (lambda metrics: metrics.policy_problems(2), {"gpu2dra_policy_problems": 2}),
        (lambda metrics: metrics.policy_reloaded("error"), {"gpu2dra_policy_reloads_total{result=error}": 1}),
        (lambda metrics: metrics.policy_loaded("abc"), {"gpu2dra_policy_loaded{digest=abc}": 1}),
        (
            lambda metrics: metrics.certificate_expires(1.8e9),
            {"gpu2dra_certificate_expiry_timestamp_seconds": 1.8e9},
        ),
        (lambda metrics: metrics.certificate_reloaded("ok"), {"gpu2dra_certificate_reloads_total{result=ok}": 1}),
        (lambda metrics: metrics.ca_bundle_patched("ok"), {"gpu2dra_ca_bundle_patches_total{result=ok}": 1}),
        (lambda metrics: metrics.open_connections(7), {"gpu2dra_open_connections": 7}),
        (lambda metrics: metrics.deadline_hit("body"), {"gpu2dra_connection_deadlines_total{kind=body}": 1}),
        (lambda metrics: metrics.connection_closed("crowded"), {"gpu2dra_connections_closed_total{kind=crowded}": 1}),
        (lambda metrics: metrics.http_error(413), {"gpu2dra_http_errors_total{status=413}": 1}),
    ],
)
def test_what_happens_is_counted(happens: Callable[[Metrics], None], expected: dict[str, float]) -> None:
    metrics = Metrics()
    before = samples(metrics)
    happens(metrics)
    changed = {name: value for name, value in samples(metrics).items() if before.get(name, 0) != value}
    assert changed == pytest.approx(expected)


RESULTS = ["ok", "exists", "conflict", "not_found", "refused", "timeout", "unreachable", "overloaded"]


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("errors", [{"where": "admission"}]),
        ("policy_reloads", [{"result": "ok"}, {"result": "error"}]),
        ("certificate_reloads", [{"result": "ok"}, {"result": "error"}]),
        ("ca_bundle_patches", [{"result": "ok"}, {"result": "error"}]),
        ("connection_deadlines", [{"kind": str(phase)} for phase in Phase if phase is not Phase.ANSWER]),
        ("connections_closed", [{"kind": str(Cut.CROWDED)}, {"kind": str(Cut.MEMORY)}]),
        ("http_errors", [{"status": status} for status in ("400", "408", "413", "500", "503")]),
        (
            "template_operations",
            [{"operation": operation, "result": result} for operation in get_args(Operation) for result in RESULTS],
        ),
        ("events_dropped", [{}]),
    ],
)
def test_what_alerts_look_at_is_there_before_it_happens(name: str, labels: list[dict[str, str]]) -> None:
    """A series that begins at 1 has never risen, for Prometheus."""
    found = Metrics()._registry.get_sample_value
    assert [found(f"gpu2dra_{name}_total", each) for each in labels] == [0] * len(labels)


def test_the_errors_of_a_part_are_there_before_there_is_one() -> None:
    metrics = Metrics()
    metrics.may_fail("a-part")
    assert samples(metrics)["gpu2dra_errors_total{where=a-part}"] == 0
    metrics.failed("a-part")
    metrics.may_fail("a-part")
    assert samples(metrics)["gpu2dra_errors_total{where=a-part}"] == 1


def test_a_new_policy_takes_the_place_of_the_old_one() -> None:
    metrics = Metrics()
    metrics.policy_loaded("old")
    metrics.policy_loaded("new")
    assert [name for name in samples(metrics) if "policy_loaded" in name] == ["gpu2dra_policy_loaded{digest=new}"]


def test_reviews_are_in_flight_while_they_are_answered() -> None:
    metrics = Metrics()
    with metrics.in_flight():
        assert samples(metrics)["gpu2dra_admission_in_flight"] == 1
    with pytest.raises(ZeroDivisionError), metrics.in_flight():
        raise ZeroDivisionError
    assert samples(metrics)["gpu2dra_admission_in_flight"] == 0


def test_what_nobody_tells_is_asked_for_when_the_metrics_are_read() -> None:
    metrics = Metrics()
    nodes = iter([4, 5])
    metrics.before_render(lambda: metrics.mixed_nodes(next(nodes)))
    assert [samples(metrics)["gpu2dra_mixed_nodes"] for _ in range(2)] == [4, 5]


def test_each_process_has_metrics_of_its_own() -> None:
    one, other = Metrics(), Metrics()
    one.event_dropped()
    assert samples(other)["gpu2dra_events_dropped_total"] == 0


def test_it_is_told_what_runs() -> None:
    [build] = [name for name in samples(Metrics()) if name.startswith("gpu2dra_build_info")]
    assert f"version={__version__}" in build
