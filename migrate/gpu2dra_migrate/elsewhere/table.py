"""Charts whose values can say claims: by name, since which version, and who knows how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpu2dra import Context, Options
from gpu2dra_migrate.elsewhere.app_template import app_template
from gpu2dra_migrate.elsewhere.modelservice import modelservice
from gpu2dra_migrate.elsewhere.ollama import ollama
from gpu2dra_migrate.elsewhere.outcome import Outcome
from gpu2dra_migrate.elsewhere.ray_cluster import ray_cluster
from gpu2dra_migrate.elsewhere.releases import Release

Convert = Callable[[Release, Options, Context], Outcome]


@dataclass(frozen=True, slots=True)
class Known:
    """One chart: `since` is the first version whose values can say claims.

    `template`: somebody else has to bring the ResourceClaimTemplate. `patched`: older versions convert as well, by a
    patch of what they render.
    """

    convert: Convert
    since: tuple[int, int, int]
    template: bool = False
    patched: bool = False


CHARTS: Mapping[str, Known] = {
    "app-template": Known(app_template, (5, 0, 0), template=True, patched=True),
    "ray-cluster": Known(ray_cluster, (1, 6, 0), template=True),
    "ollama": Known(ollama, (1, 26, 0)),
    "llm-d-modelservice": Known(modelservice, (0, 4, 1)),
}
