"""The predefined reduction operators on Python objects, for the lower-case reductions.

Each does the Python operation of its name, so it raises the exception of that operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.mpi.internal_errors import touches_program


def _located(better: Callable[[Any, Any], Any]) -> Callable[[Any, Any], object]:
    """MAXLOC and MINLOC on (value, index) pairs: of equal values the lower index wins."""

    @touches_program
    def choose(x: Any, y: Any) -> object:
        (u, i), (v, j) = x, y
        if better(u, v):
            return u, i
        if better(v, u) or j < i:
            return v, j
        return u, i

    return choose


OBJECT_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "MAX": lambda x, y: y if y > x else x,
    "MIN": lambda x, y: y if y < x else x,
    "SUM": lambda x, y: x + y,
    "PROD": lambda x, y: x * y,
    "LAND": lambda x, y: bool(x) & bool(y),
    "BAND": lambda x, y: x & y,
    "LOR": lambda x, y: bool(x) | bool(y),
    "BOR": lambda x, y: x | y,
    "LXOR": lambda x, y: bool(x) ^ bool(y),
    "BXOR": lambda x, y: x ^ y,
    "MAXLOC": _located(touches_program(lambda u, v: u > v)),
    "MINLOC": _located(touches_program(lambda u, v: u < v)),
    "REPLACE": lambda x, y: y,
    "NO_OP": lambda x, y: x,
}
for _operation in OBJECT_OPERATIONS.values():
    touches_program(_operation)
