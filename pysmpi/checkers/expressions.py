"""The memory that expressions of a program name, evaluated in a frame without side effects."""

from __future__ import annotations

import ast
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from pysmpi.checkers.accesses import Use
from pysmpi.python.frames import is_assigned, variable

_MOST = 1 << 20  # elements of an array whose parts by a list of numbers are compared


class Elements:
    """Elements of an array by the sorted addresses of their bytes."""

    __slots__ = ("starts", "itemsize")

    def __init__(self, starts: np.ndarray, itemsize: int) -> None:
        self.starts = starts
        self.itemsize = itemsize


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


def _memory(use: Use, frame: FrameType) -> object:
    node = use.node
    if use.guard is not None and not _truth(use.guard, frame):
        return None
    if isinstance(node, ast.Subscript):
        base = evaluate(node.value, frame)
        if isinstance(base, list | tuple | dict):
            if use.writes or use.needs_scalar:
                return None  # an array in it gets another name
            return array_of(evaluate(node, frame))
        array = array_of(base)
        if array is None:
            return None
        index = evaluate(node.slice, frame)
        if use.needs_scalar:
            part = array[index]
            if isinstance(part, np.ndarray) and np.may_share_memory(part, array):
                return None  # another name for a part
        if _fancy(index):
            return _elements(array, index)
        return array[_widened(index)]
    value = evaluate(node, frame)
    if use.writes and isinstance(value, int | float | complex | str | tuple):
        return None
    return array_of(value)


def _widened(index: object) -> Any:
    """An index that gives a view in place of an element."""
    if isinstance(index, tuple):
        return tuple(_widened(one) for one in index)
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        number = int(index)
        return slice(number, number + 1 if number != -1 else None)
    return index


def _fancy(index: object) -> bool:
    """Whether an index is made of arrays of numbers or truths."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, np.ndarray | list | range | bool) for part in parts)


def _elements(array: np.ndarray, index: Any) -> Elements | None:
    if array.size > _MOST:
        return None
    places = np.full(array.shape, array.__array_interface__["data"][0], np.int64)
    for axis, stride in enumerate(array.strides):
        shape = [-1 if i == axis else 1 for i in range(array.ndim)]
        places += np.arange(array.shape[axis], dtype=np.int64).reshape(shape) * stride
    starts = np.unique(places[index])
    return Elements(starts, array.itemsize) if starts.size else None


def array_of(value: Any) -> Any:
    """The memory of an object as an array; None if it has none."""
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


def evaluate(node: ast.AST, frame: FrameType) -> Any:
    """The value of an expression; Unknown if that needs a call of the program."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.NamedExpr(value=inner):
            return evaluate(inner, frame)
        case ast.List(elts=items):
            return [evaluate(item, frame) for item in items]
        case ast.Call(func=ast.Name(id="range" | "len" as name), args=items, keywords=[]):
            if is_assigned(frame, name):
                raise Unknown
            return (range if name == "range" else len)(*(evaluate(item, frame) for item in items))
        case ast.Name(id=name):
            try:
                return variable(frame, name)
            except KeyError:
                raise Unknown from None
        case ast.Attribute(value=inner, attr=name):
            owner = evaluate(inner, frame)
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
            one, other = evaluate(left, frame), evaluate(right, frame)
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
            return tuple(evaluate(item, frame) for item in items)
        case ast.Slice(lower=lower, upper=upper, step=step):
            return slice(*(None if one is None else _number(one, frame)
                           for one in (lower, upper, step)))  # fmt: skip
        case ast.Subscript(value=inner, slice=index):
            owner = evaluate(inner, frame)
            if isinstance(owner, np.ndarray | list | tuple | dict | bytearray | memoryview):
                return owner[evaluate(index, frame)]
    raise Unknown


def _truth(node: ast.AST, frame: FrameType) -> bool:
    """Whether a value of a simple type is true."""
    value = evaluate(node, frame)
    if value is None or isinstance(value, bool | int | float | str | list | tuple | dict | range):
        return bool(value)
    raise Unknown


def _number(node: ast.AST, frame: FrameType) -> int:
    value = evaluate(node, frame)
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise Unknown
