"""The gunicorn worker: gevent's, with deadlines for every step of a connection and an end that loses no request.

One worker serves both ports. When it is told to end, it goes on answering on all connections and says on each answer
that it is the last one, since an API server uses the connections that it has, also those to a pod that has left its
Service (kubernetes/kubernetes#127335). It ends when none is left.
"""

from __future__ import annotations

import functools
import gc
import logging
import resource
import time
from typing import TYPE_CHECKING, Any

from gevent import get_hub
from gevent.event import Event
from gevent.server import StreamServer
from gunicorn.sock import ssl_context
from gunicorn.workers.ggevent import GeventWorker

from gpu2dra_webhook.connections import Connections, Cut, Phase, limits
from gpu2dra_webhook.serving import Port, serve

if TYPE_CHECKING:
    from types import FrameType

    from gpu2dra_webhook.server import Server

_log = logging.getLogger(__name__)

TICK = 0.25
"""Seconds between two looks at the deadlines."""
ACCEPTS_AT_ONCE = 8
"""Handshakes that begin before the clients that are there get their turn again."""
METRICS_CONNECTIONS = 64
SPARE_FILES = 256
"""Descriptors for all that is no client: connections to the API server, sockets that listen, files."""


class ReviewWorker(GeventWorker):
    """Serves `app`, which is a Server, on the sockets that it has opened: admission, then metrics."""

    app: Server

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._stopping = Event()

    def run(self) -> None:
        """Serve until told to end, and then until no client is left or the time for that is over."""
        # An exception that nobody caught goes to the log, as all else does.
        setattr(get_hub(), "print_exception", _log_exception)  # noqa: B010 - a method of gevent's, meant to be replaced
        # As plain attributes: gunicorn looks a setting up in two dictionaries, twenty times in each request.
        vars(self.cfg).update({name: setting.get() for name, setting in self.cfg.settings.items()})
        # What is there now stays: to look through it again and again would stop all requests for tens of milliseconds.
        gc.collect()
        gc.freeze()
        settings, metrics = self.app.settings, self.app.parts.metrics
        admission = Connections(limits(settings), _room(settings.max_connections), self._on_cut)
        scrapes = Connections(limits(settings), METRICS_CONNECTIONS, self._on_cut)
        metrics.before_render(lambda: metrics.open_connections(len(admission)))
        main = self._port(0, self.wsgi, admission, tls=True)
        servers = [
            self._listen(0, main),
            self._listen(1, self._port(1, self.app.parts.side_app, scrapes, tls=False)),
        ]
        self.app.serving(*(int(each.getsockname()[1]) for each in self.sockets))
        while self.alive:
            self._tick(admission, scrapes)
        self.app.parts.draining()
        _log.info("stopping: answering the last requests", extra={"connections": len(admission)})
        end = time.monotonic() + settings.drain_seconds
        while admission and time.monotonic() < end:
            self._tick(admission, scrapes)
        for server in servers:
            server.close()
        _log.info("stopped", extra={"connections": len(admission)})
        admission.end()
        self.app.parts.stop()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take the signal to end; the second one ends at once."""
        if not self.alive:
            self.handle_quit(sig, frame)
        super().handle_exit(sig, frame)
        self._stopping.set()

    def notify(self) -> None:
        """Tell nobody that we live: there is no master process. The kubelet asks /livez."""

    def _tick(self, *ports: Connections) -> None:
        for connections in ports:
            connections.sweep()
        if self.alive:
            self._stopping.wait(TICK)
        else:
            time.sleep(TICK)

    def _port(self, number: int, app: Any, connections: Connections, *, tls: bool) -> Port:
        return Port(
            app=app,
            address=self.sockets[number].getsockname(),
            connections=connections,
            config=self.cfg,
            context=functools.partial(ssl_context, self.cfg) if tls else None,
            keep_alive=lambda: tls and self.alive,
            body_limit=self.app.settings.body_limit,
            on_refusal=self.app.parts.metrics.http_error,
        )

    def _listen(self, number: int, port: Port) -> StreamServer:
        server = StreamServer(self.sockets[number], handle=functools.partial(serve, port))
        server.max_accept = ACCEPTS_AT_ONCE
        server.start()
        return server

    def _on_cut(self, why: Cut, phase: Phase) -> None:
        metrics = self.app.parts.metrics
        if why is Cut.DEADLINE:
            metrics.deadline_hit(phase)
        else:
            metrics.connection_closed(why)


def _room(wanted: int) -> int:
    """Return for how many connections there are file descriptors, after raising their limit as far as allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + SPARE_FILES
    if soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < needed:
        _log.warning("the limit of open files allows fewer connections", extra={"connections": soft - SPARE_FILES})
    return max(1, min(wanted, soft - SPARE_FILES))


def _log_exception(context: object, kind: type[BaseException], error: BaseException, trace: Any) -> None:
    _log.error("uncaught in %r", context, exc_info=(kind, error, trace))
