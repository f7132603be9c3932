"""A real Kubernetes control plane for tests: built from Go modules, started in seconds, fed with NVIDIA's objects."""
