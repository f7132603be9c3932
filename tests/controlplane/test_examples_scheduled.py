"""The examples, by the real scheduler: their containers find the devices that `examples/devices` says, by hand.

Every pod template of the converted examples becomes one Pod, on a node with more devices than it asks for and of more
kinds, with the taints that keep other pods off such nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import pytest

from controlplane import gpus, scheduling
from controlplane.client import Object
from controlplane.manifests import at, load, placed
from controlplane.scheduling import Device
from controlplane.testbed import AddMachines, Cluster

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STEMS = sorted(path.stem for path in (EXAMPLES / "devices").glob("*.yaml"))
SPARE = 3
ROOM: dict[str, int | str] = {"cpu": "256", "memory": "2Ti", "rdma/hca": "8", "ephemeral-storage": "2Ti"}
_ELSEWHERE = ("priorityClassName", "serviceAccountName")

Amounts = dict[str, int]
"""Numbers of devices by DeviceClass, MIG profiles added: `mig.nvidia.com/1g.10gb`."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One Pod of an example, and what was written by hand about it."""

    pod: Object
    expected: Object

    @property
    def name(self) -> str:
        """The name of the Pod and of the node made for it."""
        return str(self.pod["metadata"]["name"])

    def machine(self) -> gpus.Machine:
        """Return a node with the labels that the pod selects, and with devices to spare of each kind."""
        labels = dict(self.pod["spec"].get("nodeSelector", {}))
        total = numbers(self.expected["total"])
        taints = [{"key": legacy_name(kind), "value": "present", "effect": "NoSchedule"} for kind in total]
        return gpus.Machine(self.name, lambda name: devices(name, total), ROOM, labels, tuple(taints))


def legacy_name(kind: str) -> str:
    """Return the extended resource that devices of a kind were: the key of the taint on nodes that have it."""
    profile = kind.partition("/")[2].replace("+", ".")
    return f"nvidia.com/mig-{profile}" if profile else "nvidia.com/gpu"


def devices(node: str, total: Mapping[str, int]) -> list[Object]:
    """Return some more devices of each kind than a pod needs; MIG slices each on a GPU of their own."""
    wholes = [gpus.gpu(index, gpus.H100, node) for index in range(total.get("gpu.nvidia.com", 0) + SPARE)]
    slices = [
        profile
        for name, profile in gpus.H100_MIG.items()
        for _ in range(total.get(f"mig.nvidia.com/{name}", 0) + SPARE)
    ]
    return [*wholes, *(gpus.mig(len(wholes) + index, gpus.H100, node, cut, 0) for index, cut in enumerate(slices))]


def kind_of(device: Object) -> str:
    """Return the key under which a device counts."""
    attributes = device["attributes"]
    if attributes["type"]["string"] == "mig":
        return f"mig.nvidia.com/{attributes['profile']['string']}"
    return "gpu.nvidia.com"


def objects(stem: str) -> list[Object]:
    """Return the objects of a converted example, of the file with its templates, too."""
    files = [path for path in sorted((EXAMPLES / "converted").iterdir()) if path.stem in (stem, f"{stem}-gpu-template")]
    return [obj for path in files for obj in load(path.read_text(encoding="utf-8"))]


def trials(stem: str, namespace: str) -> Iterator[Trial]:
    """Yield the Pods of the workloads of an example, those that stayed legacy aside."""
    found = {(obj["kind"], name_of(obj["metadata"])): obj for obj in objects(stem)}
    described = load_description(stem)
    for workload in described:
        workload_object = found[workload["kind"], name_of(workload)]
        for number, expected in enumerate(workload.get("pods", [])):
            template = at(workload_object, expected["template"])
            name = f"{stem}-{workload['kind'].lower()}-{name_of(workload).strip('-')}-{number}"
            yield Trial(pod_of(template, name, namespace), expected)


def load_description(stem: str) -> list[Object]:
    """Return what was written by hand, with its placeholders filled in as in the manifest."""
    text = (EXAMPLES / "devices" / f"{stem}.yaml").read_text(encoding="utf-8")
    (document,) = load(f"kind: Description\n{text}")
    return list(document["workloads"])


def name_of(metadata: Object) -> str:
    return str(metadata.get("name") or metadata["generateName"])


def pod_of(template: Object, name: str, namespace: str) -> Object:
    """Return a Pod of a template for the node of that name, without what nobody provides here."""
    spec = {key: value for key, value in template["spec"].items() if key not in _ELSEWHERE}
    mounted = [mount["name"] for container in spec["containers"] for mount in container.get("volumeMounts", [])]
    spec["volumes"] = [{"name": volume, "emptyDir": {}} for volume in dict.fromkeys(mounted)]
    spec["nodeSelector"] = {**spec.get("nodeSelector", {}), gpus.HOSTNAME: name}
    metadata = {"name": name, "namespace": namespace, "labels": template.get("metadata", {}).get("labels", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def counted(found: Mapping[str, list[Device]], kinds: Mapping[str, str]) -> Object:
    """Return what containers find, in the words of the files in `examples/devices`."""
    reached = {name: set(container) for name, container in found.items()}
    pairs = {frozenset(pair): len(reached[pair[0]] & reached[pair[1]]) for pair in combinations(reached, 2)}
    return {
        "containers": {name: amounts(container, kinds) for name, container in found.items()},
        "total": amounts(set().union(*reached.values()), kinds),
        "shared": {pair: number for pair, number in pairs.items() if number},
    }


def amounts(found: list[Device] | set[Device], kinds: Mapping[str, str]) -> Amounts:
    return dict(Counter(kinds[device.name] for device in found))


def by_hand(expected: Object) -> Object:
    pairs = {frozenset(pair["containers"]): pair["devices"] for pair in expected["shared"]}
    containers = {name: numbers(found) for name, found in expected["containers"].items()}
    return {"containers": containers, "total": numbers(expected["total"]), "shared": pairs}


def numbers(written: Mapping[str, int | str]) -> Amounts:
    """Return amounts as numbers: one that was a placeholder in quotes is a text."""
    return {kind: int(amount) for kind, amount in written.items()}


@pytest.mark.parametrize("stem", STEMS)
def test_containers_find_the_devices_that_were_written_by_hand(
    cluster: Cluster, machines: AddMachines, stem: str
) -> None:
    for obj in objects(stem):
        if obj["kind"] == "ResourceClaimTemplate":
            cluster.client.create(placed(cluster.client, obj, cluster.namespace), fieldValidation="Strict")
    found = list(trials(stem, cluster.namespace))
    assert found, stem
    made = {trial.name: trial.machine() for trial in found}
    machines(made.values())
    for trial in found:
        cluster.client.create(trial.pod, fieldValidation="Strict")
    for trial in found:
        stored = scheduling.wait_for_scheduled(cluster.client, trial.pod)
        published = made[trial.name].devices(trial.name)
        kinds = {device["name"]: kind_of(device) for device in published}
        reached = scheduling.devices_by_container(cluster.client, stored)
        assert counted(reached, kinds) == by_hand(trial.expected), trial.name
