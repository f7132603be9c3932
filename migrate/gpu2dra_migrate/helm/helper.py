"""The text of `templates/_gpu2dra.tpl`: the rules in template language, filled with the tables of the core."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from importlib import resources
from typing import Any

from gpu2dra import CODES, Options
from gpu2dra.devices import device_for
from gpu2dra.kinds import KINDS, Kind
from gpu2dra.names import DIGEST_LENGTH
from gpu2dra.resources import _PATTERNS, LegacyResource, Meaning
from gpu2dra.skips import CONVERT_ANNOTATION, FOREIGN_ANNOTATIONS, SYSTEM_NAMESPACES
from gpu2dra.templates import WORKLOAD_ANNOTATION
from gpu2dra_migrate.config import api_version_of

FILE_NAME = "_gpu2dra.tpl"
MARK = "Made by gpu2dra"
"""Stands in the first lines of every helper, so that one of another version is known and replaced."""
TARGETS = {target: str(api_version_of(target)) for target in ("1.32", "1.33", "1.34+")}
"""The values of `dra.target` and the API version of the templates that each stands for (R9)."""
BUILT_IN_GROUPS = frozenset({"", "apps", "batch"})
SHARES: dict[str, dict[str, Any]] = {
    "cloud.google.com/gke-gpu-sharing-strategy": {"like": "^"},
    "cloud.google.com/gke-max-shared-clients-per-gpu": {"like": "^"},
    "cloud.google.com/gke-gpu-partition-size": {"like": "^"},
    "nvidia.com/gpu.sharing-strategy": {"like": "^", "unless": ["none", ""]},
    "nvidia.com/gpu.product": {"like": "-SHARED$|-MIG-"},
    "nvidia.com/mig.strategy": {"like": "^single$"},
}
"""`gpu2dra.skips.SHARE_SELECTORS` as data: values that match `like`, and are none of `unless`, mean a share."""
_CODES = (
    "DRA201", "DRA202", "DRA203", "DRA204", "DRA205", "DRA206", "DRA301", "DRA302", "DRA303", "DRA304", "DRA305",
    "DRA306", "DRA307", "DRA308", "DRA309", "DRA313", "DRA315",
)  # fmt: skip
"""What the helper can find to forbid a conversion."""
_LOOKAHEAD = re.compile(r"\(\?=(?P<ahead>[^()]*)\)")


@cache
def helper(options: Options, groups: frozenset[str] = BUILT_IN_GROUPS) -> str:
    """Return the helper for charts that render kinds of these API `groups`, beside those of Kubernetes itself.

    Names of its definitions carry a digest of its text: definitions are global over a chart and its subcharts, which
    may have been converted by another version or for another target.
    """
    rows = [row for row in KINDS.values() if row.group in groups | BUILT_IN_GROUPS]
    operators = _part("operators.tpl") if any(row.operator for row in rows) else ""
    text = _filled(_part(FILE_NAME), operators=operators)
    text = _filled(
        text, tables="\n".join(_tables(rows, options)), target=target_of(options),
        workload=WORKLOAD_ANNOTATION, convert=CONVERT_ANNOTATION,
    )  # fmt: skip
    return _filled(text, version=hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH])


def entrance(text: str) -> str:
    """Return the name of the definition in the helper `text` through which files render, its first one."""
    return text.partition('define "')[2].partition('"')[0]


def kube_version_of(options: Options) -> str:
    """Return the oldest version of the server that a chart is rendered for."""
    return f"{target_of(options).rstrip('+')}.0"


def target_of(options: Options) -> str:
    """Return the `dra.target` that stands for the API version in `options`."""
    return next(target for target, version in TARGETS.items() if version == str(options.api_version))


def _part(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _filled(text: str, **values: str) -> str:
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _tables(rows: Collection[Kind], options: Options) -> Iterator[str]:
    """Yield the lines of the helper's tables, which are YAML."""
    gpu, mig = (device_for(LegacyResource("", meaning, "%s")) for meaning in (Meaning.GPU, Meaning.MIG))
    assert gpu is not None and mig is not None  # noqa: S101, PT018 - both have a device in the built-in policy
    devices = {"gpu": {"class": gpu.device_class}, "mig": {"class": mig.device_class, "expression": mig.selectors[0]}}
    yield from _table("kinds", {f"{row.kind}.{row.group}".rstrip("."): _kind(row) for row in rows})
    yield from _table("names", [{"meaning": meaning, "patterns": _re2(pattern)} for pattern, meaning in _PATTERNS])
    yield from _table("devices", devices)
    yield from _table("targets", TARGETS)
    yield from _table("shares", SHARES)
    yield f"foreign: {json.dumps(sorted(FOREIGN_ANNOTATIONS))}"
    yield f"namespaces: {json.dumps(sorted(SYSTEM_NAMESPACES))}"
    yield f"schedulers: {json.dumps(sorted(options.schedulers))}"
    yield f"tolerations: {json.dumps(options.tolerations)}"
    yield from _table("codes", {code: CODES[code].name for code in _CODES})


def _table(name: str, rows: dict[str, Any] | list[Any]) -> Iterator[str]:
    yield f"{name}:"
    if isinstance(rows, list):
        yield from (f"- {json.dumps(row)}" for row in rows)
    else:
        yield from (f"  {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())


def _kind(row: Kind) -> dict[str, Any]:
    ways = {name: getattr(row, name) for name in ("templates", "specs", "objects")}
    return {
        "versions": list(row.versions),
        **{name: [way.removeprefix("/") for way in patterns] for name, patterns in ways.items() if patterns},
        **({"operator": row.operator.value} if row.operator else {}),
    }


def _re2(pattern: re.Pattern[str]) -> list[str]:
    """Return expressions that a text has to match all of: Go's regular expressions know no lookahead."""
    if ahead := _LOOKAHEAD.search(pattern.pattern):
        before, after = pattern.pattern[: ahead.start()], pattern.pattern[ahead.end() :]
        return [f"^{before}{ahead['ahead']}", f"^(?:{before}{after})$"]
    return [f"^(?:{pattern.pattern})$"]
