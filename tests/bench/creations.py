"""Measure what the webhook adds to the creation of Pods on a real API server (design, section 8); `make bench` runs it.

Three namespaces take turns, in one run: one without a webhook, one whose pods a bare Flask handler in the same server
gives the right patch, and one with the webhook as the chart configures it. Everything shares the machine's cores, the
clients too. Both webhooks are called by URL, so that the tests' stand-in for kube-proxy is not measured; nothing is
scheduled and no claims are made, since that comes after the creation and is the same for all.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench import fixed_handler
from bench.figures import Row, write
from controlplane import build, gpus
from controlplane.client import JSON_PATCH, Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.counts import Counts
from controlplane.creations import Habits, Load, waiting
from controlplane.helm import NAMESPACE
from controlplane.helm import RELEASE as RELEASE_NAME
from controlplane.installation import CONVERTED, Installation, installed
from controlplane.testbed import add_namespace
from controlplane.webhook_process import Replica, Replicas
from gpu2dra import Options as PlanOptions
from gpu2dra import Style, plan

RELEASE = "1.37"
ROUNDS = 5
ONE, MANY = Habits(at_least=300, clients=1), Habits(at_least=800, clients=8)
NONE, BARE, OURS = "none", "bare", "ours"
WARM_UP = Habits(at_least=200, clients=8)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a namespace: latencies of one client in milliseconds, and pods a second with eight."""

    p50: float
    p99: float
    rate: float


def by_url(webhook: Object, port: int) -> Object:
    """Return an entry of a webhook configuration that calls a port of this machine."""
    made = copy.deepcopy(webhook)
    made["clientConfig"] = {key: value for key, value in webhook["clientConfig"].items() if key != "service"} | {
        "url": f"https://127.0.0.1:{port}/mutate"
    }
    return made


@contextlib.contextmanager
def bare_handler(installation: Installation, folder: Path) -> Iterator[None]:
    """Have the pods of the namespace BARE go to the Flask handler, under the conditions of the chart."""
    plane = installation.plane
    served = folder / "served"
    served.mkdir()
    files = plane.serving_certificate("bare", ["127.0.0.1", f"{RELEASE_NAME}.{NAMESPACE}.svc"])
    for name, file in zip(("tls.crt", "tls.key"), files, strict=True):
        shutil.copy(file, served / name)
    (pod,) = waiting(BARE)
    resources = pod["spec"]["containers"][0]["resources"]
    resources["requests"] = resources["limits"]  # as the API server fills them in before it asks
    steps = plan(pod, PlanOptions(style=Style.ADMISSION, tolerations=False, elsewhere=False)).operations
    patch = base64.b64encode(json.dumps(steps).encode()).decode()
    arguments = ["--store=memory", "--certificates=files", f"--certificate-dir={served}"]
    environment, program = {fixed_handler.PATCH: patch}, fixed_handler.__name__
    with Replicas(plane, BARE, plane.admin_kubeconfig, arguments, environment, program) as replicas:
        (replica,) = replicas.launch()  # never ready: /livez is one of the handlers that it does without
        configured = installation.configuration()
        entry = by_url(configured["webhooks"][0], replica.port)
        entry["clientConfig"]["caBundle"] = base64.b64encode(plane.certificate_authority.read_bytes()).decode()
        entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": BARE}}
        plane.client.create({**configured, "metadata": {"name": "bench"}, "webhooks": [entry]})
        yield


def call_by_url(installation: Installation, replica: Replica) -> None:
    """Have the API server call a replica at its port in place of the Service."""
    configured = installation.configuration()
    webhooks = [by_url(entry, replica.port) for entry in configured["webhooks"]]
    patch = [{"op": "replace", "path": "/webhooks", "value": webhooks}]
    installation.plane.client.patch(configured, patch, JSON_PATCH)


def turn(plane: ControlPlane, namespace: str) -> Turn:
    """Create pods in a namespace, by one client and by many."""
    pods = waiting(namespace)
    one = checked(namespace, Load(plane, pods, ONE).run())
    began = time.perf_counter()
    many = checked(namespace, Load(plane, pods, MANY).run())
    rate = many.created / (time.perf_counter() - began)
    cuts = statistics.quantiles(one.seconds, n=100)
    return Turn(cuts[49] * 1000, cuts[98] * 1000, rate)


def checked(namespace: str, counts: Counts) -> Counts:
    """Return the counts, which must be of pods that are converted where they should be, and only there."""
    expected = (counts.created, 0) if namespace != NONE else (0, counts.created)
    if (counts.converted, counts.unconverted) != expected or counts.by_us or counts.by_outage:
        message = f"namespace {namespace}: {counts}"
        raise SystemExit(message)
    return counts


def measured(plane: ControlPlane) -> dict[str, list[Turn]]:
    """Return the turns of each namespace."""
    found: dict[str, list[Turn]] = {NONE: [], BARE: [], OURS: []}
    for namespace in found:
        checked(namespace, Load(plane, waiting(namespace), WARM_UP).run())
    for number in range(ROUNDS):
        # Who begins changes: what one leaves behind is the next one's burden.
        order = [*found][number % len(found) :] + [*found][: number % len(found)]
        for namespace in order:
            found[namespace].append(turn(plane, namespace))
            print(f"round {number + 1}, {namespace}: {found[namespace][-1]}", flush=True)
    return found


def medians(turns: Sequence[Turn]) -> Turn:
    """Return the median of each figure."""
    return Turn(*(statistics.median(getattr(each, field) for each in turns) for field in ("p50", "p99", "rate")))


def rows(found: Mapping[str, Sequence[Turn]]) -> list[Row]:
    """Return the rows of the results."""
    none, bare, ours = (medians(found[name]) for name in (NONE, BARE, OURS))
    added, share = ours.p50 - bare.p50, ours.rate / bare.rate
    handler = "a bare Flask handler"
    return [
        Row("added to a Pod's creation, one client, p50", f"1.5 ms above {handler}", added, "ms",
            f"{handler}, above no webhook", bare.p50 - none.p50, added <= 1.5),
        Row("Pods a second, 8 clients", f"85 % of {handler}", ours.rate, "Pods/s", handler, bare.rate, share >= 0.85),
    ]  # fmt: skip


def main() -> None:
    """Measure all rows and write them."""
    binaries = build.control_planes()[RELEASE](print)
    options = Options(audit=False, without_controllers=["resourceclaim-controller"])
    with tempfile.TemporaryDirectory(prefix="gpu2dra-bench-") as name, ControlPlane(binaries, options) as plane:
        folder = Path(name)
        for device_class in gpus.device_classes():
            plane.client.create(device_class)
        with (
            installed(plane, {}, folder) as installation,
            installation.replicas("--server-names=127.0.0.1") as replicas,
            bare_handler(installation, folder),
        ):
            (replica,) = replicas.start()
            call_by_url(installation, replica)
            add_namespace(plane.client, NONE)
            add_namespace(plane.client, BARE)
            add_namespace(plane.client, OURS, CONVERTED)
            (probe,) = waiting(OURS)
            wait_for("the API server calls by URL", lambda: plane.client.try_create(probe, dryRun="All").accepted)
            found = measured(plane)
    results = rows(found)
    for row in results:
        print(row)
    write("creations", results, rounds={name: [asdict(each) for each in turns] for name, turns in found.items()})


if __name__ == "__main__":
    main()
