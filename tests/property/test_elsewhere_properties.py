"""Any values for the charts that are known: no exception, a second run changes nothing, each template has its user."""

from __future__ import annotations

import json
from random import Random  # noqa: TC003 - hypothesis reads the annotations
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpu2dra import Options
from gpu2dra_migrate.elsewhere.table import CHARTS
from gpu2dra_migrate.manifest import convert, objects
from gpu2dra_migrate.text.emit import documents_text

GPU = "nvidia.com/gpu"
ODD: tuple[Any, ...] = (None, 0, 1, True, "", "text", [], {}, [1], {"a": 1}, "${N}", "{{ x }}", -1, 1.5)
AMOUNTS: tuple[Any, ...] = (1, 2, "3", 0, "0", 40, "500m", None, True, "${N:=1}", [], {})


def odd(random: Random, value: Any, share: float = 0.04) -> Any:
    """Return `value`, or now and then something that nobody expects there."""
    return random.choice(ODD) if random.random() < share else value


def resources(random: Random) -> Any:
    limits: dict[str, Any] = {"cpu": 1} if random.random() < 0.5 else {}
    name = random.choice((GPU, GPU, GPU, "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"))
    amount = random.choice(AMOUNTS) if random.random() < 0.3 else random.choice((1, 2))
    if random.random() < 0.8:
        limits[name] = amount
    result: dict[str, Any] = {"limits": odd(random, limits)}
    if random.random() < 0.3:
        result["requests"] = odd(random, {name: amount})
    if random.random() < 0.1:
        result["claims"] = odd(random, [{"name": "mine"}])
    return odd(random, result)


def pod(random: Random) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "tolerations": [{"key": GPU, "operator": "Exists"}], "resourceClaims": [{"name": "gpu"}],
        "nodeSelector": {"nvidia.com/gpu.product": "A-SHARED"}, "schedulerName": "other", "priorityClassName": "high",
        "annotations": {"gpu2dra.dev/convert": "false"},
    }  # fmt: skip
    return {key: odd(random, value) for key, value in fields.items() if random.random() < 0.08}


def container(random: Random) -> Any:
    result: dict[str, Any] = {"resources": resources(random)}
    for key, values in {
        "restartPolicy": ("Always",),
        "nameOverride": ("other", "{{ x }}"),
        "enabled": (False, True),
    }.items():
        if random.random() < 0.05:
            result[key] = odd(random, random.choice(values))
    return odd(random, result)


def controller(random: Random) -> Any:
    result: dict[str, Any] = {
        "containers": odd(random, {f"c{n}": container(random) for n in range(random.randint(0, 3))})
    }
    if random.random() < 0.2:
        result["initContainers"] = odd(random, {f"i{n}": container(random) for n in range(random.randint(0, 2))})
    if random.random() < 0.3:
        result["type"] = odd(random, random.choice(("cronjob", "statefulset", "job", "deployment", "daemonset", "x")))
    if random.random() < 0.3:
        result["pod"] = odd(random, pod(random))
    if random.random() < 0.05:
        result["defaultContainerOptions"] = odd(random, {"resources": resources(random)})
    return odd(random, result)


def values(random: Random, chart: str) -> dict[str, Any]:
    """Return values such as the chart reads, with odd ones among them."""
    if chart == "app-template":
        found = {"controllers": odd(random, {f"k{n}": controller(random) for n in range(random.randint(0, 3))})}
        return found | ({"defaultPodOptions": odd(random, pod(random))} if random.random() < 0.2 else {})
    if chart == "ollama":
        gpu = {
            "enabled": True, "number": random.choice(AMOUNTS), "type": "nvidia", "nvidiaResource": GPU,
            "draEnabled": random.random() < 0.3, "mig": {"enabled": False}, "draDriverClass": "gpu.nvidia.com",
        }  # fmt: skip
        gpu = {key: odd(random, value) for key, value in gpu.items() if key == "enabled" or random.random() < 0.4}
        return {"ollama": odd(random, {"gpu": odd(random, gpu)})} | (
            {"resources": resources(random)} if random.random() < 0.7 else {}
        )
    if chart == "ray-cluster":
        groups = {
            name: odd(random, {"resources": resources(random), **pod(random), "rayStartParams": odd(random, {})})
            for name in ("head", "worker", "large", "small")
            if random.random() < 0.7
        }
        more = {name: groups.pop(name) for name in ("large", "small") if name in groups}
        return groups | ({"additionalWorkerGroups": odd(random, more)} if more else {})
    roles: dict[str, Any] = {"accelerator": odd(random, {"dra": False})} if random.random() < 0.5 else {}
    for role in ("decode", "prefill"):
        listed = [container(random) for _ in range(random.choice((1, 1, 1, 0, 2)))]
        config = {"containers": odd(random, listed), "parallelism": odd(random, {"tensor": random.choice((1, 2, "x"))})}
        roles[role] = odd(random, {"create": False} if random.random() < 0.3 else {**config, **pod(random)})
    return roles


def release(random: Random, chart: str) -> dict[str, Any]:
    """Return a HelmRelease of the chart."""
    version = random.choice(("9.0.0", "9.0.0", "9.0.0", "0.1.0", "4.0.0", "*"))
    spec: dict[str, Any] = {"chart": {"spec": {"chart": chart, "version": version}}, "values": values(random, chart)}
    if random.random() < 0.4:
        spec["postRenderers"] = odd(random, [{"kustomize": {"patches": [{"patch": "x"}]}}], 0.1)
    metadata = odd(random, {"name": odd(random, "app"), "namespace": "ml"}, 0.02)
    return {"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": metadata, "spec": spec}


@given(st.randoms(use_true_random=False), st.sampled_from(sorted(CHARTS)), st.booleans())
def test_any_values(random: Random, chart: str, as_json: bool) -> None:
    obj = release(random, chart)
    text = json.dumps(obj, indent=2) if as_json else documents_text([obj])
    done = convert(text, Options())
    assert not {"DRA505", "DRA501"} & {item.finding.code for item in done.findings}, text
    if done.text is None:
        return
    found = [*done.beside, *objects(done.text)]
    (changed,) = (each for each in found if each["kind"] == "HelmRelease")
    templates = {each["metadata"]["name"] for each in found if each["kind"] == "ResourceClaimTemplate"}
    assert templates == (set(named(changed)) if CHARTS[chart].template else set())
    assert convert(done.text, Options()).text is None


def named(value: Any) -> list[str]:
    """Return the templates that something names, in strings as well."""
    if isinstance(value, dict):
        own = [value["resourceClaimTemplateName"]] if isinstance(value.get("resourceClaimTemplateName"), str) else []
        return own + [name for inner in value.values() for name in named(inner)]
    if isinstance(value, list):
        return [name for inner in value for name in named(inner)]
    return named(objects(value)) if isinstance(value, str) and "resourceClaimTemplateName" in value else []
