"""Words for reports: calls as the program made them, communicators, datatypes."""

from __future__ import annotations

from pysmpi.mpi.base.constants import ANY_SOURCE, ANY_TAG, PROC_NULL
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import MpiCall, Role
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.operators.operators import Op
from pysmpi.reports.findings import Place
from pysmpi.reports.waiting import name_comm

_SHOWN = (Role.PEER, Role.TAG, Role.ROOT)
_NAMES = {
    (Role.PEER, ANY_SOURCE): "ANY_SOURCE",
    (Role.PEER, PROC_NULL): "PROC_NULL",
    (Role.ROOT, PROC_NULL): "PROC_NULL",
    (Role.TAG, ANY_TAG): "ANY_TAG",
}


def call_text(call: MpiCall) -> str:
    """`Isend(dest=1, tag=7)`: the call with peers, tags, root and operation."""
    parts = []
    roles = call.procedure.roles
    for name, value in call.arguments.items():
        role = roles[name]
        if role in _SHOWN and isinstance(value, int):
            parts.append(f"{name}={_NAMES.get((role, int(value)), value)}")
        elif role is Role.OPERATOR and isinstance(value, Op):
            parts.append(f"{name}={op_name(value)}")
    comm = ""
    handle = communicator_handle(call)
    if handle is not None:
        name = name_comm(call.rank, handle)[1]
        comm = "" if name in ("", "WORLD", "COMM_NULL") else f" on {name}"
    return f"{call.name}({', '.join(parts)}){comm}"


def op_name(op: object) -> str:
    """The name of a reduction operator, as in `MPI.SUM`."""
    impl = getattr(op, "_impl", None)
    if impl is None:
        return "OP_NULL" if isinstance(op, Op) else getattr(op, "__name__", "a function")
    return impl.name if impl.predefined else "a user's operator"


def communicator_handle(call: MpiCall) -> object:
    """The communicator of a call: its own handle, or an argument; None if there is none."""
    for value in call.having(Role.COMMUNICATOR).values():
        if isinstance(value, Comm):
            return value
    return None


def communicator_of(rank: Rank, handle: object) -> Communicator | None:
    """The communicator to which a handle of a rank points; None for a null handle."""
    impl = getattr(handle, "_impl", None)
    if impl is None:
        return None
    find = getattr(impl, "find", None)
    communicator = impl if find is None else find(rank)
    return communicator if isinstance(communicator, Communicator) else None


def place(call: MpiCall, note: str = "") -> Place:
    """The place of a call."""
    return Place([call.rank.pid], call_text(call), call.site, note, call.library)


def places(call: MpiCall, prepared: MpiCall, note: str = "") -> list[Place]:
    """The place of a call that starts an operation, and that of the call that prepared it."""
    first = [place(call, note)]
    return first if prepared is call else [*first, place(prepared, "made here")]
