"""Writes what follows from other files of the chart: the texts and the policy in its schema, README's table, goldens.

`make chart` runs it; the tests compare. The comments of values.yaml are the one place where values are documented.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from controlplane import build
from controlplane.client import Object
from controlplane.helm import CHART, Helm
from gpu2dra.policy.schema import policy_schema

GOLDEN = Path(__file__).resolve().parent / "golden"
CLUSTERS = CHART.parents[1] / "examples" / "clusters"
VALUES = CHART / "values.yaml"
SCHEMA = CHART / "values.schema.json"
README = CHART / "README.md"
_TABLE = re.compile(r"(?<=<!-- values: begin -->\n).*(?=<!-- values: end -->)", re.DOTALL)
_KEY = re.compile(r"( *)(\w+):")
NOT_CHOSEN = frozenset({"global", "enabled"})
"""Values that a parent chart hands on; this one takes them and does nothing with them."""
_IN_ONE_CELL = frozenset({"resources", "nodeSelector", "podSecurityContext", "securityContext", "labels"})


def comments() -> dict[str, str]:
    """Return the comment above each value, by the path of the value (as certificates.self.caLifetimeSeconds)."""
    found: dict[str, str] = {}
    path: list[tuple[int, str]] = []
    pending: list[str] = []
    for line in VALUES.read_text("utf-8").splitlines():
        if line.lstrip().startswith("#"):
            pending.append(line.lstrip("# "))
            continue
        if key := _KEY.match(line):
            path = [*((depth, name) for depth, name in path if depth < len(key[1])), (len(key[1]), key[2])]
            if pending:
                found[".".join(name for _, name in path)] = " ".join(pending)
        pending = []
    return found


def leaves() -> Iterator[tuple[str, Any]]:
    """Yield the path and the default of every value that can be set by itself."""

    def walk(values: Object, prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in values.items():
            if isinstance(value, dict) and value and name not in _IN_ONE_CELL:
                yield from walk(value, f"{prefix}{name}.")
            else:
                yield prefix + name, value

    return walk(yaml.safe_load(VALUES.read_text("utf-8")), "")


def schema() -> str:
    """Return values.schema.json as it has to be: its structure stays, its texts and the policy are put in."""
    texts = comments()
    root: Object = json.loads(SCHEMA.read_text("utf-8"))

    def describe(part: Object, defaults: Any, prefix: str) -> None:
        properties = part.get("properties", {})
        for name, inner in properties.items():
            text = {"description": texts[prefix + name]} if prefix + name in texts else {}
            properties[name] = text | {key: value for key, value in inner.items() if key != "description"}
        # Helm takes a value away that is set to null: the templates would go on with half a decision.
        if required := [name for name in properties if name in (defaults or {})]:
            part["required"] = required
        for name in properties:
            describe(properties[name], (defaults or {}).get(name), f"{prefix}{name}.")

    describe(root, yaml.safe_load(VALUES.read_text("utf-8")), "")
    policy = policy_schema()
    del policy["$schema"]
    # Without a policy there is nothing to check: the built-in one holds.
    root["properties"]["policy"] |= {"if": {"minProperties": 1}, "then": policy}
    return json.dumps(root, indent=2, ensure_ascii=False) + "\n"


def readme() -> str:
    """Return the chart's README with its table of values."""
    texts = comments()
    rows = [
        f"| `{path}` | `{json.dumps(default, ensure_ascii=False)}` | {texts[path]} |\n" for path, default in leaves()
    ]
    table = "".join(["| value | default | meaning |\n", "| --- | --- | --- |\n", *rows])
    return _TABLE.sub(lambda _: table, README.read_text("utf-8"))


def value_sets() -> dict[str, Object]:
    """Return the values of each golden by its name."""
    return {path.stem.removesuffix(".values"): yaml.safe_load(path.read_text("utf-8")) or {} for path in _inputs()}


def cluster_values() -> dict[str, Object]:
    """Return the values of each set-up in examples/clusters by its name."""
    return {path.parent.name: yaml.safe_load(path.read_text("utf-8")) for path in CLUSTERS.glob("*/values.yaml")}


def golden(helm: Helm, name: str) -> str:
    """Return what the chart renders to for the values of a golden."""
    return helm.template(value_sets()[name])


def _inputs() -> list[Path]:
    return sorted(GOLDEN.glob("*.values.yaml"))


def main() -> None:
    """Write everything anew."""
    SCHEMA.write_text(schema(), "utf-8")
    README.write_text(readme(), "utf-8")
    with tempfile.TemporaryDirectory() as home:
        helm = Helm(build.ensure("helm-4") / "helm", Path(home))
        for name in value_sets():
            (GOLDEN / f"{name}.yaml").write_text(golden(helm, name), "utf-8")
            print(f"{name}: written", file=sys.stderr)


if __name__ == "__main__":
    main()
