"""The uses of memory in a line of a program, found in its source.

`uses_of(code)` gives for each line of a function the arrays that it reads or writes, as expressions
that can be evaluated before or after the line runs: names, attributes, subscripts. An array that is
only passed on is not used: as an argument of a function of the program, in an assignment of the
whole array or of a slice, in a list. Functions that look at the elements (`print`, `sum`, most of
numpy's) use their arguments.
"""

from __future__ import annotations

import array
import ast
import builtins
import linecache
import sys
from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from types import CodeType
from typing import NamedTuple

import numpy as np


class Use(NamedTuple):
    """One use of memory: the expression, and whether it writes."""

    node: ast.expr
    writes: bool
    needs_scalar: bool = False  # an assignment of a slice only makes another name
    guard: ast.expr | None = None  # the use happens only if this is true
    polls: bool = False  # a loop waits until its value changes
    late: bool = False  # it follows a call of the same statement, which may complete an operation
    when: str = ""  # "first": when a loop begins; "again": after each of its steps


class LineUses(NamedTuple):
    """The uses of the statements that begin in a line."""

    early: list[Use]  # to be evaluated before
    late: list[Use]  # to be evaluated after the statement
    last: int  # its last line


class _Uses:
    """Collects the uses of a statement in the order of evaluation."""

    __slots__ = ("uses", "late", "bound", "inner")

    def __init__(self, late: bool = False, bound: Iterable[str] = ()) -> None:
        self.uses: list[Use] = []
        self.late = late
        self.bound = set(bound)  # names that the statement assigns before
        self.inner: list[tuple[str, int, list[Use]]] = []  # of other functions, by name and line

    def add(self, node: ast.expr, writes: bool, needs_scalar: bool = False) -> None:
        late = self.late or self.changes(node)
        self.uses.append(Use(node, writes, needs_scalar, late=late))

    def follow(self, node: ast.expr) -> None:
        """The statement evaluates an expression, whose arrays it does not use."""
        if not isinstance(node, ast.Name) and not self.late:
            self.late = any(isinstance(one, ast.Call) and _loud(one) for one in ast.walk(node))

    def changes(self, node: ast.AST) -> bool:
        """Whether the statement has assigned a name in an expression."""
        return bool(self.bound) and any(
            isinstance(one, ast.Name) and one.id in self.bound for one in ast.walk(node)
        )

    def guarded(self, guard: ast.expr, node: ast.expr, collect: _Collect) -> None:
        """The uses of an expression that is evaluated only if another one is true."""
        inner = _Uses(self.late, self.bound)
        collect(node, inner)
        for use in inner.uses:
            both = guard if use.guard is None else ast.BoolOp(ast.And(), [guard, use.guard])
            late = use.late or self.changes(both)
            self.uses.append(use._replace(guard=both, late=late))
        self.late = inner.late
        self.bound |= inner.bound
        self.inner += inner.inner


_Collect = Callable[[ast.expr, _Uses], None]

_LAZY = frozenset("iter enumerate zip map filter reversed".split())
_READERS = _LAZY | frozenset(
    "print sum min max sorted list tuple set str repr float int complex bool bytes bytearray any "
    "all abs round next hash format dict divmod pow".split()
)
_LOOKS_ONLY = frozenset(
    "zeros_like empty_like ones_like full_like shape size ndim frombuffer asarray asanyarray "
    "ascontiguousarray reshape ravel transpose shares_memory may_share_memory byte_bounds "
    "iscomplexobj isrealobj result_type squeeze expand_dims atleast_1d atleast_2d atleast_3d split "
    "array_split hsplit vsplit dsplit broadcast_to broadcast_arrays from_dlpack moveaxis swapaxes "
    "rollaxis flip fliplr flipud rot90 diagonal isfortran real imag as_array as_strided "
    "sliding_window_view can_cast dtype".split()
)
_METADATA = frozenset(
    "shape size dtype ndim nbytes itemsize strides flags base data ctypes T real imag flat "
    "__array_interface__ format readonly obj contiguous c_contiguous typecode".split()
)
_VIEWS = frozenset(
    "reshape ravel view transpose squeeze swapaxes diagonal cast toreadonly release setflags "
    "buffer_info".split()
)
_WRITERS = frozenset(
    "fill sort put itemset partition resize byteswap append extend insert clear pop reverse "
    "__setitem__".split()
)
# Functions that write to an argument; others of these modules read their arguments.
_INTO = frozenset("pack_into readinto readinto1 recv_into recvfrom_into shuffle".split())
_NUMERIC = frozenset(("np", "numpy", "math", "scipy"))
_READING = _NUMERIC | frozenset(
    "struct pickle zlib hashlib copy json base64 statistics operator".split()
)
# Methods that complete no operation of MPI.
_QUIET = frozenset(
    name
    for kind in (np.ndarray, array.array, memoryview, bytearray, str, list, dict, set, int, float)
    for name in dir(kind)
)
# Statements whose body may share their line, and scopes of their own.
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.ExceptHandler, ast.AsyncFor,
           ast.AsyncWith)  # fmt: skip
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_COMPREHENSIONS = {
    ast.ListComp: "<listcomp>",
    ast.SetComp: "<setcomp>",
    ast.DictComp: "<dictcomp>",
    ast.GeneratorExp: "<genexpr>",
}
_INLINED = sys.version_info >= (3, 12)  # comprehensions, but for generators, have no frame
_NEVER = ast.Yield()  # a guard whose value is not known
# By the identity of a code, whose hash takes long, with the code itself.
_USES_BY_CODE: dict[int, tuple[CodeType, dict[int, LineUses]]] = {}


