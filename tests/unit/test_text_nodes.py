"""The composer: spans that are right where libyaml's are not, and clear errors for what is no YAML."""

from __future__ import annotations

import sys

import pytest

from gpu2dra_migrate.errors import YamlSyntaxError
from gpu2dra_migrate.text import nodes
from gpu2dra_migrate.text.nodes import MAX_DEPTH, Mapping, Node, Scalar, Sequence, compose


def value_of(text: str, index: int = -1) -> tuple[Node, str]:
    """Return the last value of the root mapping, and its text."""
    root = compose(text)[0].root
    assert isinstance(root, Mapping)
    node = root.children[index]
    return node, text[node.start : node.end]


def test_the_parser_is_the_one_in_c() -> None:
    parser = vars(nodes)["CParser"]
    assert parser is vars(sys.modules["_ruamel_yaml"])["CParser"]
    assert str(sys.modules["_ruamel_yaml"].__file__).endswith((".so", ".pyd"))


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a:\n  b: 1  # c\n\n  # more\n", "b: 1"),
        ("a:\n- x: 1\n-   y\n# c\n", "- x: 1\n-   y"),
        ("a: |\n  x\n  y\n\n\n# c\n", "|\n  x\n  y"),
        ("a: |+\n  x\n\n", "|+\n  x\n"),
        ("a: >-\r\n  x\r\n\r\n", ">-\r\n  x"),
        ("a: |\n  x\n     \n", "|\n  x\n     "),
        ("a: |\n  x\n  \n", "|\n  x"),
        ("a: |", "|"),
        ("a: |2\n   x\n", "|2\n   x"),
        ("a: &x !!str  v # c\n", "&x !!str  v"),
        ("a: &x\n  b: 1\n", "&x\n  b: 1"),
        ("a: # c\n", ""),
        ("a: {b: [1,\n 2]} # c\n", "{b: [1,\n 2]}"),
        ('é😀: "😀\n  x" # c\n', '"😀\n  x"'),
        ("\ufeffa: 1\n", "1"),
        ("a: &x 1\nb: *x # c\n", "*x"),
    ],
)
def test_nodes_end_where_their_last_leaf_ends(text: str, span: str) -> None:
    assert value_of(text)[1] == span


def test_lines_columns_and_styles() -> None:
    root = compose("# c\na:\n  - 'x'\n  - {b: \"y\"}\n")[0].root
    assert isinstance(root, Mapping)
    listed = root.children[1]
    assert isinstance(listed, Sequence)
    quoted, flow = listed.children
    assert isinstance(quoted, Scalar)
    assert isinstance(flow, Mapping)
    assert (listed.line, listed.column, listed.flow) == (2, 2, False)
    assert (quoted.line, quoted.column, quoted.style, quoted.plain) == (2, 4, "'", False)
    assert (flow.line, flow.column, flow.flow) == (3, 4, True)


def test_documents_know_their_markers() -> None:
    text = "# c\na: 1\n...\n%YAML 1.1\n---\nb: 1\n--- # empty\n---\n\n"
    first, second, third, fourth = compose(text)
    assert (first.marker, first.explicit_start, text[first.close :][:3]) == (-1, False, "...")
    assert (second.directives, text[second.marker :][:3]) == (("%YAML",), "---")
    assert (third.root, fourth.root) == (None, None)
    assert [document.end for document in (first, second, third)] == [item.start for item in (second, third, fourth)]
    assert fourth.end == len(text)
    assert compose("# only a comment\n") == []


def test_an_anchor_name_used_twice_means_the_latest() -> None:
    root = compose("a: &x 1\nb: *x\nc: &x 2\nd: *x\n")[0].root
    assert isinstance(root, Mapping)
    targets = [
        node.target.value for node in root.children if isinstance(node, nodes.Alias) and isinstance(node.target, Scalar)
    ]
    assert targets == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "line", "column", "problem"),
    [
        ("a: 1\nb: c: d\n", 2, 5, "mapping values are not allowed in this context"),
        ("a: [1,\n", 2, 1, "did not find expected node content"),
        ("\tb: 1\n", 1, 1, "found character that cannot start any token"),
        ("a: 1\nb: \x01\n", 2, 4, "control characters are not allowed"),
        ("a: 1\nb: \ud800\n", 2, 4, "a lone surrogate is no character"),
        ("a: *x\n", 1, 4, "unknown anchor 'x'"),
        ("---\na: &x 1\n---\nb: *x\n", 4, 4, "unknown anchor 'x'"),
        ("a: &x [*x]\n", 1, 8, "anchor 'x' contains itself"),
        ("%YAML 3.0\n---\na: 1\n", 1, 1, "found incompatible YAML document"),
        ("a: 'x\n", 2, 1, "found unexpected end of stream"),
        ("\ufeffa: 1\nb: c: d\n", 2, 5, "mapping values are not allowed in this context"),
    ],
)
def test_errors_have_a_place(text: str, line: int, column: int, problem: str) -> None:
    with pytest.raises(YamlSyntaxError) as caught:
        compose(text)
    assert (caught.value.line, caught.value.column, caught.value.problem) == (line, column, problem)


@pytest.mark.parametrize("text", ["- " * 5000 + "x", "[" * 5000 + "]" * 5000, "{a: " * 2000 + "}" * 2000])
def test_deep_nesting_is_an_error_of_its_own(text: str) -> None:
    with pytest.raises(YamlSyntaxError, match=f"nested deeper than {MAX_DEPTH} levels"):
        compose(text)


def test_aliases_cannot_nest_without_end() -> None:
    lines = ["a0: &a0 x"] + [f"a{n}: &a{n} {'[' * 50}*a{n - 1}{']' * 50}" for n in range(1, 5)]
    assert compose("\n".join(lines[:3]))
    with pytest.raises(YamlSyntaxError, match="grow beyond all measure"):
        compose("\n".join(lines))


def test_aliases_cannot_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    with pytest.raises(YamlSyntaxError, match="grow beyond all measure"):
        compose("\n".join(lines))
