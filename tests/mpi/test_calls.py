"""The registry of procedures, and the call that a rank is in."""

from __future__ import annotations

import inspect
import operator
from collections import UserList
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from simulated import simulate

from pysmpi.kernel.requests import STANDARD
from pysmpi.mpi import MPI
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import (
    PROCEDURES,
    CallKind,
    MpiCall,
    Role,
    call_of,
    computing,
    mpi,
    procedure_of,
)
from pysmpi.mpi.point_to_point.envelopes import blocking_send, send_message
from pysmpi.python.frames import CallSite
from pysmpi.ranks.simulation import Simulation


def public() -> Iterator[tuple[str, Any]]:
    """Every public function and method of `mpi4py.MPI` that is not Python's own."""
    for name, member in sorted(vars(MPI).items()):
        if name.startswith("_"):
            continue
        if inspect.isclass(member):
            for method in sorted(dir(member)):
                found = getattr(member, method)
                own = any(
                    method in vars(base) for base in member.__mro__
                    if base.__module__ not in ("builtins", "abc")
                )  # fmt: skip
                if own and not method.startswith("_") and callable(found):
                    yield f"{name}.{method}", found
        elif inspect.isroutine(member):
            yield name, member


MEMBERS = dict(public())


@pytest.mark.parametrize("name", MEMBERS)
def test_every_public_callable_is_registered(name: str) -> None:
    procedure = procedure_of(MEMBERS[name])
    assert procedure is not None and procedure in PROCEDURES
    assert procedure.name == MEMBERS[name].__name__  # of which it may be an alias
    signature = inspect.signature(procedure.function)
    assert procedure.parameters == tuple(signature.parameters)
    assert set(procedure.roles) == set(procedure.parameters)
    assert procedure.section == "" or 1 <= procedure.chapter <= 19


@pytest.mark.parametrize("procedure", PROCEDURES, ids=lambda procedure: procedure.name)
def test_the_boundary_cannot_be_told_from_its_function(procedure: Any) -> None:
    found = [member for member in MEMBERS.values() if procedure_of(member) is procedure]
    if not found:
        assert procedure.name.startswith("_")  # of mpi4py's own Python code
        return
    boundary, function = getattr(found[0], "__func__", found[0]), procedure.function
    assert inspect.signature(boundary) == inspect.signature(function)
    for name in ("__name__", "__qualname__", "__defaults__", "__kwdefaults__"):
        assert getattr(boundary, name) == getattr(function, name)
    assert vars(boundary) == {}


def test_kinds_and_roles() -> None:
    def described(member: Any) -> tuple[CallKind, dict[str, Role]]:
        procedure = procedure_of(member)
        assert procedure is not None
        return procedure.kind, procedure.roles

    assert described(MPI.Comm.Recv) == (
        CallKind.POINT_TO_POINT,
        {
            "self": Role.COMMUNICATOR,
            "buf": Role.BUFFER,
            "source": Role.PEER,
            "tag": Role.TAG,
            "status": Role.STATUS,
        },
    )
    assert described(MPI.Request.Waitall)[1]["requests"] is Role.REQUEST
    assert described(MPI.Comm.Reduce)[1]["root"] is Role.ROOT
    assert described(MPI.Comm.Reduce)[0] is CallKind.COLLECTIVE
    assert described(MPI.Win.Put)[0] is CallKind.ONE_SIDED
    assert described(MPI.File.Write_all)[0] is CallKind.FILE
    assert described(MPI.Intracomm.Spawn)[0] is CallKind.PROCESS
    assert described(MPI.Comm.Get_rank)[0] is CallKind.LOCAL
    kinds = {procedure.kind for procedure in PROCEDURES}
    assert kinds == set(CallKind)


def seen_from_outside(main: Callable[[Rank], Any], look: Callable[[Simulation], Any]) -> Any:
    """Return the result of `look` while rank 0 waits for rank 1, which sleeps."""
    found = []

    def both(rank: Rank) -> None:
        if rank.index == 0:
            main(rank)
        else:
            rank.sleep(1.0)
            found.append(look(rank))  # type: ignore[arg-type]
            MPI.COMM_WORLD.Send(np.zeros(1), 0)

    simulate(2, both)
    return found[0]


def test_a_waiting_rank_has_its_call() -> None:
    def main(rank: Rank) -> None:
        assert rank.call is None
        MPI.COMM_WORLD.Recv(np.zeros(1), source=1, tag=MPI.ANY_TAG)
        assert rank.call is None

    def look(rank: Any) -> None:
        other = rank.universe.ranks[0]
        call = other.call
        assert isinstance(call, MpiCall) and other.call is call is call_of(other.fiber)
        assert call.name == "Recv" and call.kind is CallKind.POINT_TO_POINT
        assert call.rank is other and call.fiber is other.fiber
        assert call.arguments["source"] == 1 and call.having(Role.TAG) == {"tag": MPI.ANY_TAG}
        assert list(call.having(Role.COMMUNICATOR).values()) == [MPI.COMM_WORLD]
        [receive] = call.pending
        assert receive.source == 1
        site = call.site
        assert isinstance(site, CallSite)
        assert site.file == __file__ and site.function.endswith("main")
        assert "Recv(" in open(site.file).read().split("\n")[site.line - 1]

    seen_from_outside(main, look)


