"""The policy of the converter: `--policy`, or `policy:` in `.gpu2dra.yaml`, told with line and column when wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner, Result

from gpu2dra_migrate.cli import cli
from unit.test_cli import CONFIG, POD

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "apiVersion: gpu2dra.dev/v1alpha1\nkind: ConversionPolicy\n"
POLICY = (
    HEAD
    + """\
devices:
- name: slice
  deviceClassName: slice.example.com
rules:
- match:
    resources: [nvidia.com/gpu]
  device: slice
"""
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    (tmp_path / "pod.yaml").write_text(POD, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*arguments: str) -> Result:
    return CliRunner().invoke(cli, list(arguments))


def classes(here: Path) -> list[str]:
    lines = (here / "pod.yaml").read_text("utf-8").splitlines()
    return [line.split()[-1] for line in lines if "deviceClassName" in line]


def test_the_policy_of_the_command_line(here: Path) -> None:
    (here / "policy.yaml").write_text(POLICY, "utf-8")
    assert call("convert", "pod.yaml", "--policy", "policy.yaml").exit_code == 1
    assert classes(here) == ["slice.example.com"]


@pytest.mark.parametrize("inline", [False, True])
def test_the_policy_of_the_configuration(here: Path, *, inline: bool) -> None:
    (here / "policies").mkdir()
    (here / "policies/own.yaml").write_text(POLICY, "utf-8")
    written = "policy:\n  " + POLICY.replace("\n", "\n  ").rstrip() if inline else "policy: policies/own.yaml"
    (here / ".gpu2dra.yaml").write_text(f"{CONFIG}{written}\n", "utf-8")
    assert call("convert", "pod.yaml").exit_code == 1
    assert classes(here) == ["slice.example.com"]


def test_the_command_line_comes_before_the_configuration(here: Path) -> None:
    (here / ".gpu2dra.yaml").write_text(f"{CONFIG}policy: own.yaml\n", "utf-8")
    (here / "own.yaml").write_text(POLICY, "utf-8")
    (here / "other.yaml").write_text(POLICY.replace("slice.example", "other.example"), "utf-8")
    assert call("convert", "pod.yaml", "--policy", "other.yaml").exit_code == 1
    assert classes(here) == ["other.example.com"]


def test_what_a_rule_skips_is_left_alone(here: Path) -> None:
    (here / "policy.yaml").write_text(POLICY.replace("device: slice\n", "skip: not yet\n"), "utf-8")
    done = call("convert", "pod.yaml", "--policy", "policy.yaml", "--verbose")
    assert (done.exit_code, classes(here)) == (0, [])
    assert "DRA208 Pod/one: Left alone: the policy skips nvidia.com/gpu: not yet" in done.stdout


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (None, ["policy.yaml: "]),
        ("", ["policy.yaml:1:1: the file is empty; it begins with apiVersion:"]),
        (HEAD + "---\n" + HEAD, ["policy.yaml:4:1: the file holds 2 documents; write one, of kind ConversionPolicy"]),
        (HEAD + "rules:\n- match: {}\n  device: x\npreemption: x\n",
         ['policy.yaml:6:1: /preemption: "x" cannot stand here; write warn or skip.',
          'policy.yaml:5:3: /rules/0/device: There is no device "x"; the devices are none yet.',
          "policy.yaml:4:3: /rules/0/match: This matches nothing in particular;"]),
    ],
)  # fmt: skip
def test_a_policy_that_cannot_be_used_is_told_by_line_before_anything_is_written(
    here: Path, text: str | None, lines: list[str]
) -> None:
    if text is not None:
        (here / "policy.yaml").write_text(text, "utf-8")
    done = call("convert", "pod.yaml", "--policy", "policy.yaml")
    assert done.exit_code == 2
    assert [line for line in lines if line not in done.stderr] == []
    assert (here / "pod.yaml").read_text("utf-8") == POD


def test_an_error_in_the_configuration_is_told_where_it_stands(here: Path) -> None:
    (here / ".gpu2dra.yaml").write_text(f"{CONFIG}policy:\n  kind: Policy\n", "utf-8")
    done = call("check")
    assert done.exit_code == 2
    assert '.gpu2dra.yaml:4:3: /policy/kind: "Policy" cannot stand here; write ConversionPolicy.' in done.stderr
    (here / ".gpu2dra.yaml").write_text(f"{CONFIG}policy: {{}}\n", "utf-8")
    assert "/policy/kind: This field is missing; write ConversionPolicy." in call("check").stderr


def test_a_rule_that_is_never_reached_is_a_warning(here: Path) -> None:
    again = "- match:\n    resources: [nvidia.com/gpu]\n  device: slice\n"
    (here / "policy.yaml").write_text(POLICY + again, "utf-8")
    done = call("convert", "pod.yaml", "--policy", "policy.yaml")
    assert done.exit_code == 1
    assert done.stderr.startswith("warning: policy.yaml:10:3: /rules/1: This rule is never reached")
