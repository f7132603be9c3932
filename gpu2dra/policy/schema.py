"""The JSON Schema of a ConversionPolicy, made from the types that read it: for editors and for the chart's values."""

from __future__ import annotations

from typing import Any

from gpu2dra.model import Object
from gpu2dra.policy.load import described

DRAFT = "http://json-schema.org/draft-07/schema#"
"""What editors and both majors of Helm understand."""
_BESIDE: dict[str, Object] = {
    "Match": {"minProperties": 1},
    "RuleEntry": {"oneOf": [{"required": ["device"]}, {"required": ["skip"]}]},
}
"""What the types cannot say: some field of a match, exactly one outcome of a rule."""


def policy_schema() -> Object:
    """Return the schema, without references, so that it can also stand inside another schema."""
    raw = described()
    parts = raw["$defs"]

    def completed(node: Any) -> Any:
        if isinstance(node, list):
            return [completed(item) for item in node]
        if not isinstance(node, dict):
            return node
        if reference := node.get("$ref"):
            name = reference.rpartition("/")[2]
            return completed(parts[name]) | _BESIDE.get(name, {})
        # An empty default stands for an absent field: where an empty value may not stand, it would contradict itself.
        return {
            key: completed(value)
            for key, value in node.items()
            if key != "title" and (value or key not in ("default", "required"))
        }

    return {"$schema": DRAFT, "title": "ConversionPolicy", **completed({"$ref": raw["$ref"]})}
