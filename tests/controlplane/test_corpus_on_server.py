"""What the converter writes for real public manifests and for the examples, judged by the API server.

Every converted object of a built-in kind goes through server-side apply in dry-run mode, as Flux would send it, and so
does its original. Templates and everything that the converter added must pass the strictest validation; whatever else
the server objects to, it must object to in the original too.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controlplane import trial
from controlplane.converted import TEMPLATE, Pair, complaint, is_built_in, pairs
from controlplane.equivalence import Record
from controlplane.manifests import placed
from controlplane.testbed import Cluster

if TYPE_CHECKING:
    from pathlib import Path


def test_the_server_takes_every_converted_object_of_a_built_in_kind(
    cluster: Cluster, shared: Path, record_property: Record
) -> None:
    chosen = [pair for pair in pairs(shared) if is_built_in(pair.after)]
    verdicts = trial.each(lambda pair: judged(cluster, pair), chosen)
    problems = [f"{pair.about}: {problem}" for pair, (problem, _) in zip(chosen, verdicts, strict=True) if problem]
    alike = {pair.about: reason for pair, (_, reason) in zip(chosen, verdicts, strict=True) if reason}
    kinds = Counter(pair.after["kind"] for pair in chosen)
    lines = [
        f"{len(chosen)} converted objects of {len({pair.file for pair in chosen})} files, by server-side apply:",
        f"  {', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}",
        f"  {len(alike)} are refused as their originals are:",
        *(f"    {about}: {reason}" for about, reason in sorted(alike.items())),
        f"  {len(problems)} are refused, and their originals are not",
    ]
    record_property("figures", "\n".join(lines))
    assert problems == []
    assert kinds.keys() >= {TEMPLATE, "Deployment", "Job", "Pod", "StatefulSet", "CronJob"}


def judged(cluster: Cluster, pair: Pair) -> tuple[str, str]:
    """Return what is wrong with a converted object, and why it is refused as its original is."""
    answers = [
        cluster.client.try_apply(
            placed(cluster.client, obj, cluster.namespace), dryRun="All", fieldValidation="Strict", force=True
        )
        for obj in (pair.after, pair.before)
        if obj
    ]
    said = [complaint(answer) for answer in answers]
    if pair.before is None or not said[0]:
        return said[0], ""
    return ("", said[0]) if said[0] == said[1] else (f"{said[0]} (the original: {said[1] or 'accepted'})", "")
