"""Plain data written as YAML text, in the manner of the lines that it will stand among."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from gpu2dra_migrate.text.values import resolve


class Verbatim(str):
    """A text that is written as it is, without quotes: a placeholder such as `${GPU_COUNT}`."""

    __slots__ = ()


class NotPlain(ValueError):
    """A Verbatim text that would not be read as one plain scalar where it is to stand."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the neighbours are written.

    `step` is the indentation of a nested mapping, `offset` that of a dash below its key (0: compact), `dash` the
    width of a dash with its blanks. `literals` allows literal block scalars: at the end of a text without a last
    line break these would lose their own.
    """

    step: int = 2
    offset: int = 0
    dash: int = 2
    literals: bool = True


@dataclass(frozen=True, slots=True)
class FlowStyle:
    """How flow collections nearby are written: all quoted (JSON), what stands after `:` and after `,`.

    A `step` (blanks or tabs) spreads nested collections over lines of their own, as pretty-printed JSON does.
    """

    quoted: bool = False
    colon: str = " "
    comma: str = " "
    step: str = ""


# Read as something else than a string by YAML 1.1 (bool, null, merge, value; any case) or by YAML 1.2.
_WORDS = frozenset(("", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<", "=", ".nan", "nan"))
# Numbers, base 60 numbers and dates of YAML 1.1, numbers of YAML 1.2, and what resembles them.
_NUMERIC = re.compile(r"[-+.]?[0-9][0-9_,.:]*(?:[eE][-+]?[0-9]*)?|0[xXoObB][0-9a-fA-F_]*|[-+]?\.(?:inf|Inf|INF)")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?(?:$|[Tt ])")
_NOT_FINITE = {"nan": ".nan", "inf": ".inf", "-inf": "-.inf"}
_FIRST = frozenset("-?:,[]{}#&*!|>'\"%@`= \t")
_UNSAFE = re.compile(r": |\s#|:$|\s$|[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")
_FLOW_UNSAFE = re.compile(r"[,:?\[\]{}]")  # libyaml 0.1 and go-yaml v2 refuse a colon or question mark inside
# Printable lines, none with blanks at its end, the first and last not empty and the first not indented.
_LINE = r"(?:[^\s\x00-\x1f\x7f-\x9f\ufeff\ud800-\udfff\ufffe\uffff]|[ \t](?=[^\n]*[^\s]))"
_LITERAL = re.compile(rf"(?![ \t]){_LINE}+(?:\n{_LINE}*)*\n{_LINE}+\n?")
_ESCAPED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff\ufffe\uffff]")


@lru_cache(maxsize=4096)
def plain_is_safe(value: str, *, flow: bool) -> bool:
    """Tell whether `value` without quotes is read as that string under YAML 1.1 and 1.2 alike."""
    if value[:1] in _FIRST and not (value[0] == "-" and value[1:2].isalpha()):
        return False
    if value.lower() in _WORDS or _NUMERIC.fullmatch(value) or _DATE.match(value):
        return False
    if _UNSAFE.search(value) or (flow and _FLOW_UNSAFE.search(value)):
        return False
    return value[:3] not in ("---", "...") and isinstance(resolve(value), str)


def scalar(value: object, *, flow: bool, quoted: bool = False) -> str:
    """Write a scalar on one line; `quoted` quotes every string. Raise NotPlain if a Verbatim cannot stand here."""
    if isinstance(value, Verbatim):
        if quoted or _UNSAFE.search(value) or (flow and _FLOW_UNSAFE.search(value)) or value[:1] in _FIRST:
            raise NotPlain(f"{value} cannot stand unquoted in a flow collection" if flow else f"{value} is not plain")
        return str(value)
    if isinstance(value, str):
        if not quoted and plain_is_safe(value, flow=flow):
            return value
        return _ESCAPED.sub(lambda match: json.dumps(match[0])[1:-1], json.dumps(value, ensure_ascii=False))
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, float):
        return json.dumps(value) if math.isfinite(value) else _NOT_FINITE[str(value)]
    raise TypeError(f"no plain data: {type(value).__name__}")


def flow_value(value: object, style: FlowStyle, indent: str = "") -> str:
    """Write any value in flow style; lines after the first start at `indent` if the style spreads over lines."""
    if isinstance(value, dict):
        entries = [
            f"{flow_key(key, style)}{flow_value(item, style, indent + style.step)}" for key, item in value.items()
        ]
        return _brackets("{", entries, "}", style, indent)
    if isinstance(value, list):
        return _brackets("[", [flow_value(item, style, indent + style.step) for item in value], "]", style, indent)
    return scalar(value, flow=True, quoted=style.quoted)


def flow_key(key: str, style: FlowStyle) -> str:
    """Write a key of a flow mapping with its colon and what follows that."""
    text = scalar(key, flow=True, quoted=style.quoted)
    return f"{text}:{style.colon if text.startswith(chr(34)) else style.colon or ' '}"


def _brackets(left: str, entries: list[str], right: str, style: FlowStyle, indent: str) -> str:
    if not style.step or not entries:
        return f"{left}{f',{style.comma}'.join(entries)}{right}"
    inner = f"\n{indent}{style.step}"
    return f"{left}{inner}{f',{inner}'.join(entries)}\n{indent}{right}"


def block_entry(key: str, value: object, layout: Layout, column: int) -> list[str]:
    """Write `key: value` with the key at `column`, as lines without line breaks."""
    lines: list[str] = []
    _put_entry(lines, key, value, layout, column)
    return lines


def block_value(value: object, layout: Layout, column: int) -> list[str]:
    """Write a value at `column`, as lines without line breaks."""
    lines: list[str] = []
    _put_value(lines, value, layout, column)
    return lines


def block_item(value: object, layout: Layout, column: int) -> list[str]:
    """Write `- value` with the dash at `column`, as lines without line breaks."""
    lines: list[str] = []
    _put_item(lines, value, layout, column)
    return lines


def _put_value(lines: list[str], value: object, layout: Layout, column: int) -> None:
    if isinstance(value, dict) and value:
        for key, item in value.items():
            _put_entry(lines, key, item, layout, column)
    elif isinstance(value, list) and value:
        for item in value:
            _put_item(lines, item, layout, column)
    else:
        first, *rest = _leaf(value, layout, column)
        lines += (" " * column + first, *rest)


def _put_entry(lines: list[str], key: str, value: object, layout: Layout, column: int) -> None:
    head = f"{' ' * column}{scalar(key, flow=False)}:"
    if value and isinstance(value, dict | list):
        lines.append(head)
        _put_value(lines, value, layout, column + (layout.step if isinstance(value, dict) else layout.offset))
    else:
        first, *rest = _leaf(value, layout, column + layout.step)
        lines += (f"{head} {first}", *rest)


def _put_item(lines: list[str], value: object, layout: Layout, column: int) -> None:
    top = len(lines)
    _put_value(lines, value, layout, column + layout.dash)
    lines[top] = f"{' ' * column}-{' ' * (layout.dash - 1)}{lines[top][column + layout.dash :]}"


def _leaf(value: object, layout: Layout, indent: int) -> list[str]:
    """Write what has no lines of its own: the first line stands behind its key or dash, more of them at `indent`."""
    if isinstance(value, str):
        literal = _literal(value, indent) if "\n" in value and layout.literals else None
        return literal or [scalar(value, flow=False)]
    return ["{}" if isinstance(value, dict) else "[]" if isinstance(value, list) else scalar(value, flow=False)]


def _literal(value: str, indent: int) -> list[str] | None:
    """Write a text of several lines as a literal block scalar, or return None where that is not safe."""
    if isinstance(value, Verbatim) or not _LITERAL.fullmatch(value):
        return None
    lines = value.removesuffix("\n").split("\n")
    return ["|" if value.endswith("\n") else "|-", *(" " * indent + line if line else "" for line in lines)]


def documents_text(documents: Iterable[object]) -> str:
    """Write a file of its own that holds `documents`."""
    return "---\n".join("".join(f"{line}\n" for line in block_value(data, Layout(), 0)) for data in documents)
