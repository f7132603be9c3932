"""Keeps a cache equal to what the API server holds: list, watch, and again.

Why not `kubernetes.informer.SharedInformer` (37.0): without the generated models it never learns the resourceVersion
of an event, so that it lists again or misses events after each reconnection; it reconnects without any pause while the
API server is away, with a traceback each time; it holds whole objects, lists without pages and timeouts, and cannot
tell whether its watch is still alive.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from gpu2dra_webhook.cluster.backoff import Backoff
from gpu2dra_webhook.cluster.cache import Cache, GroupsOf, Key, in_no_group
from gpu2dra_webhook.cluster.client import Api, Watch
from gpu2dra_webhook.cluster.errors import ApiError, Expired, NotFound, Refused, Status, refusal

_log = logging.getLogger(__name__)

T = TypeVar("T")

_LIST_TIMEOUT = 30.0
_WATCH_SECONDS = 60
"""How long a watch is open. Its end is a sign of life, so a dead connection is noticed a little later than that."""
_QUIET_MARGIN = 15.0
_SHORTEST = 1.0
"""A watch that ends sooner and has said nothing counts as failed, lest a broken proxy makes this a hot loop."""
NOT_KNOWN = ""
"""In place of a path: nobody has said yet whether and where the kind is served."""
_POLL = 0.1
_STOP_TIMEOUT = 5.0
"""A list that hangs is not waited for: the thread ends when it comes back."""


class Metadata(msgspec.Struct):
    """The parts of an object's metadata that anybody here needs."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resourceVersion: str = ""  # noqa: N815 - the API's own spelling, as in all structs that are decoded from it
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class Known(msgspec.Struct):
    """An object of which only the metadata is looked at; the kinds that are cached extend it."""

    metadata: Metadata


