"""Fixtures that run the webhook's cluster side for a test and end it with the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from controlplane.cluster import ControlPlane
from controlplane.testbed import Cluster
from controlplane.webhook_cluster import running
from controlplane.webhook_cluster.gate import Gate
from controlplane.webhook_cluster.running import Run, Running

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def rights(control_plane: ControlPlane) -> Path:
    """Return a kubeconfig of a user with the rights of the chart."""
    running.grant(control_plane.client)
    return control_plane.kubeconfig(running.USER)


@pytest.fixture
def run(rights: Path) -> Iterator[Run]:
    """Return what starts a replica's cluster side: without janitor, unless asked; other choices are settings."""
    started: list[Running] = []

    def start(kubeconfig: Path = rights, *, janitor: bool = False, **choices: Any) -> Running:
        started.append(running.run(kubeconfig, janitor=janitor, **choices))
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def gate(cluster: Cluster, rights: Path) -> Iterator[Gate]:
    """Return a gate in front of the API server."""
    with Gate(cluster.plane.server, rights) as made:
        yield made
