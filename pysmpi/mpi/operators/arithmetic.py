"""The arithmetic of reductions (MPI 4.1, section 6.9), vectorised.

Data has two forms. In memory, elements are an extent apart; a user's function gets this form. In a
packed stream they follow each other without gaps; contributions of other ranks have this form. For
most datatypes the two are the same.

Contributions are always combined in the order of ranks, x0 op x1 op x2..., from the left. A sum of
floating-point numbers therefore does not depend on the simulated algorithm: it is reproducible,
unlike that of a real library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pysmpi.kernel.process import Process
from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.errhandlers import FAILURES, show
from pysmpi.mpi.base.exceptions import fail
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.buffers.memory import over
from pysmpi.mpi.datatypes.copy_plans import Memory
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.datatypes.layouts import leaves
from pysmpi.mpi.datatypes.records import Type

_ORDERED = frozenset(("integer", "fortran", "multi", "real"))
_SUMMED = _ORDERED | {"complex"}
_LOGICAL = frozenset(("integer", "multi", "logical"))
_BITS = frozenset(("integer", "fortran", "multi", "byte"))
_PAIR = frozenset(("pair",))

# Contributions up to this size (bytes) are stacked and combined by one numpy call.
STACKED = 1 << 16
# Bytes of larger contributions that are combined at a time.
CHUNK = 1 << 17


class OperatorMeter:
    """The time of one application of a user's function, by the number of combined bytes.

    Contributions are combined once for all ranks, so the function runs in one rank, and the
    functions of all ranks with the same code are measured together. Each rank is charged for its
    own applications in the algorithm, at the measured time; if the function has not run yet, it is
    charged later.
    """

    __slots__ = ("measured", "owed")

    def __init__(self) -> None:
        self.measured: dict[int, list[float]] = {}  # bytes -> [flops, applications]
        self.owed: list[tuple[Process, list[float]]] = []

    def add(self, nbytes: int, flops: float) -> None:
        """An application was measured."""
        entry = self.measured.setdefault(nbytes, [0.0, 0.0])
        entry[0] += flops
        entry[1] += 1.0
        while self.owed:
            self.charge(*self.owed.pop())

    def charge(self, process: Process, sizes: list[float]) -> None:
        """Let `process` compute for applications on pieces of some sizes (bytes)."""
        if not self.measured:
            self.owed.append((process, sizes))
        elif not process.finished:
            process.owe(sum(map(self.flops, sizes)) / process.core.speed)

    def flops(self, nbytes: float) -> float:
        """The time of an application on this number of bytes, from the nearest measured size."""
        nearest = min(self.measured, key=lambda size: abs(size - nbytes))
        flops, applications = self.measured[nearest]
        return flops / applications * (nbytes / nearest)


class Operator:
    """The object of an `Op`: a predefined operation, or a user's function.

    `kinds` are the kinds of datatype (typetable.NamedType) for which a predefined operation is
    defined.
    """

    __slots__ = ("commutative", "freed", "function", "kinds", "meter", "name", "ufunc")

    def __init__(
        self,
        name: str,
        kinds: frozenset[str] = frozenset(),
        ufunc: Any = None,
        commutative: bool = True,
        function: Callable[[object, object, object], object] | None = None,
    ) -> None:
        self.name = name
        self.kinds = kinds
        self.ufunc = ufunc
        self.commutative = commutative
        self.function = function
        self.freed = False
        self.meter: OperatorMeter | None = None

    @property
    def predefined(self) -> bool:
        """Whether MPI made it."""
        return self.name != ""


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator("MAX", _ORDERED, np.maximum),
        Operator("MIN", _ORDERED, np.minimum),
        Operator("SUM", _SUMMED, np.add),
        Operator("PROD", _SUMMED, np.multiply),
        Operator("LAND", _LOGICAL, np.logical_and),
        Operator("BAND", _BITS, np.bitwise_and),
        Operator("LOR", _LOGICAL, np.logical_or),
        Operator("BOR", _BITS, np.bitwise_or),
        Operator("LXOR", _LOGICAL, np.logical_xor),
        Operator("BXOR", _BITS, np.bitwise_xor),
        Operator("MAXLOC", _PAIR),
        Operator("MINLOC", _PAIR),
        Operator("REPLACE", commutative=False),
        Operator("NO_OP", commutative=False),
    )
}
REPLACE, NO_OP = OPERATORS["REPLACE"], OPERATORS["NO_OP"]


def check(operator: Operator, record: Type) -> None:
    """Refuse an operation that is not defined on a datatype, with ERR_OP."""
    if operator.name and record.kind not in operator.kinds:
        what = record.name or "a derived datatype"
        fail(c.ERR_OP, f"MPI_{operator.name} is not defined on {what}")


def element(record: Type) -> Type | None:
    """The only basic type of a datatype, which may be a pair; None if there are several.

    Accumulate operations of windows combine element by element, for any layout.
    """
    pair = _pair_in(record)
    if pair is not None:
        return pair
    kinds = list(leaves(record.layout.signature))
    return kinds[0] if len(kinds) == 1 else None


def _pair_in(record: Type) -> Type | None:
    """The pair of which alone a datatype is made, None if it is made of others."""
    if record.kind == "pair":
        return record
    pairs = {_pair_in(each) for each in record.types}
    return pairs.pop() if len(pairs) == 1 else None


def combine(
    operator: Operator, invec: Any, inoutvec: Any, count: int, record: Type, packed: bool = False
) -> None:
    """inoutvec = invec op inoutvec, for `count` elements in memory, or in packed streams.

    Buffers begin at the first element. A user's function takes elements in memory only.
    """
    if count == 0 or operator is NO_OP:
        return
    if operator is REPLACE:
        memoryview(inoutvec)[:] = invec
        return
    if operator.function is not None:
        _call(operator, invec, inoutvec, count, record)
        return
    check(operator, record)
    dtype = record.dtype
    if dtype is None:
        from pysmpi.mpi.datatypes import quad_precision as quads

        quads.combine(operator.name, invec, inoutvec, record.kind == "complex")
        return
    if record.kind == "pair":
        _locate(operator, _packed(dtype) if packed else dtype, invec, inoutvec, count)
        return
    a = np.frombuffer(invec, dtype, count)
    b = np.frombuffer(inoutvec, dtype, count)
    with np.errstate(all="ignore"):
        operator.ufunc(a, b, out=b, casting="unsafe")


def _packed(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A pair without gaps."""
    fields = dtype.fields
    assert fields is not None
    return np.dtype([(name, fields[name][0]) for name in ("value", "index")])


