"""Conversion between two programs: manifests come in on standard input, converted ones go out."""
