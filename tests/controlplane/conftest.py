"""Fixtures for tests on a real control plane: one of each release for the session, a fresh namespace for each test."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path

import pytest

from controlplane import build, gpus, rule_table, scheduling
from controlplane.client import Object
from controlplane.cluster import ControlPlane, Options
from controlplane.counts import Counts
from controlplane.creations import Held
from controlplane.installation import Installation, converting_namespace, installed
from controlplane.testbed import AddMachines, Cluster, StartControlPlane, add_namespace, remove_namespace
from controlplane.webhook_process import Replica

_RELEASES = build.control_planes()
_LOGS = pytest.StashKey[Path]()
_numbers = itertools.count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder, and give each release to one worker: `--dist loadgroup` keeps groups together."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.controlplane)
            release = _release_of(item)
            if release:
                item.add_marker(pytest.mark.xdist_group(f"kubernetes-{release}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say in a failure's report where the control plane's logs are, and remember to keep them."""
    report = yield
    release = _release_of(item)
    if report.failed and release:
        logs = item.session.stash.get(_LOGS, None)
        if logs:
            report.sections.append((f"control plane {release}", f"logs and audit log: {logs}"))
    return report


@pytest.fixture(scope="session", params=list(_RELEASES), ids=lambda release: f"v{release}")
def release(request: pytest.FixtureRequest) -> str:
    """Return each release of Kubernetes in turn, as 1.37."""
    return str(request.param)


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest, release: str, say: Callable[[str], None]) -> Iterator[ControlPlane]:
    """Start a control plane of a release, built first if need be; shared by all tests of a worker.

    It holds NVIDIA's two DeviceClasses, without extendedResourceName.
    """
    with _running(request, _RELEASES[release](say)) as plane:
        for device_class in gpus.device_classes():
            plane.client.create(device_class)
        yield plane


@pytest.fixture
def cluster(request: pytest.FixtureRequest, release: str, control_plane: ControlPlane) -> Iterator[Cluster]:
    """Return the cluster with a new namespace, which goes with everything in it at the end of the test.

    The namespace has the file's NAMESPACE_LABELS, if there are any.
    """
    with_namespace = Cluster(release, control_plane, f"test-{os.getpid()}-{next(_numbers)}")
    labels = getattr(request.module, "NAMESPACE_LABELS", None)
    add_namespace(with_namespace.client, with_namespace.namespace, labels)
    yield with_namespace
    remove_namespace(with_namespace.client, with_namespace.namespace)


@pytest.fixture(scope="module")
def webhook(
    control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, say: Callable[[str], None]
) -> Iterator[Replica]:
    """Install the chart in the shared control plane and return the one replica that serves it, with nothing chosen."""
    with (
        installed(control_plane, {}, tmp_path_factory.mktemp("helm"), say) as installation,
        installation.replicas() as replicas,
    ):
        (replica,) = replicas.start()
        yield replica


@pytest.fixture
def machines(cluster: Cluster) -> Iterator[AddMachines]:
    """Return what adds nodes with their slices; they go at the end of the test. No other nodes are in the cluster."""
    made: list[Object] = []

    def add(wanted: Iterable[gpus.Machine]) -> None:
        for machine in wanted:
            made.extend(cluster.client.create(obj) for obj in machine.objects())

    yield add
    # The pods first, those of controllers for good: their claims hold devices of the nodes.
    remove_namespace(cluster.client, cluster.namespace)
    scheduling.free_devices(cluster.client, cluster.namespace)
    for obj in reversed(made):
        cluster.client.delete(obj)


@pytest.fixture
def start_control_plane(
    request: pytest.FixtureRequest, release: str, say: Callable[[str], None]
) -> Iterator[StartControlPlane]:
    """Return what starts a control plane of its own for this test, with other options; it stops with the test."""
    with contextlib.ExitStack() as started:
        yield lambda options: started.enter_context(_running(request, _RELEASES[release](say), options))


@pytest.fixture(scope="module")
def own_control_plane(
    request: pytest.FixtureRequest, release: str, say: Callable[[str], None]
) -> Iterator[ControlPlane]:
    """Start a control plane that the tests of one file share and may treat roughly.

    The file's OPTIONS are its options. It holds NVIDIA's two DeviceClasses.
    """
    with _running(request, _RELEASES[release](say), getattr(request.module, "OPTIONS", None)) as plane:
        for device_class in gpus.device_classes():
            plane.client.create(device_class)
        yield plane


@pytest.fixture(scope="module")
def installation(
    own_control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, say: Callable[[str], None]
) -> Iterator[Installation]:
    """Install the chart in the file's own control plane; the tests start replicas themselves."""
    with installed(own_control_plane, {}, tmp_path_factory.mktemp("helm"), say) as made:
        yield made


@pytest.fixture
def namespace(own_control_plane: ControlPlane) -> str:
    """Return a new namespace of the file's own control plane, in which pods are converted."""
    return converting_namespace(own_control_plane)


@pytest.fixture
def held(record_property: Callable[[str, object], None]) -> Held:
    """Return what tells the counts of a scenario, in the run's last lines as well, and holds them to the promise."""

    def hold(counts: Counts) -> None:
        record_property("figures", str(counts))
        assert (counts.unconverted, counts.by_us) == (0, 0), str(counts)
        assert counts.converted >= 2000, str(counts)

    return hold


@pytest.fixture
def answer(
    request: pytest.FixtureRequest, release: str, record_property: Callable[[str, object], None]
) -> Callable[[str], None]:
    """Return what takes down, in a few words, what a server answered to the test of a rule.

    It goes to the table that the run prints, and fails the test when README.md says otherwise for a release it lists.
    """
    test = request.function.__name__
    row = rule_table.row_of(test, request.function.__doc__)

    def take_down(text: str) -> None:
        record_property(rule_table.PROPERTY, [row.rule, row.tried, row.test, release, text])
        kept = rule_table.kept().get(test)
        if kept and release in rule_table.RELEASES:
            assert text == kept.answers[release], f"README.md says otherwise of {test}; correct it if this is right"

    return take_down


@pytest.fixture(scope="session", params=["helm-3", "helm-4"])
def helm(request: pytest.FixtureRequest, say: Callable[[str], None]) -> Path:
    """Return the real helm, of both major versions one after the other."""
    return build.ensure(request.param, say) / "helm"


@pytest.fixture(scope="session")
def kustomize(say: Callable[[str], None]) -> Path:
    """Return the real kustomize."""
    return build.ensure("kustomize-5", say) / "kustomize"


@pytest.fixture(scope="session")
def say(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Return what prints a line past pytest's capture, from workers too: a build takes minutes."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def write(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, file=sys.stderr, flush=True)

    return write


def _release_of(item: pytest.Item) -> str:
    callspec = getattr(item, "callspec", None)
    return str(callspec.params.get("release", "")) if callspec else ""


@contextlib.contextmanager
def _running(request: pytest.FixtureRequest, binaries: Path, options: Options | None = None) -> Iterator[ControlPlane]:
    """Run a control plane, and keep its logs when a test fails meanwhile."""
    plane = ControlPlane(binaries, options)
    request.session.stash[_LOGS] = plane.logs
    failed_before = request.session.testsfailed
    plane.start()
    try:
        yield plane
    finally:
        plane.stop(keep_logs=request.session.testsfailed > failed_before)
