"""The examples: twins are what the tool prints, and what was written by hand about devices holds for both."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml

from gpu2dra import Access, Plan, plan

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LEGACY = sorted(path.name for path in (EXAMPLES / "legacy").iterdir())
STEMS = sorted(Path(name).stem for name in LEGACY)
PROFILE = re.compile(r"\.profile == '([^']+)'")

Object: TypeAlias = dict[str, Any]
Devices: TypeAlias = dict[str, int | str]
"""Amounts by DeviceClass, or by `<DeviceClass>/<MIG profile>`."""
Pair: TypeAlias = frozenset[str]


def run(root: Path, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with this tree on its path."""
    folders = (root, root / "migrate", root / "webhook")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, folders)), "NO_COLOR": "1"}
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=environment, check=False, capture_output=True, text=True
    )


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def objects(folder: str, stem: str) -> list[Object]:
    """Return the objects of an example, of the files beside it for templates, too."""
    paths = [path for path in (EXAMPLES / folder).iterdir() if path.stem in (stem, f"{stem}-gpu-template")]
    return [obj for path in paths for obj in yaml.safe_load_all(path.read_text("utf-8"))]


def identity(obj: Object) -> tuple[str, str, str]:
    """Return kind, namespace and name; of a `devices` entry the same, from its own fields."""
    metadata = obj.get("metadata", obj)
    return obj["kind"], metadata.get("namespace", ""), metadata.get("name", metadata.get("generateName"))


def workloads(stem: str) -> list[Object]:
    """Return what was written by hand about an example; an unknown field is an error."""
    document = yaml.safe_load((EXAMPLES / "devices" / f"{stem}.yaml").read_text("utf-8"))
    assert document.keys() == {"workloads"}
    for workload in document["workloads"]:
        fields = workload.keys() - {"kind", "name", "generateName", "namespace"}
        assert fields == ({"legacy"} if "legacy" in workload else {"pods"})
        for pod in workload.get("pods", ()):
            assert pod.keys() == {"template", "containers", "total", "shared"}
            assert all(pair.keys() == {"containers", "devices"} for pair in pod["shared"])
    return list(document["workloads"])


def converted(stem: str) -> list[Object]:
    return [workload for workload in workloads(stem) if "pods" in workload]


def by_hand(pod: Object) -> dict[Pair, int]:
    """Return how many devices each pair of containers has in common."""
    return {frozenset(pair["containers"]): pair["devices"] for pair in pod["shared"]}


def at(obj: Any, pointer: str) -> Any:
    """Return the value at a JSON Pointer without escapes."""
    for segment in pointer.split("/")[1:]:
        obj = obj[int(segment) if isinstance(obj, list) else segment]
    return obj


def templates_in(value: Any, path: str = "") -> list[str]:
    """Return the pointers of everything that holds a spec with containers, wherever it stands."""
    if isinstance(value, list):
        return [found for index, item in enumerate(value) for found in templates_in(item, f"{path}/{index}")]
    if not isinstance(value, dict):
        return []
    spec = value.get("spec")
    here = [path] if isinstance(spec, dict) and "containers" in spec else []
    return here + [found for key, item in value.items() for found in templates_in(item, f"{path}/{key}")]


def containers_of(spec: Object) -> list[Object]:
    return [*spec.get("initContainers", ()), *spec["containers"]]


def add(devices: Devices, key: str, amount: int | str) -> None:
    """Add an amount; a placeholder cannot be added to anything."""
    assert isinstance(amount, int) or key not in devices
    before = devices.get(key, 0)
    devices[key] = before + amount if isinstance(before, int) and isinstance(amount, int) else amount


class Counted:
    """What one pod of a converted template reaches, counted from its claims and their templates alone."""

    def __init__(self, spec: Object, namespace: str, claim_templates: dict[tuple[str, str], Object]) -> None:
        self.requests: dict[tuple[str, str], tuple[str, int | str]] = {}
        self.templates: set[tuple[str, str]] = set()
        for entry in spec.get("resourceClaims", ()):
            key = (namespace, entry["resourceClaimTemplateName"])
            self.templates.add(key)
            for request in claim_templates[key]["spec"]["spec"]["devices"]["requests"]:
                exactly = request["exactly"]
                profiles = [
                    match[1]
                    for selector in exactly.get("selectors", ())
                    if (match := PROFILE.search(selector["cel"]["expression"]))
                ]
                name = "/".join([exactly["deviceClassName"], *profiles])
                self.requests[entry["name"], request["name"]] = (name, exactly["count"])
        self.uses = {
            container["name"]: [
                key
                for claim in container.get("resources", {}).get("claims", ())
                for key in self.requests
                if key[0] == claim["name"] and claim.get("request", key[1]) == key[1]
            ]
            for container in containers_of(spec)
        }

    def devices(self, keys: list[tuple[str, str]]) -> Devices:
        """Return what the requests, named by claim entry and request, hold together."""
        total: Devices = {}
        for key in keys:
            add(total, *self.requests[key])
        return total

    @property
    def containers(self) -> dict[str, Devices]:
        """What each container reaches."""
        return {name: self.devices(keys) for name, keys in self.uses.items()}

    @property
    def total(self) -> Devices:
        """What the claims of the pod hold, used or not."""
        return self.devices(list(self.requests))

    @property
    def shared(self) -> dict[Pair, int]:
        """How many devices each pair of containers has in common."""
        pairs = {
            frozenset((one, other)): self.devices([key for key in self.uses[one] if key in self.uses[other]])
            for one, other in combinations(self.uses, 2)
        }
        return {pair: sum(map(int, devices.values())) for pair, devices in pairs.items() if devices}


