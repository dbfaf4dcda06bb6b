"""Ranks for which MPI is not initialized yet, or finalized: most calls are refused.

The calls that MPI 4.1 (section 11.4.1) allows at any time are those that MPICH lets pass. While
there is such a rank, the functions in the boundaries of all other calls look for it; otherwise
calls cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pysmpi.mpi.base.constants import ERR_OTHER
from pysmpi.mpi.base.exceptions import Exception
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.base.options import of_rank
from pysmpi.mpi.base.procedures import Procedure
from pysmpi.mpi.base.ranks import Rank, current
from pysmpi.mpi.base.state import StateSlot
from pysmpi.mpi.buffers.memory import buffer
from pysmpi.mpi.buffers.pickling import Pickle
from pysmpi.mpi.calls import PROCEDURES, replace_functions

# Allowed of all classes, or as functions.
_NAMES = frozenset(
    "Init Init_thread Finalize Is_initialized Is_finalized Get_version Get_library_version "
    "Get_abi_version Get_abi_info get_vendor Get_error_class Get_error_string Get_error_code "
    "free fromhandle toint fromint py2f f2py tocode fromcode "
    "Get_source Set_source Get_tag Set_tag Get_error Set_error Set_cancelled".split()
)
_METHODS = frozenset(
    ("Session.Init", "Session.Create_errhandler", "Status.tomemory", "Op.is_predefined")
)
# Attributes that mpi4py reads without a call.
_ATTRIBUTES = frozenset(
    "error error_class error_code error_string handle source tag typechar typestr".split()
)
_CLASSES = (Info, buffer, Pickle)

# Told whether MPI is inactive in a rank: compiled programs have entry points of their own, which
# refuse calls. Changing all boundaries takes a millisecond.
OWN_GUARD: StateSlot[Rank, Callable[[bool], None]] = StateSlot(Rank)

_inactive: set[Rank] = set()
_restore: list[Callable[[], None]] = []


def enter(rank: Rank) -> None:
    """MPI is not initialized in a rank, or is finalized from now on."""
    own = OWN_GUARD.peek(rank)
    if own is not None:
        own(True)
        return
    _inactive.add(rank)
    if len(_inactive) == 1 and not _restore:
        _restore.append(replace_functions(_guarded))
        _restore.append(_guard_attributes())


def leave(rank: Rank) -> None:
    """MPI is initialized in a rank, or the rank has ended."""
    own = OWN_GUARD.peek(rank)
    if own is not None:
        own(False)
    _inactive.discard(rank)
    while not _inactive and _restore:
        _restore.pop()()


def end() -> None:
    """The run is over: its ranks leave, also those that were stopped before their end."""
    for rank in list(_inactive):
        leave(rank)


def _allowed(procedure: Procedure) -> bool:
    owners = procedure.owners
    if any(issubclass(owner, _CLASSES) for owner in owners):
        return True
    if any(f"{owner.__name__}.{procedure.name}" in _METHODS for owner in owners):
        return True
    return procedure.name in _NAMES


def _guarded(procedure: Procedure, function: Any) -> Any:
    """The function inside the boundary of a call, or one that refuses inactive ranks."""
    if _allowed(procedure):
        return function

    def call(*args: object, **kwargs: object) -> object:
        rank = current()
        made = rank.call
        # Calls that are made inside of one are a part of it.
        if rank in _inactive and made is not None and made.procedure is procedure:
            _refuse(f"{procedure.name} called")
        return function(*args, **kwargs)

    return call


def _guard_attributes() -> Callable[[], None]:
    """Refuse inactive ranks the attributes that mpi4py reads by calls; returns what undoes it."""
    owners = {owner for procedure in PROCEDURES for owner in procedure.owners}
    replaced: list[tuple[type, str, property]] = []
    for owner in owners:
        if issubclass(owner, _CLASSES):
            continue
        for name, member in vars(owner).items():
            if not isinstance(member, property) or name[0] == "_" or name in _ATTRIBUTES:
                continue
            if f"{owner.__name__}.{name}" not in _METHODS:
                replaced.append((owner, name, member))
    for owner, name, member in replaced:
        setattr(owner, name, _guarded_attribute(name, member))

    def restore() -> None:
        for owner, name, member in replaced:
            setattr(owner, name, member)

    return restore


def _guarded_attribute(name: str, member: property) -> property:
    function: Any = member.fget

    def read(handle: object) -> object:
        rank = current()
        if rank in _inactive and rank.call is None:
            _refuse(f"{name} read")
        return function(handle)

    return property(read, member.fset, member.fdel, member.__doc__)


def _refuse(what: str) -> None:
    """Refuse a call of the program, unless a session makes it right."""
    environment = of_rank()
    if environment.sessions:
        return
    when = "after MPI was finalized" if environment.finalized else "before MPI was initialized"
    # No error handler is called: MPICH ends the process.
    error = Exception(ERR_OTHER)
    error.detail = f"{what} {when}"
    raise error