def test_a_call_that_waits_knows_its_operations() -> None:
    requests = []

    def main(rank: Rank) -> None:
        requests[:] = [MPI.COMM_WORLD.Irecv(np.zeros(1), 1) for _ in range(1)]
        MPI.Request.Waitall(UserList(requests))

    def look(rank: Any) -> None:
        call = rank.universe.ranks[0].call
        assert call.name == "Waitall"
        assert call.operations == [request._impl for request in requests]
        assert call.pending == [operation.request for operation in call.operations]

    seen_from_outside(main, look)


def test_a_call_within_a_call_is_a_part_of_it() -> None:
    names = []

    class Spy:
        def begun(self, rank: Rank) -> None:
            assert rank.call is not None
            names.append(rank.call.name)

        def ended(self, rank: Rank) -> None:
            assert rank.call is not None
            names.append(f"end of {rank.call.name}")

    def main(rank: Rank) -> None:
        spy = Spy()
        rank.watch(spy)
        assert MPI.COMM_WORLD.allgather(1) == [1]
        with pytest.raises(TypeError):
            MPI.COMM_WORLD.Send(3, 0)
        rank.unwatch(spy)
        assert rank.watchers is None
        MPI.COMM_WORLD.Barrier()

    simulate(1, main)
    assert names == ["allgather", "end of allgather", "Send", "end of Send"]


def test_what_the_program_calls_in_a_call_is_a_call_of_its_own() -> None:
    names: list[Any] = []

    def add(x: int, y: int) -> int:
        rank = ranks.current()
        names.append(rank.call)
        MPI.COMM_SELF.Barrier()
        assert rank.call is None
        return x + y

    def main(rank: Rank) -> int:
        total: int = MPI.COMM_WORLD.allreduce(rank.index + 1, add)
        assert rank.call is None and not rank.in_call
        return total

    assert simulate(2, main) == [3, 3]
    assert names == [None]


def test_computing_outside_of_a_call_changes_nothing() -> None:
    def main(rank: Rank) -> None:
        with computing():
            assert not rank.in_call and rank.call is None
        assert not rank.in_call and rank.call is None

    simulate(1, main)


def test_threads_of_a_rank_are_in_calls_of_their_own() -> None:
    def main(rank: Rank) -> tuple[Any, ...]:
        seen: list[Any] = []

        def other() -> None:
            MPI.COMM_SELF.Recv(np.zeros(1), 0, 5)
            seen.append(ranks.current().call)

        fiber = simulations[0].start_thread(rank, other)
        rank.sleep(1.0)
        call = call_of(fiber)
        assert call is not None and call.name == "Recv" and call.having(Role.TAG) == {"tag": 5}
        assert call.fiber is fiber and rank.call is None
        MPI.COMM_SELF.Send(np.zeros(1), 0, 5)
        rank.sleep(1.0)
        return tuple(seen)

    simulations: list[Simulation] = []
    real = Simulation.run

    def run(self: Simulation) -> None:
        simulations.append(self)
        real(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Simulation, "run", run)
        assert simulate(1, main) == [(None,)]


def test_a_new_call_takes_a_declaration_and_a_body() -> None:
    """The example of docs/contributing/design.md."""
    known = len(PROCEDURES)

    class Extended(MPI.Intracomm):
        @mpi.point_to_point("3.4")
        def Send_short(self, buf: Any, dest: int, tag: int = 0) -> bool:
            """Send a message of at most 1 KiB."""
            message = send_message(buf, dest)
            if message.nbytes > 1024:
                return False
            blocking_send(self, message, dest, tag, STANDARD)
            return True

    seen: list[Any] = []

    class Spy:
        def begun(self, rank: Rank) -> None:
            assert rank.call is not None
            seen.append((rank.call.name, rank.call.having(Role.PEER), rank.in_call))

        def ended(self, rank: Rank) -> None:
            """Nothing to do."""

    def main(rank: Rank) -> Any:
        comm = Extended(MPI.COMM_WORLD)
        if rank.index == 1:
            received = np.zeros(2)
            comm.Recv(received, 0)
            return received.tolist()
        assert not comm.Send_short(np.zeros(1000), 1)
        with pytest.raises(TypeError, match="^dest: an integer is required"):
            comm.Send_short(np.ones(2), "one")  # type: ignore[arg-type]
        spy = Spy()
        rank.watch(spy)
        sent = comm.Send_short(np.ones(2), 1)
        rank.unwatch(spy)
        return sent

    try:
        assert simulate(2, main) == [True, [1.0, 1.0]]
        assert seen == [("Send_short", {"dest": 1}, True)]
    finally:
        del PROCEDURES[known:]


@pytest.mark.parametrize(
    "section, members",
    {
        "5.1.5": ["Datatype.Get_size", "Get_address"],
        "5.1.7": ["Datatype.Get_extent", "Datatype.Create_resized"],
        "8.5.1": ["Intracomm.Create_cart"],
        "8.5.2": ["Compute_dims"],
        "11.2.1": ["Query_thread", "Is_thread_main"],
        "11.2.3": ["Is_initialized", "Is_finalized"],
        "13.3": ["Status.Set_elements", "Status.Set_cancelled"],
    }.items(),
)
def test_sections_are_those_that_define_the_procedures(section: str, members: list[str]) -> None:
    for name in members:
        member = operator.attrgetter(name)(MPI)
        procedure = procedure_of(member)
        assert procedure is not None and procedure.section == section, name
