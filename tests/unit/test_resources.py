"""Which names ask for a GPU, and the device of the built-in policy that stands for each."""

from __future__ import annotations

import pytest

from gpu2dra.devices import Device, device_for, is_built_in
from gpu2dra.resources import LegacyResource, Meaning, legacy_resource

NAMES: dict[str, tuple[Meaning, str]] = {
    "nvidia.com/gpu": (Meaning.GPU, ""),
    "nvidia.com/mig-1g.5gb": (Meaning.MIG, "1g.5gb"),
    "nvidia.com/mig-3g.20gb": (Meaning.MIG, "3g.20gb"),
    "nvidia.com/mig-7g.141gb": (Meaning.MIG, "7g.141gb"),
    "nvidia.com/mig-1g.10gb.me": (Meaning.MIG, "1g.10gb+me"),
    "nvidia.com/mig-1g.24gb.me.all": (Meaning.MIG, "1g.24gb+me.all"),
    "nvidia.com/mig-2g.48gb.gfx": (Meaning.MIG, "2g.48gb+gfx"),
    "nvidia.com/mig-1c.2g.10gb": (Meaning.MIG, "1c.2g.10gb"),
    "nvidia.com/gpu.shared": (Meaning.SHARED, ""),
    "nvidia.com/mig-1g.5gb.shared": (Meaning.SHARED, "1g.5gb"),
    "nvidia.com/gpumem": (Meaning.FRACTION, ""),
    "nvidia.com/gpumem-percentage": (Meaning.FRACTION, ""),
    "nvidia.com/gpucores": (Meaning.FRACTION, ""),
    "volcano.sh/vgpu-number": (Meaning.FRACTION, ""),
    "volcano.sh/vgpu-memory": (Meaning.FRACTION, ""),
    "volcano.sh/vgpu-memory-percentage": (Meaning.FRACTION, ""),
    "volcano.sh/vgpu-cores": (Meaning.FRACTION, ""),
    "volcano.sh/gpu-memory": (Meaning.FRACTION, ""),
    "volcano.sh/gpu-number": (Meaning.FRACTION, ""),
    "nvidia.com/GA102GL_A10": (Meaning.PASSTHROUGH, ""),
    "nvidia.com/GRID_T4-2B": (Meaning.PASSTHROUGH, ""),
    "nvidia.com/TU104GL_Tesla_T4": (Meaning.PASSTHROUGH, ""),
}


@pytest.mark.parametrize(("name", "meaning"), NAMES.items(), ids=NAMES)
def test_a_legacy_name_is_recognised(name: str, meaning: tuple[Meaning, str]) -> None:
    assert legacy_resource(name) == LegacyResource(name, *meaning)
    assert (device_for(LegacyResource(name, *meaning)) is not None) == (meaning[0] in (Meaning.GPU, Meaning.MIG))


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("nvidia.com/gpu", True),
        ("nvidia.com/mig-1g.5gb", True),
        ("nvidia.com/gpu.shared", True),
        ("nvidia.com/GA102GL_A10", True),
        ("volcano.sh/vgpu-number", True),
        ("volcano.sh/gpu-number", True),
        ("volcano.sh/vgpu-memory", False),
        ("nvidia.com/gpumem", False),
        ("nvidia.com/gpucores", False),
    ],
)
def test_an_amount_is_a_number_of_devices_or_a_measure_of_one(name: str, *, counted: bool) -> None:
    resource = legacy_resource(name)
    assert resource is not None
    assert resource.counted == counted


@pytest.mark.parametrize(
    "name",
    [
        "cpu",
        "memory",
        "amd.com/gpu",
        "nvidia.com",
        "nvidia.com/",
        "nvidia.com/gpus",
        "nvidia.com/gpu ",
        "Nvidia.com/gpu",
        "nvidia.com/gpu.product",
        "nvidia.com/rdma_shared_device_a",
        "nvidia.com/hostdev",
        "nvidia.com/mig.strategy",
        "nvidia.com/mig-1g",
        "nvidia.com/mig-1g.5gb+me",
        "nvidia.com/mig-",
        "xnvidia.com/gpu",
        "nvidiaxcom/gpu",
        "requests.nvidia.com/gpu",
        "volcano.sh/gpu",
        "volcano.sh/queue-name",
        "nvidia.com/gpu\n",
        "",
        None,
        1,
        1.5,
        ("a",),
    ],
)
def test_a_look_alike_is_not(name: object) -> None:
    assert legacy_resource(name) is None


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("nvidia.com/gpu", Device("gpu.nvidia.com")),
        (
            "nvidia.com/mig-1g.10gb.me",
            Device(
                "mig.nvidia.com",
                (
                    (
                        "'profile' in device.attributes['gpu.nvidia.com'] && "
                        "device.attributes['gpu.nvidia.com'].profile == '1g.10gb+me'"
                    ),
                ),
            ),
        ),
    ],
)
def test_the_built_in_device(name: str, device: Device) -> None:
    resource = legacy_resource(name)
    assert resource is not None
    assert device_for(resource) == device


@pytest.mark.parametrize(
    "name", [name for name, (meaning, _) in NAMES.items() if meaning in (Meaning.GPU, Meaning.MIG)]
)
def test_a_built_in_device_is_known_again(name: str) -> None:
    resource = legacy_resource(name)
    assert resource is not None
    device = device_for(resource)
    assert device is not None
    assert is_built_in(device)


MIG_SELECTOR = (
    "'profile' in device.attributes['gpu.nvidia.com'] && device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"
)


@pytest.mark.parametrize(
    "device",
    [
        Device("other.example.com"),
        Device("gpu.nvidia.com", ("true",)),
        Device("mig.nvidia.com"),
        Device("gpu.nvidia.com", (MIG_SELECTOR,)),
        Device("mig.nvidia.com", (f"{MIG_SELECTOR} || true",)),
        Device("mig.nvidia.com", (MIG_SELECTOR.replace("'1g.5gb'", "'1g' || 'a' == 'a'"),)),
        Device("mig.nvidia.com", (MIG_SELECTOR, MIG_SELECTOR)),
        Device("mig.nvidia.com", (f"true || {MIG_SELECTOR}",)),
    ],
)
def test_what_only_looks_like_a_built_in_device_is_none(device: Device) -> None:
    assert not is_built_in(device)


def test_a_request_has_the_shape_of_v1() -> None:
    assert Device("gpu.nvidia.com").request("main", 2) == {
        "name": "main",
        "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 2},
    }
    assert Device("c.example.com", ("a", "b")).request("main", "${N}") == {
        "name": "main",
        "exactly": {
            "deviceClassName": "c.example.com",
            "allocationMode": "ExactCount",
            "count": "${N}",
            "selectors": [{"cel": {"expression": "a"}}, {"cel": {"expression": "b"}}],
        },
    }


@pytest.mark.parametrize(("device_class", "entry"), [("gpu.nvidia.com", "gpu"), ("mig.nvidia.com", "mig"), ("x", "x")])
def test_the_first_part_of_the_class_names_the_claim_entry(device_class: str, entry: str) -> None:
    assert Device(device_class).entry == entry
