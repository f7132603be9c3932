"""A stand-in for kube-proxy: carries what the API server sends to a Service to processes on the loopback interface.

Here is no kubelet, no kube-proxy and no pod network, so nothing answers at a ClusterIP. The API server has a setting
for networks that it cannot reach itself: its egress selector sends every connection to the cluster's network through
an HTTP CONNECT proxy. This is that proxy, so that a webhook configuration which names a Service works as it stands.

Like kube-proxy it chooses a backend for each new connection, in turn, does not look whether the backend answers, and
leaves open connections alone when backends change.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from controlplane.client import Object

_CHUNK = 64 * 1024
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REFUSED = b"HTTP/1.1 502 no backend answers\r\ncontent-length: 0\r\n\r\n"


class Services:
    """The proxy, on a Unix socket, in a thread of its own. Call `start` and `stop`."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._backends: dict[str, list[int]] = {}
        self._turn: Counter[str] = Counter()
        self._connections: dict[asyncio.Task[None], int] = {}  # the backend's port of each, 0 while there is none
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="services", daemon=True)

    def egress_selector(self) -> Object:
        """Return the configuration that has an API server use this proxy."""
        connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": str(self._socket)}}}
        return {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }

    def set_backends(self, address: str, ports: Iterable[int]) -> None:
        """Have new connections to `<ClusterIP>:<port>` go to these ports of the loopback interface, in turn."""
        self._backends[address] = list(ports)

    def open_connections(self) -> Counter[int]:
        """Return how many connections each backend has at this moment."""
        return Counter(port for port in self._connections.copy().values() if port)

    def cut(self, port: int) -> None:
        """Break all connections to a backend, as a node does that goes down, and return when that is done."""
        asyncio.run_coroutine_threadsafe(self._cut(lambda of: of == port), self._loop).result()

    def start(self) -> None:
        """Listen, and return when that is so."""
        self._thread.start()
        listening = asyncio.start_unix_server(self._connected, self._socket)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()

    def stop(self) -> None:
        """Close everything; may be called more than once, and without `start`."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.close)
            asyncio.run_coroutine_threadsafe(self._cut(lambda of: True), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    async def _cut(self, chosen: Callable[[int], bool]) -> None:
        tasks = [task for task, port in self._connections.items() if chosen(port)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the turn after `close`

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._connections[task] = 0
        try:
            # Cancelled by `cut` alone, which is an end like the others.
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                await self._carry(task, reader, writer)
        finally:
            del self._connections[task]
            writer.close()

    async def _carry(
        self, task: asyncio.Task[None], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        try:
            port = self._backend(head.split(b" ", 2)[1].decode())
            backend_reader, backend_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.write(_REFUSED)
            return
        self._connections[task] = port
        writer.write(_ESTABLISHED)
        halves = [asyncio.ensure_future(_copy(*pair)) for pair in ((reader, backend_writer), (backend_reader, writer))]
        try:
            # When one side has ended, the other has nothing left to say: both speak TLS.
            await asyncio.wait(halves, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for half in halves:
                half.cancel()
            await asyncio.gather(*halves, return_exceptions=True)
            backend_writer.close()

    def _backend(self, address: str) -> int:
        """Return the port of the backend whose turn it is; ConnectionRefusedError when there is none."""
        ports = self._backends.get(address)
        if not ports:
            raise ConnectionRefusedError(address)
        self._turn[address] += 1
        return ports[self._turn[address] % len(ports)]


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
