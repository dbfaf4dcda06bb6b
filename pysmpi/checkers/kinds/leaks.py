"""Handles that a program makes and never frees, or uses after it has freed them."""

from __future__ import annotations

from pysmpi.checkers.base import Checker
from pysmpi.checkers.describing import call_text, place
from pysmpi.checkers.problems.leaks import FreedHandle, Leak, Unfinalized
from pysmpi.checkers.registry import checker
from pysmpi.mpi.base.exceptions import Exception as MPIException
from pysmpi.mpi.base.handles import Handle
from pysmpi.mpi.base.info import Info
from pysmpi.mpi.base.options import ENVIRONMENT
from pysmpi.mpi.calls import MpiCall
from pysmpi.mpi.communicators.comm import Comm
from pysmpi.mpi.communicators.libraries import OF_LIBRARIES
from pysmpi.mpi.datatypes.datatypes import Datatype
from pysmpi.mpi.files.files import File
from pysmpi.mpi.groups.communicator import Communicator
from pysmpi.mpi.groups.groups import Group
from pysmpi.mpi.operators.operators import Op
from pysmpi.mpi.point_to_point.requests import Request
from pysmpi.mpi.rma.windows import Win
from pysmpi.python.frames import name_of_caller
from pysmpi.ranks.outcomes import RankState
from pysmpi.ranks.simulation import Simulation
from pysmpi.reports.findings import Finding, Place

_KINDS: tuple[tuple[type[Handle], str, str, str], ...] = (
    (Comm, "communicator", "7.4.3", "Free"),
    (Datatype, "datatype", "5.1.9", "Free"),
    (Group, "group", "7.3.3", "Free"),
    (Op, "operator", "6.9.5", "Free"),
    (Win, "window", "12.2.5", "Free"),
    (File, "file", "14.2.2", "Close"),
    (Info, "info object", "10", "Free"),
)
_INITS = frozenset(("Init", "Init_thread"))
_RELEASES = frozenset(("Free", "free", "Close", "Disconnect", "Abort"))
# Results that are handles of objects which the program does not own.
_BORROWED = frozenset(
    "Get_parent f2py fromhandle fromint Commit decode Get_contents Get_envelope Match_size "
    "fromcode Create_f90_integer Create_f90_real Create_f90_complex Get_value_index Finalize "
    "_commctx_intra _commctx_inter Get_errhandler Join".split()
)
# Calls that return new handles of objects which others own; to free these is allowed.
_CONTENTS = frozenset(("decode", "Get_contents"))
_REMEMBERED = 4096  # freed handles for which the line of the free is known


def _family(handle: object) -> tuple[str, str, str] | None:
    for family, noun, section, release in _KINDS:
        if isinstance(handle, family):
            return noun, section, release
    return None


def _handles_among(call: MpiCall) -> list[Handle]:
    """The handles among the arguments of a call, also in `[data, count, datatype]`."""
    handles = []
    for value in call.values:
        if isinstance(value, list | tuple):
            handles += [item for item in value[:8] if isinstance(item, Handle)]
        elif isinstance(value, Handle):
            handles.append(value)
    return handles


def _handles(result: object) -> list[Handle]:
    if isinstance(result, Handle):
        return [result]
    if isinstance(result, tuple):
        return [item for item in result if isinstance(item, Handle)]
    return []


def _all_handles(result: object) -> list[Handle]:
    """The handles in a result, also in its lists and dictionaries."""
    if isinstance(result, Handle):
        return [result]
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [handle for item in result for handle in _all_handles(item)]
    return []


