"""gunicorn, set up for an API server as its only client: two ports, one worker, an orderly end.

The worker runs without gunicorn's master process, which would only watch it: the kubelet does that, and starts the
container again. That saves a fifth of the memory, and signals and exit codes are those of one process.

Most is imported late, after gevent has put its own sockets and threads in place of the standard ones.
"""

from __future__ import annotations

import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.sock import create_sockets

from gpu2dra_webhook.logs import GunicornLogger
from gpu2dra_webhook.settings import ANY_ADDRESS, Settings, SettingsError
from gpu2dra_webhook.worker import ReviewWorker

if TYPE_CHECKING:
    import ssl

    from gunicorn.config import Config

    from gpu2dra_webhook.compose import Parts

_log = logging.getLogger(__name__)

BACKLOG = 1024


class Server(BaseApplication):
    """The webhook as an application of gunicorn; `parts` is there once it runs."""

    parts: Parts

    def __init__(self, settings: Settings) -> None:
        """Open the ports; SettingsError when that cannot be done."""
        self.settings = settings
        self._ports = [listen(settings.bind_address, port) for port in (settings.port, settings.metrics_port)]
        self._address = self._ports[0].getsockname()[0]
        super().__init__()

    def load_config(self) -> None:
        """Give gunicorn those of its settings that its worker and its parser look at; all else is ours."""
        for name, value in {
            "bind": [f"fd://{port.detach()}" for port in self._ports],
            "workers": 1,
            "worker_tmp_dir": _memory_folder(),
            "limit_request_fields": 64,
            "ssl_context": self._ssl_context,
        }.items():
            self.cfg.set(name, value)

    def run(self) -> None:
        """Serve until told to end; SettingsError when a choice turns out to be wrong."""
        log = GunicornLogger(self.cfg)
        ReviewWorker(1, os.getppid(), create_sockets(self.cfg, log), self, 0, self.cfg, log).init_process()

    def load(self) -> Any:
        """Build all parts, start them and return the application; gunicorn calls it when gevent is in place."""
        from gpu2dra_webhook.compose import compose  # noqa: PLC0415 - see the module's docstring

        self.parts = compose(self.settings)
        self.parts.start()
        return self.parts.app

    def serving(self, port: int, metrics_port: int) -> None:
        """Hear from the worker that it serves."""
        self.parts.serving(port)
        _log.info(
            "serving",
            extra={"address": self._address, "port": port, "metrics_port": metrics_port},
        )

    def _ssl_context(self, _config: Config, _default: object) -> ssl.SSLContext:
        return self.parts.ssl_context()


def listen(address: str, port: int) -> socket.socket:
    """Return a socket that listens there; SettingsError when that cannot be done."""
    both = address == ANY_ADDRESS and socket.has_dualstack_ipv6()
    if address == ANY_ADDRESS and not both:
        address = "0.0.0.0"  # noqa: S104 - as much of all addresses as there is
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        opened = socket.create_server((address, port), family=family, backlog=BACKLOG, dualstack_ipv6=both)
    except OSError as error:
        # The standard library adds the address to the reason; a name that nobody knows has no errno of the system.
        reason = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
        raise SettingsError(f"Cannot listen on {address} port {port}: {reason}.") from error
    return opened


def _memory_folder() -> str | None:
    """Return a folder in memory for the file that gunicorn's workers open; None where there is none."""
    folder = Path("/dev/shm")  # noqa: S108 - of all containers; the file in it has no name
    return str(folder) if os.access(folder, os.W_OK) else None