def _locate(
    operator: Operator, dtype: np.dtype[Any], invec: object, inoutvec: object, count: int
) -> None:
    """MAXLOC and MINLOC: of equal values, the one with the lower index."""
    # The gap after the last element may be beyond the buffer.
    size = dtype.itemsize

    def fields(buf: Any) -> tuple[np.ndarray, np.ndarray]:
        members = []
        for name in ("value", "index"):
            assert dtype.fields is not None
            kind, offset = dtype.fields[name][:2]
            members.append(np.ndarray((count,), kind, buf, offset, (size,)))
        return members[0], members[1]

    (x, i), (y, j) = fields(invec), fields(inoutvec)
    better = x > y if operator.name == "MAXLOC" else x < y
    better |= (x == y) & (i < j)
    np.copyto(y, x, where=better)
    np.copyto(j, i, where=better)


def _call(operator: Operator, invec: Any, inoutvec: Any, count: int, record: Type) -> None:
    """Call a user's function, which sees memory of `count` extents and a datatype."""
    datatype = Datatype._wrap(record)
    assert operator.function is not None
    rank, meter = current(), operator.meter
    timer = rank.timer if rank.in_call and meter is not None else None
    operands = over(memoryview(invec)), over(memoryview(inoutvec))
    try:
        if timer is None or meter is None:
            operator.function(*operands, datatype)
        else:
            timer.start()
            try:
                operator.function(*operands, datatype)
            finally:
                seconds = timer.stop()
            nbytes = count * record.layout.size
            meter.add(nbytes, seconds * rank.process.core.speed)
    except FAILURES as error:
        # There is no way back from inside a reduction: mpi4py ends the program too.
        show(error)
        print("Fatal error: exception in a user-defined reduction operation", file=sys.stderr)
        rank.abort(1, "raised an exception in a reduction operator")
    finally:
        datatype._set(None)


