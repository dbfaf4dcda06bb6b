"""Sessions (MPI 4.1, section 11.3): MPI without COMM_WORLD, from named sets of processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from pysmpi.mpi.base import errhandlers, options
from pysmpi.mpi.base.constants import ERR_ARG, ERR_SESSION
from pysmpi.mpi.base.errhandlers import Errhandler, WithErrhandler, with_errhandler
from pysmpi.mpi.base.exceptions import cint, cstring, fail
from pysmpi.mpi.base.handles import Handle, wrong_type
from pysmpi.mpi.base.info import INFO_NULL, Info, check_info, pairs
from pysmpi.mpi.base.ranks import current
from pysmpi.mpi.calls import mpi
from pysmpi.mpi.groups.groups import Group, Members, session_classes, world
from pysmpi.mpi.point_to_point import buffered
from pysmpi.mpi.point_to_point.requests import Request

if TYPE_CHECKING:
    from mpi4py.typing import Buffer

__all__ = ["Session", "SESSION_NULL"]

# The existing process sets, and their members. Names are compared without regard to case, like
# those of the scheme mpi:// (MPI 4.1, section 11.3.2).
PSETS: dict[str, Callable[[], Members]] = {
    "mpi://WORLD": world,
    "mpi://SELF": lambda: Members((range(current().pid, current().pid + 1),)),
}
_BY_FOLDED_NAME = {name.casefold(): members for name, members in PSETS.items()}


class SessionImpl:
    """The object of a session handle."""

    __slots__ = ("hints",)

    def __init__(self, hints: dict[str, str]) -> None:
        self.hints = hints


def _count(change: int) -> None:
    """Count the sessions of the rank: while it has one, it may use MPI."""
    known = options.of_rank()
    options.put(known._replace(sessions=known.sessions + change))


@with_errhandler("9.3.4", "a session")
class Session(
    WithErrhandler, Handle, kind=14, null=0x38000000, error=ERR_SESSION, release="Finalize"
):
    """Session context."""

    __slots__ = ()

    _impl: SessionImpl | None
    _outlives_mpi = True

    def __new__(cls, session: Session | None = None) -> Self:
        self = object.__new__(cls)
        Handle._copy(self, session, "session")
        return self

    @classmethod
    @mpi.process("11.3.1")
    def Init(cls, info: Info = INFO_NULL, errhandler: Errhandler | None = None) -> Self:
        """Create a new session."""
        hints = {"thread_level": "MPI_THREAD_MULTIPLE", "mpi_memory_alloc_kinds": "mpi,system"}
        strict = pairs(check_info(info)).get("strict_finalize")
        hints["strict_finalize"] = "0" if strict is None else strict
        if errhandler is not None and not isinstance(errhandler, Errhandler):
            raise wrong_type("errhandler", Errhandler, errhandler)
        session = cls._of(SessionImpl(hints))
        _count(1)
        if errhandler is not None:
            session.Set_errhandler(errhandler)
        return session

    @mpi.process("11.3.1")
    def Finalize(self) -> None:
        """Finalize a session."""
        impl = self._live()
        buffered.detach(impl)
        errhandlers.forget(self)
        self._retire()
        _count(-1)

    @mpi.local("11.3.3")
    def Get_num_psets(self, info: Info = INFO_NULL) -> int:
        """Number of available process sets."""
        check_info(info)
        self._live()
        return len(PSETS)

    @mpi.local("11.3.3")
    def Get_nth_pset(self, n: int, info: Info = INFO_NULL) -> str:
        """Name of the *n*-th process set."""
        number = cint(n)
        check_info(info)
        self._live()
        if not 0 <= number < len(PSETS):
            fail(ERR_ARG, f"n is {number}, there are {len(PSETS)} process sets", self)
        return list(PSETS)[number]

    @mpi.local("11.3.3")
    def Get_info(self) -> Info:
        """Return the current hints for a session."""
        return Info.Create(self._live().hints)

    @mpi.local("11.3.3")
    def Get_pset_info(self, pset_name: str) -> Info:
        """Return the current hints for a session and process set."""
        return Info.Create({"mpi_size": str(len(self._pset(pset_name)))})

    @mpi.process("7.3.2")
    def Create_group(self, pset_name: str) -> Group:
        """Create a new group from session and process set."""
        return Group._with(self._pset(pset_name))

    def _pset(self, pset_name: str) -> Members:
        name = cstring(pset_name)
        self._live()
        members = _BY_FOLDED_NAME.get(name.casefold())
        if members is None:
            fail(ERR_ARG, f"pset_name {name!r}, known are {', '.join(PSETS)}", self)
        return members()

    # Memory for buffered sends on communicators that were made from the session.

    @mpi.point_to_point("3.6")
    def Attach_buffer(self, buf: Buffer | None) -> None:
        """Attach a user-provided buffer for sending in buffered mode."""
        buffered.attach(self._live(), buf, self)

    @mpi.point_to_point("3.6")
    def Detach_buffer(self) -> Any:
        """Remove an existing attached buffer."""
        return buffered.detach(self._live())

    @mpi.point_to_point("3.6")
    def Flush_buffer(self) -> None:
        """Block until all buffered messages have been transmitted."""
        buffered.flush(self._live())

    @mpi.point_to_point("3.6")
    def Iflush_buffer(self) -> Request:
        """Nonblocking flush for buffered messages."""
        return buffered.flush_later(self._live(), self)


session_classes.append(Session)

SESSION_NULL = Session._define("SESSION_NULL", None, 0x38000000)
