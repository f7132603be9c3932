"""Replicas of the webhook as processes on this machine: what a Deployment and its Service would run and reach.

The program, its arguments and its rights are those of the cluster; a kubelet would start it, ask for its readiness and
end it, and the endpoint controller would take it in and out of its Service. Those parts are played here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import urllib3
from prometheus_client.parser import text_string_to_metric_families

from controlplane.client import Object
from controlplane.daemons import Daemons

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from controlplane.cluster import ControlPlane

PROGRAM = "gpu2dra_webhook"
# Free ports, and nobody outside of this machine.
_ARGUMENTS = ("--bind-address=127.0.0.1", "--port=0", "--metrics-port=0", "--log-format=json")
_READY_SECONDS = 60.0
_POLICY_MOUNT = "/etc/gpu2dra/policy"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Replica:
    """One process. `port` is that of admission, `metrics_port` speaks HTTP without TLS."""

    name: str
    port: int
    metrics_port: int
    _daemons: Daemons

    @property
    def pid(self) -> int:
        """The id of the process that a kubelet would end."""
        return self._daemons.pids()[self.name]

    def log(self) -> list[Object]:
        """Return what it has logged so far."""
        return _log(self._daemons, self.name)

    def missing(self) -> str:
        """Return what it says is missing; empty when it is ready."""
        answer = self._get("/readyz")
        return "" if answer.status == 200 else answer.data.decode()

    def is_ready(self) -> bool:
        """Whether it says that it is ready; the kubelet asks the same."""
        return not self.missing()

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of a metric that have these labels, 0 when there is none."""
        families = text_string_to_metric_families(self._get("/metrics").data.decode())
        samples = [sample for family in families for sample in family.samples if sample.name == name]
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    def terminate(self) -> None:
        """Send SIGTERM as a kubelet does: to the process alone."""
        self._daemons.terminate(self.name)

    def wait_until_ended(self, deadline: float = 30.0) -> int:
        """Return the exit code; TimeoutError when the process runs on."""
        return self._daemons.wait_until_ended(self.name, deadline)

    def kill(self) -> None:
        """End it at once, as a node does that loses power."""
        self._daemons.kill(self.name)

    @contextlib.contextmanager
    def frozen(self) -> Iterator[None]:
        """Have it stand still, as on a node that is suspended."""
        with self._daemons.paused(self.name):
            yield

    def _get(self, path: str) -> urllib3.BaseHTTPResponse:
        return urllib3.request("GET", f"http://127.0.0.1:{self.metrics_port}{path}", retries=False, timeout=10.0)


class Replicas:
    """The replicas behind one Service. A context manager: at its end all of them end, whatever they are doing.

    `address` is ClusterIP and port of the Service, `arguments` those of the container beside what makes it run here,
    `program` another module in place of the webhook.
    """

    def __init__(
        self,
        plane: ControlPlane,
        address: str,
        kubeconfig: Path,
        arguments: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        program: str = PROGRAM,
    ) -> None:
        self._plane = plane
        self._address = address
        self._command = [sys.executable, "-m", program, *arguments, f"--kubeconfig={kubeconfig}", *_ARGUMENTS]
        self._environment = dict(environment or {})
        self._daemons = Daemons(plane.logs)
        self._serving: list[Replica] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._set_backends([])
        self._daemons.stop()

    @property
    def serving(self) -> tuple[Replica, ...]:
        """The replicas in the Service."""
        return tuple(self._serving)

    def metric(self, name: str, **labels: str) -> float:
        """Return the sum of a metric over the replicas in the Service."""
        return sum(replica.metric(name, **labels) for replica in self._serving)

    def start(self, count: int = 1) -> list[Replica]:
        """Start replicas, wait until they are ready and take them into the Service; DaemonError when one ends."""
        replicas = self.launch(count)
        for replica in replicas:
            self._daemons.wait_until(f"{replica.name} is ready", replica.is_ready, _READY_SECONDS)
        self._set_backends([*self._serving, *replicas])
        return replicas

    def launch(self, count: int = 1) -> list[Replica]:
        """Start replicas and return when they listen; they are not in the Service, and may never be ready."""
        names = [f"webhook-{next(_numbers)}" for _ in range(count)]
        for name in names:
            own = {"GPU2DRA_WEBHOOK_POD_NAME": name}
            self._daemons.start(name, self._command, self._environment | own)
        return [self._listening(name) for name in names]

    def leave_service(self, replica: Replica) -> None:
        """Have new connections go elsewhere, as happens as soon as a pod is to be deleted."""
        self._set_backends([each for each in self._serving if each != replica])

    def _listening(self, name: str) -> Replica:
        ports: Object = {}

        def look() -> bool:
            ports.update(next((line for line in _log(self._daemons, name) if line.get("msg") == "serving"), {}))
            return bool(ports)

        self._daemons.wait_until(f"{name} listens", look, _READY_SECONDS)
        return Replica(name, ports["port"], ports["metrics_port"], self._daemons)

    def _set_backends(self, replicas: list[Replica]) -> None:
        self._serving = replicas
        self._plane.services.set_backends(self._address, [replica.port for replica in replicas])


def with_policy(plane: ControlPlane, arguments: Sequence[str], policy: Object) -> list[str]:
    """Return the arguments of the container with the policy's ConfigMap where a process can read it, not a pod."""
    folder = plane.folder / "policy"
    folder.mkdir(exist_ok=True)
    for name, content in policy["data"].items():
        (folder / f".{name}").write_text(content, encoding="utf-8")
        (folder / f".{name}").replace(folder / name)  # at once, as the kubelet exchanges what it mounts
    return [argument.replace(_POLICY_MOUNT, str(folder)) for argument in arguments]


def _log(daemons: Daemons, name: str) -> list[Object]:
    lines = daemons.log(name).read_text(encoding="utf-8", errors="replace").splitlines()
    found = []
    for line in lines:
        with contextlib.suppress(ValueError):  # half a line, or what the interpreter itself has to say
            found.append(json.loads(line))
    return [line for line in found if isinstance(line, dict)]
