"""The policy file: read strictly at start, read again when its content changes, the last good policy kept."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

import pytest

from gpu2dra.devices import Device
from gpu2dra.policy import BUILT_IN, PolicyError
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.policyfile import PolicyFile, parse
from gpu2dra_webhook.settings import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
apiVersion: gpu2dra.dev/v1alpha1
kind: ConversionPolicy
devices: [{{name: d, deviceClassName: {name}.example.com}}]
rules: [{{match: {{namespaces: ["*"]}}, device: d}}]
"""
FIELDS = "apiVersion, kind, metadata, devices, rules, schedulers, preemption"
WRONG_KIND = '"Policy" cannot stand here; write ConversionPolicy.'
TAG = "tag:yaml.org,2002:python/name:os.system"


def write(path: Path, name: str) -> Path:
    path.write_text(GOOD.format(name=name), "utf-8")
    return path


def classes(file: PolicyFile) -> list[str]:
    return sorted(file.policy().device_classes)


def counted(metrics: Metrics) -> dict[str, float | None]:
    """Return how often the file was read, by how it ended."""
    value = metrics._registry.get_sample_value
    return {result: value("gpu2dra_policy_reloads_total", {"result": result}) for result in ("ok", "error")}


def test_without_a_file_the_built_in_policy_holds() -> None:
    file = PolicyFile(None, Metrics())
    file.start()
    file.stop()
    assert (file.policy(), file.problems()) == (BUILT_IN, ())


def test_the_policy_of_the_file_holds(tmp_path: Path) -> None:
    metrics = Metrics()
    file = PolicyFile(write(tmp_path / "policy.yaml", "a"), metrics)
    assert [rule.outcome for rule in file.policy().rules] == [Device("a.example.com")]
    assert 'gpu2dra_policy_loaded{digest="' in metrics.render().decode()


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (None, ["No such file or directory"]),
        ("[]", [f"/: An empty value cannot stand here; write a map of {FIELDS}."]),
        ("kind: [", ["/: line 1, column 8: expected the node content, but found '<stream end>'."]),
        ("kind: ConversionPolicy\nkind: x\n",
         ['/: line 2, column 1: found duplicate key "kind" with value "x" (original value: "ConversionPolicy").']),
        ("apiVersion: gpu2dra.dev/v1alpha1\nkind: Policy\nrule: 1\n",
         ["/rule: There is no such field; rules may be meant.", f"/kind: {WRONG_KIND}"]),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_ends_the_start_with_all_that_is_wrong(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: str | None, lines: list[str]
) -> None:
    path = tmp_path / "policy.yaml"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(SettingsError) as caught:
        PolicyFile(path, Metrics())
    assert str(caught.value).splitlines() == [f"{path}: {line}" for line in lines]
    (record,) = caplog.records
    assert record.message == (
        f"the policy cannot be used; none held before, so this replica cannot start: {' '.join(lines)}"
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\xff", "/: No YAML: unacceptable character #x00ff: invalid start byte."),
        (b"a: 1\n---\nb: 2\n", "/: line 2, column 1: but found another document."),
        (b"a: !x 1", "/: line 1, column 4: could not determine a constructor for the tag '!x'."),
        (b"? [a]\n: !!python/name:os.system x",
         f"/: line 2, column 3: could not determine a constructor for the tag '{TAG}'."),
        (b"[" * 500, "/: No YAML: maximum recursion depth exceeded"),
    ],
)  # fmt: skip
def test_what_is_no_document_of_yaml_is_a_policy_error(content: bytes, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(content)
    assert str(caught.value).startswith(message)


def test_json_is_yaml() -> None:
    assert parse(b'{"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy"}') == BUILT_IN


def test_new_content_is_taken_over_and_counted(tmp_path: Path) -> None:
    metrics = Metrics()
    path = write(tmp_path / "policy.yaml", "a")
    file = PolicyFile(path, metrics)
    file.look(path)
    write(path, "b")
    file.look(path)
    assert classes(file) == ["b.example.com"]
    assert counted(metrics) == {"ok": 2, "error": 0}


def test_the_last_good_policy_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    metrics = Metrics()
    path = write(tmp_path / "policy.yaml", "a")
    file = PolicyFile(path, metrics)
    path.write_text("kind: ConversionPolicy\n", "utf-8")
    for _ in range(3):
        file.look(path)
    assert classes(file) == ["a.example.com"]
    assert file.problems() == ("/apiVersion: This field is missing; write gpu2dra.dev/v1alpha1.",)
    path.unlink()
    for _ in range(3):
        file.look(path)
    assert (classes(file), file.problems()) == (["a.example.com"], ("No such file or directory",))
    assert counted(metrics) == {"ok": 1, "error": 2}
    told = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    goes_on = "the policy cannot be used; what held before goes on: "
    assert [text.startswith(goes_on) for text in told] == [True, True]
    write(path, "a")
    file.look(path)
    assert (classes(file), file.problems()) == (["a.example.com"], ())


def test_what_is_wrong_now_can_be_seen_in_the_metrics_as_long_as_it_is_wrong(tmp_path: Path) -> None:
    metrics = Metrics()
    path = write(tmp_path / "policy.yaml", "a")
    file = PolicyFile(path, metrics)
    found = []
    for content in (None, "rulez: []\n", GOOD.format(name="b"), "a: [", GOOD.format(name="b")):
        if content:
            path.write_text(content, "utf-8")
        file.look(path)
        found.append(metrics._registry.get_sample_value("gpu2dra_policy_problems"))
    assert found == [0, 3, 0, 1, 0]


def test_a_file_that_was_away_and_is_back_as_it_was_is_no_problem(tmp_path: Path) -> None:
    path = write(tmp_path / "policy.yaml", "a")
    file = PolicyFile(path, Metrics())
    path.unlink()
    file.look(path)
    assert file.problems() == ("No such file or directory",)
    write(path, "a")
    file.look(path)
    assert (classes(file), file.problems()) == (["a.example.com"], ())


def test_rules_that_are_never_reached_are_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(
        GOOD.format(name="a").replace("device: d}]", 'device: d}, {match: {namespaces: ["*"]}, device: d}]'), "utf-8"
    )
    PolicyFile(path, Metrics())
    (warning,) = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert warning.startswith("policy: /rules/1: This rule is never reached")


def test_the_file_is_watched_through_the_links_that_the_kubelet_exchanges(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "policy.yaml", name)
    (tmp_path / "..data").symlink_to("a")
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    taken = threading.Event()

    class Told(Metrics):
        """Metrics that say when the second policy is loaded."""

        loads = 0

        def policy_loaded(self, digest: str) -> None:
            """Count it."""
            super().policy_loaded(digest)
            self.loads += 1
            if self.loads > 1:
                taken.set()

    file = PolicyFile(tmp_path / "policy.yaml", Told(), interval=0.01)
    file.start()
    try:
        assert classes(file) == ["a.example.com"]
        (tmp_path / "..new").symlink_to("b")
        (tmp_path / "..new").rename(tmp_path / "..data")
        assert taken.wait(30)
        assert classes(file) == ["b.example.com"]
    finally:
        file.stop()
