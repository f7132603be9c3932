"""Helm charts: converted when they render, so that every shape of template works and values stay the interface."""
