"""Compute between calls is billed once, after any call, and calls themselves are not billed."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from simulated import Calling, Wire, simulate

from pysmpi.collectives.selection import Selection
from pysmpi.mpi import MPI
from pysmpi.mpi.base import ranks
from pysmpi.mpi.base.ranks import Rank
from pysmpi.mpi.calls import PROCEDURES, procedure_of
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot
from pysmpi.ranks.simulation import Simulation

BLOCK = 0.01  # s


class Clock:
    """Compute under control of a test: `compute` lets time of the program pass."""

    def __init__(self) -> None:
        self.now = self.begun = 0.0
        self.running = False

    def start(self) -> None:
        self.begun = self.now
        self.running = True

    resume = start

    def stop(self) -> float:
        assert self.running, "billed twice"
        return self.now - self.begun

    def compute(self, seconds: float) -> None:
        self.now += seconds


def clocked(main: Callable[[Rank, Clock], Any], size: int = 1) -> list[Any]:
    """The return values of `main(rank, clock)` in ranks that have such a clock."""

    def run(rank: Rank) -> Any:
        clock = Clock()
        rank.timer = clock
        rank.leave()
        return main(rank, clock)

    return simulate(size, run)


# These wait for a message when they are called without arguments.
WAITING = {"Probe", "probe", "Mprobe", "mprobe", "recv", "Wait", "wait"}
# These end a rank, or raise the error that they are given: only wrong types are tried.
ENDING = {"Abort", "Finalize", "Disconnect", "Call_errhandler"}
# No arguments are wrong for these.
HARMLESS: set[str] = set()


def functions() -> Iterator[tuple[str, Any]]:
    """Every public function and method of `mpi4py.MPI`."""
    for name, member in sorted(vars(MPI).items()):
        if name.startswith("_"):
            continue
        if inspect.isclass(member):
            for method in sorted(dir(member)):
                found = inspect.getattr_static(member, method)
                ours = getattr(found, "__objclass__", None) is not BaseException
                if not method.startswith("_") and ours:
                    if isinstance(found, (classmethod, staticmethod)) or callable(found):
                        yield f"{name}.{method}", getattr(member, method)
        elif inspect.isroutine(member):
            yield name, member


WRONG: dict[str, tuple[Any, ...]] = {
    "nothing": (),
    "objects": (object(), object(), object(), object()),
    "a null communicator": (MPI.COMM_NULL, object(), -5, -5),
    "numbers that are too large": (1 << 70, 1 << 70),
}
HANDLES: dict[str, Callable[[], Any]] = {
    "Comm": lambda: MPI.COMM_SELF,
    "Intracomm": lambda: MPI.COMM_SELF,
    "Request": lambda: MPI.COMM_SELF.Irecv(bytearray(1), 0, 99),
    "Win": lambda: MPI.Win.Create(bytearray(8), comm=MPI.COMM_SELF),
    "Message": lambda: MPI.MESSAGE_NO_PROC,
    "Status": MPI.Status,
    "Datatype": lambda: MPI.INT,
    "Group": lambda: MPI.COMM_SELF.Get_group(),
    "Op": lambda: MPI.SUM,
    "Info": MPI.Info.Create,
    "Cartcomm": lambda: MPI.COMM_SELF.Create_cart([1]),
    "Graphcomm": lambda: MPI.COMM_SELF.Create_graph([0], []),
    "Distgraphcomm": lambda: MPI.COMM_SELF.Create_dist_graph_adjacent([], []),
    "Topocomm": lambda: MPI.COMM_SELF.Create_cart([1]),
    "File": lambda: MPI.File.Open(MPI.COMM_SELF, "/dev/null"),
    "Grequest": MPI.Grequest.Start,
    "Prequest": lambda: MPI.COMM_SELF.Send_init(bytearray(1), 0),
    "Session": MPI.Session.Init,
    "Errhandler": lambda: MPI.ERRORS_RETURN,
}
NAMES = dict(functions())


def test_every_procedure_is_called() -> None:
    called = {procedure_of(function) for function in NAMES.values()}
    assert not [
        procedure.name
        for procedure in PROCEDURES
        if procedure not in called and not procedure.name.startswith("_")
    ]


@pytest.mark.filterwarnings("ignore:the .buf. argument is deprecated")
@pytest.mark.parametrize("name", NAMES)
def test_a_block_before_a_wrong_call_is_billed_once(name: str) -> None:
    function = NAMES[name]
    family, _, method = name.rpartition(".")

    def main(rank: Rank, clock: Clock) -> int:
        raised = 0
        kinds = ["objects"] if method in ENDING else list(WRONG)
        calls: list[tuple[Any, tuple[Any, ...]]] = [(function, WRONG[kind]) for kind in kinds]
        if family in HANDLES and method not in ENDING:
            bound = getattr(HANDLES[family](), method)
            array = np.zeros(2)
            calls += [(bound, wrong) for wrong in WRONG.values() if wrong or method not in WAITING]
            calls += [(bound, (array, -7)), (bound, (array, 5, -3)), (bound, (lambda: 0, 0))]
        for call, wrong in calls:
            before = MPI.Wtime()
            clock.compute(BLOCK)
            took = rank.engine.now
            try:
                call(*wrong)
            except Exception:
                raised += 1
            else:
                continue  # its work may have taken time
            took = rank.engine.now - took
            passed = MPI.Wtime() - before
            assert BLOCK - 1e-12 < passed < BLOCK + 1e-3, (name, wrong, passed, took)
            clock.compute(BLOCK)
            assert MPI.Wtime() - before == pytest.approx(passed + BLOCK, abs=1e-6), (name, wrong)
        return raised

    assert clocked(main)[0] or name in HARMLESS


def test_an_error_inside_a_call_is_billed_once() -> None:
    def main(rank: Rank, clock: Clock) -> float:
        MPI.COMM_WORLD.Set_errhandler(MPI.ERRORS_RETURN)
        before = MPI.Wtime()
        clock.compute(0.017)
        with pytest.raises(MPI.Exception):
            MPI.COMM_WORLD.Bsend(np.zeros(1000), 0)  # no buffer is attached
        return MPI.Wtime() - before

    [passed] = clocked(main)
    assert passed == pytest.approx(0.017, abs=1e-6)


@pytest.mark.parametrize(
    "call",
    ["Send", "Ssend", "Recv", "Sendrecv", "Isend", "Irecv", "Bcast", "Allreduce", "Send_init"],
)
def test_a_call_looks_at_its_arguments_while_the_clock_stands(
    call: str,
) -> None:
    looks: list[bool] = []

    class Spec(list[Any]):
        """A buffer argument that notes each access."""

        def __len__(self) -> int:
            looks.append(ranks.current().in_call)
            return super().__len__()

        def __iter__(self) -> Iterator[Any]:
            looks.append(ranks.current().in_call)
            return super().__iter__()

    def spec(count: int) -> Spec:
        return Spec([np.zeros(count), MPI.DOUBLE])

    arguments: dict[str, Callable[[], tuple[Any, ...]]] = {
        "Sendrecv": lambda: (spec(1), 0, 0, spec(1), 0),
        "Bcast": lambda: (spec(1),),
        "Allreduce": lambda: (spec(1), spec(1)),
    }

    def main(rank: Rank, clock: Clock) -> None:
        comm = MPI.COMM_SELF
        if call == "Recv":
            comm.isend(b"12345678", 0)
        if call in ("Send", "Ssend"):
            request = comm.irecv(source=0)
        looks.clear()
        getattr(comm, call)(*arguments.get(call, lambda: (spec(100), 0))())
        if call in ("Send", "Ssend"):
            del request

    clocked(main)
    assert looks and all(looks)


def test_the_search_for_a_deadlock_is_not_billed() -> None:
    clock = Clock()
    error = type("Found", (), {"exception": lambda self: MPI.Exception(MPI.ERR_PENDING)})()

    class Search:
        def deadlock_reached(self, simulation: Simulation) -> bool:
            clock.compute(5.0)
            return simulation.break_deadlock(error)

    def main(rank: Rank) -> float:
        rank.timer = clock
        rank.leave()
        clock.compute(BLOCK)
        with pytest.raises(MPI.Exception):
            MPI.COMM_WORLD.Recv(np.zeros(1), 0)
        clock.compute(BLOCK)
        return MPI.Wtime()

    host = Host("host", 0, (1e9,), 1)
    simulation = Simulation(Wire(), [Slot(host, 0)])
    simulation.listen(Search())
    simulation.add_world([0], Calling(main))
    simulation.run()
    assert simulation.outcomes[0].error is None
    assert simulation.outcomes[0].value == pytest.approx(2 * BLOCK, abs=1e-6)


def on_one_core(main: Callable[[Rank, Clock], Any]) -> Simulation:
    """Two ranks that share a core."""

    def run(rank: Rank) -> None:
        clock = Clock()
        rank.timer = clock
        rank.leave()
        main(rank, clock)

    slot = Slot(Host("host", 0, (1e9,), 1), 0)
    simulation = Simulation(Wire(), [slot, slot])
    simulation.universe.selection = Selection()
    simulation.add_world([0, 1], Calling(run))
    simulation.run()
    assert [outcome.error for outcome in simulation.outcomes] == [None, None]
    return simulation


def test_compute_after_the_last_call_shares_its_core() -> None:
    simulation = on_one_core(lambda rank, clock: clock.compute(0.11))
    assert [outcome.time for outcome in simulation.outcomes] == pytest.approx([0.22, 0.22])


def test_to_wait_for_the_core_is_not_communication() -> None:
    def main(rank: Rank, clock: Clock) -> None:
        clock.compute(0.1)
        MPI.COMM_WORLD.Barrier()

    for process in on_one_core(main).universe.processes:
        assert process.compute_seconds == pytest.approx(0.1)
        assert process.core_wait_seconds == pytest.approx(0.1)
        assert 0.0 < process.comm_seconds < 1e-4


@pytest.mark.parametrize("call", ["Reduce", "Allreduce", "Scan", "Iallreduce", "allreduce"])
@pytest.mark.parametrize("size", [2, 8])
def test_a_reduction_takes_the_time_of_the_programs_function(call: str, size: int) -> None:
    def main(rank: Rank, clock: Clock) -> float:
        def combine(invec: Any, inoutvec: Any, datatype: Any) -> Any:
            clock.compute(BLOCK)
            if datatype is None:
                return invec + inoutvec
            np.frombuffer(inoutvec)[:] += np.frombuffer(invec)
            return None

        comm, op = MPI.COMM_WORLD, MPI.Op.Create(combine, commute=True)
        brought, taken = np.ones(3), np.zeros(3)
        for _ in range(3):
            if call == "Iallreduce":
                comm.Iallreduce(brought, taken, op).Wait()
            elif call == "allreduce":
                taken[:] = comm.allreduce(brought, op)
            else:
                getattr(comm, call)(brought, taken, op)
        assert taken[0] == (rank.index + 1 if call == "Scan" else size) or call == "Reduce"
        return MPI.Wtime()

    times = clocked(main, size)
    rounds = size.bit_length() - 1
    assert 3 * rounds * BLOCK * 0.99 < max(times) < 3 * (size - 1) * BLOCK + 1e-3
