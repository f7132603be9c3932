"""The conversion core: from a Kubernetes object to a plan of JSON Patch operations. Pure functions over plain data."""

from gpu2dra.codes import CODES, Code
from gpu2dra.model import (
    Access,
    ApiVersion,
    Context,
    Finding,
    Keep,
    Object,
    Operation,
    Options,
    Plan,
    Severity,
    Style,
)
from gpu2dra.workload import plan

__all__ = [
    "CODES", "Access", "ApiVersion", "Code", "Context", "Finding", "Keep", "Object", "Operation", "Options", "Plan",
    "Severity", "Style", "plan",
]  # fmt: skip