def uses_of(code: CodeType) -> dict[int, LineUses]:
    """The uses of memory in a function, by line; empty if there is no source."""
    entry = _USES_BY_CODE.get(id(code))
    if entry is None:
        if len(_USES_BY_CODE) > 10_000:
            _USES_BY_CODE.clear()
        uses = _of_file(code.co_filename).get(code.co_name, {})
        entry = _USES_BY_CODE[id(code)] = code, uses
    return entry[1]


_Lines = dict[str, dict[int, LineUses]]  # by the name of the function, and the line
_FILES: dict[tuple[str, int], _Lines] = {}


def _of_file(file: str) -> _Lines:
    lines = linecache.getlines(file)
    if not lines:
        return {}
    text = "".join(lines)
    key = file, hash(text)
    uses = _FILES.get(key)
    if uses is None:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            tree = ast.Module([], [])
        uses = _FileUses().of(tree)
        if len(_FILES) > 1000:
            _FILES.clear()
        _FILES[key] = uses
    return uses


class _FileUses:
    """Collects the uses of each statement at its first line, without those of its inner blocks."""

    def __init__(self) -> None:
        self.lines: _Lines = {}
        self.calling: set[int] = set()  # lines with a statement that calls
        self.small: set[tuple[str, int]] = set()  # lambdas and comprehensions, by name and line

    def of(self, tree: ast.Module) -> _Lines:
        self._block(tree, "<module>", None)
        return self.lines

    def _block(self, tree: ast.AST, owner: str, loop: ast.While | None) -> None:
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, ast.stmt):
                self._statement(node, tree, owner, loop)
            inside = node.name if isinstance(node, _SCOPES) else owner
            looping = node if isinstance(node, ast.While) else loop
            self._block(node, inside, None if isinstance(node, _SCOPES) else looping)

    def _statement(self, node: ast.stmt, tree: ast.AST, owner: str, loop: ast.While | None) -> None:
        uses = _Uses()
        _statement(node, uses)
        own = uses.uses
        last = _last_line(node)
        if isinstance(node, ast.While) or (
            loop is not None and isinstance(node, ast.If) and _leaves(node)
        ):
            own = [use._replace(polls=not use.writes) for use in own]
        guard: ast.expr | None = None
        line = tree.pattern.lineno if isinstance(tree, ast.match_case) else (
            tree.lineno if isinstance(tree, _BLOCKS) else 0
        )  # fmt: skip
        if line == node.lineno:
            guard = _NEVER
            if isinstance(tree, ast.If) and node in tree.body:
                guard = tree.test
        if guard is not None:
            own = [
                use._replace(
                    guard=guard if use.guard is None else ast.BoolOp(ast.And(), [guard, use.guard])
                )
                for use in own
            ]
        # After a call on the same line, such as `request.Wait(); print(a)`, the state differs.
        if own and node.lineno not in self.calling:
            self._add(owner, node.lineno, last, own)
        for name, line, inner in uses.inner:
            if (name, line) in self.small:  # two of one name on one line cannot be told apart
                self.lines.get(name, {}).pop(line, None)
            else:
                self.small.add((name, line))
                self._add(name, line, line, inner)
        if not hasattr(node, "body") and any(isinstance(one, ast.Call) for one in ast.walk(node)):
            self.calling.add(node.lineno)

    def _add(self, owner: str, line: int, last: int, uses: Iterable[Use]) -> None:
        here = self.lines.setdefault(owner, {}).setdefault(line, LineUses([], [], last))
        for use in uses:
            (here.late if use.late else here.early).append(use)


def _last_line(node: ast.stmt) -> int:
    """The last line of a statement, or of its head if it has a body."""
    body = getattr(node, "body", None) or getattr(node, "cases", None)
    if body is None:
        return node.end_lineno or node.lineno
    heads = [
        child.end_lineno or 0 for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)
    ]
    return max([node.lineno, *heads])


