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

from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.text.nodes import Alias, Document, Mapping, Node, Scalar, Sequence

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
_HINTS = frozenset("+-.0123456789yYnNtTfFoO~")
_TIMESTAMP = re.compile(r"\d{4}-\d\d?-\d\d?(?:[Tt ]\d\d?:\d\d?:\d\d?(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?)?", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_INT64, _UINT64 = 1 << 63, 1 << 64
_FLOAT32_MAX = 3.4028235e38
_FIXED = (-4, 6)  # exponents that Go's 'g' writes without one


def to_data(node: Document | Node | None) -> Any:
    """Return the plain data of a document or node: aliases as copies, merge keys applied, the last of two keys.

    A float that has no fraction comes as an int, as it does after JSON. Raise YamlSyntaxError for what kubectl
    refuses: a tag that its value does not fit, a key that is no scalar, a merge of something else than mappings.
    """
    if type(node) is Scalar:
        if node.plain and node.tag is None:
            value = node.value
            return resolve(value) if value[:1] in _HINTS or not value else value
        return _tagged(node)
    if type(node) is Mapping:
        data: dict[str, Any] = {}
        children = node.children
        for position in range(0, len(children), 2):
            key = children[position]
            if type(key) is Scalar and key.plain and key.tag is None and key.value[:1] not in _HINTS and key.value:
                if key.value == "<<":
                    _merge(children[position + 1], data)
                    continue
                data[key.value] = to_data(children[position + 1])
            elif is_merge(key):
                _merge(children[position + 1], data)
            else:
                data[key_string(key)] = to_data(children[position + 1])
        return data
    if type(node) is Sequence:
        return [to_data(item) for item in node.children]
    if type(node) is Alias:
        return to_data(node.target)
    return to_data(node.root) if isinstance(node, Document) else None


def resolve(value: str) -> Any:
    """Return what a plain scalar without a tag means: bool, int, float, None, or `value` itself."""
    if value in _CONSTANTS:
        return _CONSTANTS[value]
    hint = value[0]
    if hint not in _HINTS or hint.isalpha() or hint == "~":
        return value
    if hint == ".":
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


def key_string(key: Node) -> str:
    """Return the string that a mapping key becomes in JSON; raise YamlSyntaxError for a key that has none."""
    if type(key) is Alias:
        key = key.target
    if type(key) is Scalar:
        value = to_data(key)
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, int | float):
            integer = isinstance(value, int) and _INTEGER.fullmatch(key.value.replace("_", ""))
            return str(value) if integer else _float_key(float(value))
    raise YamlSyntaxError(key.line + 1, key.column + 1, "a key that is no string, number or boolean")


def repeated_keys(document: Document) -> Iterator[tuple[str, Node]]:
    """Yield name and node of each key that already stands in the same mapping; merge keys may."""
    for mapping in document.repeating:
        seen: set[str] = set()
        for key, _ in mapping.pairs():
            name = key_string(key)
            if name in seen and not is_merge(key):
                yield name, key
            seen.add(name)


def is_merge(key: Node) -> bool:
    """Tell whether `key` is the merge key `<<` (a quoted one is an ordinary key)."""
    return type(key) is Scalar and key.value == "<<" and (key.plain or key.tag == f"{_TAG}merge")


def _merge(value: Node, data: dict[str, Any]) -> None:
    """Put the merged keys into `data`, over keys that stood before `<<`: go-yaml v2 goes by the order of the text."""
    target = value.target if isinstance(value, Alias) else value
    if isinstance(target, Mapping):
        data.update(to_data(target))
        return
    if isinstance(value, Sequence):
        for item in reversed(value.children):
            if not isinstance(item.target if isinstance(item, Alias) else item, Mapping):
                break
            data.update(to_data(item))
        else:
            return
    raise YamlSyntaxError(value.line + 1, value.column + 1, "a merge key wants a mapping or a list of mappings")


def _tagged(node: Scalar) -> Any:
    """Return the value of a scalar that is quoted, or tagged."""
    tag = node.tag
    if tag is None or not tag.startswith(_TAG):
        return node.value
    kind = tag.removeprefix(_TAG)
    if kind == "binary":
        try:
            return base64.b64decode(node.value).decode("utf-8", "replace")
        except binascii.Error:
            raise YamlSyntaxError(node.line + 1, node.column + 1, "!!binary holds no base64") from None
    fits = _FITS.get(kind)
    if fits is None:
        return node.value
    value = resolve(node.value)
    if not isinstance(value, fits) or (isinstance(value, bool) and kind != "bool"):
        raise YamlSyntaxError(node.line + 1, node.column + 1, f"cannot decode {node.value!r} as a !!{kind}")
    return value


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
