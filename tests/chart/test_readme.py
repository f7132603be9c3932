"""The runbook: names in it are those of the chart and of the webhook's messages, links and sections exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from chart import generate
from controlplane.client import Object
from controlplane.helm import CHART, NAMESPACE, RELEASE, Helm, objects, one
from gpu2dra.converted import ANNOTATION, LABEL
from gpu2dra.skips import CONVERT_ANNOTATION
from gpu2dra.templates import MANAGED_BY
from gpu2dra_webhook.mutate import NOT_CONVERTED_EVENT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def page() -> str:
    """Return the runbook."""
    return generate.README.read_text("utf-8")


@pytest.fixture(scope="module")
def rendered(newest: Helm) -> list[Object]:
    """Return what the default values render to."""
    return newest.render()


def anchor(heading: str) -> str:
    """Return how a link calls a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_every_link_leads_somewhere(page: str) -> None:
    anchors = {f"#{anchor(heading)}" for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", page):
        assert link in anchors or (CHART / link).exists(), link


def test_commands_name_the_objects_of_the_chart(page: str, rendered: list[Object]) -> None:
    configuration = one(rendered, "MutatingWebhookConfiguration")
    assert set(re.findall(r"kubectl delete mutatingwebhookconfiguration (\S+)", page)) == {
        configuration["metadata"]["name"]
    }
    assert set(re.findall(r"-n (gpu\S+)|--namespace (gpu\S+)", page)) == {(NAMESPACE, ""), ("", NAMESPACE)}
    assert set(re.findall(r"helm (?:install|upgrade|uninstall|test) (\S+)", page)) - {"`,", "…"} <= {RELEASE}
    (labels,) = re.findall(r"logs -l (\S+)=(\S+)", page)
    assert one(rendered, "Deployment")["spec"]["template"]["metadata"]["labels"][labels[0]] == labels[1]


def test_what_is_left_at_run_time_is_named_as_the_roles_name_it(page: str, rendered: list[Object]) -> None:
    names = {
        f"{rule['resources'][0].removesuffix('s')}/{name}"
        for rule in one(rendered, "Role")["rules"]
        for name in rule.get("resourceNames", [])
    }
    (removed,) = re.findall(rf"kubectl -n {NAMESPACE} delete (secret/\S+ lease/\S+)", page)
    assert set(removed.split()) == names


def test_what_cert_manager_leaves_is_named_as_its_objects_name_it(page: str) -> None:
    rendered = objects((generate.GOLDEN / "cert-manager.yaml").read_text("utf-8"))
    names = {obj["spec"]["secretName"] for obj in rendered if obj["kind"] == "Certificate"}
    (removed,) = re.findall(rf"`kubectl -n {NAMESPACE} delete secret (\S+ \S+)`", page)
    assert set(removed.split()) == names


def test_labels_and_annotations_are_those_of_the_core(page: str) -> None:
    for text in (
        f"{CONVERT_ANNOTATION}=true", f"{CONVERT_ANNOTATION}=false",
        f"{CONVERT_ANNOTATION}-", f'{CONVERT_ANNOTATION}: "false"', f"{LABEL}=true",
        f"annotation `{ANNOTATION}`", "app.kubernetes.io/managed-by=gpu2dra", NOT_CONVERTED_EVENT,
    ):  # fmt: skip
        assert text in page, text
    assert MANAGED_BY == {"app.kubernetes.io/managed-by": "gpu2dra"}


def test_the_alert_that_is_named_exists(page: str) -> None:
    kept = objects((generate.GOLDEN / "everything.yaml").read_text("utf-8"))
    names = {rule["alert"] for group in one(kept, "PrometheusRule")["spec"]["groups"] for rule in group["rules"]}
    named = set(re.findall(r"`(Gpu2dra\w+)`", page))
    assert named
    assert named <= names


def test_the_messages_that_are_quoted_are_those_of_the_webhook(page: str, root: Path) -> None:
    certificates = root / "webhook/gpu2dra_webhook/certificates"
    source = "".join(path.read_text("utf-8") for path in certificates.glob("*.py"))
    quoted = re.findall(r"the log says `([^`]+)`", page)
    assert quoted == ["is not gpu2dra's", "is broken"]
    for message in quoted:
        assert message in source


def test_every_value_that_the_text_names_exists(page: str) -> None:
    text = page[: page.index("## Values")]
    paths = {path for path, _ in generate.leaves()}
    sections = {path.rsplit(".", 1)[0] for path in paths if "." in path}
    named = set(
        re.findall(r"`((?:webhook|certificates|conversion|templates|metrics|networkPolicy)\.?[\w.]*)[:`]", text)
    )
    assert named >= {"webhook.failurePolicy", "conversion.onApiFailure", "metrics.dashboard.enabled"}
    assert named <= paths | sections
