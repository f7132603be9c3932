"""Which extended resource names ask for an NVIDIA GPU, and what each of them means.

Sources: NVIDIA/k8s-device-plugin (names, `.shared`, MIG profiles with `+` written `.`), Project-HAMi (`gpumem`,
`gpucores`), volcano.sh device plugin (`vgpu-*`), kubevirt-gpu-device-plugin (device names in capitals).
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple


class Meaning(StrEnum):
    """What a resource name asks for."""

    GPU = "gpu"  # whole devices
    MIG = "mig"  # slices of one MIG profile
    SHARED = "shared"  # replicas of a device (time slicing, MPS): which share, nobody says
    FRACTION = "fraction"  # another system's part of a device (HAMi, Volcano)
    PASSTHROUGH = "passthrough"  # a KubeVirt device name


class LegacyResource(NamedTuple):
    """A recognised resource name; `profile` is the MIG profile as the DRA driver writes it, else empty."""

    name: str
    meaning: Meaning
    profile: str = ""

    @property
    def counted(self) -> bool:
        """Whether its amount is a number of devices, not of MiB or per cent of one."""
        return self.meaning is not Meaning.FRACTION or self.name.endswith("-number")


_MIG = r"nvidia\.com/mig-(?P<profile>\d+(?:c\.\d+)?g\.\d+gb(?:\.me(?:\.all)?|\.gfx|\.all|-me)?)"
_PATTERNS: tuple[tuple[re.Pattern[str], Meaning], ...] = (
    (re.compile(r"nvidia\.com/gpu"), Meaning.GPU),
    (re.compile(_MIG), Meaning.MIG),
    (re.compile(rf"nvidia\.com/gpu\.shared|{_MIG}\.shared"), Meaning.SHARED),
    (re.compile(r"nvidia\.com/(?:gpumem|gpumem-percentage|gpucores)"), Meaning.FRACTION),
    (
        re.compile(r"volcano\.sh/(?:vgpu-(?:number|memory|memory-percentage|cores)|gpu-(?:memory|number))"),
        Meaning.FRACTION,
    ),
    (re.compile(r"nvidia\.com/(?=[A-Z0-9_]*[A-Z])[A-Z0-9]+_[A-Za-z0-9_-]+"), Meaning.PASSTHROUGH),
)
PREFIXES = ("nvidia.com/", "volcano.sh/")
QUOTA_PREFIXES = ("requests.", "limits.")


def legacy_resource(name: object) -> LegacyResource | None:
    """Return what `name`, a key of `resources.limits`, asks for; None when it is no NVIDIA GPU (`nvidia.com/rdma*`)."""
    if not isinstance(name, str) or not name.startswith(PREFIXES):
        return None
    for pattern, meaning in _PATTERNS:
        if match := pattern.fullmatch(name):
            profile = match.groupdict().get("profile") or ""
            return LegacyResource(name, meaning, profile.replace(".me", "+me").replace(".gfx", "+gfx"))
    return None
