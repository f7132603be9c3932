"""Measure everything, and put the figures into the README; `make bench` runs it."""

from __future__ import annotations

from bench import command_line, creations, tables, webhook

for part in (command_line, webhook, creations):
    part.main()
tables.put_into_readme()
