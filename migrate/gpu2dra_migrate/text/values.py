"""What YAML nodes mean: plain data, exactly as kubectl reads it.

kubectl reads manifests through sigs.k8s.io/yaml, which is go-yaml v2 (YAML 1.1 with its own rules for numbers)
followed by a conversion to JSON. The rules here follow `resolve.go` and `decode.go` of its goyaml.v2 package.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from collections.abc import Iterator
from typing import Any

from ruamel.yaml.events import ScalarEvent

from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.text.nodes import Alias, Document, Mapping, Node, Raw, Scalar, Sequence, place_of

_TAG = "tag:yaml.org,2002:"
_FITS: dict[str, tuple[type, ...]] = {"int": (int,), "float": (int, float), "bool": (bool,), "null": (type(None),)}
_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC = frozenset("+-.0123456789")
"""A plain scalar that does not begin with one of these, and is no constant, is the string that it looks like."""
_NO_KEYS = frozenset({*_CONSTANTS, "<<"})
"""Plain scalars that, as keys, are not the string that they look like."""
_TIMESTAMP = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ]\d\d?:\d\d?:\d\d?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_INT64, _UINT64 = 1 << 63, 1 << 64
_FLOAT32_MAX = 3.4028235e38
_FIXED = (-4, 6)  # exponents that Go's 'g' writes without one


def to_data(node: Document | Raw | None) -> Any:
    """Return the plain data of a document or node: aliases as copies, merge keys applied, the last of two keys.

    A float that has no fraction comes as an int, as it does after JSON. `repeating` of a document is found out as well.
    Raise YamlSyntaxError for what kubectl refuses: a tag that its value does not fit, a key that is no scalar, a merge
    of something else than mappings.
    """
    repeating: list[Mapping] = []
    if isinstance(node, Document):
        node.repeating = repeating
        node = node.root
    return None if node is None else _data(node, repeating)


def _data(node: Raw, repeating: list[Mapping]) -> Any:
    if type(node) is ScalarEvent:
        value = node.value
        return _leaf(node) if value in _CONSTANTS or value[:1] in _NUMERIC or node.ctag is not None else value
    if type(node) is Mapping:
        return _mapping(node, repeating)
    if type(node) is Sequence:
        return [_data(item, repeating) for item in node.raw]
    if type(node) is Alias:
        return _data(node.target, [])
    event = _event_of(node)
    return None if event is None else _leaf(event)


def _mapping(node: Mapping, repeating: list[Mapping]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    merges = False
    children = iter(node.raw)
    for key, item in zip(children, children, strict=True):
        name = key.value if type(key) is ScalarEvent and key.ctag is None else ""
        if name in _NO_KEYS or name[:1] in _NUMERIC:
            if is_merge(key):
                data.update(merged(item))  # over keys that stood before it: go-yaml v2 goes by the order of the text
                merges = True
                continue
            name = key_string(key)
        data[name] = _data(item, repeating)
    if merges or len(data) * 2 != len(node.raw):
        repeating.append(node)
    return data


def _event_of(node: Raw) -> ScalarEvent | None:
    """Return the event of a scalar, None for any other node."""
    return node.event if isinstance(node, Scalar) else node if isinstance(node, ScalarEvent) else None


def _leaf(event: ScalarEvent) -> Any:
    """Return what a scalar means, by its tag, its quotes or its looks."""
    if event.ctag is None:
        return resolve(event.value) if event.implicit[0] else event.value
    return _tagged(event)


def resolve(value: str) -> Any:
    """Return what a plain scalar without a tag means: bool, int, float, None, or `value` itself."""
    if value in _CONSTANTS:
        return _CONSTANTS[value]
    if value[0] not in _NUMERIC:
        return value
    if value[0] == ".":
        return _float(value) if _FLOAT.fullmatch(value) else value
    if _TIMESTAMP.fullmatch(value):
        return value
    digits = value.replace("_", "")
    if match := _INTEGER.fullmatch(digits):
        sign, base16, base2, base8, base10 = match.groups()
        number = int(base16 or base2 or base8 or base10, 16 if base16 else 2 if base2 else 8 if base8 else 10)
        number = -number if sign == "-" else number
        if -_INT64 <= number < (_INT64 if sign else _UINT64):
            return number
        return _float(digits) if _FLOAT.fullmatch(digits) else number
    return _float(digits, value) if _FLOAT.fullmatch(digits) else value


def key_string(key: Raw) -> str:
    """Return the string that a mapping key becomes in JSON; raise YamlSyntaxError for a key that has none."""
    if type(key) is Alias:
        key = key.target
    event = _event_of(key)
    if event is not None:
        value = _leaf(event)
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            integer = isinstance(value, int) and _INTEGER.fullmatch(event.value.replace("_", ""))
            return str(value) if integer else _float_key(float(value))
    raise _error(key, "a key that is no string, number or boolean")


def key_names(node: Mapping) -> list[str | None]:
    """Return the strings that the keys of a mapping become, None for a merge key; raise as `key_string` does."""
    return [
        key.value
        if type(key) is ScalarEvent and key.ctag is None and key.value not in _NO_KEYS and key.value[:1] not in _NUMERIC
        else None
        if is_merge(key)
        else key_string(key)
        for key in node.raw[::2]
    ]


def repeated_keys(document: Document) -> Iterator[tuple[str, Node]]:
    """Yield name and node of each key that already stands in the same mapping; merge keys may."""
    for mapping in document.repeating:
        seen: set[str] = set()
        for name, key in zip(key_names(mapping), mapping.children[::2], strict=True):
            if name is not None:
                if name in seen:
                    yield name, key
                seen.add(name)


def is_merge(key: Raw) -> bool:
    """Tell whether `key` is the merge key `<<` (a quoted one is an ordinary key)."""
    event = _event_of(key)
    return event is not None and event.value == "<<" and bool(event.implicit[0] or event.ctag == f"{_TAG}merge")


def merged(value: Raw) -> dict[str, Any]:
    """Return what the value of a merge key brings in; raise YamlSyntaxError if that is no mapping or list of them."""
    listed = value.raw[::-1] if isinstance(value, Sequence) else [value]  # the first of the list wins
    mappings = [item.target if isinstance(item, Alias) else item for item in listed]
    data: dict[str, Any] = {}
    for mapping in mappings:
        if not isinstance(mapping, Mapping):
            raise _error(value, "a merge key wants a mapping or a list of mappings")
        data.update(_mapping(mapping, []))
    return data


def _tagged(event: ScalarEvent) -> Any:
    """Return the value of a scalar with a tag."""
    if not event.ctag.startswith(_TAG):
        return event.value
    kind = event.ctag.removeprefix(_TAG)
    if kind == "binary":
        try:
            return base64.b64decode(event.value).decode("utf-8", "replace")
        except binascii.Error:
            raise _error(event, "!!binary holds no base64") from None
    fits = _FITS.get(kind)
    if fits is None:
        return event.value
    value = resolve(event.value)
    if not isinstance(value, fits) or (isinstance(value, bool) and kind != "bool"):
        raise _error(event, f"cannot decode {event.value!r} as a !!{kind}")
    return value


def _error(node: Raw, problem: str) -> YamlSyntaxError:
    return YamlSyntaxError(*place_of(node), problem)


def _float(digits: str, otherwise: str | None = None) -> Any:
    number = float(digits)
    if math.isinf(number):
        return digits if otherwise is None else otherwise  # out of range: go-yaml leaves it a string
    return int(number) if number.is_integer() and abs(number) < _INT64 else number


def _float_key(number: float) -> str:
    """Format a key as Go's FormatFloat(number, 'g', -1, 32) does: the fewest digits that give the same float32."""
    if not math.isfinite(number) or abs(number) > _FLOAT32_MAX:
        return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"
    narrow = struct.pack("f", number)
    digits = next(count for count in range(9) if struct.pack("f", float(f"{number:.{count}e}")) == narrow)
    scientific = f"{number:.{digits}e}"
    exponent = int(scientific.partition("e")[2])
    return f"{number:.{max(digits - exponent, 0)}f}" if _FIXED[0] <= exponent < _FIXED[1] else scientific
