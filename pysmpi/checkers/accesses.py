"""The uses of memory in a line of a program, found in its source.

`uses_of(code)` gives for each line of a function the arrays that it reads or writes, as expressions
that can be evaluated before the line runs: names, attributes, subscripts with simple indices. An
array that is only passed on is not used: as an argument of a function of the program, in an
assignment of the whole array or of a slice, in a list. Functions that look at the elements
(`print`, `sum`, most of numpy's) use their arguments.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from pysmpi.python.frames import variable


class Use(NamedTuple):
    """One use of memory: the expression, and whether it writes."""

    node: ast.expr
    writes: bool
    needs_scalar: bool = False  # an assignment of a slice only makes another name
    guard: ast.expr | None = None  # the use happens only if this is true


Collector = Callable[[ast.expr, list[Use]], None]

_READERS = frozenset(
    "print sum min max sorted list tuple set str repr float int complex bool bytes bytearray any "
    "all abs round iter next enumerate zip map filter reversed hash format dict divmod "
    "pow".split()
)
_LOOKS_ONLY = frozenset(
    "zeros_like empty_like ones_like full_like shape size ndim frombuffer asarray asanyarray "
    "ascontiguousarray reshape ravel transpose shares_memory may_share_memory byte_bounds "
    "iscomplexobj isrealobj result_type squeeze expand_dims atleast_1d atleast_2d split "
    "array_split broadcast_to from_dlpack".split()
)
_METADATA = frozenset(
    "shape size dtype ndim nbytes itemsize strides flags base data ctypes T real imag flat "
    "__array_interface__ format readonly obj contiguous c_contiguous typecode".split()
)
_VIEWS = frozenset(
    "reshape ravel view transpose squeeze swapaxes cast toreadonly release setflags "
    "buffer_info".split()
)
_WRITERS = frozenset(
    "fill sort put itemset partition resize byteswap append extend insert clear pop reverse "
    "__setitem__".split()
)
_BLOCKS = (ast.If, ast.For, ast.While, ast.With, ast.Try)  # whose body may share their line
# By the identity of a code, whose hash takes long, with the code itself.
_USES_BY_CODE: dict[int, tuple[CodeType, dict[int, list[Use]]]] = {}


def uses_of(code: CodeType) -> dict[int, list[Use]]:
    """The uses of memory in a file, by line; empty if there is no source."""
    entry = _USES_BY_CODE.get(id(code))
    if entry is None:
        if len(_USES_BY_CODE) > 10_000:
            _USES_BY_CODE.clear()
        entry = _USES_BY_CODE[id(code)] = code, _of_file(code.co_filename)
    return entry[1]


_FILES: dict[tuple[str, int], dict[int, list[Use]]] = {}


def _of_file(file: str) -> dict[int, list[Use]]:
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
        uses = {}
        _statements(tree, uses, set())
        if len(_FILES) > 1000:
            _FILES.clear()
        _FILES[key] = uses
    return uses


def _statements(tree: ast.AST, uses: dict[int, list[Use]], calling: set[int]) -> None:
    """Collect the uses of each statement at its first line, without those of its inner blocks."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.stmt):
            of_statement: list[Use] = []
            _statement(node, of_statement)
            if isinstance(tree, _BLOCKS) and tree.lineno == node.lineno:
                plain = isinstance(tree, ast.If) and node in tree.body
                guard = tree.test if plain and isinstance(tree, ast.If) else ast.Yield()
                of_statement = [
                    use._replace(
                        guard=guard
                        if use.guard is None
                        else ast.BoolOp(ast.And(), [guard, use.guard])
                    )
                    for use in of_statement
                ]
            # After a call on the same line, such as `request.Wait(); print(a)`, the state differs.
            if of_statement and node.lineno not in calling:
                uses.setdefault(node.lineno, []).extend(of_statement)
            if not hasattr(node, "body") and any(
                isinstance(inner, ast.Call) for inner in ast.walk(node)
            ):
                calling.add(node.lineno)
        _statements(node, uses, calling)


def _statement(node: ast.stmt, uses: list[Use]) -> None:
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
                uses.append(Use(target, True))
            if isinstance(target, ast.Subscript):
                _read(target.slice, uses)
        case ast.Expr(value=value):
            _value(value, uses)
        case ast.Return(value=value):
            if value is not None:
                _value(value, uses)
        case ast.If(test=test) | ast.While(test=test) | ast.Assert(test=test):
            _read(test, uses)
        case ast.For(iter=iterated):
            _read(iterated, uses)
        case ast.Delete(targets=targets):
            pass
        case ast.With(items=items):
            for item in items:
                _value(item.context_expr, uses)
        case _:
            pass