@pytest.fixture(scope="session")
def printed(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the legacy examples, converted by the command."""
    folder = tmp_path_factory.mktemp("examples") / "converted"
    shutil.copytree(EXAMPLES / "legacy", folder)
    done = run(root, "-m", "gpu2dra_migrate", "convert", str(folder))
    assert done.returncode == 1, done.stdout + done.stderr
    return folder


def test_the_twins_are_what_the_tool_prints(printed: Path) -> None:
    expected, actual = contents(EXAMPLES / "converted"), contents(printed)
    assert expected.keys() == actual.keys()
    changed = [name for name in expected if expected[name] != actual[name]]
    assert not changed, "if the change is meant, `make examples` writes the twins again"


def check(root: Path, folder: Path) -> tuple[int, dict[str, int]]:
    """Return the exit code of `check`, and how often it gives each code."""
    done = run(root, "-m", "gpu2dra_migrate", "check", "--output", "json", str(folder))
    return done.returncode, json.loads(done.stdout)["summary"]["codes"]


def test_nothing_is_left_to_do_in_the_twins(root: Path, printed: Path) -> None:
    notes = {"DRA101": 1, "DRA201": 1}  # the zero and the opt-out of rag-app: the files were looked at
    assert check(root, printed) == (0, notes)
    assert check(root, EXAMPLES / "converted") == (0, notes)


def test_a_repository_and_a_plain_folder_give_the_same(root: Path, tmp_path: Path) -> None:
    plain = Path(shutil.copytree(EXAMPLES / "legacy", tmp_path / "plain"))
    tracked = Path(shutil.copytree(plain, tmp_path / "repository" / "deeply" / "nested" / "tracked"))
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path / "repository", check=True)
    subprocess.run(["git", "add", "--all"], cwd=tracked, check=True)
    untracked = Path(shutil.copytree(plain, tracked.with_name("untracked")))
    code, codes = check(root, plain)
    assert (code, codes["DRA001"] > len(LEGACY)) == (1, True)
    assert check(root, tracked) == check(root, untracked) == (code, codes)


def test_each_example_has_its_devices_and_a_line_in_the_index() -> None:
    assert len(STEMS) == len(set(STEMS))
    assert sorted(path.name for path in (EXAMPLES / "devices").iterdir()) == [f"{stem}.yaml" for stem in STEMS]
    index = re.findall(r"^\| `([a-z0-9-]+)` \| \S.* \|$", (EXAMPLES / "README.md").read_text("utf-8"), re.MULTILINE)
    assert index == STEMS


@pytest.mark.parametrize("stem", STEMS)
def test_the_devices_speak_of_every_container(stem: str) -> None:
    written = {identity(workload): workload for workload in workloads(stem)}
    found = {identity(obj): obj for obj in objects("legacy", stem) if templates_in(obj)}
    assert written.keys() == found.keys()
    for key, workload in written.items():
        if "pods" not in workload:
            continue
        assert [pod["template"] for pod in workload["pods"]] == templates_in(found[key])
        for pod in workload["pods"]:
            spec = at(found[key], pod["template"])["spec"]
            assert list(pod["containers"]) == [container["name"] for container in containers_of(spec)]


@pytest.mark.parametrize("stem", STEMS)
def test_the_twins_reach_the_devices(stem: str) -> None:
    twins = objects("converted", stem)
    claim_templates = {identity(obj)[1:]: obj for obj in twins if obj["kind"] == "ResourceClaimTemplate"}
    users = {identity(obj): obj for obj in twins if templates_in(obj)}
    used: set[tuple[str, str]] = set()
    for workload in converted(stem):
        twin = users[identity(workload)]
        for pod in workload["pods"]:
            spec = at(twin, pod["template"])["spec"]
            counted = Counted(spec, identity(workload)[1], claim_templates)
            assert counted.containers == pod["containers"]
            assert counted.total == pod["total"]
            assert counted.shared == by_hand(pod)
            for container in containers_of(spec):
                limits = container.get("resources", {}).get("limits", {})
                # A zero says "none", and stays.
                assert not any(amount for name, amount in limits.items() if "nvidia.com/" in name)
            used |= counted.templates
    assert used == claim_templates.keys()


@pytest.mark.parametrize("stem", STEMS)
def test_what_stays_legacy_is_as_it_was(stem: str) -> None:
    before = {identity(obj): obj for obj in objects("legacy", stem)}
    after = {identity(obj): obj for obj in objects("converted", stem)}
    unconverted = {identity(workload) for workload in workloads(stem) if "legacy" in workload}
    assert {key for key in unconverted if "nvidia.com/gpu" in json.dumps(after[key])} == unconverted
    changed = {key for key in before if before[key] != after[key]}
    reaching = {identity(work) for work in converted(stem) if any(pod["total"] for pod in work["pods"])}
    assert changed == reaching


@pytest.mark.parametrize("stem", STEMS)
def test_the_plan_says_the_same(stem: str) -> None:
    plans: dict[tuple[str, str, str], Plan] = {identity(obj): plan(obj) for obj in objects("legacy", stem)}
    for workload in converted(stem):
        access = plans[identity(workload)].access
        for pod in workload["pods"]:
            here = {item.container: item for item in access if item.path.startswith(f"{pod['template']}/spec/")}
            for name, devices in pod["containers"].items():
                assert _reached(here.get(name)) == _sum(devices)
            pairs = {
                frozenset((one.container, other.container))
                for one, other in combinations(here.values(), 2)
                if any(a == c and (b == d or "" in {b, d}) for a, b in one.requests for c, d in other.requests)
            }
            assert pairs == by_hand(pod).keys()


def _reached(access: Access | None) -> int | str:
    return access.devices if access else 0


def _sum(devices: Devices) -> int | str:
    amounts = list(devices.values())
    return amounts[0] if len(amounts) == 1 else sum(map(int, amounts))


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a copy of the examples that a test may change."""
    return Path(shutil.copytree(EXAMPLES, tmp_path / "examples"))


def demo(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(root, str(EXAMPLES / "demo.py"), *arguments, cwd=EXAMPLES.parent)


def test_the_demo_shows_every_example_being_converted(root: Path) -> None:
    before = contents(EXAMPLES / "legacy")
    done = demo(root)
    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in LEGACY if f"converted manifests/{name}\n" not in done.stdout] == []
    assert done.stdout.index("$ gpu2dra check") < done.stdout.index("$ gpu2dra diff")
    assert done.stdout.index("$ gpu2dra diff") < done.stdout.index("$ gpu2dra convert")
    assert "gpu2dra check PATH" in done.stdout
    assert [name for name in LEGACY if not admitted(done.stdout, name)] == []
    assert re.search(r"^skipped +rag-app\.yaml +Deployment ocr +DRA201$", done.stdout, re.MULTILINE)
    assert done.stdout.index("Convert all of them") < done.stdout.index("$ gpu2dra-webhook --store memory")
    for shown in ("The Pod as the API server sends it", "The answer, a JSON Patch", "The ResourceClaimTemplates that"):
        assert done.stdout.count(shown) == 2
    assert contents(EXAMPLES / "legacy") == before


@pytest.mark.parametrize("source", ["rag-app.yaml", "benchmark-job.json"])
def test_the_demo_takes_a_manifest_that_is_dropped_in(root: Path, copy: Path, source: str) -> None:
    name = f"dropped-in{Path(source).suffix}"
    (copy / "legacy" / source).rename(copy / "legacy" / name)
    done = demo(root, str(copy))
    assert done.returncode == 0, done.stderr
    assert f"converted manifests/{name}\n" in done.stdout
    assert admitted(done.stdout, name)


def admitted(printed: str, name: str) -> list[str]:
    """Return the names of templates that the webhook made for Pods of an example, by what the demo prints."""
    return re.findall(rf"^converted +{re.escape(name)} .* (gpu-[0-9a-f]{{8}})$", printed, re.MULTILINE)


@pytest.mark.parametrize(
    ("folder", "text"),
    [
        ("legacy", "kind: Pod\nspec: [nvidia.com/gpu\n"),
        ("legacy", "kind: ConfigMap\napiVersion: v1\nmetadata: {name: plain}\n"),
        ("converted", "not what the tool prints\n"),
    ],
)
def test_the_demo_fails_when_a_step_does(root: Path, copy: Path, folder: str, text: str) -> None:
    (copy / folder / "statefulset.yaml").write_text(text, "utf-8")
    done = demo(root, str(copy))
    assert done.returncode == 1
    assert "demo: " in done.stderr
