"""Strategies that draw legacy workloads: what real manifests hold, in all the combinations that nobody writes by hand.

Everything that `pods()` draws is valid for the API server, except for the unknown fields that `unknown=True` adds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from gpu2dra import Object

GPU = "nvidia.com/gpu"
MIGS = ("nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb.me")
NAMES = (GPU, *MIGS)
NETWORK_CLAIM = "network"
"""A ResourceClaim that some of the pods already use; its class is NETWORK_CLASS."""
NETWORK_CLASS = "nic.example.com"
MOST = 8
"""Most devices of one name that one container asks for."""

# Orders of plain init containers (i) and sidecars (s): most have one before the other.
_SHAPES = ("", "i", "s", "is", "si", "isi", "sis", "iis", "ssi", "sii", "iss", "isis", "sisi")
_CONTAINER_NAMES = ("main", "a", "b2", "gpu", "gpu-main", "mig", "worker-0", "x" * 63, "x" * 62 + "y")


def spellings(amount: int) -> st.SearchStrategy[Any]:
    """Return ways to write a whole number as a quantity."""
    texts = (
        str(amount),
        f"+{amount}",
        f"{amount}000m",
        f"{amount}.0",
        f"{amount}0e-1",
        f"{amount}E0",
        f"{amount}000000u",
    )
    return st.sampled_from([amount, amount, amount, str(amount), str(amount), *texts])


def amounts() -> st.SearchStrategy[int]:
    """Return numbers of devices, small ones more often."""
    return st.sampled_from([1, 1, 1, 2, 2, 3, 4, MOST])


def json_values(*, keys: Sequence[str] = ("name", "x"), leaves: int = 6) -> st.SearchStrategy[Any]:
    """Return any JSON value; its objects use `keys` besides texts of their own."""
    scalars = (
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(list(keys))
    )
    names = st.sampled_from(list(keys)) | st.text(max_size=8)
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=leaves,
    )


def _plain(*, unknown: bool) -> st.SearchStrategy[Object]:
    """Return fields that no version of the API knows; mostly none."""
    if not unknown:
        return st.just({})
    values: st.SearchStrategy[Any] = (
        st.none()
        | st.integers(-9, 9)
        | st.text(max_size=4)
        | st.lists(st.integers(), max_size=2)
        | st.just({"a": {"b": []}})
    )
    return st.just({}) | st.dictionaries(st.sampled_from(["x-unknown", "~/", "é", ""]), values, max_size=2)


@st.composite
def _limits(draw: st.DrawFn, *, asks: bool) -> tuple[Object, Object]:
    """Return the legacy part of limits and of requests."""
    if not asks:
        return {}, {}
    names = draw(st.sampled_from([(GPU,), (GPU,), (GPU,), (MIGS[0],), (GPU, MIGS[0]), (MIGS[1], GPU), MIGS]))
    limits, requests = {}, {}
    for name in names:
        amount = draw(st.integers(0, 9)) and draw(amounts())
        limits[name] = draw(spellings(amount))
        if draw(st.booleans()):
            requests[name] = draw(spellings(amount))
    return limits, requests


@st.composite
def _containers(draw: st.DrawFn, name: str, *, asks: bool, claim: str, unknown: bool) -> Object:
    legacy, legacy_requests = draw(_limits(asks=asks))
    others: Object = draw(st.sampled_from([{}, {}, {"cpu": "1"}, {"memory": "1Gi", "cpu": 2}]))
    limits = {**legacy, **others} if draw(st.booleans()) else {**others, **legacy}
    requests = {**(others if draw(st.booleans()) else {}), **legacy_requests}
    resources: Object = {
        **({"limits": limits} if limits else {}),
        **({"requests": requests} if requests else {}),
        **({"claims": [{"name": claim}]} if claim else {}),
        **draw(_plain(unknown=unknown)),
    }
    return {
        "name": name,
        "image": "registry.example.com/app:1",
        **({"resources": resources} if resources else {}),
        **draw(_plain(unknown=unknown)),
    }


@st.composite
def pod_specs(draw: st.DrawFn, *, unknown: bool = False) -> Object:
    """Return PodSpecs with up to four init containers and sidecars and up to three app containers."""
    shape = draw(st.sampled_from(_SHAPES))
    number = draw(st.integers(1, 3))
    names = draw(st.permutations(_CONTAINER_NAMES))[: len(shape) + number]
    claim = draw(st.sampled_from(["", "", "gpu", "network"]))
    made = []
    for position, name in enumerate(names):
        uses = claim if claim and draw(st.booleans()) else ""
        asks = draw(st.integers(0, 5)) > 0
        item = draw(_containers(name, asks=asks, claim=uses, unknown=unknown))
        if shape[position : position + 1] == "s":
            item["restartPolicy"] = "Always"
        made.append(item)
    init, apps = made[: len(shape)], made[len(shape) :]
    tolerations = draw(
        st.sampled_from(
            [[], [], [{"key": "a", "operator": "Exists"}], [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]]
        )
    )
    return {
        **({"initContainers": init} if init else {}),
        "containers": apps,
        **({"resourceClaims": [{"name": claim, "resourceClaimName": NETWORK_CLAIM}]} if claim else {}),
        **({"tolerations": tolerations} if tolerations else {}),
        **draw(_plain(unknown=unknown)),
    }


@st.composite
def pods(draw: st.DrawFn, *, unknown: bool = False) -> Object:
    """Return legacy Pods."""
    spec = draw(pod_specs(unknown=unknown))
    metadata = {"name": draw(st.sampled_from(["train", "a.b-c", "w" * 253])), **draw(_metadata(unknown=unknown))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, **draw(_plain(unknown=unknown))}


def _metadata(*, unknown: bool) -> st.SearchStrategy[Object]:
    known = st.sampled_from(
        [{}, {"labels": {"app": "x"}}, {"namespace": "ml", "annotations": {"argocd.argoproj.io/sync-wave": "1"}}]
    )
    return st.builds(lambda one, other: {**one, **other}, known, _plain(unknown=unknown))


_KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Deployment": ("apps/v1", ("spec", "template")),
    "StatefulSet": ("apps/v1", ("spec", "template")),
    "Job": ("batch/v1", ("spec", "template")),
    "CronJob": ("batch/v1", ("spec", "jobTemplate", "spec", "template")),
}


@st.composite
def workloads(draw: st.DrawFn, *, unknown: bool = False) -> tuple[Object, tuple[str, ...]]:
    """Return legacy Pods and workloads around them, with the way that leads to the pod template."""
    pod = draw(pods(unknown=unknown))
    kind = draw(st.sampled_from(["Pod", *_KINDS]))
    if kind == "Pod":
        return pod, ()
    api_version, way = _KINDS[kind]
    obj: Object = {"metadata": draw(_metadata(unknown=unknown)), "spec": pod["spec"], **draw(_plain(unknown=unknown))}
    for step in reversed(way):
        obj = {step: obj, **draw(_plain(unknown=unknown))}
    return {**obj, "apiVersion": api_version, "kind": kind, "metadata": pod["metadata"]}, way


def _asking(container: Object) -> list[str]:
    limits = container.get("resources", {}).get("limits", {})
    return [name for name in NAMES if name in limits and not _is_zero(limits[name])]


def _is_zero(amount: object) -> bool:
    """Whether one of `spellings()` is a zero: the others begin with the number itself."""
    return str(amount).lstrip("+").startswith("0")


def features(pod: Object) -> set[str]:
    """Return which of the interesting things a pod of `pods()` holds."""
    spec = pod["spec"]
    order = "".join("s" if "restartPolicy" in c else "i" for c in spec.get("initContainers", ()) if _asking(c))
    every = [*spec.get("initContainers", ()), *spec["containers"]]
    limits = [c.get("resources", {}).get("limits", {}) for c in every]
    held = {
        "an init container before a sidecar": "i" in order and "s" in order[order.index("i") :],
        "an init container after a sidecar": "s" in order and "i" in order[order.index("s") :],
        "several resource names": len({name for container in every for name in _asking(container)}) > 1,
        "several resource names in one container": any(len(_asking(container)) > 1 for container in every),
        "existing claims": "resourceClaims" in spec,
        "a zero": any(_is_zero(held[name]) for held in limits for name in NAMES if name in held),
    }
    return {name for name, holds in held.items() if holds}
