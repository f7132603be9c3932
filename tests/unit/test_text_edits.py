"""The text editor on the layouts that people write: what changes, and that nothing else does."""

from __future__ import annotations

import json
from textwrap import dedent
from typing import Any

import pytest

from gpu2dra.model import Operation
from gpu2dra_migrate.errors import (
    ALIAS,
    DUPLICATE_KEY,
    LAYOUT,
    MERGE_KEY,
    NO_ROOM_FOR_DOCUMENT,
    CannotEdit,
)
from gpu2dra_migrate.text.edits import DocumentEdit, edit, locate
from gpu2dra_migrate.text.emit import Verbatim
from gpu2dra_migrate.text.nodes import compose
from gpu2dra_migrate.text.patch import BadOperation
from gpu2dra_migrate.text.proof import prove

CLAIMS = [{"name": "gpu", "request": "main"}]
TEMPLATE = {"kind": "ResourceClaimTemplate", "spec": {"devices": {"requests": [{"name": "main"}]}}}
TEMPLATE_TEXT = "kind: ResourceClaimTemplate\nspec:\n  devices:\n    requests:\n    - name: main\n"


def remove(path: str) -> Operation:
    return {"op": "remove", "path": path}


def add(path: str, value: Any) -> Operation:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: Any) -> Operation:
    return {"op": "replace", "path": path, "value": value}


def edited(text: str, *operations: Operation, index: int = 0, before: tuple[dict[str, Any], ...] = ()) -> str:
    """Return the edited text, proven by both parsers."""
    edits = [DocumentEdit(index, operations, before)]
    after = edit(text, edits)
    prove(text, after, edits)
    return after


GPU = "nvidia.com~1gpu"
TO_CLAIMS = (remove("/limits"), remove("/requests"), add("/claims", CLAIMS))

