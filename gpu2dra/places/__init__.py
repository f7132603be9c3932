"""Legacy names outside a known PodSpec: what each place is, and what to do about it (R11, R12)."""

from gpu2dra.places.walk import elsewhere

__all__ = ["elsewhere"]
