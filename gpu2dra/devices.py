"""The built-in policy: which device stands for a legacy resource (design, section 4, "Without any policy")."""

from __future__ import annotations

import re
from typing import NamedTuple

from gpu2dra.model import Object
from gpu2dra.resources import LegacyResource, Meaning

GPU_CLASS = "gpu.nvidia.com"
MIG_CLASS = "mig.nvidia.com"
_PROFILE = re.compile(r"== '([0-9a-z.+]+)'")


class Device(NamedTuple):
    """A device outcome: one DeviceClass and the CEL selectors that narrow it. Equal outcomes can be shared (R5)."""

    device_class: str
    selectors: tuple[str, ...] = ()

    @property
    def entry(self) -> str:
        """The first part of the names of claim entries: `gpu` for gpu.nvidia.com, `mig` for mig.nvidia.com."""
        return self.device_class.partition(".")[0]

    def request(self, name: str, count: int | str) -> Object:
        """Return a device request in the shape of resource.k8s.io/v1.

        `allocationMode` is the API's default, written out: lists of requests are atomic, so that without it every
        client-side apply would send a patch and three-way diffs would never be empty.
        """
        exactly: Object = {"deviceClassName": self.device_class, "allocationMode": "ExactCount", "count": count}
        if self.selectors:
            exactly["selectors"] = [{"cel": {"expression": expression}} for expression in self.selectors]
        return {"name": name, "exactly": exactly}


def device_for(resource: LegacyResource) -> Device | None:
    """Return the device for one unit of a resource; None for a share or a fraction, whose device nobody can guess."""
    if resource.meaning is Meaning.MIG:
        return Device(MIG_CLASS, (_attribute_equals("profile", resource.profile),))
    return Device(GPU_CLASS) if resource.meaning is Meaning.GPU else None


def is_built_in(device: Device) -> bool:
    """Whether `device_for` gives this device for some resource: a text that only looks like one is none."""
    profile = _PROFILE.search(" ".join(device.selectors))
    meaning = Meaning.MIG if profile else Meaning.GPU
    return device == device_for(LegacyResource("", meaning, profile[1] if profile else ""))


def _attribute_equals(attribute: str, value: str) -> str:
    """Return CEL that is false, not an error, on a device without the attribute (an error fails the scheduling)."""
    attributes = "device.attributes['gpu.nvidia.com']"
    return f"'{attribute}' in {attributes} && {attributes}.{attribute} == '{value}'"
