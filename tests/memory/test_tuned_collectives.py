"""Collectives tuned to cache lines, as the simulator runs them."""

import json
import time

import numpy as np
import pytest

import pysmpi
from pysmpi.collectives.call import Call
from pysmpi.collectives.layout import Nodes
from pysmpi.collectives.selection import Selection
from pysmpi.collectives.tuning import Tuner
from pysmpi.memory.lines import barrier, broadcast, reduction
from pysmpi.memory.lines.machine import HostLines, costs_of
from pysmpi.network.models import find
from pysmpi.platform.config import Settings
from pysmpi.platform.loader import load
from pysmpi.platform.placement import place

PHI = "xeon-phi-5110p"
COSTS = costs_of(PHI)


def simulated(op, ranks, nbytes=8, root=0, machine=PHI):
    """Seconds from all ranks' entry to the last one's exit."""
    platform = load(machine)
    slots = place(platform, ranks, None, "core")
    hosts = [slot.host for slot in slots]
    settings = Settings(platform.config, {})
    tuner = Tuner(lambda: find("hybrid").build(platform, hosts, settings), ranks)
    selection = Selection("coherence_tuned").on_lines(HostLines(slots))
    nodes = Nodes(host.index for host in hosts)
    call = Call(op, 0, ranks, root, nbytes, 1, nodes=nodes, selection=selection)
    return tuner.seconds(call, "coherence_tuned")


@pytest.mark.parametrize("ranks", [2, 3, 6, 31, 60])
@pytest.mark.parametrize("root", [0, 1])
def test_a_small_broadcast_takes_what_the_best_case_says(ranks, root):
    tree = broadcast.best_small(COSTS, ranks)
    found = simulated("bcast", ranks, root=root)
    assert found <= broadcast.small(COSTS, tree) * (1 + 1e-9)
    if ranks in (2, 3, 6, 31):  # trees that are full
        assert found == pytest.approx(broadcast.small(COSTS, tree))
    assert found > broadcast.copy_down(COSTS, tree) / 2


@pytest.mark.parametrize("ranks", [2, 5, 30])
def test_large_broadcasts_take_what_the_best_case_says(ranks):
    lines = 512
    expected = {
        "tree": broadcast.tree_of_lines(COSTS, broadcast.best_small(COSTS, ranks), lines),
        "flat": broadcast.flat(COSTS, ranks, lines),
        "pipelined": broadcast.pipelined(COSTS, ranks, lines),
    }[broadcast.best_shape(COSTS, ranks, lines)]
    assert simulated("bcast", ranks, 64 * lines) == pytest.approx(expected, rel=0.01)


def test_a_pipelined_broadcast_takes_what_the_best_case_says(monkeypatch):
    from pysmpi.collectives.algorithms import coherence_tuned

    monkeypatch.setattr(coherence_tuned, "_broadcast", lambda *_: "pipelined")
    for ranks in (2, 3, 17):
        expected = broadcast.pipelined(COSTS, ranks, 512)
        assert simulated("bcast", ranks, 64 * 512) == pytest.approx(expected)


@pytest.mark.parametrize("ranks", [2, 16, 30, 60])
def test_a_barrier_takes_what_the_best_case_says(ranks):
    m, rounds = barrier.best_partners(COSTS, ranks)
    expected = barrier.barrier(COSTS, ranks, m)
    found = simulated("barrier", ranks)
    assert found <= expected * (1 + 1e-9)
    if (m + 1) ** rounds - m * (m + 1) ** (rounds - 1) < ranks:  # m partners in the last round
        assert found == pytest.approx(expected)


@pytest.mark.parametrize("ranks", [2, 31, 60])
def test_a_reduction_is_ahead_of_the_best_case_by_the_flags_that_are_set_meanwhile(ranks):
    tree = reduction.best_reduction(COSTS, ranks)
    expected = reduction.reduction(COSTS, tree) - (len(tree) - 1) * COSTS.R_I
    assert simulated("reduce", ranks) <= expected * (1 + 1e-9)
    if ranks == 2:
        assert simulated("reduce", ranks) == pytest.approx(expected)


def everything(results):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    for root in {0, comm.size - 1}:
        for count in (0, 1, 1000, 40_000):
            data = np.full(count, comm.rank, "i8")
            comm.Bcast(data, root)
            assert (data == root).all()
            total = np.zeros(count, "i8")
            comm.Reduce(np.full(count, comm.rank + 1, "i8"), total, root=root)
            if comm.rank == root:
                assert (total == comm.size * (comm.size + 1) // 2).all()
            comm.Allreduce(np.full(count, comm.rank, "i8"), total)
            assert (total == comm.size * (comm.size - 1) // 2).all()
    time.sleep(1e-3 * comm.rank)
    before = MPI.Wtime()
    comm.Barrier()
    assert MPI.Wtime() >= comm.allreduce(before, MPI.MAX)
    part = comm.Split(comm.rank % 3)
    assert part.allreduce(1) == part.size
    results.append(comm.rank)


@pytest.mark.parametrize(
    ("machine", "ranks", "map_by"),
    [
        (PHI, 1, "core"),
        (PHI, 13, "core"),
        (PHI, 61, "core"),
        ("multicore-cluster", 20, "core"),
        ("multicore-cluster", 19, "node"),
        ("xeon-e5-2650", 9, "socket"),
        ("cluster", 11, "core"),
    ],
)
@pytest.mark.parametrize("order", ["rank", "algorithm"])
def test_data_arrives_whatever_the_placement(machine, ranks, map_by, order):
    results = []
    run = pysmpi.run(
        everything, nprocs=ranks, platform=machine, map_by=map_by, compute="none",
        args=(results,), selector="coherence_tuned", reduction_order=order,
        coll={"bcast": "coherence_tuned"},
    )  # fmt: skip
    assert run.exit_status == 0, run.error
    assert sorted(results) == list(range(ranks))


def test_distance_of_the_ranks_decides_the_costs():
    platform = load("xeon-e5-2650")
    near = HostLines(place(platform, 4, None, "core")).of(platform.hosts[0].index)
    far = HostLines(place(platform, 4, None, "socket")).of(platform.hosts[0].index)
    assert near.R_R < far.R_R


def test_hosts_that_nobody_has_described_have_no_costs():
    platform = load("cluster")
    slots = place(platform, 2, None, "core")
    assert HostLines(slots).of(slots[0].host.index) is None


def test_tuning_on_a_described_machine_knows_its_lines():
    from click.testing import CliRunner

    from pysmpi.cli.main import command

    args = ["collectives", "tune", "--platform", PHI, "-n", "8", "--ops", "barrier", "--json"]
    args += ["--cfg", "memory/overhead:1us"]
    result = CliRunner().invoke(command, args, standalone_mode=False)
    assert result.exception is None, result.exception
    (row,) = json.loads(result.output)
    assert row["algorithm"] == "coherence_tuned"
    m, _ = barrier.best_partners(COSTS, 8)
    assert row["seconds"] == pytest.approx(barrier.barrier(COSTS, 8, m))