def _target(node: ast.expr, uses: list[Use]) -> None:
    if isinstance(node, ast.Tuple | ast.List):
        for item in node.elts:
            _target(item, uses)
    elif isinstance(node, ast.Subscript):
        uses.append(Use(node, True))
        _read(node.slice, uses)


def _value(node: ast.expr, uses: list[Use]) -> None:
    """An expression whose value is kept or passed on: an array in it is not used.

    A function may only pass an argument on, as in `comm.Send([a[2:4], MPI.INT], 1)`.
    """
    match node:
        case ast.Name() | ast.Attribute():
            pass
        case ast.Subscript(slice=index):
            uses.append(Use(node, False, True))
            _read(index, uses)
        case ast.Tuple(elts=items) | ast.List(elts=items):
            for item in items:
                _value(item, uses)
        case ast.Starred(value=value):
            _read(value, uses)
        case ast.IfExp() | ast.BoolOp():
            _conditional(node, uses, _value)
        case ast.NamedExpr(value=value):
            _value(value, uses)
        case _:
            _read(node, uses)


def _read(node: ast.expr, uses: list[Use]) -> None:
    """An expression whose value is used."""
    match node:
        case ast.Name():
            uses.append(Use(node, False))
        case ast.Attribute(value=value, attr=name):
            if name not in _METADATA:
                uses.append(Use(node, False))
                _value(value, uses)
        case ast.Subscript(slice=index):
            uses.append(Use(node, False))
            _read(index, uses)
        case ast.Call():
            _call(node, uses)
        case ast.Compare(left=left, ops=ops, comparators=others):
            if any(isinstance(op, ast.Is | ast.IsNot) for op in ops):
                return
            _read(left, uses)
            _read(others[0], uses)
            for i, other in enumerate(others[1:], 1):
                first = ast.Compare(left, ops[:i], others[:i])
                _guarded(first, other, uses, _read)
        case ast.IfExp() | ast.BoolOp():
            _conditional(node, uses, _read)
        case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            if not isinstance(node, ast.Lambda):
                _read(node.generators[0].iter, uses)
        case ast.Constant():
            pass
        case _:
            for inner in ast.iter_child_nodes(node):
                if isinstance(inner, ast.expr):
                    _read(inner, uses)


def _conditional(node: ast.expr, uses: list[Use], collect: Collector) -> None:
    """An expression of which a part is evaluated only if another part allows it."""
    match node:
        case ast.IfExp(test=test, body=body, orelse=other):
            _read(test, uses)
            _guarded(test, body, uses, collect)
            _guarded(ast.UnaryOp(ast.Not(), test), other, uses, collect)
        case ast.BoolOp(op=op, values=[first, *others]):
            # `and`, `or` look at each value but the last.
            _read(first, uses)
            for i, value in enumerate(others, 1):
                before: ast.expr = node.values[0] if i == 1 else ast.BoolOp(op, node.values[:i])
                if isinstance(op, ast.Or):
                    before = ast.UnaryOp(ast.Not(), before)
                _guarded(before, value, uses, collect if value is others[-1] else _read)


def _guarded(guard: ast.expr, node: ast.expr, uses: list[Use], collect: Collector) -> None:
    """The uses of an expression that is evaluated only if another one is true."""
    inner: list[Use] = []
    collect(node, inner)
    for use in inner:
        both = guard if use.guard is None else ast.BoolOp(ast.And(), [guard, use.guard])
        uses.append(use._replace(guard=both))


def _call(node: ast.Call, uses: list[Use]) -> None:
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    function = node.func
    looks = False
    if isinstance(function, ast.Name):
        looks = function.id in _READERS
    elif isinstance(function, ast.Attribute):
        owner, name = function.value, function.attr
        numeric = _module(owner) in ("np", "numpy", "math", "scipy")
        if numeric:
            looks = name not in _LOOKS_ONLY
            if name in ("copyto", "put", "place", "putmask", "fill_diagonal") and node.args:
                uses.append(Use(node.args[0], True))
            for keyword in node.keywords:
                if keyword.arg == "out":
                    uses.append(Use(keyword.value, True))
        elif name in _WRITERS:
            uses.append(Use(owner, True))
        elif name in _VIEWS:
            _value(owner, uses)
        elif isinstance(owner, ast.Call):
            _call(owner, uses)
        else:
            # A method of an array reads it; of another object it is none.
            _method(owner, uses)
    for argument in arguments:
        if looks:
            _read(argument, uses)
        else:
            _value(argument, uses)


def _method(owner: ast.expr, uses: list[Use]) -> None:
    if isinstance(owner, ast.Name | ast.Attribute | ast.Subscript):
        uses.append(Use(owner, False))
    elif isinstance(owner, ast.expr):
        _read(owner, uses)