BLOCK = [
    pytest.param(
        """
        limits:
          cpu: 1
          nvidia.com/gpu: 1  # one card
          # nvidia.com/gpu: 2
          memory: 1Gi
        """,
        [remove(f"/limits/{GPU}")],
        """
        limits:
          cpu: 1
          # nvidia.com/gpu: 2
          memory: 1Gi
        """,
        id="whole line goes with its comment, comment lines stay",
    ),
    pytest.param(
        """
        limits:
          nvidia.com/gpu: 1
        requests:
          nvidia.com/gpu: 1
        """,
        TO_CLAIMS,
        """
        claims:
        - name: gpu
          request: main
        """,
        id="all keys go, one comes in their place",
    ),
    pytest.param(
        """
        requests:
          cpu: 1
        # about the limits
        limits:
          # one is enough
          nvidia.com/gpu: 1
        # the end
        """,
        [remove("/limits"), add("/claims", CLAIMS)],
        """
        requests:
          cpu: 1
        claims:
        - name: gpu
          request: main
        # about the limits
        # one is enough
        # the end
        """,
        id="comments above and inside what goes stay",
    ),
    pytest.param(
        """
        limits: # first
            nvidia.com/gpu: 1
        requests:
            cpu: 1
        """,
        [add("/claims", [{"name": "gpu", "more": {"deep": 1}}]), remove("/limits")],
        """
        claims:
        - name: gpu
          more:
              deep: 1
        requests:
            cpu: 1
        """,
        id="first key goes: the new one takes its place; indentation step of the neighbours",
    ),
    pytest.param(
        """
        spec:
          containers:
            - name: main

          # the end of spec
        other: 1
        """,
        [add("/spec/resourceClaims", CLAIMS)],
        """
        spec:
          containers:
            - name: main
          resourceClaims:
            - name: gpu
              request: main

          # the end of spec
        other: 1
        """,
        id="before the comments that follow a blank line; list indented as its sibling",
    ),
    pytest.param(
        """
        spec:
          env:
              - name: a
          list:
          -   name: b # why
              # more of b
        # next
        other: 1
        """,
        [add("/spec/list/-", {"x": 1, "z": 2}), add("/spec/new", [{"z": 1}])],
        """
        spec:
          env:
              - name: a
          list:
          -   name: b # why
              # more of b
          -   x: 1
              z: 2
          new:
          -   z: 1
        # next
        other: 1
        """,
        id="wide dash, mixed lists, deeper comment stays with its item",
    ),
    pytest.param(
        """
        containers:
        - resources: {}
          # about the name
          name: main
        - name: other
        """,
        [remove("/containers/0/resources")],
        """
        containers:
        # about the name
        - name: main
        - name: other
        """,
        id="first key behind a dash goes: the next slides up",
    ),
    pytest.param(
        """
        list:
        - a: 1
          b: 2
        """,
        [remove("/list/0/a"), add("/list/0/c", [1])],
        """
        list:
        - c:
          - 1
          b: 2
        """,
        id="first key behind a dash is taken over",
    ),
    pytest.param(
        """
        items:
        # the workload
        - kind: Deployment
        """,
        [add("/items/0", TEMPLATE)],
        """
        items:
        - kind: ResourceClaimTemplate
          spec:
            devices:
              requests:
              - name: main
        # the workload
        - kind: Deployment
        """,
        id="an item before the first",
    ),
    pytest.param(
        """
        - - a
          - b
        - -   c
        """,
        [add("/0/0", "new"), remove("/1/0"), add("/1/-", "d")],
        """
        - - new
          - a
          - b
        - -   d
        """,
        id="lists in lists",
    ),
    pytest.param(
        """
        resources: {}  # none yet
        tolerations: []
        nodeSelector:
        """,
        [add("/resources/claims", CLAIMS), add("/tolerations/-", {"key": "a"}), add("/last", None)],
        """
        resources:  # none yet
          claims:
          - name: gpu
            request: main
        tolerations:
        - key: a
        nodeSelector:
        last: null
        """,
        id="empty flow collections fill up in block style",
    ),
    pytest.param(
        """
        limits: &l
          # gone
          nvidia.com/gpu: 1
        list:
          - 1
        deep:
        - a: 1
        """,
        [remove(f"/limits/{GPU}"), remove("/list/0"), remove("/deep/0/a")],
        """
        limits: &l {}
          # gone
        list: []
        deep:
        - {}
        """,
        id="emptied collections",
    ),
    pytest.param(
        """
        "limits":
          'nvidia.com/gpu' : "1"
          "cpu"   :    '2'
        """,
        [remove(f"/limits/{GPU}"), replace("/limits/cpu", "x'y")],
        """
        "limits":
          "cpu"   :    'x''y'
        """,
        id="quoted keys, blanks before the colon, quotes of a replaced scalar",
    ),
    pytest.param(
        """
        a: "1"   # one
        b: one
        c: |
          text
        d: # nothing
        e: {x: 1}
        f:
          g: 1
        """,
        [
            replace("/a", 2),
            replace("/b", "yes"),
            replace("/c", "t"),
            replace("/d", 1),
            replace("/e", []),
            replace("/f", 0),
        ],
        """
        a: 2   # one
        b: "yes"
        c: t
        d: 1 # nothing
        e: []
        f: 0
        """,
        id="replaced scalars",
    ),
    pytest.param(
        """
        args:
        - |
          nvidia.com/gpu: 1
            # not a comment

        # a comment
        name: main
        """,
        [remove("/args"), add("/x", "one")],
        """
        x: one

        # a comment
        name: main
        """,
        id="block scalars end before the blank lines that follow; their lines are no comments",
    ),
    pytest.param(
        'command: ["sh", "-c",\n  "a\n  b"]\nlimits:\n  nvidia.com/gpu: 1\t# tab\n#\ttab line\nname: "é😀" # 😀\n',
        [remove("/limits"), replace("/name", "é")],
        'command: ["sh", "-c",\n  "a\n  b"]\n#\ttab line\nname: "é" # 😀\n',
        id="tabs in comments, astral characters, text over several lines",
    ),
]

