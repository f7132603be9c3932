"""Two replicas that race for one template, again and again: on each release, since the API server is the judge."""

from __future__ import annotations

import pytest

from controlplane.cluster import Options
from controlplane.creations import Habits, Held, Load, waiting
from controlplane.installation import Installation, templates

pytestmark = pytest.mark.slow
OPTIONS = Options(audit=False, without_controllers=["resourceclaim-controller"])
SHAPES = [f"shape-{number}" for number in range(125)]


def test_replicas_that_race_for_one_template_make_it_once(
    installation: Installation, namespace: str, held: Held
) -> None:
    """Eight clients bring the same new pod at once, to either replica, again and again with another one."""
    pods = waiting(namespace, *SHAPES)
    with installation.replicas() as replicas:
        replicas.start(2)
        load = Load(installation.plane, pods, Habits(in_a_row=16))
        held(load.run())
        assert len(templates(installation.plane.client, namespace)) == len(SHAPES)
        assert replicas.metric("gpu2dra_template_operations_total", operation="create", result="ok") == len(SHAPES)
        answered = [each.metric("gpu2dra_admission_requests_total") for each in replicas.serving]
        assert min(answered) > 100, answered
