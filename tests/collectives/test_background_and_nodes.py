"""Collectives in the background overlap with the program; node-aware ones follow the placement."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import pysmpi
from pysmpi.collectives import registry
from pysmpi.collectives.call import Call
from pysmpi.collectives.selection import Selection
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options
from pysmpi.ranks.instruments import Instrument

RANKS = 6
VECTOR = 12_000  # bytes
COUNT = 20_000  # doubles: beyond the size from which a send waits for its receive
CALLS = {
    "bcast": "Bcast", "reduce": "Reduce", "allreduce": "Allreduce", "scan": "Scan",
    "exscan": "Exscan", "gather": "Gather", "scatter": "Scatter", "allgather": "Allgather",
    "alltoall": "Alltoall", "reduce_scatter_block": "Reduce_scatter_block",
}  # fmt: skip


def timed(op: str, form: str, pause: float) -> tuple[float, float]:
    """The seconds from entry to the end of the call, with a pause inside, and those of the wait."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    size = comm.size
    whole, block = np.zeros(COUNT * size), np.zeros(COUNT)
    name = CALLS[op]
    arguments = {
        "bcast": (block,), "gather": (block, whole), "allgather": (block, whole),
        "scatter": (whole, block), "alltoall": (whole, whole.copy()),
        "reduce_scatter_block": (whole, block),
    }.get(op, (block, block.copy()))  # fmt: skip
    persistent = getattr(comm, f"{name}_init")(*arguments) if form == "persistent" else None
    time.sleep(1.0 - MPI.Wtime() % 1.0)
    start = MPI.Wtime()
    if form == "blocking":
        getattr(comm, name)(*arguments)
        return MPI.Wtime() - start, 0.0
    if persistent is not None:
        request = persistent
        request.Start()
    else:
        request = getattr(comm, f"I{name.lower()}")(*arguments)
    time.sleep(pause)
    waited = MPI.Wtime()
    request.Wait()
    return MPI.Wtime() - start, MPI.Wtime() - waited


def timed_all(pauses: dict[str, float]) -> dict[str, list[tuple[float, float]]]:
    """Each operation: blocking if `pauses` is empty, else both other forms with three pauses."""
    if not pauses:
        return {op: [timed(op, "blocking", 0.0)] for op in CALLS}
    return {
        op: [
            timed(op, form, pause)
            for form in ("nonblocking", "persistent")
            for pause in (0.0, 2 * longest, longest / 2)
        ]
        for op, longest in pauses.items()
    }


@pytest.fixture(scope="module", params=["ompi5", "mpich4", "default"])
def times(request: pytest.FixtureRequest) -> dict[str, list[tuple]]:
    """The times of each operation by rank: blocking, and then in the other forms.

    The blocking calls use the algorithms that the library chooses for nonblocking ones.
    """
    selector = request.param
    names = {}
    for op in CALLS:
        count = COUNT * (RANKS if op == "reduce_scatter_block" else 1)
        call = Call(op, 0, RANKS, count=count, type_size=8, nonblocking=True)
        names[op] = Selection(selector).choose(call)
        assert names[op].partition(":")[0] in registry.algorithms_of(op)
    common = {"compute": "none", "cfg": {"smpi/wtime": "0"}, "selector": selector}
    alone = pysmpi.run(timed_all, RANKS, args=({},), coll=names, **common).returns
    longest = {op: max(rank[op][0][0] for rank in alone) for op in CALLS}
    others = pysmpi.run(timed_all, RANKS, args=(longest,), **common).returns
    return {op: [(a[op][0][0], b[op]) for a, b in zip(alone, others)] for op in CALLS}


