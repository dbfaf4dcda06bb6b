"""Reduction operators (MPI 4.1, section 6.9)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pysmpi.abi.callbacks import reduction
from pysmpi.abi.entry import entry
from pysmpi.abi.values import buffer, free, give, write_integer
from pysmpi.mpi.operators.operators import Op

if TYPE_CHECKING:
    from mpi4py import MPI
else:
    from pysmpi.mpi import MPI


@entry
def Op_create(user_fn: int, commute: int, op: int) -> None:
    give(op, Op._create(reduction(user_fn, False), bool(commute)))


@entry
def Op_create_c(user_fn: int, commute: int, op: int) -> None:
    give(op, Op._create(reduction(user_fn, True), bool(commute)))


@entry
def Op_free(op: int) -> None:
    free(op, "O", MPI.OP_NULL)


@entry
def Op_commutative(op: MPI.Op, commute: int) -> None:
    write_integer(commute, op.Is_commutative())


@entry
def Reduce_local(inbuf: int, inoutbuf: int, count: int, datatype: MPI.Datatype, op: MPI.Op) -> None:
    op.Reduce_local(buffer(inbuf, count, datatype), buffer(inoutbuf, count, datatype))
