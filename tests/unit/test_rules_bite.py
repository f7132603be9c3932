"""Each rule R1 to R15 switched off in a copy of the core: the test that is named for it must fail then."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """`text` of `module` becomes `replacement`, which switches (a part of) `rule` off; `test` of test_plan.py fails."""

    rule: int
    module: str
    text: str
    replacement: str
    test: str


ROWS = (
    # amounts that are no whole number, that differ, that stand in requests alone
    Row(1, "quantity", "    if thousandths % 1000:", "    if False:", "r01_what_the_server_refuses_is_left_as_it_is"),
    Row(1, "quantity", "    if quantity < 0:", "    if False:", "r01_what_the_server_refuses_is_left_as_it_is"),
    Row(1, "demand", "not _equal(limits[key], requests[key])", "False", "r01_what_the_server_refuses_is_left_as_it_is"),
    # zero is a request like any other
    Row(2, "demand", "        if amount == 0:", "        if False:", "r02_zero_stays_and_makes_no_claim"),
    # requests keep the key, maps stay empty
    Row(
        3,
        "podspec",
        'for section in ("limits", "requests"):',
        'for section in ("limits",):',
        "r03_keys_and_empty_maps_go",
    ),
    Row(3, "podspec", "if present and len(present) == len(values):", "if False:", "r03_keys_and_empty_maps_go"),
    # each container reaches the whole claim
    Row(
        4,
        "podspec",
        '{"name": entry, "request": request} if request',
        '{"name": entry} if request',
        "r04_each_container_gets_its_own_request_and_nobody_elses",
    ),
    # what runs already is borrowed, nothing is borrowed, it goes on when its need is covered
    Row(5, "allocation", "islice(owned, started, None)", "owned", "r05_init_containers_borrow_what_starts_later"),
    Row(
        5,
        "allocation",
        "        borrowed.append(request)",
        "        continue",
        "r05_init_containers_borrow_what_starts_later",
    ),
    Row(
        5,
        "allocation",
        "max(missing.values())",
        "sum(missing.values())",
        "r05_init_containers_borrow_what_starts_later",
    ),
    # one claim for all, so that an init container reaches what runs already
    Row(
        5,
        "allocation",
        "whole = all(len(used) in (0, 1, len(requests)) for used in uses.values())",
        "whole = True",
        "r05_a_container_that_needs_some_requests_names_a_claim_for_each",
    ),
    # no limit, no split, names that are taken
    Row(6, "allocation", "CLAIM_LIMIT = 32", "CLAIM_LIMIT = 64", "r06_a_claim_holds_32_requests_and_32_devices"),
    Row(6, "allocation", "devices <= room[index] and ", "", "r06_a_claim_holds_32_requests_and_32_devices"),
    Row(6, "allocation", "count > CLAIM_LIMIT", "False", "r06_one_container_above_32_is_refused"),
    Row(6, "allocation", "namer(taken)", "namer(())", "r06_existing_claims_stay_and_taken_names_are_avoided"),
    Row(
        6,
        "podspec",
        "elif same := classes & wanted:",
        "elif same := set():",
        "r06_a_container_with_somebody_elses_claim",
    ),
    # no toleration, one beside an equal or wider one, one from the webhook
    Row(
        7,
        "podspec",
        "if options.tolerations and options.style is Style.FILE",
        "if False",
        "r07_one_for_each_name_that_goes",
    ),
    Row(7, "podspec", "if not any(_tolerates(", "if not all(_tolerates(", "r07_an_equal_or_wider_toleration_is_enough"),
    Row(
        7,
        "podspec",
        "options.tolerations and options.style is Style.FILE",
        "options.tolerations",
        "r07_it_is_switchable_and_the_webhook_adds_none",
    ),
    # no digest, the kind not in it, defaults not filled in, hooks of one weight, nothing kept, labels for the webhook
    Row(8, "names", "[:DIGEST_LENGTH]", "[:0]", "r08_another_count_another_name_another_kind_another_object"),
    Row(8, "templates", '"kind": kind, "spec"', '"spec"', "r08_another_count_another_name_another_kind_another_object"),
    Row(
        8,
        "templates",
        '{"allocationMode": "ExactCount", **request}',
        '{"allocationMode": "", **request}',
        "r08_a_field_at_its_default_is_the_same_as_none",
    ),
    Row(8, "templates", "int(str(order)) - 1", "int(str(order))", "r08_hooks_and_waves_come_one_lower"),
    Row(8, "templates", 'metadata["labels"] = dict(labels)', "pass", "r08_the_template_is_where_its_user_is"),
    Row(8, "templates", 'metadata["namespace"] = workload.namespace', "pass", "r08_the_template_is_where_its_user_is"),
    Row(8, "templates", "for keep in options.keep if", "for keep in () if", "r08_tools_that_prune_are_told_to_keep_it"),
    Row(
        8,
        "templates",
        "{expected}{name[found.end(1) :]}",
        "{name[found.start(1) :]}",
        "r08_an_edited_template_is_renamed",
    ),
    Row(8, "workload", "    if not context.renames:", "    if True:", "r08_references_follow_a_rename"),
    # one shape for all versions
    Row(9, "templates", "    if version is not ApiVersion.V1BETA1:", "    if True:", "r09_each_version_has_its_shape"),
    # no reason is one
    Row(10, "podspec", "    if reason := skip_reason(pod):", "    if reason := None:", "r10_each_reason_has_its_code"),
    Row(
        10,
        "devices",
        "return Device(GPU_CLASS) if resource.meaning is Meaning.GPU else None",
        "return Device(GPU_CLASS)",
        "r10_each_reason_has_its_code",
    ),
    Row(
        10,
        "notes",
        "    if field := preempting(pod):",
        "    if field := None:",
        "r10_a_positive_priority_is_converted_with_a_warning",
    ),
    Row(
        10,
        "skips",
        "pod.policy.preemption is Preemption.SKIP and",
        "False and",
        "r10_a_positive_priority_is_left_alone_where_the_policy_says_so",
    ),
    # a PodSpec where the table does not say, silence about unknown kinds, operators left alone
    Row(
        11,
        "kinds",
        '("/spec/jobTemplate/spec/template",)',
        "_TEMPLATE",
        "r11_a_kind_of_the_table_is_converted_where_it_keeps_its_pods",
    ),
    Row(11, "workload", "elsewhere(obj, seen.__contains__)", "()", "r11_an_unknown_kind_is_reported_and_never_edited"),
    Row(
        11,
        "workload",
        "operator_edits(kind, obj, access)",
        "((), ())",
        "r11_what_the_operator_reads_from_the_limit_changes_with_it",
    ),
    # neighbours go unseen
    Row(12, "places/table", '"DRA405"', '""', "r12_a_limit_range_on_the_resource_is_an_error"),
    Row(
        12,
        "places/table",
        '"v1", "ResourceQuota", "/spec/hard/*", "DRA404"',
        '"v1", "ResourceQuota", "/spec/hard/*", ""',
        "r12_a_resource_quota_on_the_resource_is_told",
    ),
    # a limit that comes back is converted again, or taken off whatever its amount, or by a record of another pod
    Row(13, "podspec", " and not _is_served(demand, record)]", "]", "r13_a_limit_that_comes_back_is_stripped_only"),
    Row(
        13, "podspec", "== legacy.amount for", "is not None for", "r13_another_amount_is_left_for_the_server_to_refuse"
    ),
    Row(13, "converted", " and name in users", "", "r13_a_copied_annotation_does_not_take_a_gpu_away"),
    Row(
        13,
        "podspec",
        "+= write_record(",
        "+= [] and write_record(",
        "r13_an_admitted_pod_carries_what_was_taken_off_it",
    ),
    # the order of a set
    Row(
        14,
        "allocation",
        "dict.fromkeys(device for consumer in consumers for device in consumer.wants)",
        "{device for consumer in consumers for device in consumer.wants}",
        "r14_same_input_same_bytes_in_every_process",
    ),
    # a container names one claim once for each of its requests
    Row(
        15,
        "allocation",
        '[(named[0][0], "")] if together else named',
        "named",
        "r15_no_two_entries_of_a_keyed_list_have_one_name",
    ),
)
TESTS = "tests/unit/test_plan.py"
pytestmark = pytest.mark.slow


def run(root: Path, core: Path, tests: list[str]) -> subprocess.CompletedProcess[str]:
    """Run `tests` of test_plan.py with the gpu2dra that stands in the folder `core`."""
    nodes = [f"{TESTS}::test_{test}" for test in tests]
    options = [
        "-q",
        "-x",
        "--tb=short",
        "--noconftest",
        "-p",
        "no:cacheprovider",
        "-o",
        f"pythonpath={quote(str(core))} {quote(str(root / 'tests'))}",
    ]
    env = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(core)}
    command = [sys.executable, "-m", "pytest", *options, *nodes]
    return subprocess.run(command, cwd=root, env=env, check=False, capture_output=True, text=True, timeout=120)


def copy(root: Path, folder: Path) -> Path:
    """Copy the core into `folder` and return the copy."""
    return Path(
        shutil.copytree(root / "gpu2dra", folder / "gpu2dra")
    )  # with what is compiled: a row takes half the time


def test_every_rule_can_be_switched_off() -> None:
    assert sorted({row.rule for row in ROWS}) == list(range(1, 16))
    assert all(row.test.startswith(f"r{row.rule:02}_") for row in ROWS)


def test_with_all_rules_the_named_tests_pass(root: Path, tmp_path: Path) -> None:
    copy(root, tmp_path)
    done = run(root, tmp_path, sorted({row.test for row in ROWS}))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"R{row.rule}-{row.module}-{row.text.strip()[:30]}")
def test_without_a_rule_its_test_fails(root: Path, tmp_path: Path, row: Row) -> None:
    module = copy(root, tmp_path) / f"{row.module}.py"
    source = module.read_text("utf-8")
    assert source.count(row.text) == 1
    module.write_text(source.replace(row.text, row.replacement), "utf-8")
    for compiled in (module.parent / "__pycache__").glob(f"{row.module}.*"):
        compiled.unlink()
    done = run(root, tmp_path, [row.test])
    assert done.returncode == 1, done.stdout + done.stderr
    assert re.search(r"^E +(?:AssertionError|assert )", done.stdout, re.MULTILINE), done.stdout