@pytest.mark.parametrize("op", CALLS)
def test_the_library_s_choice_runs_in_the_background(op: str, times: dict[str, list]) -> None:
    longest = max(expected for expected, _ in times[op])
    for expected, forms in times[op]:
        assert expected > 0
        for (at_once, _), (behind, wait), (half, _) in (forms[:3], forms[3:]):
            # At once, it takes as long as the blocking call by the same algorithm.
            assert at_once == pytest.approx(expected, rel=1e-6, abs=1e-7)
            # Behind a pause that is longer, it takes no time.
            assert wait < 1e-6 and behind == pytest.approx(2 * longest, rel=1e-6)
            # Half of it is hidden by a pause of half the length.
            assert half == pytest.approx(max(expected, longest / 2), rel=1e-6, abs=1e-7)


class Flows(Instrument):
    """Adds up the bytes of data between hosts."""

    def __init__(self) -> None:
        self.between = 0
        self.hosts: list[str] = []

    def attach(self, run) -> None:
        self.hosts = [slot.host.name for slot in run.slots]

    def flow_started(self, send, now: float) -> None:
        members = send.context.members
        ends = members[send.source].slot, members[send.destination].slot
        # The small ones are those by which ranks learn of their nodes.
        if self.hosts[ends[0]] != self.hosts[ends[1]] and send.nbytes > 100:
            self.between += send.nbytes


def one_call(op: str) -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    data = np.zeros(VECTOR, np.int8)
    if op == "bcast":
        comm.Bcast(data)
    elif op == "allreduce":
        comm.Allreduce(data.copy(), data)
    else:
        comm.Reduce(data.copy(), data)


AWARE = [
    ("bcast", "SMP_binomial", 1),
    ("bcast", "two_level:binomial_tree,flattree", 1),
    ("bcast", "two_level:two_level,two_level", 1),
    ("bcast", "binomial_tree", None),
    ("reduce", "mvapich2_two_level:binomial,binomial", 1),
    ("reduce", "two_level:binomial,binomial", 1),
    ("allreduce", "smp_rdb", 2),
    ("allreduce", "smp_binomial", 2),
    ("allreduce", "mvapich2_two_level:rdb,binomial", 2),
]


@pytest.mark.parametrize("placement", ["blocked", "cyclic", "by node"])
@pytest.mark.parametrize(("op", "name", "expected"), AWARE)
def test_node_aware_algorithms_follow_the_placement(
    op: str, name: str, expected: int | None, placement: str, tmp_path: Path
) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        {
            "blocked": "cluster-n0 slots=4\ncluster-n1 slots=4\n",
            "cyclic": "cluster-n0\ncluster-n1\n" * 4,
            "by node": "cluster-n0 slots=4\ncluster-n1 slots=4\n",
        }[placement]
    )
    map_by = "node" if placement == "by node" else None
    options = Options(8, "cluster", hostfile=hosts, map_by=map_by, coll={op: name}, compute="none")
    flows = Flows()
    job = Job(FunctionProgram(one_call, (op,)), options, instruments=[flows])
    assert job.run().exit_status == 0
    ends = [flows.hosts[rank] for rank in range(8)]
    assert sorted(ends) == ["cluster-n0"] * 4 + ["cluster-n1"] * 4
    assert (ends[1] == "cluster-n0") == (placement == "blocked")
    if expected is not None:
        # In every placement, the vector crosses between the two nodes once each way.
        assert flows.between == expected * VECTOR
    elif placement != "blocked":
        assert flows.between == 4 * VECTOR  # a plain tree ignores nodes


def test_a_selection_file_may_choose_two_levels_at_every_level(tmp_path: Path) -> None:
    path = tmp_path / "levels.sel"
    path.write_text("bcast\n  else two_level\nallreduce\n  else two_level:two_level,two_level\n")

    def main() -> tuple[str | None, int]:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        return comm.bcast("word" if comm.rank == 3 else None, root=3), comm.allreduce(comm.rank)

    result = pysmpi.run(main, 8, map_by="ppr:2:node", selector=str(path), compute="none")
    assert result.returns == [("word", 28)] * 8
