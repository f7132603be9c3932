"""Any object, in any layout, under any operations: the edited text has the data that the operations ask for."""

from __future__ import annotations

import json
from random import Random  # noqa: TC003 - hypothesis reads the annotations
from typing import Any

import jsonpatch
from hypothesis import given
from hypothesis import strategies as st

from gpu2dra.model import Operation
from gpu2dra_migrate.errors import ALIAS, CannotEdit
from gpu2dra_migrate.text import source
from gpu2dra_migrate.text.edits import DocumentEdit, splices_of
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.patch import copied, patched, same
from gpu2dra_migrate.text.proof import prove
from gpu2dra_migrate.text.values import to_data

KEYS = ("a", "b", "limits", "nvidia.com/gpu", "x y", "on", "1", "~t", "q'q", 'd"d', "é😀", "last")
LEAVES: tuple[Any, ...] = (
    1,
    0,
    -3,
    "1",
    "main",
    "",
    "true",
    "a: b",
    "x # y",
    "é😀",
    "two\nlines\n",
    True,
    None,
    1.5,
    "- x",
    "it's",
    {},
    [],
)


def tree(random: Random, depth: int) -> Any:
    if depth == 0 or random.random() < 0.3:
        return copied(random.choice(LEAVES))
    if random.random() < 0.6:
        return {key: tree(random, depth - 1) for key in random.sample(KEYS, random.randint(1, 4))}
    return [tree(random, depth - 1) for _ in range(random.randint(1, 3))]


