"""A gate in front of an API server: what goes through it can be held, as by a server that accepts and never answers."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from types import TracebackType

_CHUNK = 65536


class Gate:
    """Passes bytes on in both directions while it is open. TLS is between the client and the API server."""

    def __init__(self, server: str, kubeconfig: Path) -> None:
        """`kubeconfig` is copied, with this gate in place of the server."""
        behind = urlsplit(server)
        assert behind.hostname
        assert behind.port
        self._behind = behind.hostname, behind.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open = threading.Event()
        self._open.set()
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._folder = tempfile.TemporaryDirectory(prefix="gpu2dra-")
        config = json.loads(kubeconfig.read_text())
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{self._listener.getsockname()[1]}"
        self.kubeconfig = Path(self._folder.name) / "kubeconfig"
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(json.dumps(config))

    def hold(self) -> None:
        """Let nothing through from now on; connections are taken all the same."""
        self._open.clear()

    def release(self) -> None:
        """Let through what was held, and what comes."""
        self._open.set()

    def cut(self) -> None:
        """Break all connections that there are."""
        for opened in self._sockets:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it, which then closes it

    def __enter__(self) -> Self:
        self._thread(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self.cut()
        for thread in self._threads:
            thread.join()
        self._folder.cleanup()

    def _thread(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError), self._listener:
            while True:
                front, _ = self._listener.accept()
                self._thread(self._pass, front)

    def _pass(self, front: socket.socket) -> None:
        with contextlib.suppress(OSError), front:
            self._sockets.append(front)
            self._open.wait()
            with socket.create_connection(self._behind) as back, selectors.DefaultSelector() as selector:
                self._sockets.append(back)
                other = {front: back, back: front}
                for side in other:
                    selector.register(side, selectors.EVENT_READ)
                while True:
                    for ready, _ in selector.select():
                        source = ready.fileobj
                        assert isinstance(source, socket.socket)
                        data = source.recv(_CHUNK)
                        self._open.wait()
                        if not data:
                            return
                        other[source].sendall(data)