class _ListMetadata(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815
    continue_: str = msgspec.field(default="", name="continue")


class _Event(msgspec.Struct):
    type: str
    object: msgspec.Raw


@dataclass(frozen=True, slots=True)
class Source(Generic[T]):
    """A kind to be cached: where it is, how it is decoded, and what is kept of each object.

    `where` returns the path of the collection, None while the server does not serve it, or NOT_KNOWN. `read` makes the
    value to hold of a decoded object; None leaves the object out. `groups_of` is the cache's.
    """

    name: str
    where: Callable[[], str | None]
    shape: type[Known]
    read: Callable[[Any], T | None]
    query: Mapping[str, str | int] = field(default_factory=dict)
    page: int = 500
    groups_of: GroupsOf[T] = in_no_group


class Reflector(Generic[T]):
    """Runs one source into one cache, in a thread of its own."""

    def __init__(self, api: Api, source: Source[T], not_served: Callable[[], None] = lambda: None) -> None:
        """`not_served` is called when the server answers that it knows no such path."""
        self.source = source
        self.cache: Cache[T] = Cache(source.groups_of)
        self.lists = 0
        self.failures = 0
        self._api = api
        self._not_served = not_served
        list_type = msgspec.defstruct("List", [("metadata", _ListMetadata), ("items", list[source.shape] | None, None)])  # type: ignore[name-defined]
        self._list = msgspec.json.Decoder(list_type)
        self._object = msgspec.json.Decoder(source.shape)
        self._event = msgspec.json.Decoder(_Event)
        self._heard: float | None = None
        self._synced_for: str | None = NOT_KNOWN
        self._version = ""
        self._backoff = Backoff(0.25, 8.0)
        self._watch: Watch | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name=f"cache-{self.source.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the cache keeps what it holds."""
        self._stopped.set()
        self.turn()
        if self._thread:
            self._thread.join(_STOP_TIMEOUT)

    def turn(self) -> None:
        """End the open watch, so that a path that has changed is looked at now."""
        if watch := self._watch:
            watch.end()

    def fresh(self, within: float) -> bool:
        """Whether all objects were listed where they are now, and the server was heard of in the last seconds."""
        heard, synced_for = self._heard, self._synced_for
        current = synced_for != NOT_KNOWN and synced_for == self.source.where()
        return current and heard is not None and time.monotonic() - heard <= within

    def _run(self) -> None:
        while not self._stopped.is_set():
            where = self.source.where()
            if not where:
                if where is None:  # so there are no objects
                    self.cache.replace({})
                    self._alive()
                    self._synced_for = None
                self._stopped.wait(_POLL)
                continue
            try:
                self._follow(where)
            except (ApiError, msgspec.DecodeError) as error:
                self._failed(where, error)

    def _follow(self, where: str) -> None:
        """List if need be, then watch until the watch ends or the path is another one; ApiError when that fails."""
        if not self._version or self._synced_for != where:
            self._version = self._list_all(where)
            self._synced_for = where
        while not self._stopped.is_set() and self.source.where() == where:
            began, events = time.monotonic(), self._watch_once(where)
            if not events and time.monotonic() - began < _SHORTEST:
                raise ApiError(f"GET {where}", "the watch ended at once")
            self._backoff.reset()

    def _failed(self, where: str, error: Exception) -> None:
        if self._stopped.is_set() or self.source.where() != where:
            return  # nothing has failed: the watch was closed on purpose
        self.failures += 1
        _log.log(logging.INFO if isinstance(error, Expired) else logging.WARNING, "%s: %s", self.source.name, error)
        if isinstance(error, Expired | NotFound | msgspec.DecodeError):
            self._version = ""  # so that all is listed again
        if isinstance(error, NotFound):
            self._not_served()
        self._stopped.wait(self._backoff.next(error.retry_after if isinstance(error, Refused) else 0))

    def _alive(self) -> None:
        self._heard = time.monotonic()

    def _list_all(self, where: str) -> str:
        """Read all pages into the cache and return the resourceVersion to watch from."""
        self.lists += 1
        found: dict[Key, T] = {}
        query: dict[str, str | int] = {**self.source.query, "limit": self.source.page}
        while True:
            answer: Any = self._list.decode(self._api.call("GET", where, query=query, timeout=_LIST_TIMEOUT))
            self._alive()
            for item in answer.items or ():
                if (value := self.source.read(item)) is not None:
                    found[_key(item)] = value
            if not answer.metadata.continue_:
                self.cache.replace(found)
                version: str = answer.metadata.resourceVersion
                return version
            query["continue"] = answer.metadata.continue_

    def _watch_once(self, where: str) -> int:
        """Apply the events of one watch and return how many there were, bookmarks included."""
        seconds = _WATCH_SECONDS + random.randrange(_WATCH_SECONDS // 4)  # noqa: S311 - so that they do not end in step
        query = {
            **self.source.query, "resourceVersion": self._version, "allowWatchBookmarks": "true",
            "timeoutSeconds": seconds,
        }  # fmt: skip
        events = 0
        self._watch = watch = self._api.watch(where, query, quiet=seconds + _QUIET_MARGIN)
        try:
            self._alive()
            lines = iter(watch)
            # Looked at after `_watch` is set: `stop` sets the flag first and closes what it finds there.
            while not self._stopped.is_set() and (line := next(lines, None)) is not None:
                self._apply(self._event.decode(line))
                events += 1
                self._alive()
            self._alive()
        finally:
            self._watch = None
            watch.close()
        return events

    def _apply(self, event: _Event) -> None:
        if event.type == "ERROR":
            status = msgspec.json.decode(event.object, type=Status)
            raise refusal(f"watch of {self.source.name}", status.code, bytes(event.object))
        item = self._object.decode(event.object)
        value = self.source.read(item) if event.type in {"ADDED", "MODIFIED"} else None
        if value is not None:
            self.cache.put(_key(item), value)
        elif event.type != "BOOKMARK":
            self.cache.remove(_key(item))
        self._version = item.metadata.resourceVersion


def _key(item: Known) -> Key:
    return Key(item.metadata.namespace, item.metadata.name)