class Writer:
    """Writes data as YAML, choosing at every step between the ways in which people write it."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.aliases = random.random() < 0.3
        self.anchors: list[tuple[str, Any]] = []
        self.open: list[str] = []

    def sometimes(self, share: float = 0.25) -> bool:
        """Return True in about `share` of all calls."""
        return self.random.random() < share

    def comment(self) -> str:
        """Return what may stand at the end of a line."""
        return self.random.choice(("", "", "", "", "  # why", " #\ttab", " # a: {b, c", "   "))

    def between(self, column: int) -> list[str]:
        """Return blank and comment lines for the gap before an entry at `column`."""
        if not self.sometimes(0.2):
            return []
        return self.random.choice(
            (
                [""],
                [" " * column + "# about the next"],
                ["", " " * column + "# x: 1", ""],
                [" " * (column + 2) + "# deeper"],
                ["  "],
            )
        )

    def scalar(self, value: Any) -> str:
        """Write a scalar or an empty collection, quoted in one way or another."""
        if value == {} and isinstance(value, dict):
            return self.random.choice(("{}", "{ }"))
        if isinstance(value, list):
            return self.random.choice(("[]", "[ ]"))
        if not isinstance(value, str):
            return json.dumps(value)
        if "\n" not in value and self.sometimes(0.4):
            return "'" + value.replace("'", "''") + "'"
        if value in ("main", "é😀", "a", "b", "limits", "nvidia.com/gpu", "x y", "last", "it's") and self.sometimes(
            0.7
        ):
            return value
        return json.dumps(value, ensure_ascii=False)

    def flow(self, value: Any, column: int) -> str:
        """Write a value in flow style, on one line or over several."""
        if not value or not isinstance(value, dict | list):
            return self.scalar(value)
        spread = self.sometimes(0.3)
        inner = column + self.random.choice((1, 2, 4)) if spread else column
        if isinstance(value, dict):
            parts = [f"{self.scalar(key)}: {self.flow(item, inner)}" for key, item in value.items()]
        else:
            parts = [self.flow(item, inner) for item in value]
        left, right = "{}" if isinstance(value, dict) else "[]"
        if not spread:
            comma = self.random.choice((", ", ",", " , "))
            pad = self.random.choice(("", " "))
            return left + pad + comma.join(parts) + self.random.choice(("", ",")) * self.sometimes() + pad + right
        lines = [left]
        for number, part in enumerate(parts):
            comma = "," if number < len(parts) - 1 or self.sometimes() else ""
            joined = self.sometimes() and len(lines) > 1 and "#" not in lines[-1]
            if joined:
                lines[-1] += f" {part}{comma}"
            else:
                lines.append(" " * inner + part + comma)
            if self.sometimes(0.15):
                lines[-1] += " # in flow"
        if self.sometimes(0.3) and "#" not in lines[-1]:
            return "\n".join(lines) + " " + right
        return "\n".join([*lines, " " * column + right])

    def anchor(self, value: Any) -> str:
        """Return an alias for a value that was anchored before, an anchor to put before this one, or nothing."""
        if not self.aliases:
            return ""
        for name, known in reversed(self.anchors):
            latest = dict(self.anchors)[name] is known and name not in self.open
            if latest and same(known, value) and self.sometimes(0.8):
                return f"*{name}"
        if self.sometimes():
            name = self.random.choice(("x", "y", f"z{len(self.anchors)}"))
            return f"&{name}"
        return ""

    def value(self, value: Any, nested: int) -> list[str]:
        """Return what follows a colon or dash: the rest of the line, then lines; nested content goes to `nested`."""
        head = self.anchor(value)
        if head.startswith("*"):
            return [f" {head}{self.comment()}"]
        if not head:
            return self.bare(value, nested, "")
        self.open.append(head[1:])
        lines = self.bare(value, nested, f" {head}")
        self.open.pop()
        self.anchors.append((head[1:], value))
        return lines

    def bare(self, value: Any, nested: int, head: str) -> list[str]:
        """Return what `value` returns, for a value without an alias."""
        if isinstance(value, dict | list) and value and not self.sometimes(0.2):
            return [head + self.comment(), *self.block(value, nested)]
        if isinstance(value, str) and value.endswith("\n") and self.sometimes(0.7):
            return [f"{head} |", *(" " * nested + line for line in value.splitlines())]
        if value is None and self.sometimes():
            return [head + self.comment()]
        text = self.flow(value, nested) if isinstance(value, dict | list) else self.scalar(value)
        first, *rest = (f"{head} {text}" + self.comment()).split("\n")
        return [first, *rest]

    def block(self, value: Any, column: int) -> list[str]:
        """Return the lines of a collection in block style."""
        lines: list[str] = []
        if isinstance(value, dict):
            step = self.random.choice((1, 2, 4))
            for key, item in value.items():
                lines += self.between(column)
                offset = self.random.choice((0, 2)) if isinstance(item, list) and item else step
                rest = self.value(item, column + offset)
                lines += [f"{' ' * column}{self.scalar(key)}:{rest[0]}", *rest[1:]]
            return lines
        for item in value:
            lines += self.between(column)
            width = self.random.choice((2, 2, 2, 4))
            if isinstance(item, dict | list) and item and self.sometimes(0.7) and not self.aliases:
                inner = self.block(item, column + width)
                while not inner[0].strip() or inner[0].lstrip().startswith("#"):
                    inner.pop(0)
                lines += [" " * column + "-" + " " * (width - 1) + inner[0][column + width :], *inner[1:]]
            else:
                rest = self.value(item, column + width)
                lines += [f"{' ' * column}-{rest[0]}", *rest[1:]]
        return lines


def operations_on(random: Random, data: Any) -> list[Operation]:
    """Return up to six operations that fit `data`, one after the other."""
    operations: list[Operation] = []
    state = copied(data)
    for _ in range(random.randint(1, 6)):
        pointer, node = "", state
        while isinstance(node, dict | list) and node and random.random() < 0.75:
            key = random.choice(sorted(node)) if isinstance(node, dict) else random.randrange(len(node))
            pointer, node = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}", node[key]
        operation: Operation
        if isinstance(node, dict):
            key = random.choice(KEYS).replace("~", "~0").replace("/", "~1")
            operation = {"op": "add", "path": f"{pointer}/{key}", "value": tree(random, 2)}
        elif isinstance(node, list):
            index = random.choice(("-", str(random.randint(0, len(node)))))
            operation = {"op": "add", "path": f"{pointer}/{index}", "value": tree(random, 2)}
        else:
            operation = {"op": "replace", "path": pointer, "value": tree(random, 1)}
        if pointer and random.random() < 0.5:
            operation = {"op": "remove", "path": pointer}
        if not operation["path"]:
            continue
        operations.append(operation)
        state = jsonpatch.apply_patch(state, [operation])
    return operations


def stream(random: Random) -> tuple[str, int]:
    """Return a text of several documents and how many there are."""
    documents = random.randint(1, 3)
    lines: list[str] = []
    for number in range(documents):
        writer = Writer(random)
        root = {key: tree(random, 3) for key in random.sample(KEYS, random.randint(1, 4))}
        if number or random.random() < 0.4:
            lines.append("---" + writer.comment())
        lines += [*writer.between(0), *writer.block(root, random.choice((0, 0, 0, 2)))]
        if random.random() < 0.1:
            lines.append("...")
    eol = random.choice(("\n", "\n", "\r\n"))
    text = eol.join("\n".join(lines).split("\n")) + random.choice((eol, eol, eol, "", eol * 2))
    return random.choice(("", "", "", "\ufeff")) + text, documents


@given(st.randoms(use_true_random=False))
def test_the_text_gets_the_data_that_the_operations_ask_for(random: Random) -> None:
    text, count = stream(random)
    documents = compose(text)
    assert len(documents) == count
    edits = [DocumentEdit(index, operations_on(random, to_data(documents[index]))) for index in range(count)]
    if random.random() < 0.5:
        index = random.randrange(count)
        edits[index] = DocumentEdit(index, edits[index].operations, [{"kind": "New", "list": [{"a": "b"}]}])
    try:
        splices = splices_of(text, edits, documents)
    except CannotEdit as problem:
        assert problem.code == ALIAS, problem  # noqa: PT017 - which refusal it may be is the point
        return
    after = source.apply(text, splices)
    prove(text, after, edits, documents, splices)
    assert [to_data(document) for document in compose(after)] == [
        item
        for edit, document in zip(edits, documents, strict=True)
        for item in (*edit.before, jsonpatch.apply_patch(to_data(document), list(edit.operations)))
    ]
    assert after.endswith("\n") == text.endswith("\n") or ("|" in text and after.endswith("\n"))
    assert ("\r\n" in after) == ("\r\n" in text) or "\n" not in after
    assert after.count("\r") == after.count("\r\n")
    assert after.count("\r") in {0, after.count("\n")}


@given(st.randoms(use_true_random=False))
def test_patched_is_jsonpatch(random: Random) -> None:
    data = tree(random, 4)
    operations = operations_on(random, data) if isinstance(data, dict | list) else []
    assert same(patched(copied(data), operations), jsonpatch.apply_patch(data, operations))
