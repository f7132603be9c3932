"""Dashboard and alerts of the chart: they load, and ask for metrics that the webhook has, by labels that these have."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from chart import generate
from controlplane.client import Object
from controlplane.helm import CHART, Helm, objects, one
from gpu2dra_webhook import metrics

if TYPE_CHECKING:
    from pathlib import Path

DASHBOARD = CHART / "files" / "dashboard.json"
RULES = generate.GOLDEN / "everything.yaml"
# Of the API server, and of every process that prometheus_client watches.
FOREIGN = {
    "apiserver_admission_webhook_admission_duration_seconds_bucket": {"le", "name"},
    "apiserver_admission_webhook_rejection_count": {"error_type", "name"},
    "process_resident_memory_bytes": {"instance"},
    "process_cpu_seconds_total": {"instance"},
}
_METRIC = re.compile(r"\b(?:gpu2dra|apiserver|process)_\w+")
_LABELS = re.compile(r"\b(?:by|on) \(([\w, ]+)\)|\{([^}]*)\}")


def panels() -> list[dict[str, Any]]:
    """Return the panels of the dashboard."""
    return list(json.loads(DASHBOARD.read_text("utf-8"))["panels"])


def alerts() -> list[Object]:
    """Return the alerts."""
    spec = one(objects(RULES.read_text("utf-8")), "PrometheusRule")["spec"]
    return [rule for group in spec["groups"] for rule in group["rules"]]


def expressions() -> list[tuple[str, str]]:
    """Return every PromQL expression with the title of what asks it."""
    asked = [(panel["title"], target["expr"]) for panel in panels() for target in panel["targets"]]
    return asked + [(alert["alert"], alert["expr"]) for alert in alerts()]


@pytest.fixture(scope="module")
def exposed() -> dict[str, set[str]]:
    """Return the names of the webhook's samples, with their labels."""
    samples: dict[str, set[str]] = {}
    for metric in metrics.Metrics()._registry.collect():
        names = getattr(metric, "samples", [])
        labels = set(names[0].labels) if names else set()
        endings = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}[metric.type]
        for ending in endings:
            samples[metric.name + ending] = labels | ({"le"} if ending == "_bucket" else set())
    return samples


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_an_expression_asks_for_metrics_that_are_there(
    exposed: dict[str, set[str]], title: str, expression: str
) -> None:
    named = set(_METRIC.findall(expression))
    assert named
    assert named <= {*exposed, *FOREIGN}, title
    assert expression.count("(") == expression.count(")")


@pytest.mark.parametrize(("title", "expression"), expressions())
def test_an_expression_uses_labels_that_its_metrics_have(title: str, expression: str) -> None:
    tables = {**metrics._COUNTERS, **metrics._GAUGES}
    known = {"instance", "le"}
    for name in _METRIC.findall(expression):
        bare = name.removeprefix("gpu2dra_").removesuffix("_total")
        known |= set(tables[bare][1]) if bare in tables else FOREIGN.get(name, set())
    used = {
        label.split("=")[0].rstrip("!").strip()
        for found in _LABELS.findall(expression)
        for label in "".join(found).split(",")
        if label.strip()
    }
    assert used <= known, title


def test_every_panel_has_something_to_show(promtool: Path, tmp_path: Path) -> None:
    """Gauges are 1 and all else rises, by the labels that they have: each expression has to make something of it."""
    evaluations = []
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"].replace("$__rate_interval", "5m").removesuffix(" or vector(0)")
            asked = {"expr": f"count({expression}) > bool 0", "eval_time": "30m"}
            answer = {"exp_samples": [{"labels": "{}", "value": 1}]}
            series = [{"series": name, "values": values} for name, values in samples(expression).items()]
            evaluations.append(
                {"name": panel["title"], "interval": "1m", "input_series": series, "promql_expr_test": [asked | answer]}
            )
    file = tmp_path / "test.yaml"
    file.write_text(json.dumps({"evaluation_interval": "1m", "tests": evaluations}), "utf-8")
    done = subprocess.run([promtool, "test", "rules", file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def samples(expression: str) -> dict[str, str]:
    """Return series of one replica for each metric in an expression, with their values in promtool's notation."""
    tables = {**metrics._COUNTERS, **metrics._GAUGES}
    values = {"name": "pods.create.gpu2dra.dev", "outcome": "denied"}
    found = {}
    for name in _METRIC.findall(expression):
        bare = name.removeprefix("gpu2dra_").removesuffix("_total")
        buckets = {"le"} if bare.endswith("_bucket") else set()
        labels = (set(tables[bare][1]) if bare in tables else FOREIGN.get(name, buckets)) - {"instance"}
        for le in ("0.1", "+Inf"):
            pairs = {label: le if label == "le" else values.get(label, "a") for label in ("instance", *sorted(labels))}
            inner = ",".join(f'{key}="{value}"' for key, value in pairs.items())
            found[f"{name}{{{inner}}}"] = "1x60" if bare in metrics._GAUGES else "1+1x60"
    return found


def test_an_expression_of_a_text_uses_labels_that_the_alert_keeps() -> None:
    for alert in alerts():
        texts = " ".join(alert["annotations"].values())
        kept = set(re.findall(r"by \(([\w, ]+)\)", alert["expr"])[0].split(", ") if "by (" in alert["expr"] else [])
        assert set(re.findall(r"\$labels\.(\w+)", texts)) <= kept, alert["alert"]


def test_panels_fill_the_grid_without_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in panels()}) == len(panels())


def test_the_dashboard_takes_any_prometheus() -> None:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    (variable,) = dashboard["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == ("datasource", "datasource", "prometheus")
    sources = [part["datasource"]["uid"] for panel in panels() for part in (panel, *panel["targets"])]
    assert set(sources) == {"${datasource}"}


def test_the_chart_ships_the_dashboard_as_it_is(helm: Helm) -> None:
    rendered = helm.render({"metrics": {"dashboard": {"enabled": True}}})
    shipped = one(rendered, "ConfigMap", "gpu2dra-dashboard")["data"]["gpu2dra.json"]
    assert json.loads(shipped) == json.loads(DASHBOARD.read_text("utf-8"))


def test_the_monitor_reads_the_port_that_serves_metrics(newest: Helm) -> None:
    rendered = newest.render({"metrics": {"serviceMonitor": {"enabled": True}}})
    (endpoint,) = one(rendered, "ServiceMonitor")["spec"]["endpoints"]
    services = [obj for obj in rendered if obj["kind"] == "Service"]
    ports = {port["name"]: service["metadata"]["name"] for service in services for port in service["spec"]["ports"]}
    assert ports[endpoint["port"]] == "gpu2dra-metrics"
