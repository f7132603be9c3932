"""300 drawn Pods: a legacy Pod fits a node of the device plugin if and only if its converted twin fits one of DRA.

Both are tried on nodes that have exactly what the Pod needs, and on nodes that lack one device of one resource. What
"needs" means is worked out in `pods.py`, which knows nothing of the converter.
"""

from __future__ import annotations

from collections import Counter

from controlplane import equivalence, gpus, trial
from controlplane.cluster import Options
from controlplane.equivalence import NAMESPACE, Case, Record
from controlplane.pods import FEATURES, SHARE, faults, features
from controlplane.testbed import StartControlPlane
from controlplane.trial import Verdict

SEARCH = 0.03
"""Seconds that the scheduler may look for devices on a node that has too few. It tries them in every order before it
gives a node up: ten where eleven are asked for take it a second, and each one more ten times as long."""


def wrong(case: Case, verdict: Verdict) -> list[str]:
    """Return what is wrong with the devices of a twin that was bound."""
    problems = []
    for resource, allocated in verdict.allocated.items():
        reached = {name: devices[resource] for name, devices in verdict.devices.items()}
        problems += [f"{case.name}: {resource}: {fault}" for fault in faults(case.wishes, resource, reached, allocated)]
    for wish in case.wishes:
        if verdict.others[wish.name] != len(wish.claims):
            problems.append(f"{case.name}: {wish.name} lost a claim that it had before")
    return problems


def test_twins_fit_where_legacy_pods_do_and_reach_the_right_devices(
    start_control_plane: StartControlPlane, record_property: Record
) -> None:
    client, found = equivalence.start(start_control_plane, Options(audit=False), gpus.device_classes())
    placements = [placement for case in found for placement in case.placements(NAMESPACE, fits=True)]
    verdicts = {verdict.placement.name: verdict for verdict in trial.run(client, NAMESPACE, placements)}
    problems = [verdict.unexpected for verdict in verdicts.values() if verdict.unexpected]
    for case in found:
        twin = verdicts[f"{case.name}-twin-0"]
        problems += wrong(case, twin) if twin.bound else []
    flapped = sum(verdict.flapped for verdict in verdicts.values())
    counts = Counter(feature for case in found for feature in features(case.wishes))
    devices = sum(len(allocated) for verdict in verdicts.values() for allocated in verdict.allocated.values())
    lines = [
        f"{len(found)} Pods and their twins on nodes with just enough devices: {len(problems)} differences;",
        f"{devices} devices allocated; {flapped} × the server lost claims of a pod (kubernetes#138407);",
        "of the Pods have",
        *(f"  {counts[feature] / len(found):.0%} {feature}" for feature in FEATURES),
    ]
    record_property("figures", "\n".join(lines))
    assert problems == []
    assert all(counts[feature] >= SHARE * len(found) for feature in FEATURES), counts


def test_twins_do_not_fit_where_legacy_pods_do_not(
    start_control_plane: StartControlPlane, record_property: Record
) -> None:
    client, found = equivalence.start(
        start_control_plane, Options(audit=False, filter_timeout=SEARCH, max_backoff=600), gpus.device_classes()
    )
    placements = [placement for case in found for placement in case.placements(NAMESPACE, fits=False)]
    verdicts = trial.run(client, NAMESPACE, placements)
    problems = [verdict.unexpected for verdict in verdicts if verdict.unexpected]
    for verdict in verdicts:
        free = sum(verdict.placement.node.values())
        if not verdict.placement.plugin and verdict.asked != free + 1:
            problems.append(f"{verdict.placement.name} asks for {verdict.asked} devices where {free} are free")
    reasons = Counter(trial.reason(verdict) for verdict in verdicts if not verdict.bound)
    lines = [
        f"{len(placements)} placements on nodes with one device too few: {len(problems)} differences;",
        *(f"  {count} × not bound: {reason}" for reason, count in sorted(reasons.items())),
    ]
    record_property("figures", "\n".join(lines))
    assert problems == []
    assert set(reasons) <= set(trial.CAUSES.values())