def _module(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


class Unknown(Exception):
    """An expression that cannot be evaluated without side effects."""


def memory_of(use: Use, frame: FrameType) -> object:
    """The memory that a use reaches, as an array; None if there is none, or it is unknown."""
    try:
        return _memory(use, frame)
    except Unknown:
        return None
    except Exception:  # of a class of the program; the line itself will raise it
        return None


def _memory(use: Use, frame: FrameType) -> Any:
    node = use.node
    if use.guard is not None and not _truth(use.guard, frame):
        return None
    if isinstance(node, ast.Subscript):
        base = _evaluate(node.value, frame)
        if isinstance(base, list | tuple | dict):
            if use.writes:
                return None
            return _array(_evaluate(node, frame))
        array = _array(base)
        if array is None:
            return None
        index = _evaluate(node.slice, frame)
        if use.needs_scalar:
            part = array[index]
            if isinstance(part, np.ndarray) and np.may_share_memory(part, array):
                return None  # another name for a part
        return array[_widened(index, array)]
    value = _evaluate(node, frame)
    if use.writes and isinstance(value, int | float | complex | str | tuple):
        return None
    return _array(value)


def _widened(index: object, array: object) -> Any:
    """An index that gives a view in place of an element."""
    if isinstance(index, tuple):
        return tuple(_widened(one, array) for one in index)
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        number = int(index)
        return slice(number, number + 1 if number != -1 else None)
    if isinstance(index, np.ndarray | list):
        return slice(None)
    return index


def _array(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value if value.size else None
    if (
        isinstance(value, bytearray | memoryview)
        or type(value).__module__ == "array"
        or (type(value).__name__ == "buffer")
    ):
        try:
            view = memoryview(value)
            return np.frombuffer(view, view.format) if view.nbytes else None
        except (ValueError, TypeError, BufferError):
            return None
    return None


def _evaluate(node: ast.AST, frame: FrameType) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            try:
                return variable(frame, name)
            except KeyError:
                raise Unknown from None
        case ast.Attribute(value=inner, attr=name):
            owner = _evaluate(inner, frame)
            if isinstance(owner, np.ndarray) and name in ("T", "real", "imag"):
                return getattr(owner, name)
            if isinstance(owner, ModuleType) or name in getattr(owner, "__dict__", ()):
                return getattr(owner, name)
            if isinstance(owner, np.ndarray) and name in ("size", "ndim", "shape"):
                return getattr(owner, name)
            attribute = getattr(type(owner), name, None)
            if type(owner).__module__.startswith(("pysmpi.mpi", "mpi4py")) and (
                name in ("rank", "size") and attribute is not None
            ):
                return getattr(owner, name)
            raise Unknown
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            one, other = _evaluate(left, frame), _evaluate(right, frame)
            if not isinstance(one, int | str | None) or not isinstance(other, int | str | None):
                raise Unknown
            match op:
                case ast.Eq():
                    return one == other
                case ast.NotEq():
                    return one != other
            if isinstance(one, int) and isinstance(other, int):
                match op:
                    case ast.Lt():
                        return one < other
                    case ast.LtE():
                        return one <= other
                    case ast.Gt():
                        return one > other
                    case ast.GtE():
                        return one >= other
            raise Unknown
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _truth(operand, frame)
        case ast.BoolOp(op=op, values=values):
            wanted = isinstance(op, ast.Or)
            return wanted if any(_truth(one, frame) is wanted for one in values) else not wanted
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, frame)
        case ast.BinOp(left=left, op=op, right=right):
            one, other = _number(left, frame), _number(right, frame)
            match op:
                case ast.Add():
                    return one + other
                case ast.Sub():
                    return one - other
                case ast.Mult():
                    return one * other
                case ast.FloorDiv():
                    return one // other
                case ast.Mod():
                    return one % other
            raise Unknown
        case ast.Tuple(elts=items):
            return tuple(_evaluate(item, frame) for item in items)
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if one is None else _number(one, frame)
                           for one in (lower, upper, step)))  # fmt: skip
        case ast.Subscript(value=inner, slice=index):
            owner = _evaluate(inner, frame)
            if isinstance(owner, np.ndarray | list | tuple | dict | bytearray | memoryview):
                return owner[_evaluate(index, frame)]
    raise Unknown


def _truth(node: ast.AST, frame: FrameType) -> bool:
    """Whether a value of a simple type is true."""
    value = _evaluate(node, frame)
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict):
        return bool(value)
    raise Unknown


def _number(node: ast.AST, frame: FrameType) -> Any:
    value = _evaluate(node, frame)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise Unknown