def _leaves(node: ast.If) -> bool:
    return any(isinstance(one, ast.Break | ast.Return) for one in node.body)


def _statement(node: ast.stmt, uses: _Uses) -> None:
    match node:
        case ast.Assign(targets=targets, value=value):
            _value(value, uses)
            for target in targets:
                _target(target, uses)
        case ast.AnnAssign(target=target, value=value):
            if value is not None:
                _value(value, uses)
                _target(target, uses)
        case ast.AugAssign(target=target, value=value):
            _read(value, uses)
            if isinstance(target, ast.Name | ast.Attribute | ast.Subscript):
                uses.add(target, True)
            if isinstance(target, ast.Subscript):
                _read(target.slice, uses)
        case ast.Expr(value=value):
            _value(value, uses)
        case ast.Return(value=value):
            if value is not None:
                _value(value, uses)
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            _read(test, uses)
        case ast.Match(subject=subject):
            _read(subject, uses)
        case ast.For(iter=iterated):
            _read(iterated, uses)
            if not isinstance(iterated, ast.Name | ast.Attribute | ast.Subscript):
                uses.uses = [use._replace(when="first") for use in uses.uses]
        case ast.With(items=items):
            for item in items:
                _value(item.context_expr, uses)
        case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments):
            for default in [*arguments.defaults, *arguments.kw_defaults]:
                if default is not None:
                    _value(default, uses)
        case _:
            pass


def _target(node: ast.expr, uses: _Uses) -> None:
    if isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            _target(item, uses)
    elif isinstance(node, ast.Name):
        uses.bound.add(node.id)
    elif isinstance(node, ast.Subscript):
        uses.add(node, True)
        _read(node.slice, uses)


def _value(node: ast.expr, uses: _Uses) -> None:
    """An expression whose value is kept or passed on: an array in it is not used.

    A function may only pass an argument on, as in `comm.Send([a[2:4], MPI.INT], 1)`.
    """
    match node:
        case ast.Name():
            pass
        case ast.Attribute(value=value):
            uses.follow(value)
        case ast.Subscript(value=value, slice=index):
            uses.follow(value)
            uses.add(node, False, True)
            _read(index, uses)
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            for item in items:
                _value(item, uses)
        case ast.Dict(values=items):
            for item in items:
                _value(item, uses)
        case ast.Starred(value=value):
            _read(value, uses)
        case ast.IfExp() | ast.BoolOp():
            _conditional(node, uses, _value)
        case ast.NamedExpr(target=target, value=value):
            _value(value, uses)
            _target(target, uses)
        case ast.GeneratorExp():
            _inner(node, uses, _value)
        case ast.Call(func=ast.Name(id=name), args=items) if name in _LAZY:
            for item in items:
                _value(item, uses)
        case _:
            _read(node, uses)


def _read(node: ast.expr, uses: _Uses) -> None:
    """An expression whose value is used."""
    match node:
        case ast.Name():
            uses.add(node, False)
        case ast.Attribute(value=value, attr=name):
            uses.follow(value)
            if name not in _METADATA:
                uses.add(node, False)
                _value(value, uses)
        case ast.Subscript(value=value, slice=index):
            uses.follow(value)
            uses.add(node, False)
            _read(index, uses)
        case ast.Call():
            _call(node, uses)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                return
            _read(left, uses)
            _read(others[0], uses)
            for i, other in enumerate(others[1:], 1):
                uses.guarded(ast.Compare(left, ops[:i], others[:i]), other, _read)
        case ast.IfExp() | ast.BoolOp():
            _conditional(node, uses, _read)
        case ast.NamedExpr(target=target, value=value):
            _read(value, uses)
            _target(target, uses)
        case ast.Lambda():
            inner = _Uses()
            _value(node.body, inner)
            uses.inner.append(("<lambda>", node.body.lineno, inner.uses))
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            _inner(node, uses, _read)
        case ast.Constant():
            pass
        case _:
            for inner_node in ast.iter_child_nodes(node):
                if isinstance(inner_node, ast.expr):
                    _read(inner_node, uses)