FLOW = [
    ("{ A: true, FOO: bar }", [remove("/A")], "{ FOO: bar }"),
    ("{ A: true, FOO: bar }", [remove("/FOO")], "{ A: true }"),
    ("{A: 1,B: 2,C: 3,}", [remove("/B")], "{A: 1,C: 3,}"),
    ("{A: 1, B: 2, C: 3}", [remove("/B"), remove("/C"), add("/D", 4)], "{A: 1, D: 4}"),
    ("{ A: 1 }", [remove("/A")], "{}"),
    ("{ A: 1 }", [remove("/A"), add("/B", CLAIMS)], "{ B: [{name: gpu, request: main}] }"),
    ("{A: 1, B: 2}", [remove("/A"), add("/C", 3)], "{C: 3, B: 2}"),
    ("[a, b, c]", [remove("/1"), add("/0", "x, y"), add("/-", "z")], '["x, y", a, c, z]'),
    ("[]", [add("/-", {"a": "yes"})], '[{a: "yes"}]'),
    ("{x: []}", [add("/x/-", 1)], "{x: [1]}"),
    ("{x: , z}", [replace("/x", 1), replace("/z", 2)], "{x: 1 , z: 2}"),
    ("{'a': 'b', c: \"d\"}", [replace("/a", "x"), replace("/c", "y")], "{'a': 'x', c: \"y\"}"),
    (
        "limits: {\n  cpu: 1,  # c\n  nvidia.com/gpu: 1,  # g\n  mem: 2  # m\n}",
        [remove(f"/limits/{GPU}"), add("/limits/x", 3)],
        "limits: {\n  cpu: 1,  # c\n  mem: 2,  # m\n  x: 3\n}",
    ),
    ("a: {\n  b: 1,\n  c: 2 }", [remove("/a/c")], "a: {\n  b: 1 }"),
    ("a: {\n  b: 1,\n  c: 2\n}", [remove("/a/c")], "a: {\n  b: 1\n}"),
    ("a: {\n  b: 1, # b\n  c: 2 }", [remove("/a/c")], "a: {\n  b: 1 # b\n   }"),
    ('{"a": 1, "b": {"c": 2}}', [add("/b/d", "x"), remove("/a")], '{"b": {"c": 2, "d": "x"}}'),
    (
        '{"a":1,"b":[2]}',
        [add("/c", [{"d": "e", "f": None}]), add("/b/-", 3)],
        '{"a":1,"b":[2,3],"c":[{"d":"e","f":null}]}',
    ),
]


@pytest.mark.parametrize(("text", "operations", "expected"), BLOCK)
def test_block_style(text: str, operations: list[Operation], expected: str) -> None:
    text, expected = dedent(text).lstrip("\n"), dedent(expected).lstrip("\n")
    assert edited(text, *operations) == expected
    assert edited(text.rstrip("\n"), *operations) == expected.rstrip("\n")
    assert edited(text.replace("\n", "\r\n"), *operations) == expected.replace("\n", "\r\n")
    assert edited("\ufeff" + text, *operations) == "\ufeff" + expected
    assert (
        edited(f"a: 1\n--- # two\n{text}---\nb: 1\n", *operations, index=1) == f"a: 1\n--- # two\n{expected}---\nb: 1\n"
    )


@pytest.mark.parametrize(("text", "operations", "expected"), FLOW)
def test_flow_style(text: str, operations: list[Operation], expected: str) -> None:
    assert edited(text, *operations) == expected
    assert edited(f"{text}\n", *operations) == f"{expected}\n"
    crlf = text.replace("\n", "\r\n") + "\r\n"
    assert edited(crlf, *operations) == expected.replace("\n", "\r\n") + "\r\n"


