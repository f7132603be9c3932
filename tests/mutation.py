"""A mutation run over the core: one small change at a time, and the unit tests of its module must notice.

By hand, not in CI: `python -m tests.mutation [MODULE ...]`. tests/MUTATION.md keeps the last result, with a reason for
each survivor. A change is made in memory; the tests run in a forked child that imports the changed module.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import importlib.abc
import importlib.util
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import hypothesis  # noqa: F401 - loaded once, before the forks
import jsonpatch  # noqa: F401 - loaded once, before the forks
import pytest

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import ModuleType

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "gpu2dra"
SECONDS = 60
"""Longest run of the tests of one mutant: one that takes longer loops for ever, and that is noticed too."""
LEFT_OUT = {"__init__", "codes", "kinds", "model"}
"""Modules of types, texts and data; the rows of kinds are held to published schemas by a test too slow for this."""
_TESTED_BY = {
    "devices": "resources", "podspec": "plan", "workload": "plan", "notes": "plan", "policy.load": "policy_load",
    "policy.checks": "policy_load", "policy.schema": "policy_schema",
}  # fmt: skip
"""Modules whose tests have another name than theirs."""
_FLIPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


class Mutant(NamedTuple):
    """A changed module: where it was changed and how."""

    module: str
    line: int
    change: str
    source: str


def names() -> list[str]:
    """Return the modules of the core, `places.table` for one in a package of its own."""
    found = (".".join(path.relative_to(CORE).with_suffix("").parts) for path in CORE.rglob("*.py"))
    return sorted(name for name in found if name not in LEFT_OUT and not name.endswith(".__init__"))


def source_of(module: str) -> str:
    """Return the source text of a module of the core."""
    return (CORE / f"{module.replace('.', '/')}.py").read_text("utf-8")


def mutants(module: str) -> Iterator[Mutant]:
    """Yield every mutant of a module of the core."""
    tree = ast.parse(source_of(module))
    decorators = {
        inner
        for node in ast.walk(tree)
        for decorator in getattr(node, "decorator_list", ())
        for inner in ast.walk(decorator)
    }
    for number, node in enumerate(ast.walk(tree)):
        if node in decorators:  # slots and the like: nothing that a test of behaviour sees
            continue
        for variant, (before, after) in enumerate(_changes(node)):
            changed = copy.deepcopy(tree)
            target = next(found for n, found in enumerate(ast.walk(changed)) if n == number)
            _, replacement = list(_changes(target))[variant]
            _Swap(target, replacement).visit(changed)
            ast.fix_missing_locations(changed)
            text = f"{ast.unparse(before)[:70]} -> {ast.unparse(after)[:70]}".replace("\n", " ")
            yield Mutant(module, getattr(node, "lineno", 0), text, ast.unparse(changed))


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        """Return the replacement for the one node that changes."""
        return self.new if node is self.old else self.generic_visit(node)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Yield `(before, after)` for each way to change one node."""
    for after in (*_expression(node), *_statement(node)):
        yield node, after


def _expression(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Compare(ops=[operator]):
            yield ast.Compare(node.left, [_FLIPS[type(operator)]()], node.comparators)
        case ast.BoolOp(op=ast.And()):
            yield ast.BoolOp(ast.Or(), node.values)
        case ast.BoolOp(op=ast.Or()):
            yield ast.BoolOp(ast.And(), node.values)
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.BinOp(op=ast.Add()):
            yield ast.BinOp(node.left, ast.Sub(), node.right)
        case ast.BinOp(op=ast.Sub()):
            yield ast.BinOp(node.left, ast.Add(), node.right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() as value):
            yield ast.Constant(value + 1)
        case ast.IfExp():
            yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)


def _statement(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.If():
            yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the changed source in place of the module."""

    def __init__(self, mutant: Mutant) -> None:
        self.mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec for the changed module and for no other."""
        del path, target
        return importlib.util.spec_from_loader(fullname, self) if fullname == f"gpu2dra.{self.mutant.module}" else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self.mutant.source, f"<{self.mutant.module}, changed>", "exec"), module.__dict__)  # noqa: S102 - the point


def tests_of(module: str) -> list[str]:
    """Return the test files that must notice a change of `module`, its own first."""
    folder = ROOT / "tests" / "unit"
    own = _TESTED_BY.get(module, module.split(".", maxsplit=1)[0])
    files = dict.fromkeys([folder / f"test_{own}.py", folder / "test_plan.py"])
    return [str(file) for file in files if file.exists()]


def survivors(todo: Sequence[Mutant], jobs: int) -> Iterator[Mutant]:
    """Run the tests of each mutant in a child that has the changed module; yield those whose tests all pass."""
    waiting, running = list(reversed(todo)), dict[int, Mutant]()
    while waiting or running:
        while waiting and len(running) < jobs:
            mutant = waiting.pop()
            child = os.fork()
            if child == 0:
                _run(mutant)
            running[child] = mutant
        child, status = os.wait()
        mutant = running.pop(child)
        if os.WIFSIGNALED(status):
            print(f"{mutant.module}:{mutant.line}: {mutant.change}: did not end", flush=True)
        if status == 0:
            yield mutant


def _run(mutant: Mutant) -> None:
    signal.alarm(SECONDS)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # plugins would complain of what is loaded already
    sys.meta_path.insert(0, _Changed(mutant))
    with (
        Path(os.devnull).open("w", encoding="utf-8") as sink,
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
    ):
        # R14's test starts processes of its own, which would import the module as it is.
        options = ["-x", "-q", "-p", "no:cacheprovider", "-k", "not r14", "--rootdir", str(ROOT)]
        code = 0
        for file in tests_of(mutant.module):
            try:
                code = code or int(pytest.main([*options, file]))
            except BaseException:  # noqa: BLE001 - whatever the change has broken
                code = 1
    os._exit(code)


def main(arguments: Sequence[str]) -> int:
    """Run the mutants of the modules named, or of all; print the survivors and how many there were."""
    parser = argparse.ArgumentParser(description="Change the core, one place at a time, and see whether a test fails.")
    parser.add_argument("modules", nargs="*", help="modules of gpu2dra; all of them by default")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--every", type=int, default=1, help="take only every n-th mutant")
    chosen = parser.parse_args(arguments)
    modules = chosen.modules or names()
    made: Counter[str] = Counter()
    left: Counter[str] = Counter()
    for module in modules:
        unchanged = Mutant(module, 0, "", source_of(module))
        if not list(survivors([unchanged], 1)):
            print(f"{module}: its tests fail without a change")
            return 1
        todo = list(mutants(module))[:: chosen.every]
        for mutant in survivors(todo, chosen.jobs):
            left[module] += 1
            print(f"{module}:{mutant.line}: {mutant.change}", flush=True)
        made[module] = len(todo)
        print(f"{module}: {made[module]} mutants, {left[module]} survived", flush=True)
    print(f"all: {made.total()} mutants, {left.total()} survived")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
