"""Loops of a program that poll: a turn only reads memory or looks for files, and does nothing else.

The source of the loop decides. A poll has a test, counters that nothing else reads, and calls of
functions that are known to only read. A loop that does more, or that looks at a clock to decide
when to end, is no poll.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import linecache
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

# Functions and methods that only read memory.
_READS = frozenset(
    "all any item int bool float len min max sum abs tolist tobytes bytes str ord array_equal "
    "count_nonzero unpack unpack_from frombuffer asarray array from_bytes view get getattr Sync "
    "Win_sync flush isnan isclose allclose".split()
)
_LOOKS = frozenset("exists lexists isfile isdir is_file is_dir stat listdir getsize".split())
_CLOCKS = frozenset(
    "time time_ns perf_counter perf_counter_ns monotonic monotonic_ns Wtime now".split()
)
# Calls that let other ranks continue: a rank that spins does not come to them.
_TURNS = frozenset("sleep Iprobe Improbe Test Testall Testany Testsome".split())
_LEAVES = (ast.Break, ast.Return, ast.Raise)
_FORBIDDEN = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr, ast.Lambda)


class Poll(NamedTuple):
    """A loop that polls. `tests` end it; `files` tells whether it looks for files."""

    line: int
    tests: tuple[CodeType, ...]
    files: bool

    def answers(self, space: dict[str, Any], variables: dict[str, Any]) -> tuple[bool, ...]:
        """The results of its tests, now."""
        return tuple(bool(eval(test, space, variables)) for test in self.tests)


@lru_cache(maxsize=64)
def _tree(file: str) -> ast.Module | None:
    lines = linecache.getlines(file)
    try:
        return ast.parse("".join(lines)) if lines else None
    except (SyntaxError, ValueError):
        return None


@lru_cache(maxsize=1000)
def poll_at(file: str, line: int) -> Poll | None:
    """The loop that polls around a line of a file; None if there is none, or no source."""
    tree = _tree(file)
    if tree is None:
        return None
    innermost: ast.AST | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.While | ast.For | ast.FunctionDef | ast.AsyncFor):
            inside = node.lineno <= line <= (node.end_lineno or node.lineno)
            if inside and (innermost is None or node.lineno >= innermost.lineno):  # type: ignore[attr-defined]
                innermost = node
    if not isinstance(innermost, ast.While) or innermost.orelse:
        return None
    try:
        return _poll(innermost, file, _readers(tree))
    except _Other:
        return None


def _readers(tree: ast.Module) -> frozenset[str]:
    """The functions of a program that only return the value of an expression that reads."""
    result = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and isinstance(node.body[-1], ast.Return):
            value = node.body[-1].value
            documented = len(node.body) == 2 and isinstance(node.body[0], ast.Expr)
            if value is not None and (len(node.body) == 1 or documented):
                with contextlib.suppress(_Other):
                    if not _Loop(set(), _READS).expression(value):
                        result.add(node.name)
    return frozenset(result)


class _Other(Exception):
    """The loop does more than poll."""


def _poll(loop: ast.While, file: str, readers: frozenset[str]) -> Poll:
    assigned: set[str] = set()
    for statement in loop.body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                assigned.add(node.id)
    checked = _Loop(assigned, _READS | readers)
    files = checked.expression(loop.test)
    tests = [loop.test]
    files |= checked.statements(loop.body, tests)
    codes = []
    for test in tests:
        whole = ast.Expression(checked.replaced(test))
        codes.append(compile(ast.fix_missing_locations(whole), file, "eval"))
    return Poll(loop.lineno, tuple(codes), files)


class _Loop:
    """The checks of a loop that assigns some variables; `reads` are calls that only read."""

    def __init__(self, assigned: set[str], reads: frozenset[str]) -> None:
        self.assigned = assigned
        self.reads = reads
        self.values: dict[str, ast.expr] = {}  # of variables that each turn reads anew

    def statements(self, body: list[ast.stmt], tests: list[ast.expr]) -> bool:
        """Check the statements of a turn, collect their tests; whether they look for files."""
        files = False
        for statement in body:
            if isinstance(statement, ast.Pass | ast.Continue | ast.Break):
                continue
            if isinstance(statement, ast.Expr):
                value = statement.value
                turns = isinstance(value, ast.Call) and _name(value.func) in _TURNS
                if not turns and not isinstance(value, ast.Constant):
                    files |= self.expression(value)
            elif isinstance(statement, ast.AugAssign | ast.Assign):
                files |= self._assignment(statement)
            elif isinstance(statement, ast.If):
                files |= self.expression(statement.test)
                tests.append(statement.test)
                for branch in (statement.body, statement.orelse):
                    if not branch or not isinstance(branch[-1], _LEAVES):
                        files |= self.statements(branch, tests)
                if isinstance(statement.body[-1], ast.Continue) and isinstance(body[-1], _LEAVES):
                    break  # what follows ends the loop
            else:
                raise _Other
        return files

    def _assignment(self, statement: ast.AugAssign | ast.Assign) -> bool:
        """Check an assignment: of a value that each turn reads, or of a counter."""
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            if isinstance(target, ast.Name) and target.id not in self.values:
                with contextlib.suppress(_Other):
                    files = self.expression(statement.value)
                    self.values[target.id] = self.replaced(statement.value)
                    return files
        targets = [statement.target] if isinstance(statement, ast.AugAssign) else statement.targets
        if not all(isinstance(target, ast.Name) for target in targets):
            raise _Other
        for node in ast.walk(statement.value):
            if isinstance(node, _FORBIDDEN):
                raise _Other
            if isinstance(node, ast.Call) and _name(node.func) not in self.reads | _CLOCKS:
                raise _Other
        return False

    def expression(self, test: ast.expr) -> bool:
        """Check an expression that only reads, and no counter; whether it looks for files."""
        files = False
        free = {*_targets(test), *self.values}
        for node in ast.walk(test):
            if isinstance(node, _FORBIDDEN):
                raise _Other
            if isinstance(node, ast.Name) and node.id in self.assigned and node.id not in free:
                raise _Other
            if isinstance(node, ast.Call):
                name = _name(node.func)
                if name in _LOOKS:
                    files = True
                elif name not in self.reads:
                    raise _Other
        return files

    def replaced(self, test: ast.expr) -> ast.expr:
        """The same expression without the variables that a turn assigns."""
        return _Replacer(self.values).visit(copy.deepcopy(test))  # type: ignore[no-any-return]


class _Replacer(ast.NodeTransformer):
    """Puts the values of variables into an expression."""

    def __init__(self, values: dict[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a variable that has a value."""
        return copy.deepcopy(self.values.get(node.id, node))


def _targets(test: ast.expr) -> Iterator[str]:
    """The variables of comprehensions."""
    for node in ast.walk(test):
        if isinstance(node, ast.comprehension):
            for target in ast.walk(node.target):
                if isinstance(target, ast.Name):
                    yield target.id


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