@pytest.mark.parametrize("indent", [None, 2, 4, 1, "\t"])
def test_json_stays_the_json_that_it_was(indent: int | str | None) -> None:
    data = {"a": [{"limits": {"nvidia.com/gpu": 1}}], "b": {"c": ["d"]}, "e": [], "f": {}}
    operations = [
        remove("/a/0/limits"),
        add("/a/0/claims", CLAIMS),
        add("/b/c/-", {"x": [1]}),
        add("/e/-", "é"),
        add("/f/g", True),
    ]
    wanted = {"a": [{"claims": CLAIMS}], "b": {"c": ["d", {"x": [1]}]}, "e": ["é"], "f": {"g": True}}
    after = edited(json.dumps(data, indent=indent), *operations)
    assert json.loads(after) == wanted
    if indent is None:
        assert after == json.dumps(wanted, ensure_ascii=False)
    else:
        assert after.splitlines()[:8] == json.dumps(wanted, ensure_ascii=False, indent=indent).splitlines()[:8]
        assert [line for line in after.splitlines() if not line.startswith(str(indent if indent == "\t" else " "))] == [
            "{",
            "}",
        ]


ALIASES = [
    pytest.param(
        "a: &r\n  cpu: 1\n  gpu: 1\nb: *r\n",
        [remove("/a/gpu"), remove("/b/gpu")],
        "a: &r\n  cpu: 1\nb: *r\n",
        id="equal changes on both sides keep the alias",
    ),
    pytest.param(
        "a: &r\n  gpu: 1\nb: *r # too\n",
        [remove("/a/gpu"), add("/a/claims", ["x"]), remove("/b/gpu"), add("/b/claims", ["z"])],
        "a: &r\n  claims:\n  - x\nb: # too\n  claims:\n  - z\n",
        id="different changes give the alias a copy of its own",
    ),
    pytest.param(
        "a: &r\n  gpu: 1\n  cpu: 2\nb: *r\n",
        [remove("/b/gpu")],
        "a: &r\n  gpu: 1\n  cpu: 2\nb:\n  cpu: 2\n",
        id="alias only",
    ),
    pytest.param(
        "a: &r\n  gpu: 1\n  cpu: 2\nb: {x: *r}\n",
        [remove("/a/gpu")],
        "a: &r\n  cpu: 2\nb: {x: {gpu: 1, cpu: 2}}\n",
        id="anchor only: the alias keeps what it meant",
    ),
    pytest.param('a: &n "1"\nb: [*n]\nc: *n\n', [remove("/a")], 'b: ["1"]\nc: "1"\n', id="the anchor goes"),
    pytest.param(
        "a: &n 1\nb: &n 2\nc: *n\n", [remove("/a")], "b: &n 2\nc: *n\n", id="a name used twice means the latest"
    ),
    pytest.param("a: &n {x: 1}\nb:\n- *n\n", [add("/b/0/z", 2)], "a: &n {x: 1}\nb:\n- x: 1\n  z: 2\n", id="in a list"),
    pytest.param("a: {<<: {x: 1}, z: 2}\n", [remove("/a/z")], "a: {<<: {x: 1}}\n", id="beside a merge key"),
    pytest.param(
        "a:\n  <<: {x: 1}\n", [add("/a/z", 2)], "a:\n  <<: {x: 1}\n  z: 2\n", id="a key added beside a merge key"
    ),
]


@pytest.mark.parametrize(("text", "operations", "expected"), ALIASES)
def test_anchors_and_aliases(text: str, operations: list[Operation], expected: str) -> None:
    assert edited(text, *operations) == expected