class LeakChecks(Checker):
    """Follows the handles of every rank from the calls that return them to those that free them."""

    def __init__(self) -> None:
        # (pid, id of the object) -> the object, the calls that returned handles of it
        self.live: dict[tuple[int, int], tuple[object, list[MpiCall]]] = {}
        self.ends: dict[int, tuple[object, MpiCall]] = {}  # by id of the handle
        self.freed: dict[tuple[int, int], tuple[object, MpiCall]] = {}  # by pid, id of the object
        self.releasing: dict[int, tuple[object, MpiCall]] = {}  # by id of the call
        self.contents: dict[int, Handle] = {}  # handles of `_CONTENTS`, by id
        self.explained: list[tuple[BaseException, Finding]] = []
        self.initialized: dict[int, MpiCall] = {}  # the call of Init, by pid

    def call_made(self, call: MpiCall) -> None:
        """Note the object that a call frees; report a copy of a freed handle."""
        values = call.values
        if call.name in _RELEASES and values and isinstance(values[0], Handle):
            impl = values[0]._impl
            if impl is not None:
                self.releasing[id(call)] = impl, call
        if self.freed:
            pid = call.rank.pid
            for value in _handles_among(call):
                if value._impl is not None:
                    freed = self.freed.get((pid, id(value._impl)))
                    if freed is not None and freed[0] is value._impl:
                        self.session.report(self._used(call, freed[1]))

    def call_returned(self, call: MpiCall, result: object) -> None:
        """Note new objects, and the end of old ones."""
        released = self.releasing.pop(id(call), None) if self.releasing else None
        if released is not None:
            self._release(call.rank.pid, released[0], call)
        if result is None or isinstance(result, Request):
            if call.name in _INITS:
                self.initialized[call.rank.pid] = call
            return
        pid = call.rank.pid
        if call.name in _INITS:
            self.initialized[pid] = call
        if call.name in _CONTENTS:
            for handle in _all_handles(result):
                impl = handle._impl
                if impl is not None and not handle._is_predefined():
                    self.contents[id(handle)] = handle
                    self.freed.pop((pid, id(impl)), None)
        if call.name in _BORROWED:
            return
        for handle in _handles(result):
            family = _family(handle)
            if family is None or (call.values and handle is call.values[0]):
                continue
            impl = handle._impl
            if impl is None:
                self._end(handle, call)
            elif not handle._is_predefined():
                key = (pid, id(impl))
                self.freed.pop(key, None)
                if not _is_of_property(call):
                    self.live.setdefault(key, (impl, []))[1].append(call)

    def call_failed(self, call: MpiCall, error: BaseException) -> None:
        """A call with a null handle fails: find where the handle became null."""
        self.releasing.pop(id(call), None)
        if isinstance(error, MPIException):
            for value in _handles_among(call):
                if value._impl is None:
                    end = self.ends.get(id(value))
                    if end is not None and end[1].rank is call.rank:
                        self.explained.append((error, self._used(call, end[1])))
                        return

    def _look_for_finalize(self, simulation: Simulation) -> None:
        for rank in simulation.universe.ranks:
            environment = ENVIRONMENT.peek(rank)
            if environment is None or not environment.initialized or environment.finalized:
                continue
            if environment.options.finalize or rank.pid >= len(simulation.outcomes):
                continue
            if simulation.outcomes[rank.pid].state is not RankState.FINISHED:
                continue
            call = self.initialized.get(rank.pid)
            imported = Place([rank.pid], "import of mpi4py.MPI", None, "MPI is initialized here")
            self.session.report(
                Finding(
                    Unfinalized,
                    "the program ends without MPI.Finalize",
                    [imported if call is None else place(call, "MPI is initialized here")],
                    "MPI 4.1, section 11.2.2: each process that has initialized MPI calls "
                    "MPI_Finalize before it exits",
                    "call MPI.Finalize() at the end, or leave mpi4py.rc.finalize unset",
                )
            )

    def _release(self, pid: int, impl: object, call: MpiCall) -> None:
        key = (pid, id(impl))
        handle = call.values[0]
        if self.contents.get(id(handle)) is handle:
            del self.contents[id(handle)]
            self._end(handle, call)
            return
        entry = self.live.get(key)
        if entry is not None:
            entry[1].pop()
            if not entry[1]:
                del self.live[key]
                self.freed[key] = impl, call
                if len(self.freed) > _REMEMBERED:
                    del self.freed[next(iter(self.freed))]
        self._end(handle, call)

    def _end(self, handle: object, call: MpiCall) -> None:
        self.ends[id(handle)] = handle, call
        if len(self.ends) > _REMEMBERED:
            del self.ends[next(iter(self.ends))]

    def _used(self, call: MpiCall, before: MpiCall) -> Finding:
        freed = before.name in _RELEASES
        again = freed and call.name in _RELEASES
        noun = "object"
        for value in before.values[:1]:
            noun = (_family(value) or (noun,))[0]
        if not freed:
            noun = "communicator" if isinstance(before.values[0], Comm) else noun
        what = (
            f"a {noun} is freed twice"
            if again
            else (
                f"{call.name} uses a {noun} that was freed"
                if freed
                else f"{call.name} uses the null handle that {before.name} returned"
            )
        )
        return Finding(
            FreedHandle,
            what,
            [place(call, "used here"), place(before, "freed here" if freed else "null since here")],
            "MPI 4.1, section 2.5.1: a freed object is no valid argument, and a null handle is "
            "valid only where the call says so",
            "free the object once, after its last use"
            if freed
            else f"make the call only if the handle is not null: {before.name} returns a null "
            "handle to processes that are not in the new communicator",
        )

    def finish(self, simulation: Simulation) -> None:
        """Report the objects that are left in ranks which came to their end."""
        outcomes = simulation.outcomes
        errors = {id(outcome.error) for outcome in outcomes if outcome.error is not None}
        for error, finding in self.explained:
            if id(error) in errors:
                self.session.report(finding)
        if not self.session.clean:
            return
        self._look_for_finalize(simulation)
        counts: dict[object, tuple[MpiCall, list[int]]] = {}
        for (pid, _), (impl, calls) in self.live.items():
            if isinstance(impl, Communicator) and OF_LIBRARIES.peek(impl):
                continue
            if outcomes[pid].state is not RankState.FINISHED:
                continue
            for call in calls:
                key = call.site, call.library, call.name
                counts.setdefault(key, (call, []))[1].append(pid)
        for call, pids in counts.values():
            self.session.report(_leak(call, pids))


