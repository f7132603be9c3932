"""What the helper does with texts around the objects: all bytes that are not about a request stay as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.manifest import objects
from helm.bench import Bench, by_core

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  containers:
  - name: main
    resources:
      limits:
        nvidia.com/gpu: 1
"""
CONFIG = "apiVersion: v1\nkind: ConfigMap\n\nmetadata: {  name: a  } # spaces,  and a comment\ndata: {a: 'b'}   \n"


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "---\n", "---\n---\n", "# nvidia.com/gpu\n", "# nvidia.com/gpu: 1\n---\n# nothing\n", CONFIG,
        "\n\n" + CONFIG + "\n\n---\n\n" + CONFIG + "---", CONFIG.replace("\n", "\r\n") + "---\r\n# nvidia.com/gpu\r\n",
        CONFIG.replace("'b'", "nvidia.com/gpu"), "- nvidia.com/gpu: 1\n", "nvidia.com/gpu", "nvidia.com/gpu: [1\n",
        "kind: Pod\nspec: {nvidia.com/gpu: 1}\n", POD.replace("kind: Pod", "kind: Unknown"),
        POD.replace("apiVersion: v1", "apiVersion: v2"), POD.replace("gpu: 1", "gpu: 0"), POD.replace("v1", "[v1]"),
        "{{ nvidia.com/gpu }}\n", POD + "  bad: indent: here\n", "\t" + POD, POD.replace("nvidia.com/gpu: 1", "a: *x"),
        POD.replace("nvidia.com/gpu", "nvidia.com/rdma"), "metadata: 1\nkind: Pod\napiVersion: v1\n# nvidia.com/gpu\n",
    ],
)  # fmt: skip
def test_a_text_without_a_request_is_printed_byte_for_byte(workbench: Bench, text: str) -> None:
    assert workbench.convert([text]) == [text]


@pytest.mark.parametrize(
    "join",
    [
        lambda before, after: f"{before}---\n{POD}---\n{after}",
        lambda before, after: f"\n---\n# first\n{before}--- # second\n{POD}\n\n---   \n\n{after}",
        lambda before, after: f"---\n---\n{before}---\n{POD.rstrip()}\n---\n{after}",
        lambda before, after: f"{before}---{POD}---{after}",
        lambda before, after: f"{before}\r\n---\r\n{POD}\r\n---\r\n{after}",
    ],
)
def test_documents_beside_a_converted_one_keep_every_byte(workbench: Bench, join: Callable[[str, str], str]) -> None:
    text = join(CONFIG, CONFIG.replace("name: a", "name: z"))
    (result,) = workbench.convert([text])
    before, after = text.split(POD.rstrip())
    assert result.startswith(before[: before.rindex("---") + 3])
    assert result.endswith(after[after.index("---") :])
    found = objects(result.replace("---apiVersion", "---\napiVersion"))
    assert [obj["kind"] for obj in found if obj] == ["ConfigMap", "ResourceClaimTemplate", "Pod", "ConfigMap"]


def test_what_helm_blanks_after_rendering_is_blanked_before(workbench: Bench) -> None:
    text = POD + '  hostname: "<no value>"\n  subdomain: <no value>\n  priorityClassName: a<no value>b\n'
    (result,) = workbench.convert([text])
    template, pod = objects(result)
    assert template["kind"] == "ResourceClaimTemplate"
    assert {key: pod["spec"][key] for key in ("hostname", "subdomain", "priorityClassName")} == {
        "hostname": "",
        "subdomain": None,
        "priorityClassName": "ab",
    }


def test_integers_that_a_float_does_not_hold_survive(workbench: Bench) -> None:
    numbers = """\
  large: 9007199254740993
  negative: -9007199254740993
  list: [9223372036854775807,18446744073709551615, 12345678901234567]
  block:
  - 9007199254740993
  text: "9007199254740993"
  words: "a 9007199254740993 b: 12345678901234567"
  script: |
    run --id 9007199254740993
    id=12345678901234567
  9007199254740993: key
"""
    (result,) = workbench.convert([POD + numbers])
    assert objects(result) == by_core(POD + numbers)
    assert objects(result)[1]["spec"]["large"] == 9007199254740993
    assert objects(result)[1]["spec"]["script"] == "run --id 9007199254740993\nid=12345678901234567\n"


def test_what_forbids_a_conversion_is_told_in_a_comment(workbench: Bench) -> None:
    text = f"{CONFIG}---\n{POD}  schedulerName: volcano\n---\n{CONFIG}"
    (result,) = workbench.convert([text])
    comment = "\n# gpu2dra leaves this on the extended resource: DRA206 other-scheduler\n"
    assert result == f"{CONFIG}---{comment}\n{POD}  schedulerName: volcano\n---\n{CONFIG}"


def test_anchors_merges_and_tags_are_understood(workbench: Bench) -> None:
    text = POD.replace("limits:\n        nvidia.com/gpu: 1", "limits: &gpu\n        nvidia.com/gpu: !!int '2'") + (
        "  - name: side\n    resources:\n      limits: *gpu\n  - name: third\n    resources:\n      limits:\n"
        "        <<: *gpu\n        cpu: 1\n"
    )
    (result,) = workbench.convert([text])
    assert objects(result) == by_core(text)
    assert [request["name"] for request in objects(result)[0]["spec"]["spec"]["devices"]["requests"]] == [
        "main",
        "side",
        "third",
    ]
