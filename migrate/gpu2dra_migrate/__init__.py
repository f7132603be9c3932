"""The converter: finds legacy GPU requests in files and moves them to Dynamic Resource Allocation.

The version of the distribution stands here, and not in the core, so that `--version` loads nothing else.
"""

__version__ = "0.1.0"
