"""gunicorn, set up for an API server as its only client: two ports, one worker, an orderly end.

The master process opens the ports and holds the worker; all else is imported in the worker, after gevent has put its
own sockets and threads in place of the standard ones.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter

from gpu2dra_webhook.logs import GunicornLogger
from gpu2dra_webhook.settings import Settings, SettingsError
from gpu2dra_webhook.worker import ReviewWorker

if TYPE_CHECKING:
    import ssl
    from types import FrameType

    from gunicorn.config import Config

    from gpu2dra_webhook.compose import Parts

_log = logging.getLogger(__name__)

BACKLOG = 1024
MASTER_PATIENCE = 10
"""Seconds that the master gives a worker beyond the time in which it ends by itself."""
_EXIT_CODES: Mapping[object, int] = {Arbiter.APP_LOAD_ERROR: 2, Arbiter.WORKER_BOOT_ERROR: 1}


class _Master(Arbiter):
    """gunicorn's master, without the signals that would give it a second worker or another program."""

    stopping = False

    def signal(self, sig: int, frame: FrameType | None) -> None:
        """Take a signal to end; a second one ends at once."""
        if sig in (signal.SIGTERM, signal.SIGHUP):
            super().signal(signal.SIGQUIT if self.stopping else signal.SIGTERM, frame)
            self.stopping = True
        elif sig in (signal.SIGINT, signal.SIGQUIT):
            super().signal(sig, frame)


class Server(BaseApplication):
    """The webhook as an application of gunicorn; `parts` is there in the worker only."""

    parts: Parts

    def __init__(self, settings: Settings) -> None:
        """Open the ports; SettingsError when that cannot be done."""
        self.settings = settings
        self._master = os.getpid()
        self._ports = [_listen(settings.bind_address, port) for port in (settings.port, settings.metrics_port)]
        super().__init__()

    def load_config(self) -> None:
        """Give gunicorn its settings."""
        for name, value in self._gunicorn().items():
            self.cfg.set(name, value)

    def _gunicorn(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "bind": [f"fd://{port.detach()}" for port in self._ports],
            "backlog": BACKLOG,
            "workers": 1,
            "worker_class": ReviewWorker,
            "worker_connections": settings.max_connections,
            "keepalive": math.ceil(settings.idle_timeout),
            # The kubelet asks /livez. gunicorn's own watch would take a machine that slept for a worker that hangs.
            "timeout": 0,
            "graceful_timeout": math.ceil(settings.drain_seconds) + MASTER_PATIENCE,
            "worker_tmp_dir": _memory_folder(),
            "control_socket_disable": True,
            "limit_request_fields": 64,
            "logger_class": GunicornLogger,
            "loglevel": settings.log_level,
            "accesslog": None,
            "ssl_context": self._ssl_context,
        }

    def load(self) -> Any:
        """Build all parts in the worker and start them; end the process when a choice turns out to be wrong."""
        from gpu2dra_webhook.compose import compose  # noqa: PLC0415 - see the module's docstring

        try:
            self.parts = compose(self.settings)
            self.parts.start()
        except SettingsError as error:
            _log.critical("%s", error)
            sys.exit(Arbiter.APP_LOAD_ERROR)
        return self.parts.app

    def serving(self, port: int, metrics_port: int) -> None:
        """Hear from the worker that it serves."""
        self.parts.serving(port)
        _log.info(
            "serving",
            extra={"address": self.settings.bind_address, "port": port, "metrics_port": metrics_port},
        )

    def run(self) -> None:
        """Serve until told to end. Always raises SystemExit: 0, or 2 when a choice was wrong."""
        try:
            _Master(self).run()
        except SystemExit as end:
            if os.getpid() == self._master:
                sys.exit(_EXIT_CODES.get(end.code, end.code))
            raise

    def _ssl_context(self, _config: Config, _default: object) -> ssl.SSLContext:
        return self.parts.ssl_context()


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        opened = socket.create_server((address, port), family=family, backlog=BACKLOG)
    except OSError as error:
        # The standard library adds the address to the reason; a name that nobody knows has no errno of the system.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise SettingsError(f"Cannot listen on {address} port {port}: {reason}.") from error
    return opened


def _memory_folder() -> str | None:
    """Return a folder in memory for the file by which gunicorn watches a worker; None where there is none."""
    folder = Path("/dev/shm")  # noqa: S108 - of all containers; the file in it has no name
    return str(folder) if os.access(folder, os.W_OK) else None
