"""The room for decoded reviews: who gets it, who does not, and that it is given back."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest

from gpu2dra_webhook.room import ROOM, Room, TooLarge, TooMany, weight
from unit.build import container, pod
from webhook.admission.asking import Webhook, body

KIBIBYTE = 2**10


def text(size: int) -> bytes:
    """Return a body that weighs this much."""
    return b"x" * size


def test_one_review_may_have_half_of_the_room_and_no_more() -> None:
    room = Room(10 * KIBIBYTE)
    with room.taken(text(5 * KIBIBYTE)):
        pass
    with pytest.raises(TooLarge) as caught, room.taken(text(5 * KIBIBYTE + 1)):
        pass
    assert (caught.value.status, caught.value.message) == (413, "The review holds too many values.")


def test_while_large_ones_are_answered_the_next_one_may_have_half_of_the_rest() -> None:
    room = Room(16 * KIBIBYTE)
    with contextlib.ExitStack() as answering:
        answering.enter_context(room.taken(text(8 * KIBIBYTE)))
        for size in (4, 2, 1):
            with pytest.raises(TooMany) as caught, room.taken(text(size * KIBIBYTE + 1)):
                pass
            assert (caught.value.status, caught.value.message) == (503, "Too many large reviews at once; try again.")
            answering.enter_context(room.taken(text(size * KIBIBYTE)))
        answering.enter_context(room.taken(text(500)))


def test_what_is_answered_gives_its_room_back_however_it_ended() -> None:
    room = Room(2 * KIBIBYTE)
    for _ in range(5):
        with contextlib.suppress(ZeroDivisionError), room.taken(text(KIBIBYTE)):
            raise ZeroDivisionError


def test_reviews_are_weighed_before_they_are_read() -> None:
    webhook = Webhook()
    webhook.mutator._room = Room(KIBIBYTE)
    with pytest.raises(TooLarge):
        webhook.ask(pod(container("main", 1)))
    assert webhook.counted() == []


def environment(count: int) -> Any:
    """Return a pod with this many environment variables, and what the API server notes about each."""
    names = [f"VARIABLE_{number}" for number in range(count)]
    fields: dict[str, Any] = {f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:value": {}} for name in names}
    noted = {"f:spec": {"f:containers": {'k:{"name":"main"}': {"f:env": fields}}}}
    variables = [{"name": name, "value": str(number)} for number, name in enumerate(names)]
    managed = [{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": noted}]
    return pod(container("main", 1, env=variables), meta={"managedFields": managed})


def test_a_pod_as_large_as_etcd_takes_is_answered() -> None:
    large = environment(15_000)
    assert len(json.dumps(large, separators=(",", ":"))) > 1.5 * 2**20
    assert Webhook().ask(large)["allowed"] is True


@pytest.mark.parametrize(
    ("content", "least"),
    [
        (b'{"a":1}', 200 + 7),
        (b"[1,2,3]", 3 * 200 + 7),
        ("ü".encode() * 10, 20 * 4),
        (b"\\ud83d" * 10, 60 * 4),
        (b"x" * 10, 10),
    ],
)
def test_a_review_weighs_what_its_values_take(content: bytes, least: int) -> None:
    assert weight(content) == least


def test_an_ordinary_review_takes_next_to_nothing_of_the_room() -> None:
    assert weight(body(pod(container("main", 1)))) < ROOM // 5_000
