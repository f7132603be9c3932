"""What the templates refuse because no schema can: names used twice, values against each other, a policy of no use."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from controlplane.client import Object
from controlplane.helm import CHART, NAMESPACE, RELEASE, Helm
from gpu2dra.policy import PolicyError
from gpu2dra.policy.load import load

Fails = Callable[[Callable[[], object]], str]
POLICY = {"apiVersion": "gpu2dra.dev/v1alpha1", "kind": "ConversionPolicy"}
SLICE = {"name": "slice", "deviceClassName": "slice.example.com"}
_PROBLEM = re.compile(r"^(/\S*): (.+)$", re.MULTILINE)
# Every meaning of gpu2dra.resources, and what only looks like one; then globs, most of them of no use to a device.
NAMES = (
    "nvidia.com/gpu", "nvidia.com/gpu.shared", "nvidia.com/gpuu", "nvidia.com/gpus", "nvidia.com/GPU",
    "nvidia.com/gpu.", "nvidia.com/mig-1g.5gb", "nvidia.com/mig-1g.5gb.shared", "nvidia.com/mig-1c.3g.20gb",
    "nvidia.com/mig-1g.5gb.me", "nvidia.com/mig-1g.5gb.me.all", "nvidia.com/mig-1g.24gb.gfx",
    "nvidia.com/mig-4g.96gb.all", "nvidia.com/mig-1g.5gb-me", "nvidia.com/mig-1g.5gb.you",
    "nvidia.com/mig-1g", "nvidia.com/mig-", "nvidia.com/mig-1g.5gb.me.shared", "nvidia.com/gpumem",
    "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/gpucore", "volcano.sh/vgpu-number",
    "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores",
    "volcano.sh/gpu-memory", "volcano.sh/gpu-number", "volcano.sh/gpu-cores", "volcano.sh/gpu",
    "nvidia.com/TU104GL_Tesla_T4", "nvidia.com/GA102_A10", "nvidia.com/A_b", "nvidia.com/1_A",
    "nvidia.com/1_a", "nvidia.com/A", "nvidia.com/aB_C", "nvidia.com/rdma_shared_device_a",
    "nvidia.com/hostdev", "cpu", "gpu", "amd.com/gpu", "xnvidia.com/gpu", "*", "?", "nvidia.com/*",
    "nvidia.com/gpu*", "nvidia.com/gp?", "nvidia.com/g*u", "nvidia.com/gpu.*", "nvidia.com/mig-*",
    "nvidia.com/mig-1g.*", "nvidia.com/mi?-*", "nvidia.com/m*", "nvidia.com/T*", "nvidia.com/gpu?",
    "*.shared", "n*", "volcano.sh/*", "volcano.sh/vgpu-*", "v*", "amd.com/*", "amd*", "nvidia-com/*",
    "nvidiaXcom/gpu*", "*/gpu", "*gpu",
)  # fmt: skip


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"server": {"port": 8080}}, "/server/metricsPort: 8080 is server.port already"),
        (
            {"certificates": {"self": {"caLifetimeSeconds": 86_400}}},
            "/certificates/self/leafLifetimeSeconds: At most a third of caLifetimeSeconds",
        ),
        (
            {"webhook": {"matchConditions": [{"name": "asks-for-gpu", "expression": "true"}]}},
            '/webhook/matchConditions/0/name: "asks-for-gpu" is in use already',
        ),
        (
            {"webhook": {"matchConditions": [{"name": "a", "expression": "true"}] * 2}},
            '/webhook/matchConditions/1/name: "a" is in use already',
        ),
        (
            {"podLabels": {"app.kubernetes.io/name": "x", "a": "b"}},
            "/podLabels: The label app.kubernetes.io/name is the chart's",
        ),
        ({"commonLabels": {"helm.sh/chart": "x"}}, "/commonLabels: The label helm.sh/chart is the chart's"),
        (
            {"metrics": {"dashboard": {"labels": {"app.kubernetes.io/instance": "x"}}}},
            "/metrics/dashboard/labels: The label app.kubernetes.io/instance is the chart's",
        ),
        ({"extraEnv": [{"name": "GPU2DRA_WEBHOOK_NAMESPACE", "value": "x"}]}, "/extraEnv/0/name: "),
        ({"extraVolumes": [{"name": "scratch", "emptyDir": {}}]}, '/extraVolumes/0/name: "scratch" is in use already'),
        (
            {"policy": POLICY | {"devices": [SLICE], "rules": [{"match": {"resources": ["*"]}, "device": "slise"}]}},
            '/policy/rules/0/device: There is no device "slise"; the devices are slice.',
        ),
        ({"policy": POLICY | {"devices": [SLICE, SLICE]}}, '/policy/devices/1/name: "slice" is in use already'),
        (
            {"policy": POLICY | {"rules": [{"match": {"resources": ["nvidia.com/gpuu"]}, "skip": "no"}]}},
            '/policy/rules/0/match/resources/0: "nvidia.com/gpuu" is no GPU resource that gpu2dra knows',
        ),
    ],
)  # fmt: skip
def test_what_no_schema_can_say_is_refused_with_its_path(helm: Helm, fails: Fails, values: Object, said: str) -> None:
    assert said in fails(lambda: helm.template(values))


def test_everything_that_is_wrong_is_told_at_once(newest: Helm, fails: Fails) -> None:
    values = {"server": {"port": 8080}, "policy": POLICY | {"devices": [SLICE, SLICE]}}
    told = fails(lambda: newest.template(values))
    assert [path for path, _ in _PROBLEM.findall(told)] == ["/server/metricsPort", "/policy/devices/1/name"]


@pytest.mark.parametrize("release", ["1gpu", "a.b"])
def test_a_release_whose_name_no_service_can_have_is_refused(newest: Helm, fails: Fails, release: str) -> None:
    told = fails(lambda: newest.run("template", release, CHART, "--namespace", NAMESPACE))
    assert f'No Service can have the name "{release}-gpu2dra"' in told
    assert newest.run("template", release, CHART, "--set", f"fullnameOverride={RELEASE}")


def test_a_policy_is_refused_where_the_webhook_would_refuse_it(newest: Helm, fails: Fails) -> None:
    rules: list[Object] = [{"match": {"resources": [name]}, "device": "slice"} for name in NAMES]
    rules += [{"match": {"resources": [name]}, "skip": "no"} for name in NAMES]
    rules += [
        {"match": {"namespaces": ["b"]}, "skip": text}
        for text in ("a\n", "a\tb", "\u200b", "é — ü", "\u3042", "a\u2028")
    ]
    rules += [
        {"name": "a", "match": {"namespaces": ["a"]}, "device": "slice"},
        {"name": "a", "match": {"namespaces": ["a"]}, "device": "other"},
        {"name": "slice", "match": {"resources": ["nvidia.com/gpu", "cpu", "*"]}, "skip": "no"},
    ]
    texts = {"metadata": {"labels": {"a": "b\n"}, "annotations": {"a~/b": "c\n", "d": "e"}}}
    policy = POLICY | texts | {"devices": [SLICE, SLICE | {"name": "more"}, SLICE], "rules": rules}
    with pytest.raises(PolicyError) as refused:
        load(policy)
    wanted = {f"/policy{problem.path}" for problem in refused.value.problems}
    told = dict(_PROBLEM.findall(fails(lambda: newest.template({"policy": policy}))))
    assert set(told) == wanted
    assert len(wanted) < len(rules), "some of them are right"


def test_a_policy_that_the_webhook_takes_is_taken(newest: Helm) -> None:
    right = [glob for glob in NAMES if _loads([{"match": {"resources": [glob]}, "device": "slice"}])]
    assert len(right) > 20
    rules = [{"match": {"resources": [glob]}, "device": "slice"} for glob in right]
    assert newest.render({"policy": POLICY | {"devices": [SLICE], "rules": rules}})


def _loads(rules: list[Object]) -> bool:
    try:
        load(POLICY | {"devices": [SLICE], "rules": rules})
    except PolicyError:
        return False
    return True
