"""Measure the webhook's server against the bars of the design (section 8), without a cluster; `make bench` runs it.

The webhook runs on the first core, with a template store in memory, so that every template is there already; the load
comes from the second one, by TLS over 25 connections that are kept, as an API server does it. Requests are sent by the
clock, whether or not earlier ones are answered, and the wait for a free connection counts. Each figure stands beside
that of a Flask handler that does nothing, in the same server and the same run; both are measured in turn, medians told.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import json
import os
import resource
import select
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.figures import Row, write
from bench.pods import pods
from controlplane import build
from controlplane.daemons import Daemons
from webhook.server.running import JSON, Client, Webhook, certificate_folder, command, request, review

CONNECTIONS = 25
ROUNDS = 3
SECONDS = 10
RATES = {"1000": 1_000, "100": 100, "most": 0}
MODULES = ("gpu2dra_webhook", "bench.empty_handler")
IDLE, HALF, SILENT = 1_000, 200, 100
CROWDED_RATE = 100
EMPTY = "empty Flask handler"
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Load:
    """What came out of one attack: rate of answers, latencies, the server's own processor time for each (all in ms)."""

    rate: float
    p50: float
    p99: float
    processor: float
    success: float


@dataclass(frozen=True, slots=True)
class Bench:
    """The load tester and what it sends."""

    vegeta: Path
    folder: Path
    authority: Path

    def attack(self, webhook: Webhook, rate: int, seconds: int = SECONDS) -> Load:
        """Send `rate` reviews a second, 0 for as many as are answered; the load tester runs on the last core."""
        url = f"https://127.0.0.1:{webhook.port}/mutate?timeout=10s"
        target = {"method": "POST", "url": url, "header": {"Content-Type": ["application/json"]}}
        lines = [
            json.dumps(target | {"body": base64.b64encode(json.dumps(review(pod)).encode()).decode()}) for pod in pods()
        ]
        targets = self.folder / "targets.json"
        targets.write_text("\n".join(lines))
        workers = CONNECTIONS if rate == 0 else 10 * rate
        flags: Mapping[str, object] = {
            "targets": targets, "format": "json", "rate": rate, "duration": f"{seconds}s", "root-certs": self.authority,
            "connections": CONNECTIONS, "max-connections": CONNECTIONS, "workers": CONNECTIONS, "max-workers": workers,
            "timeout": "30s", "http2": "false",
        }  # fmt: skip
        attack = [str(self.vegeta), "attack", *(f"-{name}={value}" for name, value in flags.items())]
        before = _processor(webhook)
        done = subprocess.run(attack, check=True, stdout=subprocess.PIPE)
        used = _processor(webhook) - before
        report = [str(self.vegeta), "report", "-type=json"]
        told = subprocess.run(report, input=done.stdout, check=True, stdout=subprocess.PIPE)
        found = json.loads(told.stdout)
        p50, p99 = (found["latencies"][part] / 1e6 for part in ("50th", "99th"))
        return Load(found["throughput"], p50, p99, used / max(1, found["requests"]) * 1e3, found["success"])


class Crowd:
    """Useless connections, which come again when they are cut off. A context manager: all are gone at its end."""

    def __init__(self, webhook: Webhook) -> None:
        half = request("POST", "/mutate", {**JSON, "Content-Length": "5000"})

        def start(kind: str) -> Client:
            client = Client(webhook.plain()) if kind == "silent" else webhook.client()
            if kind == "half":
                client.send(half)
            return client

        self._start = start
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._open: dict[int, tuple[str, Client]] = {}
        for kind in ["idle"] * IDLE + ["half"] * HALF + ["silent"] * SILENT:
            client = start(kind)
            self._open[client.socket.fileno()] = kind, client

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._stopped.set()
        self._thread.join()
        for _, client in self._open.values():
            client.close()

    def _run(self) -> None:
        while not self._stopped.wait(0.2):
            poll = select.poll()
            for number in self._open:
                poll.register(number, select.POLLIN)
            for number, _ in poll.poll(0):  # what a useless client hears is that it is too slow
                kind, client = self._open.pop(number)
                client.close()
                again = self._start(kind)
                self._open[again.socket.fileno()] = kind, again


