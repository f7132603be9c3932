"""Real public manifests and the examples, before and after: the objects that the converter changes or adds."""

from __future__ import annotations

import functools
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from controlplane import build
from controlplane.client import Answer, Object
from controlplane.manifests import load
from gpu2dra import Options
from gpu2dra.kinds import kind_of
from gpu2dra_migrate.config import MAX_SIZE
from gpu2dra_migrate.runner import Mode, Settings, run

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TEMPLATE = "ResourceClaimTemplate"
_OF_KUSTOMIZE = "kustomize.config.k8s.io/"
"""What kustomize alone reads: it goes to no server."""


@dataclass(frozen=True, slots=True)
class Pair:
    """An object before and after; a template has nothing before it."""

    file: str
    before: Object | None
    after: Object

    @property
    def about(self) -> str:
        """The object, for people."""
        metadata = self.after["metadata"]
        return f"{self.file}: {self.after['kind']}/{metadata.get('name') or metadata.get('generateName')}"


@functools.cache
def pairs(shared: Path) -> tuple[Pair, ...]:
    """Return what the command `convert` makes of copies of the corpus and the examples, with the tests' kustomize."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPU2DRA_KUSTOMIZE", str(build.ensure("kustomize-5") / "kustomize"))
        return _pairs(shared)


def _pairs(shared: Path) -> tuple[Pair, ...]:
    sources = {"corpus": shared / "corpus", "examples": EXAMPLES / "legacy"}
    found: list[Pair] = []
    with tempfile.TemporaryDirectory(prefix="gpu2dra-") as folder:
        tree = Path(folder) / "tree"
        for name, source in sources.items():
            shutil.copytree(source, tree / name)
        for path in tree.rglob("*"):
            path.chmod(path.stat().st_mode | 0o200)
        subprocess.run(["git", "init", "-q", str(tree)], check=True)
        for result in run([tree], Settings(mode=Mode.CONVERT, options=Options(), max_size=MAX_SIZE)):
            if result.changed:
                place = result.path.relative_to(tree)
                before = sources[place.parts[0]].joinpath(*place.parts[1:])
                texts = [path.read_text(encoding="utf-8") for path in (before, result.path, *result.created)]
                found += compared(str(place), *texts)
    return tuple(found)


def compared(name: str, before: str, *after: str) -> Iterator[Pair]:
    """Yield what differs between the objects of a file and those that became of it."""
    originals = {identity(obj): obj for obj in load(before)}
    for text in after:
        for obj in load(text):
            if str(obj.get("apiVersion")).startswith(_OF_KUSTOMIZE):
                continue
            original = originals.get(identity(obj))
            if original != obj:
                assert original is not None or obj["kind"] == TEMPLATE, f"{name} has a new {obj['kind']}"
                yield Pair(name, original, obj)


def identity(obj: Object) -> tuple[str, str, str, str]:
    """Return what tells the objects of a file apart."""
    metadata = obj.get("metadata") or {}
    name = str(metadata.get("name") or metadata.get("generateName"))
    return obj["apiVersion"], obj["kind"], str(metadata.get("namespace")), name


def is_built_in(obj: Object) -> bool:
    """Return whether every server serves the kind."""
    kind = kind_of(obj)
    return obj["kind"] == TEMPLATE or (kind is not None and kind.since.startswith("Kubernetes"))


def complaint(answer: Answer) -> str:
    """Return what the server says against an object, without the names that it gives it; empty when it takes it."""
    return "" if answer.accepted else re.sub(r'^[^"]*"[^"]*"', "", str(answer.object["message"]))
