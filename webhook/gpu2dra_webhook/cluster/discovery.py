"""Which version of resource.k8s.io the API server serves (R9)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from gpu2dra import ApiVersion
from gpu2dra_webhook.cluster.backoff import Backoff
from gpu2dra_webhook.cluster.client import Api
from gpu2dra_webhook.cluster.errors import ApiError, NotFound

_log = logging.getLogger(__name__)
_GROUP = "/apis/resource.k8s.io"
_EVERY = 60.0
_AT_MOST_EVERY = 1.0
_TIMEOUT = 5.0


class _Version(msgspec.Struct):
    groupVersion: str  # noqa: N815 - the API's own spelling


class _Group(msgspec.Struct):
    versions: list[_Version]


class Discovery:
    """Looks every minute, sooner after `look_again`. What was found stays until the server says otherwise."""

    def __init__(self, api: Api, on_change: Callable[[], None] = lambda: None) -> None:
        """`on_change` is called after another version was found than before."""
        self._api = api
        self._on_change = on_change
        self._version: ApiVersion | None = None
        self._known = threading.Event()
        self._wanted = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def version(self) -> ApiVersion | None:
        """The newest version that both the server and we know; None: no DRA, or nobody has answered yet."""
        return self._version

    @property
    def known(self) -> bool:
        """Whether the server has answered at least once."""
        return self._known.is_set()

    def look(self) -> None:
        """Ask the server now; ApiError when it does not answer."""
        try:
            group = msgspec.json.decode(self._api.call("GET", _GROUP, timeout=_TIMEOUT), type=_Group)
            served = {version.groupVersion for version in group.versions}
        except NotFound:  # nothing of the group is served
            served = set()
        found = next((version for version in ApiVersion if version in served), None)
        if found != self._version or not self.known:
            _log.info("the API server serves %s", found or "no version of resource.k8s.io that is known here")
        changed = found != self._version
        self._version = found
        self._known.set()
        if changed:
            self._on_change()

    def look_again(self) -> None:
        """Have it looked at soon: a call has met a path that the server does not serve."""
        self._wanted.set()

    def start(self) -> None:
        """Begin to look, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="discovery", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop looking."""
        self._stopped.set()
        self._wanted.set()
        if self._thread:
            self._thread.join()

    def _run(self) -> None:
        backoff = Backoff(0.5, 8.0)
        while not self._stopped.is_set():
            try:
                self.look()
            except (ApiError, msgspec.DecodeError) as error:
                _log.warning("cannot look up the served API versions: %s", error)
                self._stopped.wait(backoff.next())
                continue
            backoff.reset()
            self._wanted.wait(_EVERY)
            self._wanted.clear()
            self._stopped.wait(_AT_MOST_EVERY)