def _leak(call: MpiCall, pids: list[int]) -> Finding:
    noun, section, release = _NOUNS.get(call.name) or _kind_of_object(call)
    ranks = sorted(set(pids))
    number = len(pids)
    each = "" if number == len(ranks) else f" ({number:,} of them)"
    return Finding(
        Leak,
        f"the {noun} that {call.name} returned is not freed before MPI.Finalize{each}",
        [Place(ranks, call_text(call), call.site, "made here", call.library)],
        f"MPI 4.1, sections 2.5.1 and {section}: a program frees every object that it has made",
        f"call {release}() on the {noun} after its last use",
    )


_NOUNS: dict[str, tuple[str, str, str]] = {
    "Get_group": ("group", "7.3.3", "Free"),
    "Get_remote_group": ("group", "7.3.3", "Free"),
    "Get_info": ("info object", "10", "Free"),
    "Open": ("file", "14.2.2", "Close"),
    "Spawn": ("communicator", "11.10.4", "Disconnect"),
    "Spawn_multiple": ("communicator", "11.10.4", "Disconnect"),
}


def _kind_of_object(call: MpiCall) -> tuple[str, str, str]:
    """The kind of object that a call has made, from its class."""
    owners = call.procedure.owners
    for family, noun, section, release in _KINDS:
        if any(issubclass(owner, family) for owner in owners):
            return noun, section, release
    return "object", "2.5.1", "Free"


def _is_of_property(call: MpiCall) -> bool:
    """Whether an attribute such as `comm.group` made the object, which the program cannot free."""
    names = ("group", "remote_group", "info")
    return name_of_caller(call.procedure.function.__qualname__) in names


checker("leaks", "objects that are never freed, freed twice or used after their end")(LeakChecks)