LONG = "".join(f"  k{number}: 1\n" for number in range(100))
REFUSED = [
    (f"a: &r\n{LONG}b: *r\n", [remove("/a/k1")], ALIAS, (102, 4)),
    (f"a: &r\n{LONG}b: *r\n", [remove("/b/k1")], ALIAS, (102, 4)),
    ("a: &k x\n*k : 1\n", [remove("/a")], ALIAS, (1, 1)),
    ("a: &r {x: 1}\nb:\n  <<: *r\n", [remove("/b/x")], MERGE_KEY, (3, 3)),
    ("a: &r {x: 1}\nb:\n  <<: *r\n", [add("/b/x", 1)], MERGE_KEY, (3, 3)),
    ("a: &r {x: 1}\nb:\n  <<: *r\n", [remove("/a/x")], MERGE_KEY, (3, 7)),
    ("a: &r {x: {z: 1}}\nb:\n  <<: [*r]\n", [remove("/b/x/z")], MERGE_KEY, (3, 3)),
    ("b:\n  x: 2\n  <<: {x: 1}\n", [replace("/b/x", 3)], MERGE_KEY, (3, 3)),
    ("b:\n  <<: {x: 1}\n  x: 2\n", [remove("/b/x")], MERGE_KEY, (2, 3)),
    ("a:\n  x: 1\n  x: 2\n", [remove("/a/x")], DUPLICATE_KEY, (3, 3)),
    ("a:\n  1: {z: 1}\n  '1': 2\n", [add("/a/z", 1)], DUPLICATE_KEY, (3, 3)),
    ("? a\n: b: 1\n? c\n: d\n", [remove("/c")], LAYOUT, (1, 3)),
    ("{a: 1}\n", [add("/b", Verbatim("${X}"))], LAYOUT, (1, 1)),
    ("a: 1\n", [add("/b", Verbatim("${X: 1}"))], LAYOUT, (1, 1)),
    ('{"a": 1}\n', [add("/b", Verbatim("$X"))], LAYOUT, (1, 1)),
]


@pytest.mark.parametrize(("text", "operations", "code", "place"), REFUSED)
def test_refusals_say_where_and_why(text: str, operations: list[Operation], code: str, place: tuple[int, int]) -> None:
    with pytest.raises(CannotEdit) as caught:
        edit(text, [DocumentEdit(0, operations)])
    assert (caught.value.code, (caught.value.line, caught.value.column)) == (code, place)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("count: ${N}\n", "count: ${N}\nb: ${GPU_COUNT}\n"),
        ("{x: $N}\n", "{x: $N, b: $GPU_COUNT}\n"),
    ],
)
def test_placeholders_are_written_as_they_are(text: str, expected: str) -> None:
    value = Verbatim("$GPU_COUNT" if text.startswith("{") else "${GPU_COUNT}")
    assert edited(text, add("/b", value)) == expected


@pytest.mark.parametrize(
    "operation",
    [
        remove("/x"),
        replace("/x", 1),
        remove("/l/2"),
        add("/l/3", 1),
        add("/l/01", 1),
        remove("/l/-"),
        add("/s/x", 1),
        add("x", 1),
    ],
)
@pytest.mark.parametrize("text", ["s: 1\nl: [1, 2]\n", "s: 1\nl:\n- 1\n- 2\n"])
def test_operations_that_do_not_fit_are_errors(text: str, operation: Operation) -> None:
    with pytest.raises(BadOperation):
        edit(text, [DocumentEdit(0, [operation])])


