"""The order of the elements of arrays in messages: C or Fortran."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pysmpi.checkers.describing import place
from pysmpi.checkers.memory_of_calls import significant
from pysmpi.checkers.problems.array_orders import OrdersDiffer
from pysmpi.mpi.calls import MpiCall
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.reports.findings import Finding


class ArrayOrder(NamedTuple):
    """The shape of an array of a message, without sides of length 1, and its order."""

    shape: tuple[int, ...]
    fortran: bool


class ArrayInCall(NamedTuple):
    """An array on one side of a communication."""

    call: MpiCall
    order: ArrayOrder
    receives: bool


def order_of(spec: object, parts: int = 0) -> ArrayOrder | None:
    """The order of an array of two or more dimensions; None for others.

    With `parts`, that of each of the equal parts for so many ranks: an array in C order has these
    along its first axis, one in Fortran order along its last.
    """
    if isinstance(spec, list | tuple) and spec:
        array, *rest = spec
        plain = all(
            one is None or isinstance(one, str) or (isinstance(one, Datatype) and one.is_predefined)
            for one in rest
        )
        if not plain:
            return None  # counts, displacements or a layout of the program
    else:
        array = spec
    if not isinstance(array, np.ndarray) or array.ndim < 2 or array.size == 0:
        return None
    c_order, fortran = array.flags.c_contiguous, array.flags.f_contiguous
    if c_order == fortran:
        return None
    shape: tuple[int, ...] = array.shape
    if parts:
        if shape[-1 if fortran else 0] != parts:
            return None
        shape = shape[:-1] if fortran else shape[1:]
    shape = tuple(length for length in shape if length != 1)
    return ArrayOrder(shape, fortran) if len(shape) > 1 else None


def differ(one: ArrayOrder | None, other: ArrayOrder | None) -> bool:
    """Whether two arrays have the same shape and different orders."""
    return one is not None and other is not None and one != other and one.shape == other.shape


# The arguments that have a part for each rank.
_PARTS = {
    "Gather": ("recvbuf",),
    "Allgather": ("recvbuf",),
    "Scatter": ("sendbuf",),
    "Alltoall": ("sendbuf", "recvbuf"),
    "Reduce_scatter_block": ("sendbuf",),
}
_WHOLE = frozenset(("Bcast", "Reduce", "Allreduce", "Scan", "Exscan"))


def arrays_of(call: MpiCall, size: int) -> list[ArrayInCall]:
    """The arrays of a rank in a collective call of `size` ranks."""
    name = call.name.removesuffix("_init")
    if name[0] == "I":
        name = name[1:].capitalize()
    parts = _PARTS.get(name, ())
    if not parts and name not in _WHOLE:
        return []
    arrays = []
    for argument in ("buf", "sendbuf", "recvbuf"):
        if argument in call.arguments and significant(call, argument):
            order = order_of(call.arguments[argument], size if argument in parts else 0)
            if order is not None:
                receives = argument == "recvbuf" or (
                    argument == "buf" and call.arguments.get("root") != call.values[0].Get_rank()
                )
                arrays.append(ArrayInCall(call, order, receives))
    return arrays


def finding(one: ArrayInCall, other: ArrayInCall) -> Finding:
    """Two arrays in different orders."""
    rows = []
    for side in (one, other):
        order = "Fortran" if side.order.fortran else "C"
        rows.append(place(side.call, f"{'received' if side.receives else 'sent'} in {order} order"))
    sent = one if other.receives else other
    shape = "x".join(str(length) for length in sent.order.shape)
    return Finding(
        OrdersDiffer,
        f"{shape} elements in {'Fortran' if sent.order.fortran else 'C'} order meet an array in "
        f"{'C' if sent.order.fortran else 'Fortran'} order",
        rows,
        "MPI 4.1, section 3.2.2: a message has the elements as they lie in memory, whatever their "
        "indices",
        'use one order on both sides: numpy.ascontiguousarray, or order="F" for both',
    )
