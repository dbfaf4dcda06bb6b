"""Calls of threads that the thread level of a rank does not allow."""

from __future__ import annotations

from pysmpi.checkers.describing import place
from pysmpi.checkers.registry import Checker, checker
from pysmpi.diagnostics import Diagnostic, register
from pysmpi.mpi.base.constants import (
    THREAD_FUNNELED,
    THREAD_MULTIPLE,
    THREAD_SERIALIZED,
    THREAD_SINGLE,
)
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.mpi.calls import CallKind, MpiCall
from pysmpi.reports.findings import Finding


@register
class ThreadLevel(Diagnostic):
    """A thread made a call of MPI that the thread level of its rank does not allow.

    With `THREAD_FUNNELED` and `THREAD_SINGLE` only the thread that initialized MPI may call it;
    with `THREAD_SERIALIZED` one thread at a time. mpi4py asks for `THREAD_MULTIPLE` unless
    `mpi4py.rc` says otherwise.

    ## Why it is bad

    A library without locks for threads corrupts its data.

    ## Example

    ```python
    mpi4py.rc.thread_level = "funneled"
    from mpi4py import MPI

    threading.Thread(target=MPI.COMM_WORLD.Barrier).start()
    ```

    ## What to do

    Ask for `THREAD_MULTIPLE`, and test `MPI.Query_thread()`; or make all calls in the main thread.

    ## References

    MPI 4.1, section 11.6 (MPI and threads).
    """

    code = "PSM125"
    title = "call not allowed to this thread"


_NAMES = {
    THREAD_SINGLE: "THREAD_SINGLE",
    THREAD_FUNNELED: "THREAD_FUNNELED",
    THREAD_SERIALIZED: "THREAD_SERIALIZED",
}
_ANYWHERE = frozenset(("Query_thread", "Is_thread_main", "Is_initialized", "Is_finalized"))


@checker("threads", "calls of threads against the thread level of their rank")
class ThreadChecks(Checker):
    """Compares the thread of each call with the thread level of its rank."""

    def __init__(self) -> None:
        self.inside: dict[int, dict[int, MpiCall]] = {}  # by pid, the calls of its threads
        self.inits: dict[int, MpiCall] = {}

    def call_made(self, call: MpiCall) -> None:
        """Look at the thread."""
        rank = call.rank
        if call.name in ("Init", "Init_thread"):
            self.inits[rank.pid] = call
        if call.kind is CallKind.LOCAL or call.name in _ANYWHERE:
            return
        environment = ENVIRONMENT.peek(rank)
        if environment is None or not environment.initialized:
            return
        level = environment.thread_level
        if level == THREAD_MULTIPLE:
            return
        others = self.inside.setdefault(rank.pid, {})
        main = call.fiber is rank.fiber
        if level in (THREAD_SINGLE, THREAD_FUNNELED) and not main:
            self._report(call, None, level)
        elif level == THREAD_SERIALIZED and others:
            self._report(call, next(iter(others.values())), level)
        others[id(call)] = call

    def call_returned(self, call: MpiCall, result: object) -> None:
        """The thread leaves the call."""
        self.inside.get(call.rank.pid, {}).pop(id(call), None)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """The thread leaves the call."""
        self.inside.get(call.rank.pid, {}).pop(id(call), None)

    def _report(self, call: MpiCall, other: MpiCall | None, level: int) -> None:
        places = [place(call, "in a thread")]
        if other is not None:
            places = [place(call, "at the same time"), place(other, "in another thread")]
        init = self.inits.get(call.rank.pid)
        if init is not None:
            places.append(place(init, "sets the level"))
        name = _NAMES[level]
        self.session.report(
            Finding(
                ThreadLevel,
                f"{call.name} under {name}",
                places,
                f"MPI 4.1, section 11.6: {name} allows "
                + (
                    "one thread at a time to call MPI"
                    if level == THREAD_SERIALIZED
                    else "calls of the main thread only"
                ),
                "ask for THREAD_MULTIPLE, or make the calls in one thread",
            )
        )