def reduce(operator: Operator, streams: Sequence[object], count: int, record: Type) -> bytes:
    """x0 op x1 op ... of packed contributions of `count` elements, packed."""
    return _fold(operator, streams, count, record, False)[-1]


def prefixes(
    operator: Operator, streams: Sequence[object], count: int, record: Type
) -> list[bytes]:
    """The running results x0, x0 op x1, ... of packed contributions, packed."""
    return _fold(operator, streams, count, record, True)


def _fold(
    operator: Operator, streams: Sequence[Any], count: int, record: Type, keep: bool
) -> list[bytes]:
    check(operator, record)
    nbytes = count * record.layout.size
    if nbytes == 0 or len(streams) == 1:
        return [bytes(stream) for stream in streams]
    if operator.ufunc is not None and record.dtype is not None and nbytes <= STACKED:
        return _stacked(operator, streams, count, record.dtype, keep)
    if operator.function is not None and not record.layout.dense:
        return _fold_in_memory(operator, streams, count, record, keep)
    if operator.ufunc is not None and operator.commutative and not keep:
        if record.dtype is not None and record.kind != "pair":
            return [_in_chunks(operator, streams, count, record)]
    result = bytearray(streams[0])
    results = [bytes(result)] if keep else []
    for stream in streams[1:]:
        if operator.function is None and operator.commutative:
            combine(operator, stream, result, count, record, packed=True)
        else:
            following = bytearray(stream)
            combine(operator, result, following, count, record, packed=True)
            result = following
        if keep:
            results.append(bytes(result))
    return results if keep else [bytes(result)]


def _in_chunks(
    operator: Operator, streams: Sequence[bytes | memoryview], count: int, record: Type
) -> bytes:
    """All contributions, a chunk at a time: the running result of a chunk stays in the cache."""
    dtype = record.dtype
    assert dtype is not None
    rows = [np.frombuffer(stream, dtype, count) for stream in streams]
    result = rows.pop(0).copy()
    step = CHUNK // dtype.itemsize
    with np.errstate(all="ignore"):
        for start in range(0, count, step):
            part = result[start : start + step]
            for row in rows:
                operator.ufunc(row[start : start + step], part, out=part, casting="unsafe")
    return result.tobytes()


def _stacked(
    operator: Operator, streams: Sequence[Any], count: int, dtype: np.dtype[Any], keep: bool
) -> list[bytes]:
    """All contributions by one call of numpy, which goes down each column in order."""
    rows = np.frombuffer(b"".join(streams), dtype).reshape(len(streams), count)
    logical = operator.name in ("LAND", "LOR", "LXOR")
    if logical:
        rows = rows != 0
    with np.errstate(all="ignore"):
        if keep or count == 1:
            # A single column would be added up in pairs by reduce.
            results = operator.ufunc.accumulate(rows, axis=0, dtype=rows.dtype)
            if not keep:
                results = results[-1:]
        else:
            results = operator.ufunc.reduce(rows, axis=0, dtype=rows.dtype, keepdims=True)
    if logical:
        results = results.astype(dtype)
    result = [row.tobytes() for row in results]
    if keep:
        # The first contribution is not combined: it does not change, logical or not.
        result[0] = bytes(streams[0])
    return result


def _fold_in_memory(
    operator: Operator, streams: Sequence[Memory], count: int, record: Type, keep: bool
) -> list[bytes]:
    """For a user's function on a datatype with gaps: lay the elements out as in memory."""
    layout = record.layout
    plan = layout.plan(count)
    origin = max(0, -plan.low)
    span = count * layout.extent

    def spread(stream: Memory) -> bytearray:
        memory = bytearray(origin + max(span, plan.high))
        plan.unpack(memory, origin, stream)
        return memory

    def gathered(memory: bytearray) -> bytes:
        stream = bytearray(plan.nbytes)
        plan.pack(memory, origin, stream)
        return bytes(stream)

    result = spread(streams[0])
    results = [gathered(result)] if keep else []
    for stream in streams[1:]:
        following = spread(stream)
        combine(
            operator,
            memoryview(result)[origin : origin + span],
            memoryview(following)[origin : origin + span],
            count,
            record,
        )
        result = following
        if keep:
            results.append(gathered(result))
    return results if keep else [gathered(result)]
