"""List and watch: pages, places that were forgotten, watches that end at once, odd answers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from gpu2dra_webhook.cluster.cache import Key
from gpu2dra_webhook.cluster.reflector import NOT_KNOWN, Known, Reflector, Source
from webhook.cluster.scripted import Answer, Script, Server, serving, status

if TYPE_CHECKING:
    from pathlib import Path

WHERE = "/api/v1/things"


def uid(item: Known) -> str | None:
    """Keep the uid, and leave out what has none."""
    return item.metadata.uid or None


def thing(name: str, version: int, identity: str = "1") -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "n", "uid": identity, "resourceVersion": str(version)}}


def listed(*things: dict[str, Any], version: int = 10, more: str = "") -> Answer:
    return Answer([{"metadata": {"resourceVersion": str(version), "continue": more}, "items": list(things)}])


def event(kind: str, what: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": what}


@contextmanager
def running(
    folder: Path, script: Script, where: Callable[[], str | None] = lambda: WHERE
) -> Iterator[tuple[Reflector[str], Server]]:
    """Run a reflector on a script."""
    with serving(folder, script) as server:
        reflector = Reflector(server.api, Source("things", where, Known, uid))
        reflector.start()
        try:
            yield reflector, server
        finally:
            reflector.stop()


def wait(ready: Callable[[], bool]) -> None:
    ends = time.monotonic() + 20
    while not ready():
        assert time.monotonic() < ends
        time.sleep(0.01)


def test_all_pages_are_read_before_anything_is_shown(tmp_path: Path) -> None:
    shown: list[int] = []
    reflectors: list[Reflector[str]] = []

    def script(path: str) -> Answer:
        if "watch=1" in path:
            return Answer([])
        shown.append(len(reflectors[0].cache.items()) if reflectors else 0)
        return listed(thing("b", 2)) if "continue=more" in path else listed(thing("a", 1), more="more")

    with running(tmp_path, script) as (reflector, server):
        reflectors.append(reflector)
        wait(lambda: reflector.fresh(60))
    assert dict(reflector.cache.items()) == {Key("n", "a"): "1", Key("n", "b"): "1"}
    assert shown == [0, 0]
    assert server.requests[:2] == [f"GET {WHERE}?limit=500", f"GET {WHERE}?limit=500&continue=more"]


def test_a_watch_begins_where_the_list_ended_and_goes_on_where_the_last_event_was(tmp_path: Path) -> None:
    begun: list[str] = []

    def script(path: str) -> Answer:
        if "watch=1" not in path:
            return listed(thing("a", 1))
        begun.append(path.partition("resourceVersion=")[2].partition("&")[0])
        if len(begun) == 1:
            return Answer([event("ADDED", thing("b", 11)), event("MODIFIED", thing("a", 12, "2"))])
        if len(begun) == 2:
            return Answer(
                [event("DELETED", thing("b", 13)), event("BOOKMARK", {"metadata": {"resourceVersion": "20"}})]
            )
        return Answer([event("MODIFIED", thing("a", 21, ""))])  # the reader leaves it out from now on

    with running(tmp_path, script) as (reflector, _):
        wait(lambda: len(begun) > 2 and not reflector.cache)
    assert begun[:4] == ["10", "12", "20", "21"][: len(begun)]
    assert reflector.lists == 1


def test_a_forgotten_place_is_listed_anew(tmp_path: Path) -> None:
    lists: list[str] = []

    def script(path: str) -> Answer:
        if "watch=1" not in path:
            lists.append(path)
            return listed(thing(f"of list {len(lists)}", 1))
        gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version: 10 (99)"}
        return Answer([event("ERROR", gone)])

    with running(tmp_path, script) as (reflector, _):
        wait(lambda: len(lists) > 1 and reflector.cache.get("n", "of list 2") is not None)
        assert reflector.cache.get("n", "of list 1") is None


def test_a_watch_that_ends_at_once_again_and_again_is_no_hot_loop(tmp_path: Path) -> None:
    with running(tmp_path, lambda path: Answer([]) if "watch=1" in path else listed()) as (reflector, server):
        wait(lambda: reflector.failures >= 3)
    assert reflector.failures <= 4
    assert len(server.requests) <= 6


def test_retry_after_is_kept(tmp_path: Path) -> None:
    answers = [Answer("busy", 429, {"Retry-After": "1"}), listed(thing("a", 1))]
    at: list[float] = []

    def script(path: str) -> Answer:
        at.append(time.monotonic())
        return Answer([]) if "watch=1" in path else answers[min(len(at), 2) - 1]

    with running(tmp_path, script) as (reflector, _):
        wait(lambda: bool(reflector.cache))
    assert at[1] - at[0] >= 1


def test_a_path_that_is_not_served_is_told_of(tmp_path: Path) -> None:
    told = threading.Event()
    with serving(tmp_path, lambda path: status(404, "NotFound", "the server could not find it")) as server:
        reflector = Reflector(server.api, Source("things", lambda: WHERE, Known, uid), told.set)
        reflector.start()
        assert told.wait(10)
        assert not reflector.fresh(60)
        reflector.stop()


def test_answers_that_do_not_decode_are_tried_again(tmp_path: Path) -> None:
    answers = iter([Answer("<html>"), listed(thing("a", 1)), Answer(['{"type": 1}']), listed(thing("b", 1))])

    def script(path: str) -> Answer:
        return next(answers, Answer([]) if "watch=1" in path else listed(thing("b", 1)))

    with running(tmp_path, script) as (reflector, _):
        wait(lambda: reflector.cache.get("n", "b") is not None)


def test_a_kind_that_moves_is_listed_where_it_is_now(tmp_path: Path) -> None:
    place: list[str | None] = [NOT_KNOWN]

    def script(path: str) -> Answer:
        if "watch=1" in path:
            time.sleep(0.05)
            return Answer([event("BOOKMARK", {"metadata": {"resourceVersion": "11"}})])
        return listed(thing(path.partition("?")[0].rpartition("/")[2], 1))

    with running(tmp_path, script, lambda: place[0]) as (reflector, server):
        time.sleep(0.3)
        assert not reflector.fresh(60)
        assert server.requests == []
        place[0] = None
        wait(lambda: reflector.fresh(60))
        assert not reflector.cache
        for name in ("old", "new"):
            place[0] = f"/apis/{name}"
            assert not reflector.fresh(60) or reflector.cache.get("n", name)
            wait(lambda: reflector.fresh(60))
            assert [key.name for key, _ in reflector.cache.items()] == [name]
        place[0] = None
        wait(lambda: reflector.fresh(60))
        assert not reflector.cache
