"""Legacy names inside strings: which of them ask for a GPU, which only name the resource, which are look-alikes.

A string may hold anything (a manifest, a shell script, PromQL, a description) and the core has no parser at hand, so
each line is judged by what stands around the name. In doubt a name is reported: silence would be the worse mistake.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from gpu2dra.resources import QUOTA_PREFIXES, legacy_resource


class Form(StrEnum):
    """How the name stands there; in a string the form that comes first here decides."""

    KEY = "key"  # a mapping key, `nvidia.com/gpu: 1`
    NAME = "name"  # a scalar that is the name and nothing else
    REQUEST = "request"  # in a string: the name with an amount
    POINTER = "pointer"  # in a string: a JSON Pointer, `/limits/nvidia.com~1gpu`
    METRIC = "metric"  # in a string: a metric label, `resource="nvidia_com_gpu"`
    VALUE = "value"  # in a string: the name as a value or an argument
    PROSE = "prose"  # in a string: the name in running text


TEXT_FORMS = (Form.REQUEST, Form.POINTER, Form.METRIC, Form.VALUE, Form.PROSE)


class Mention(NamedTuple):
    """One legacy name inside a string; `line` counts line breaks before it."""

    form: Form
    name: str
    line: int


LOOKALIKE_WORD = (
    r"tolerations?|taints?|labels?|(?:node_?|label_?)?selectors?|match_?expressions|affinity|node_?requirements"
)
"""Ends of field names below which a resource name is the key of a taint or a node label, no request."""

_NAME = re.compile(
    r"(?<![A-Za-z0-9_-])(?P<prefix>(?:requests|limits)\.)?(?P<domain>nvidia(?P<escape>\\*)\.com|volcano\.sh)"
    r"(?P<slash>/|~1)(?P<rest>[A-Za-z0-9][A-Za-z0-9._-]*)"
    r"|(?<![A-Za-z0-9_])(?P<metric>nvidia_com_(?:gpu(?:_shared)?|mig_[a-z0-9_]+?(?:_shared)?))(?![A-Za-z0-9_])"
)
# A slash before the name makes it a part of a URL, but for JSON Pointers and the tags that an autoscaler reads.
_SLASH_BEFORE = re.compile(r"(?:limits|requests|resources|hard|capacity|allocatable)/$")
_LIMITS_BEFORE = re.compile(r"""(?:limits|requests)(?:\\*["']?\s*[:=]\s*\\*["']?\{[^{}]*|[=\s]\S*)$""")
_AMOUNT_AFTER = re.compile(r"""\\*["']?\]?\s*[:=]\s*\\*["']?(?:\d|\$[({A-Za-z]|\{\{|<)""")
_LABEL_AFTER = re.compile(r"""\\*["']?\s*[:=]\s*\\*["']?(?:true|false|present|exists?|yes|no)\b""", re.IGNORECASE)
_TAINT_AFTER = re.compile(r"""\\*["']?(?:=[\w.-]*)?:(?:NoSchedule|NoExecute|PreferNoSchedule)""")
_CDI_AFTER = re.compile(r"=(?:all\b|GPU-|MIG-|\d+:\d)")
_KEY_BEFORE = re.compile(r"""\b(?:key|topologyKey)\\*["']?\s*[:=]\s*\\*["']?$""", re.IGNORECASE)
_QUERY_BEFORE = re.compile(r"""\bresource\s*(?:=~|!~|!?=)\s*\\*["'][^"']*$""")
_VALUE_BEFORE = re.compile(
    r"""(?:[:=]\s*\\*["']?|[\[(,]\s*\\*["']|^\s*-\s+\\*["']?|--?[\w-]+\s+\\*["']?|^\s*\\*["']?)$"""
)
_COMMENT_LINE = re.compile(r"[ \t]*(?:#|//)")
_COMMENT_BEFORE = re.compile(r"\s#\s")
_LOOKALIKE_NEAR = re.compile(rf"(?:{LOOKALIKE_WORD}|--device)\b", re.IGNORECASE)
_LOOKALIKE_PARENT = re.compile(rf"""(?:{LOOKALIKE_WORD})\\*["']?\s*:\s*(?:[&|>]\S*)?\s*$""", re.IGNORECASE)
_NEAR = 60
"""How many characters around a name decide what it is: a minified line may hold a whole object."""
_FAR_LINES = 50
"""How many lines up the parent of an indented line is looked for."""
_ENOUGH = 20
"""How many requests in one string are read: they make one finding, which names each resource once."""


def base_name(name: str) -> str:
    """Return `name` without the `requests.` or `limits.` that quotas put before a resource name."""
    for prefix in QUOTA_PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def strongest(text: str) -> list[Mention]:
    """Return the mentions of the strongest form in `text`, in order; not all of them where there are very many."""
    found: dict[Form, list[Mention]] = {}
    for mention in mentions(text):
        same = found.setdefault(mention.form, [])
        same.append(mention)
        if mention.form is TEXT_FORMS[0] and len(same) == _ENOUGH:
            break
    return next((found[form] for form in TEXT_FORMS if form in found), [])


def mentions(text: str) -> Iterator[Mention]:
    """Yield every legacy name in `text` that is no look-alike and stands in no comment, in order."""
    line = start = seen = 0
    for match in _NAME.finditer(text):
        line += text.count("\n", seen, match.start())
        start = max(start, text.rfind("\n", seen, match.start()) + 1)
        seen = match.start()
        before = text[max(start, seen - 4 * _NEAR) : seen]
        if _COMMENT_LINE.match(text, start) or _COMMENT_BEFORE.search(before):
            continue
        if match["metric"]:
            yield Mention(Form.METRIC, match["metric"], line)
            continue
        rest = match["rest"].rstrip(".")
        name = f"{match['domain'].replace(chr(92), '')}/{rest}"
        if legacy_resource(name) is None or not _stands_alone(match, before):
            continue
        after = text[match.start("rest") + len(rest) : match.end() + _NEAR].partition("\n")[0]
        form = _form(match, before, after)
        if form is None or (form is Form.REQUEST and not match["prefix"] and _below_lookalike(text, start)):
            continue
        yield Mention(form, name, line)


def _stands_alone(match: re.Match[str], before: str) -> bool:
    """Whether the name is not the end of a longer one (`management.nvidia.com/gpu`, `https://nvidia.com/gpu`)."""
    if before.endswith("."):
        return bool(match["prefix"] or match["escape"])
    if before.endswith("/"):
        return match["slash"] == "~1" or bool(_SLASH_BEFORE.search(before))
    return True


def _form(match: re.Match[str], before: str, after: str) -> Form | None:
    """Judge one name by what stands before and after it on its line; None for a look-alike."""
    lookalike_near = _LOOKALIKE_NEAR.search(before[-_NEAR:] + after)
    if match["slash"] == "~1":
        return None if lookalike_near and not _SLASH_BEFORE.search(before) else Form.POINTER
    amount = _AMOUNT_AFTER.match(after)
    if amount and (match["prefix"] or _LIMITS_BEFORE.search(before)):
        return Form.REQUEST  # `--set resources.limits.nvidia\.com/gpu=1`, whatever else stands on the line
    if _QUERY_BEFORE.search(before):
        return Form.METRIC
    if _KEY_BEFORE.search(before) or any(p.match(after) for p in (_LABEL_AFTER, _TAINT_AFTER, _CDI_AFTER)):
        return None
    if lookalike_near:
        return None
    if amount:
        return Form.REQUEST
    return Form.VALUE if match["escape"] or _VALUE_BEFORE.search(before) else Form.PROSE


def _below_lookalike(text: str, start: int) -> bool:
    """Whether the line that begins at `start` is indented below a `nodeSelector:` or its like."""
    indent = _indent(text[start : start + _NEAR])
    for _ in range(_FAR_LINES):
        if start <= 0:
            break
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        line = text[start:end]
        if line.strip() and not _COMMENT_LINE.match(line) and _indent(line) < indent:
            return bool(_LOOKALIKE_PARENT.search(line))
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" -"))
