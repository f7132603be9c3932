"""Whether a template's content is one that the operator's policy could have made: users write annotations, too."""

from __future__ import annotations

from typing import Any

from gpu2dra import Object
from gpu2dra.devices import Device
from gpu2dra.names import digest
from gpu2dra.policy import Policy
from gpu2dra.templates import canonical_spec

_MOST_REQUESTS = 32
_MOST_DEVICES = 32


def may_be_ours(name: str, spec: Object, policy: Policy) -> bool:
    """Whether admission gives this name to this template spec, and `policy` leads to each request in it.

    The spec is built anew from its devices, names and counts: anything that admission never writes is a difference.
    """
    try:
        canonical = canonical_spec(spec)
        if name != f"gpu-{digest(canonical)}":
            return False
        requests: list[Any] = canonical["spec"]["devices"]["requests"]
        if not 0 < len(requests) <= _MOST_REQUESTS:
            return False
        rebuilt = {"spec": {"devices": {"requests": [_rebuilt(request, policy) for request in requests]}}}
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError):
        return False
    return canonical_spec(rebuilt) == canonical


def _rebuilt(request: Any, policy: Policy) -> Object:
    exactly, name = request["exactly"], request["name"]
    selectors = tuple(selector["cel"]["expression"] for selector in exactly.get("selectors", ()))
    device = Device(exactly["deviceClassName"], selectors)
    count = exactly["count"]
    if not (isinstance(name, str) and type(count) is int and 0 < count <= _MOST_DEVICES and policy.makes(device)):
        raise ValueError("no request of ours")
    return device.request(name, count)
