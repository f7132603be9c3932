"""Pods created by many clients at once while something happens to webhook or servers, and what became of each.

Every client is a thread with a connection of its own and does what a controller does: it creates a Pod, waits for the
answer, and tries again when the API server is away. A Pod that is stored with its legacy limit, or refused because of
the webhook, is what must never be.
"""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from controlplane.client import Object, wait_for
from controlplane.cluster import ControlPlane
from controlplane.counts import Counts
from controlplane.workloads import container, pod

if TYPE_CHECKING:
    import ssl
    from types import TracebackType

WEBHOOK = "gpu2dra"
"""What the names of our webhooks hold, and so every message of the API server that blames one."""
_PLACEHOLDER = "name-of-the-pod"
_HEADERS = {"Content-Type": "application/json", "Accept": "application/json"}
_STORED = (200, 201)
_EXISTS = 409
_GONE = (200, 404)
_TOO_MANY = 429
_SERVER_ERROR = 500
_TIMEOUT = 60.0
"""Seconds that a client waits for an answer, and tries again when there is none."""


_runs = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How clients create Pods: `at_least` so many, from each blank `in_a_row` so many, and `keep` them or not."""

    at_least: int = 2000
    clients: int = 8
    in_a_row: int = 1
    keep: bool = True


Held = Callable[[Counts], None]
"""Holds counts to the promise."""


class Load:
    """Clients that create Pods of some blanks, each with a name of its own. `counts` is what has become of them.

    `run` creates them and returns. Used as a context manager it creates them while the block runs, and goes on until
    the block has ended and there are enough.
    """

    def __init__(self, plane: ControlPlane, pods: Sequence[Object], habits: Habits = Habits()) -> None:
        run = next(_runs)
        self._habits = habits
        self._bodies = [_Body(pod, run) for pod in pods]
        self._at_least = habits.at_least
        self._numbers = iter(itertools.count().__next__, None)
        self._block_ended = threading.Event()
        self._clients = [_Creator(plane.server, plane.admin_context()) for _ in range(habits.clients)]
        self._threads = [threading.Thread(target=self._create, args=(client,)) for client in self._clients]
        self._failed: list[BaseException] = []

    def run(self) -> Counts:
        """Create all Pods and return what became of them."""
        with self:
            pass
        return self.counts

    @property
    def counts(self) -> Counts:
        """The counts of all clients until now; raises what a client has died of."""
        if self._failed:
            raise self._failed[0]
        total = Counts()
        for client in self._clients:
            total.add(client.counts)
        return total

    def wait_for_more(self, created: int) -> None:
        """Return when so many more Pods have been created."""
        enough = self.counts.created + created
        wait_for(f"{created} more Pods are created", lambda: self.counts.created >= enough, _TIMEOUT)

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._at_least = 0
        self._block_ended.set()
        for thread in self._threads:
            thread.join()
        if self._failed:
            raise self._failed[0]

    def _create(self, client: _Creator) -> None:
        try:
            for number in itertools.takewhile(self._goes_on, self._numbers):
                body = self._bodies[number // self._habits.in_a_row % len(self._bodies)]
                client.create(body, number)
                if not self._habits.keep:
                    client.delete(body, number)
        except BaseException as error:  # noqa: BLE001 -- raised again in the thread that waits
            self._failed.append(error)
        finally:
            client.close()

    def _goes_on(self, number: int) -> bool:
        return number < self._at_least or not self._block_ended.is_set()


def waiting(namespace: str, *names: str) -> list[Object]:
    """Return Pods that nothing schedules, one for each name of a container, of which its template is made."""
    gate = {"schedulingGates": [{"name": "example.com/wait"}]}
    made = [pod("load", container(name, 1), **gate) for name in names or ["main"]]
    return [each | {"metadata": {"name": "load", "namespace": namespace}} for each in made]


class _Body:
    """A Pod as it is sent, but for the name."""

    def __init__(self, pod: Object, run: int) -> None:
        self.collection = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        self.name = f"{pod['metadata']['name']}-{run}"
        named = {**pod, "metadata": {**pod["metadata"], "name": _PLACEHOLDER}}
        self.before, self.after = json.dumps(named).encode().split(_PLACEHOLDER.encode())

    def named(self, name: str) -> bytes:
        """Return it with a name."""
        return self.before + name.encode() + self.after


class _Creator:
    """One client."""

    def __init__(self, server: str, context: ssl.SSLContext) -> None:
        host = urlsplit(server).netloc
        self._connection = http.client.HTTPSConnection(host, timeout=_TIMEOUT, context=context)
        self.counts = Counts()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def create(self, body: _Body, number: int) -> None:
        """Create one Pod and count; TimeoutError when the API server stays away for a minute."""
        name = f"{body.name}-{number}"
        wait_for(f"pod {name} is created or refused", lambda: self._try(body, name), _TIMEOUT)

    def delete(self, body: _Body, number: int) -> None:
        """Delete one Pod at once, should it be there; TimeoutError when the API server stays away for a minute."""
        path = f"{body.collection}/{body.name}-{number}?gracePeriodSeconds=0"
        wait_for(f"pod {path} is gone", lambda: self._send("DELETE", path)[0] in _GONE, _TIMEOUT)

    def _try(self, body: _Body, name: str) -> bool:
        """Send a Pod once; return whether that is settled."""
        began = time.perf_counter()
        status, answer = self._send("POST", body.collection, body.named(name))
        if status == _EXISTS:  # taken by a try before, whose answer was lost
            status, answer = self._send("GET", f"{body.collection}/{name}")
        if status in _STORED:
            self.counts.seconds.append(time.perf_counter() - began)
            self.counts.count(answer)
            return True
        message = _message(answer)
        self.counts.messages[f"{status}: {message}"] += 1
        if WEBHOOK in message:
            self.counts.by_us += 1
            return True
        assert status in (0, _TOO_MANY) or status >= _SERVER_ERROR, f"{status} {message}"
        self.counts.by_outage += 1
        return False

    def _send(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body of the answer; 0 and what went wrong when there was none."""
        try:
            self._connection.request(method, path, body, _HEADERS)
            response = self._connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()  # the next request connects anew
            return 0, json.dumps({"message": type(error).__name__}).encode()


def _message(answer: bytes) -> str:
    try:
        return str(json.loads(answer)["message"])
    except (ValueError, LookupError, TypeError):  # what a server says that is about to end
        return answer.decode(errors="replace")[:200]
