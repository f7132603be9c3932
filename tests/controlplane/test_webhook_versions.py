"""Where an API server serves DRA otherwise than today: an older version alone, or a class with the legacy name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

from controlplane import build, gpus
from controlplane.client import Answer, Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.installation import converting_namespace, installed, is_converted
from controlplane.workloads import GPU, container, one_gpu, pod
from gpu2dra.templates import canonical_spec

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ("v1", "v1beta2", "v1beta1")
RELEASES = build.control_planes()
OLDEST, NEWEST = next(iter(RELEASES)), list(RELEASES)[-1]


@pytest.fixture(params=["v1beta2", "v1beta1"])
def version(request: pytest.FixtureRequest) -> str:
    """Return the one version of resource.k8s.io that is served."""
    return str(request.param)


@pytest.fixture
def older(version: str, say: Callable[[str], None]) -> Iterator[ControlPlane]:
    """Return a control plane of the oldest release that serves no other version of DRA."""
    served = {f"resource.k8s.io/{each}": each == version for each in VERSIONS}
    with ControlPlane(RELEASES[OLDEST](say), Options(runtime_config=served)) as plane:
        for device_class in gpus.device_classes():
            plane.client.create(device_class | {"apiVersion": f"resource.k8s.io/{version}"})
        yield plane


def test_pods_are_converted_with_templates_of_the_version_that_is_served(
    older: ControlPlane, version: str, tmp_path: Path, say: Callable[[str], None]
) -> None:
    with installed(older, {}, tmp_path, say) as installation, installation.replicas() as replicas:
        (replica,) = replicas.start()
        namespace = converting_namespace(older)
        legacy = pod("legacy", container("main", 2), container("aside", 1))
        here = legacy | {"metadata": {"name": "legacy", "namespace": namespace}}
        stored = older.client.create(here)
        assert is_converted(stored)
        assert [each["resources"].get("limits") for each in stored["spec"]["containers"]] == [None, None]
        named = {entry["resourceClaimTemplateName"] for entry in stored["spec"]["resourceClaims"]}
        made = older.client.list(f"resource.k8s.io/{version}", "ResourceClaimTemplate", namespace)
        assert {each["metadata"]["name"] for each in made} == named
        (request, *_) = made[0]["spec"]["spec"]["devices"]["requests"]
        assert ("exactly" in request) is (version == "v1beta2")  # v1beta1 is flat
        asked = [
            (request["name"], request["exactly"]["deviceClassName"], request["exactly"]["count"])
            for each in made
            for request in canonical_spec(each["spec"])["spec"]["devices"]["requests"]
        ]
        assert sorted(asked) == [("aside", "gpu.nvidia.com", 1), ("main", "gpu.nvidia.com", 2)]
        # The same again costs no call, and the same name stands for the same content in each version.
        made_so_far = replica.metric("gpu2dra_template_operations_total", operation="create", result="ok")
        hits = replica.metric("gpu2dra_template_cache_hits_total")
        again = older.client.create(here | {"metadata": {"name": "again", "namespace": namespace}})
        assert again["spec"]["resourceClaims"] == stored["spec"]["resourceClaims"]
        assert replica.metric("gpu2dra_template_operations_total", operation="create", result="ok") == made_so_far
        assert replica.metric("gpu2dra_template_cache_hits_total") == hits + len(made)


@pytest.fixture
def extended(say: Callable[[str], None]) -> Iterator[ControlPlane]:
    """Return a control plane of the newest release whose class carries `extendedResourceName: nvidia.com/gpu`."""
    with ControlPlane(RELEASES[NEWEST](say)) as plane:
        for obj in (*gpus.device_classes(extended=True), *gpus.Machine("h100", gpus.whole(gpus.H100, 4)).objects()):
            plane.client.create(obj)
        yield plane


def test_a_class_that_carries_the_legacy_name_is_told_of_once(
    extended: ControlPlane, tmp_path: Path, say: Callable[[str], None]
) -> None:
    notice = f"gpu2dra: DeviceClass gpu.nvidia.com carries {GPU}: from Kubernetes 1.36 on its pods run unconverted, too"
    with installed(extended, {}, tmp_path, say) as installation, installation.replicas() as replicas:
        (replica,) = replicas.start()
        namespace = converting_namespace(extended)

        def create(name: str) -> Answer:
            obj: Object = one_gpu(name) | {"metadata": {"name": name, "namespace": namespace}}
            answer = extended.client.try_create(obj)
            assert is_converted(answer.checked())
            return answer

        wait_for("the devices are known", lambda: replica.metric("gpu2dra_informer_synced", cache="resourceslices"))
        warnings = [create(f"pod-{number}").warnings for number in range(3)]
        assert warnings == [(notice,), (), ()]
        assert [line["level"] for line in replica.log() if line["msg"] == notice.removeprefix("gpu2dra: ")] == [
            "warning"
        ]