NEW_DOCUMENTS = [
    ("kind: Pod\n", 0, f"{TEMPLATE_TEXT}---\nkind: Pod\n"),
    ("# about the pod\nkind: Pod\n", 0, f"{TEMPLATE_TEXT}---\n# about the pod\nkind: Pod\n"),
    (
        "# the file\n\n# about the pod\nkind: Pod\n",
        0,
        f"# the file\n\n{TEMPLATE_TEXT}---\n# about the pod\nkind: Pod\n",
    ),
    ("# Copyright X\n# more\nkind: Pod\n", 0, f"# Copyright X\n# more\n{TEMPLATE_TEXT}---\nkind: Pod\n"),
    (
        "# SPDX-License-Identifier: MIT\n\nkind: Pod\n",
        0,
        f"# SPDX-License-Identifier: MIT\n\n{TEMPLATE_TEXT}---\nkind: Pod\n",
    ),
    ("--- # pod\nkind: Pod\n", 0, f"--- # pod\n{TEMPLATE_TEXT}---\nkind: Pod\n"),
    ("---\n# Source: x\nkind: Pod\n", 0, f"---\n{TEMPLATE_TEXT}---\n# Source: x\nkind: Pod\n"),
    ("---\n# License: x\n\n# pod\nkind: Pod\n", 0, f"---\n# License: x\n\n{TEMPLATE_TEXT}---\n# pod\nkind: Pod\n"),
    ("# License\n---\nkind: Pod\n", 0, f"# License\n---\n{TEMPLATE_TEXT}---\nkind: Pod\n"),
    ("a: 1\n---\n# pod\nkind: Pod", 1, f"a: 1\n---\n{TEMPLATE_TEXT}---\n# pod\nkind: Pod"),
    ("---\n---\nkind: Pod\n", 1, f"---\n---\n{TEMPLATE_TEXT}---\nkind: Pod\n"),
    ("a: 1\n...\n---\n# pod\nkind: Pod\n", 1, f"a: 1\n...\n---\n{TEMPLATE_TEXT}---\n# pod\nkind: Pod\n"),
    ("a: 1\n--- {kind: Pod}\n", 1, f"a: 1\n---\n{TEMPLATE_TEXT}--- {{kind: Pod}}\n"),
    ("%YAML 1.1\n---\na: 1\n---\nkind: Pod\n", 1, f"%YAML 1.1\n---\na: 1\n---\n{TEMPLATE_TEXT}---\nkind: Pod\n"),
    ("{kind: Pod}\n", 0, f"{TEMPLATE_TEXT}---\n{{kind: Pod}}\n"),
    (
        "spec:\n    list:\n      -   a\n",
        0,
        (
            "kind: ResourceClaimTemplate\nspec:\n    devices:\n        requests:\n          -   name: main\n"
            "---\nspec:\n    list:\n      -   a\n"
        ),
    ),
]


@pytest.mark.parametrize(("text", "index", "expected"), NEW_DOCUMENTS)
def test_new_documents_come_before_their_workload(text: str, index: int, expected: str) -> None:
    assert edited(text, index=index, before=(TEMPLATE,)) == expected
    assert edited("\ufeff" + text, index=index, before=(TEMPLATE,)) == "\ufeff" + expected
    crlf = text.replace("\n", "\r\n")
    assert edited(crlf, index=index, before=(TEMPLATE,)) == expected.replace("\n", "\r\n")


def test_two_new_documents_and_an_edit_at_once() -> None:
    after = edited("kind: Pod\nspec: {}\n", add("/spec/a", 1), before=({"kind": "A"}, {"kind": "B"}))
    assert after == "kind: A\n---\nkind: B\n---\nkind: Pod\nspec:\n  a: 1\n"


@pytest.mark.parametrize("text", ['{"kind": "Pod"}', '\ufeff{"kind": "Pod"}\n', "%YAML 1.1\n---\nkind: Pod\n", "---\n"])
def test_files_that_cannot_take_a_document(text: str) -> None:
    with pytest.raises(CannotEdit) as caught:
        edit(text, [DocumentEdit(0, [], [TEMPLATE])])
    assert caught.value.code == NO_ROOM_FOR_DOCUMENT


def test_values_that_are_put_in_are_not_changed_later() -> None:
    value = {"a": [1]}
    assert edited("x: 1\n", add("/v", value), add("/v/a/-", 2), remove("/v/a/0")) == "x: 1\nv:\n  a:\n  - 2\n"
    assert value == {"a": [1]}


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", (2, 1)),
        ("/a", (2, 1)),
        ("/a/b~1c", (3, 3)),
        ("/a/none/deeper", (2, 1)),
        ("/l/1/x", (6, 3)),
        ("/l/9", (4, 1)),
        ("/r/k", (7, 1)),
        ("/m/k", (9, 3)),
        ("/d", (11, 1)),
        ("/m/z", (8, 1)),
    ],
)
def test_locate(pointer: str, place: tuple[int, int]) -> None:
    text = "# top\na: &x\n  b/c: {k: 1}\nl:\n- 1\n- x: 2\nr: *x\nm:\n  <<: {k: 1}\nd: 1\nd: 2\n"
    if pointer == "/m/z":
        text = text.replace("<<: {k: 1}", "y: 1")
    assert locate(compose(text)[0], pointer) == place


