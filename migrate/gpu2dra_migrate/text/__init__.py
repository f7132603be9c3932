"""Edits of YAML and JSON text: only what has to change changes, and two parsers prove it."""