def _inner(
    node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, uses: _Uses,
    collect: _Collect,
) -> None:  # fmt: skip
    """A comprehension: its first iterable, and the rest, which may have a frame of its own."""
    first, *others = node.generators
    collect(first.iter, uses)
    inner = _Uses()
    for loop in [first, *others]:
        if loop is not first:
            _read(loop.iter, inner)
        for test in loop.ifs:
            _read(test, inner)
    parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    tests = [test for loop in node.generators for test in loop.ifs]
    for part in parts:
        if tests:
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            inner.guarded(test, part, _value)
        else:
            _value(part, inner)
    if any(isinstance(one, ast.Call) and _loud(one) for one in ast.walk(node)):
        uses.late = True
        inner.uses = []  # looked for after each step, when its calls have changed the state
    if _INLINED and not isinstance(node, ast.GeneratorExp):
        uses.uses += _of_all_steps(inner.uses, node.generators, uses.late)
        uses.inner += inner.inner
        return
    own = [use._replace(when="again") for use in inner.uses]
    uses.inner += [(_COMPREHENSIONS[type(node)], parts[0].lineno, own), *inner.inner]


def _of_all_steps(
    of_a_step: list[Use], loops: list[ast.comprehension], late: bool
) -> Iterator[Use]:
    """The uses of all steps of a comprehension, whose variables its frame does not show."""
    names = {one.id for loop in loops for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    for use in of_a_step:
        steps = _Steps(loops[0])
        node = steps.visit(deepcopy(use.node)) if isinstance(use.node, ast.Subscript) else use.node
        guard = loops[0].iter
        if use.guard is not None:
            guard = ast.BoolOp(ast.And(), [guard, use.guard])
        unknown = (one.id for part in (node, guard) for one in ast.walk(part)
                   if isinstance(one, ast.Name) and one.id in names)  # fmt: skip
        if len(loops) == 1 and steps.places < 2 and not any(unknown):
            yield use._replace(node=node, guard=guard, late=late)


class _Steps(ast.NodeTransformer):
    """Puts all values of a loop's variable in the place of an index."""

    def __init__(self, loop: ast.comprehension) -> None:
        self.loop = loop
        self.places = 0

    def visit_Subscript(self, node: ast.Subscript) -> ast.Subscript:
        target = self.loop.target
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for i, part in enumerate(parts):
            if isinstance(part, ast.Name) and isinstance(target, ast.Name) and part.id == target.id:
                self.places += 1
                parts[i] = self.loop.iter
        if not isinstance(node.slice, ast.Tuple):
            node.slice = parts[0]
        return node


def _conditional(node: ast.expr, uses: _Uses, collect: _Collect) -> None:
    """An expression of which a part is evaluated only if another part allows it."""
    match node:
        case ast.IfExp(test=test, body=body, orelse=other):
            _read(test, uses)
            late, bound = uses.late, set(uses.bound)
            uses.guarded(test, body, collect)
            after = uses.late
            uses.late, uses.bound = late, bound
            uses.guarded(ast.UnaryOp(ast.Not(), test), other, collect)
            uses.late = uses.late or after
        case ast.BoolOp(op=op, values=[first, *others]):
            # `and`, `or` look at each value but the last.
            _read(first, uses)
            for i, value in enumerate(others, 1):
                before: ast.expr = node.values[0] if i == 1 else ast.BoolOp(op, node.values[:i])
                if isinstance(op, ast.Or):
                    before = ast.UnaryOp(ast.Not(), before)
                uses.guarded(before, value, collect if value is others[-1] else _read)


def _loud(node: ast.Call) -> bool:
    """Whether a call may complete operations of MPI."""
    function = node.func
    if isinstance(function, ast.Name):
        return not hasattr(builtins, function.id)
    if isinstance(function, ast.Attribute):
        return _module(function) not in _READING and function.attr not in _QUIET
    return True


def _call(node: ast.Call, uses: _Uses) -> None:
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    function = node.func
    looks = writes = False
    if isinstance(function, ast.Name):
        looks = function.id in _READERS
    elif isinstance(function, ast.Attribute):
        owner, name = function.value, function.attr
        module = _module(owner)
        writes = name in _INTO
        if module in _READING:
            looks = name not in _LOOKS_ONLY
            if name in ("copyto", "put", "place", "putmask", "fill_diagonal") and node.args:
                uses.add(node.args[0], True)
            for keyword in node.keywords:
                if keyword.arg == "out":
                    uses.add(keyword.value, True)
        elif name in _WRITERS:
            uses.add(owner, True)
        elif name in _VIEWS:
            _value(owner, uses)
        elif isinstance(owner, ast.Call):
            _call(owner, uses)
        else:
            # A method of an array reads it; of another object it is none.
            _method(owner, uses)
    for argument in arguments:
        if writes and not isinstance(argument, ast.Constant | ast.Starred):
            uses.add(argument, True)
        elif looks:
            _read(argument, uses)
        else:
            _value(argument, uses)
    uses.late = uses.late or _loud(node)


def _method(owner: ast.expr, uses: _Uses) -> None:
    if isinstance(owner, ast.Name | ast.Attribute | ast.Subscript):
        uses.add(owner, False)
    else:
        _read(owner, uses)


def _module(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