@contextlib.contextmanager
def on_core(number: int) -> Iterator[None]:
    """Start processes on one core, where there are several."""
    before = os.sched_getaffinity(0)
    chosen = sorted(before)[number % len(before)]
    os.sched_setaffinity(0, {chosen})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@contextlib.contextmanager
def server(module: str, folder: Path, served: Path, authority: Path) -> Iterator[Webhook]:
    """Run a server on the first core."""
    daemons = Daemons(folder)
    with on_core(0):
        daemons.start(module, [sys.executable, "-m", module, *command(served, [])[3:]])
    webhook = Webhook(daemons, module, authority)
    try:
        webhook.wait_until_serving()
        yield webhook
    finally:
        daemons.stop()


def _processor(webhook: Webhook) -> float:
    """Return the processor time that the process has used, in seconds."""
    stat = Path(f"/proc/{webhook.daemons.pids()[webhook.name]}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def memory(webhook: Webhook) -> float:
    """Return what the process takes, in MiB, with all of the libraries that it may share with others."""
    pid = webhook.daemons.pids()[webhook.name]
    return _rss(Path(f"/proc/{pid}/smaps_rollup").read_text())


def memory_of_imports() -> float:
    """Return what the libraries alone take in a process of their own, in MiB."""
    names = "click, cryptography.x509, flask, gevent.pywsgi, gunicorn.arbiter, kubernetes, msgspec, prometheus_client"
    program = f"import {names}; print(open('/proc/self/smaps_rollup').read())"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    return _rss(done.stdout)


def _rss(rollup: str) -> float:
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Rss:")) / _KIB


def main() -> None:
    """Measure all rows and write them."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8192, hard), hard))
    vegeta = build.ensure("vegeta-12") / "vegeta"
    with tempfile.TemporaryDirectory(prefix="gpu2dra-bench-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        served, authority = certificate_folder(folder)
        bench = Bench(vegeta, folder, authority)
        both = [stack.enter_context(server(module, folder, served, authority)) for module in MODULES]
        stack.enter_context(on_core(1))
        for each in both:
            bench.attack(each, 0, 2)  # warm-up
        used = memory(both[0])
        found = {what: _in_turn(bench, both, rate) for what, rate in RATES.items()}
        crowded = []
        for each in both:
            with Crowd(each):
                crowded.append([bench.attack(each, CROWDED_RATE) for _ in range(ROUNDS)])
    rows = [
        _late("reviews at 1,000 a second, p99", 25, found["1000"]),
        _late("reviews at 100 a second, p99", 8, found["100"]),
        _most(found["most"]),
        _processor_row(found["1000"]),
        _late(f"reviews at {CROWDED_RATE} a second beside 1,300 useless connections, p99", 50, crowded),
        Row("memory of a replica", "90 MiB", used, "MiB", "imports alone", memory_of_imports(), used <= 90),
    ]
    for row in rows:
        print(row)
    details = {what: [[dataclasses.asdict(load) for load in loads] for loads in pair] for what, pair in found.items()}
    write("webhook", rows, rounds=details)
    wrong = [load for pair in [*found.values(), crowded] for loads in pair for load in loads if load.success < 1]
    if wrong:
        sys.exit(f"{len(wrong)} rounds had answers that were wrong or missing")


def _in_turn(bench: Bench, both: Sequence[Webhook], rate: int) -> list[list[Load]]:
    rounds = [[bench.attack(each, rate) for each in both] for _ in range(ROUNDS)]
    return [list(loads) for loads in zip(*rounds, strict=True)]


def _late(what: str, bar: float, pair: Sequence[Sequence[Load]]) -> Row:
    ours, empty = (statistics.median(load.p99 for load in loads) for loads in pair)
    return Row(what, f"{bar} ms", ours, "ms", EMPTY, empty, ours <= bar)


def _most(pair: Sequence[Sequence[Load]]) -> Row:
    ours, empty = (statistics.median(load.rate for load in loads) for loads in pair)
    return Row("reviews a second, as many as are answered", "1,000/s", ours, "/s", EMPTY, empty, ours >= 1_000)


def _processor_row(pair: Sequence[Sequence[Load]]) -> Row:
    ours, empty = (statistics.median(load.processor for load in loads) for loads in pair)
    return Row("processor time of a review at 1,000 a second", "1 ms", ours, "ms", EMPTY, empty, ours <= 1)


if __name__ == "__main__":
    main()
