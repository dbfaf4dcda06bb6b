"""Reduction operations (MPI 4.1, section 6.9), as handles of `reductions.Operator`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pysmpi.mpi.base import constants as c
from pysmpi.mpi.base.exceptions import fail, truth
from pysmpi.mpi.base.handles import Handle, wrong_type
from pysmpi.mpi.base.ranks import Rank, Universe, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.aliasing import alias, refuse_alias
from pysmpi.mpi.buffers.spellings import matching
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.internal_errors import touches_program
from pysmpi.mpi.operators.arithmetic import (
    OPERATORS,
    Operator,
    OperatorMeter,
    check,
    combine,
    reduce,
)
from pysmpi.mpi.operators.object_operations import OBJECT_OPERATIONS
from pysmpi.python.records import record

if TYPE_CHECKING:
    from mpi4py.typing import BufSpec

# User-defined operations that may exist at a time in a rank, as in mpi4py.
MAX_USER_OPERATIONS = 32

_NULL = 0x18000000
_FIRST = 0x58000001
_ORDER = (
    "MAX",
    "MIN",
    "SUM",
    "PROD",
    "LAND",
    "BAND",
    "LOR",
    "BOR",
    "LXOR",
    "BXOR",
    "MINLOC",
    "MAXLOC",
    "REPLACE",
    "NO_OP",
)


@record
class Created:
    """The operators that a rank has created and not freed."""

    number: int = 0


CREATED = StateSlot(Rank, Created)
# By the code of the function.
METERS: StateSlot[Universe, dict[object, OperatorMeter]] = StateSlot(Universe, dict)


class Op(Handle, kind=6, null=_NULL, error=c.ERR_OP):
    """Reduction operation."""

    # A handle from Create, or a copy of one, has the function; a handle from an integer does not.
    __slots__ = ("_user", "_room")  # as large as mpi4py's

    _impl: Operator | None
    _user: Operator | None

    def __new__(cls, op: Op | None = None) -> Op:
        self = object.__new__(cls)
        Handle._copy(self, op, "op")
        self._user = getattr(op, "_user", None)
        return self

    def __reduce__(self) -> str | tuple[object, ...]:
        """Reduce a predefined operation to its name, another to its function."""
        operator = self._sync()
        if operator is None or operator.predefined:
            return super().__reduce__()
        user = getattr(self, "_user", None)
        if user is None or user.freed:
            raise ValueError("cannot pickle user-defined reduction operation")
        return type(self).Create, (user.function, user.commutative)

    @touches_program
    def __call__(self, x: object, y: object) -> object:
        """Call the operation on two objects."""
        operator = self._sync()
        if operator is not None and operator.predefined:
            return OBJECT_OPERATIONS[operator.name](x, y)
        user = getattr(self, "_user", None)
        if user is None or user.freed:
            raise ValueError("cannot call user-defined operation")
        assert user.function is not None
        return user.function(x, y, None)

    def _is_predefined(self) -> bool:
        operator = self._sync()
        return operator is None or operator.predefined

    @classmethod
    @mpi.local("6.9.5")
    def Create(cls, function: Callable[[Any, Any, Any], None], commute: bool = False) -> Op:
        """Create a user-defined reduction operation."""
        if not callable(function):
            raise AttributeError(f"function: '{type(function).__name__}' object is not callable")
        if CREATED.of(current()).number >= MAX_USER_OPERATIONS:
            raise RuntimeError("cannot create too many user-defined reduction operations")
        return cls._create(function, commute)

    @classmethod
    def _create(cls, function: Callable[[Any, Any, Any], None], commute: bool) -> Op:
        CREATED.of(current()).number += 1
        operator = Operator("", commutative=truth(commute), function=function)
        meters = METERS.of(current().universe)
        code = getattr(function, "__code__", type(function))
        operator.meter = meters.get(code)
        if operator.meter is None:
            operator.meter = meters[code] = OperatorMeter()
        result: Op = cls._of(operator)
        result._user = operator
        return result

    @mpi.local("6.9.5")
    def Free(self) -> None:
        """Free a user-defined reduction operation."""
        operator = self._live()
        if operator.predefined:
            fail(c.ERR_OP, f"MPI_{operator.name} cannot be freed")
        if not operator.freed:
            # Calls that are under way still need the function.
            operator.freed = True
            CREATED.of(current()).number -= 1
        self._user = None
        self._retire()

    @mpi.local("6.9.7")
    def Is_commutative(self) -> bool:
        """Query reduction operations for their commutativity."""
        commutative: bool = self._live().commutative
        return commutative

    @property
    def is_commutative(self) -> bool:
        """Is a commutative operation."""
        return self.Is_commutative()

    @property
    def is_predefined(self) -> bool:
        """Is a predefined operation."""
        return self._is_predefined()

    @mpi.local("6.9.7")
    def Reduce_local(self, inbuf: BufSpec, inoutbuf: BufSpec) -> None:
        """Apply a reduction operation to local data."""
        source, target = matching(inbuf, inoutbuf)
        operator = self._live()
        record = target.datatype._live()
        if operator.function is None:
            check(operator, record)
        if target.count and alias(source, target):
            refuse_alias(None)
        if source.data is not None and target.data is not None:
            combine(operator, source.data, target.data, target.count, record)
        else:
            target.unpack(reduce(operator, (source.pack(), target.pack()), target.count, record))


def operator_of(op: object, record: Any = None) -> Operator:
    """The operator of an argument; with a datatype record, checked to be defined on it."""
    if not isinstance(op, Op):
        raise wrong_type("op", Op, op)
    operator: Operator = op._live()
    if record is not None:
        check(operator, record)
    return operator


OP_NULL: Op = Op._define("OP_NULL", None, _NULL)
#: Every predefined operation by its name in mpi4py.MPI.
PREDEFINED: dict[str, Op] = {
    name: Op._define(name, OPERATORS[name], _FIRST + number) for number, name in enumerate(_ORDER)
}
globals().update(PREDEFINED)

__all__ = ["Op", "OP_NULL", *PREDEFINED]
