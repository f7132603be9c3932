"""Writes trees of kustomizations, converts them and judges what they build without the converter's own proof."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import yaml

from gpu2dra import Options, plan
from gpu2dra_migrate.kustomize.program import Kustomize
from gpu2dra_migrate.runner import FileResult, Mode, Settings, run
from gpu2dra_migrate.text.patch import copied, patched

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """Write files by their path in `folder`, their line breaks as they are."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def read(folder: Path) -> dict[str, str]:
    """Return the files of `folder` by their path in it."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes().decode()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".git" not in path.parts
    }


@dataclass
class Done:
    """A tree after its conversion: files before and after, what each kustomization built, and what was told."""

    folder: Path
    before: dict[str, str]
    after: dict[str, str]
    built: dict[str, tuple[list[Any], list[Any]]]
    results: list[FileResult] = field(default_factory=list)

    @property
    def changed(self) -> set[str]:
        """The files that are not what they were, new ones included."""
        return {name for name in self.before | self.after if self.before.get(name) != self.after.get(name)}

    def codes(self) -> Counter[str]:
        """Count the findings by code."""
        return Counter(located.finding.code for result in self.results for located in result.findings)

    def messages(self, code: str) -> list[str]:
        """Return what the findings of a code say."""
        return [
            located.finding.message
            for result in self.results
            for located in result.findings
            if located.finding.code == code
        ]


def settings(mode: Mode, options: Options = Options()) -> Settings:  # noqa: B008 - frozen
    """Return the settings of a run."""
    return Settings(mode=mode, options=options, max_size=1 << 20)


def convert(
    folder: Path,
    kustomize: Kustomize,
    *paths: str,
    options: Options = Options(),  # noqa: B008 - frozen
) -> Done:
    """Convert what is in `folder` (or `paths` of it) and build every kustomization before and after."""
    before, built = read(folder), build_all(folder, kustomize)
    results = list(run([folder / path for path in paths] or [folder], settings(Mode.CONVERT, options)))
    new = build_all(folder, kustomize)
    assert built.keys() == new.keys()
    return Done(folder, before, read(folder), {name: (built[name], new[name]) for name in built}, results)


def build_all(folder: Path, kustomize: Kustomize) -> dict[str, list[Any]]:
    """Return what each kustomization below `folder` builds, read by PyYAML; those that do not build are left out."""
    built = {}
    for file in sorted(path for path in folder.rglob("*") if path.name in NAMES):
        done = subprocess.run([*kustomize.command, str(file.parent)], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            built[file.parent.relative_to(folder).as_posix()] = [obj for obj in yaml.safe_load_all(done.stdout) if obj]
    return built


def judge(before: list[Any], after: list[Any], options: Options = Options()) -> list[str]:  # noqa: B008 - frozen
    """Return what is wrong: objects that are not what the core makes of the build before, by what they get in the end.

    What a Pod gets is what its template says, in its own namespace; names of templates do not matter.
    """
    expected: list[Any] = []
    templates: list[Any] = []
    for obj in before:
        made = plan(obj, options)
        expected.append(patched(copied(obj), made.operations))
        templates += made.templates
    wanted = Counter(map(_flat(expected + templates), expected))
    own = [obj for obj in after if not _made(obj)]
    found = Counter(map(_flat(after), own))
    return [f"missing: {text}" for text in wanted - found] + [f"unexpected: {text}" for text in found - wanted]


def _made(obj: Any) -> bool:
    return obj["kind"] == "ResourceClaimTemplate" and "gpu2dra.dev/workload" in (
        obj["metadata"].get("annotations") or {}
    )


def _flat(objects: list[Any]) -> Any:
    """Return a function that writes an object with the specs of its templates in the place of their names."""
    specs = {
        (obj["metadata"].get("namespace"), obj["metadata"]["name"]): json.dumps(obj["spec"], sort_keys=True)
        for obj in objects
        if obj["kind"] == "ResourceClaimTemplate"
    }

    def flat(obj: Any) -> str:
        namespace = obj["metadata"].get("namespace")

        def walk(value: Any) -> Any:
            if isinstance(value, dict):
                return {
                    key: specs.get((namespace, inner), f"no template {inner}")
                    if key == "resourceClaimTemplateName"
                    else walk(inner)
                    for key, inner in value.items()
                }
            return [walk(item) for item in value] if isinstance(value, list) else value

        return json.dumps(walk(obj), sort_keys=True)

    return flat


def requests(objects: list[Any]) -> list[str]:
    """Return what workloads ask for: `kind/name container count` per request, sorted."""
    templates = {
        (obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj["spec"]["spec"]["devices"]["requests"]
        for obj in objects
        if obj["kind"] == "ResourceClaimTemplate"
    }
    found = []
    for obj in objects:
        for spec in _pod_specs(obj):
            entries = {entry["name"]: entry["resourceClaimTemplateName"] for entry in spec.get("resourceClaims", ())}
            for container in (*spec.get("initContainers", ()), *spec["containers"]):
                for claim in container.get("resources", {}).get("claims", ()):
                    for request in templates[(obj["metadata"].get("namespace"), entries[claim["name"]])]:
                        if claim.get("request") in (None, request["name"]):
                            count = request["exactly"].get("count", 1)
                            name = obj["metadata"]["name"]
                            found.append(f"{obj['kind']}/{name} {container['name']} {count}")
    return sorted(found)


def _pod_specs(value: Any) -> list[Any]:
    if isinstance(value, dict):
        own = [value] if isinstance(value.get("containers"), list) else []
        return own + [spec for inner in value.values() for spec in _pod_specs(inner)]
    return [spec for item in value for spec in _pod_specs(item)] if isinstance(value, list) else []