def test_a_bom_does_not_move_positions() -> None:
    text = "\ufeffa: 1\nb: 2\n"
    assert locate(compose(text)[0], "/b") == (2, 1)
    assert edited(text, remove("/a")) == "\ufeffb: 2\n"


def test_what_formatters_break_stays() -> None:
    text = (
        "#!shebang-like\n\n\nkey :  'v'\t# tab\ntrailing:   \n  - 1   \nfolded: >-\n  a\n  b\n\n\n"
        "long: " + "word " * 60 + '\n<<: {m: 1}\nescaped: "\\u00e9\\t"\nwide:\n-   a: 1\n    # between\n    b: 2\n'
        "# after an item\nanchor: &x [ 1,2 ]\nalias: *x\nnothing:\nlast: 0x10 # end\n\n\n"
    )
    after = edited(text, add("/new", 1), remove("/last"), replace("/wide/0/a", 2))
    assert after == text.replace("last: 0x10 # end\n", "new: 1\n").replace("a: 1\n", "a: 2\n")


@pytest.mark.parametrize(
    ("text", "operations", "expected"),
    [
        ("a: |\n  t", [add("/b", 1)], "a: |-\n  t\nb: 1"),
        ("a: >+\n  t", [add("/b", "x\ny\n")], 'a: >-\n  t\nb: "x\\ny\\n"'),
        ("a: |\n  t\nb: 1", [remove("/b")], "a: |\n  t\n"),
        ("a: |\n  t\nb: 1\n    # deeper\n", [remove("/b")], "a: |\n  t\n# deeper\n"),
        ("a: 1\nb: 2", [remove("/b")], "a: 1"),
        ("a: 1\r\n\r\nb: 2", [remove("/b")], "a: 1"),
        ("a: 1\nb: 2", [remove("/b"), remove("/a"), add("/c", 3)], "c: 3"),
    ],
)
def test_the_end_of_a_text(text: str, operations: list[Operation], expected: str) -> None:
    assert edited(text, *operations) == expected


LITERAL = """\
a:
  text: |  # of three lines
    x: 1

    y: 2 # keep

  strip: |-
    one
    two
"""


def test_a_literal_block_keeps_header_and_indent() -> None:
    text = edited(
        LITERAL, replace("/a/text", "x: 1\n\ny: 3 # keep\nz: [\n]\n"), replace("/a/strip", "one\n  two\nthree")
    )
    assert text == LITERAL.replace("y: 2 # keep\n", "y: 3 # keep\n    z: [\n    ]\n").replace(
        "    two\n", "      two\n    three\n"
    )
    crlf = edited(LITERAL.replace("\n", "\r\n"), replace("/a/text", "x: 1\n"))
    assert crlf == LITERAL.replace("\n\n    y: 2 # keep", "").replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("block", "value"),
    [
        ("|\n  one\n", "no line break"), ("|-\n  one\n", "a line break\n"), ("|+\n  one\n\n", "kept\n"),
        ("|2\n   indented\n", "x\n"), (">\n  folded\n", "x\ny\n"), ("|\n  one\n", "  starts with blanks\n"),
        ("|\n  one\n", "two\n\n"), ("|\n  one\n", "\n"), ("|\n", "x\n"), ("|\n  one\n", "bell \a\n"),
    ],
)  # fmt: skip
def test_another_text_than_a_literal_block_takes_is_written_anew(block: str, value: str) -> None:
    assert edited(f"a: {block}b: 1\n", replace("/a", value)).endswith("b: 1\n")
    edited(f"- {block}- 1\n", replace("/0", value))
