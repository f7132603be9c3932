"""Kustomizations: read as one graph, converted as a whole, and proven by building them before and after."""
