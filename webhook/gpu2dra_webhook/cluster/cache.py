"""Objects of one kind as the last list and watch showed them, for readers in any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Generic, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")

_STRIDE = 256
"""Objects that a walk looks at before others get their turn."""


class Key(NamedTuple):
    """Which object: its namespace (empty for kinds that have none) and its name."""

    namespace: str
    name: str


GroupsOf: TypeAlias = Callable[[Key, T], Collection[Key]]


def in_no_group(key: Key, value: object) -> Collection[Key]:
    """Return no group."""
    return ()


class Cache(Generic[T]):
    """A table by namespace and name. Only what a reader of ours needs of an object is in it.

    `version` counts changes of what is held: an object that was sent again with nothing new for us is no change.
    Values are immutable and compare by what they hold. The groups that `groups_of` gives for an object, given its key
    and value, can be had without a look at all others.
    """

    def __init__(self, groups_of: GroupsOf[T] = in_no_group) -> None:
        self.version = 0
        self._groups_of = groups_of
        self._spaces: dict[str, dict[str, T]] = {}
        self._groups: dict[Key, dict[Key, T]] = {}
        self._changed = threading.Condition()

    def get(self, namespace: str, name: str) -> T | None:
        """Return what is held of an object, or None."""
        space = self._spaces.get(namespace)
        return None if space is None else space.get(name)

    def __bool__(self) -> bool:
        """Whether anything is held."""
        return bool(self._spaces)

    def within(self, namespace: str) -> dict[str, T]:
        """Return a copy of what a namespace holds, by name."""
        with self._changed:
            return dict(self._spaces.get(namespace, {}))

    def items(self) -> list[tuple[Key, T]]:
        """Return a copy of everything."""
        with self._changed:
            return [(Key(space, name), value) for space, held in self._spaces.items() for name, value in held.items()]

    def groups(self) -> list[Key]:
        """Return the groups that hold anything."""
        with self._changed:
            return list(self._groups)

    def group(self, group: Key) -> dict[Key, T]:
        """Return a copy of what a group holds."""
        with self._changed:
            return dict(self._groups.get(group, {}))

    def walk(self) -> Iterator[tuple[Key, T]]:
        """Yield everything, and let others run on the way: a look at many thousand objects must not hold up a review.

        What changes meanwhile is seen as it was or as it is.
        """
        for space in list(self._spaces):
            for number, (name, value) in enumerate(self.within(space).items()):
                if number % _STRIDE == 0:
                    time.sleep(0)
                yield Key(space, name), value

    def wait_for(self, ready: Callable[[], bool], timeout: float) -> bool:
        """Wait until `ready` is true, looking after each change, for at most `timeout` seconds; return what it said."""
        ends = time.monotonic() + timeout
        with self._changed:
            while not ready():
                left = ends - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    return ready()
        return True

    def put(self, key: Key, value: T) -> None:
        """Hold a value."""
        with self._changed:
            space = self._spaces.setdefault(key.namespace, {})
            before = space.get(key.name)
            if before == value:
                return
            if before is not None:
                self._leave_groups(key, before)
            space[key.name] = value
            self._join_groups(key, value)
            self._tell()

    def remove(self, key: Key) -> None:
        """Hold an object no longer."""
        with self._changed:
            space = self._spaces.get(key.namespace, {})
            if (value := space.pop(key.name, None)) is None:
                return
            self._leave_groups(key, value)
            if not space:
                del self._spaces[key.namespace]
            self._tell()

    def replace(self, objects: Mapping[Key, T]) -> None:
        """Hold these objects and no others."""
        spaces: dict[str, dict[str, T]] = {}
        for key, value in objects.items():
            spaces.setdefault(key.namespace, {})[key.name] = value
        with self._changed:
            if spaces != self._spaces:
                self._spaces = spaces
                self._groups = {}
                for key, value in objects.items():
                    self._join_groups(key, value)
                self._tell()

    def _join_groups(self, key: Key, value: T) -> None:
        for group in self._groups_of(key, value):
            self._groups.setdefault(group, {})[key] = value

    def _leave_groups(self, key: Key, value: T) -> None:
        for group in self._groups_of(key, value):
            members = self._groups[group]
            del members[key]
            if not members:
                del self._groups[group]

    def _tell(self) -> None:
        self.version += 1
        self._changed.notify_all()
