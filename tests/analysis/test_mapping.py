"""Placements from the communication of a run, and the graph of this communication."""

import itertools
import json

import numpy
import pytest

import pysmpi
from pysmpi.analysis.communication import communication_graph
from pysmpi.analysis.mapping import filled, improved, map_ranks
from pysmpi.cli.map import command
from pysmpi.errors import UsageError
from pysmpi.platform import load
from pysmpi.platform.placement import place
from pysmpi.trace.lines import read_lines


def partners():
    """Ranks whose numbers are half of all apart send each other 100 kB, three times."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    other = (comm.rank + comm.size // 2) % comm.size
    for _ in range(3):
        comm.Sendrecv(numpy.zeros(100_000, "b"), other, recvbuf=numpy.zeros(100_000, "b"))
    comm.Barrier()


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    path = tmp_path_factory.mktemp("mapping") / "run.jsonl"
    pysmpi.run(partners, 16, platform="multicore-cluster", compute="none", trace=path)
    return path


def test_the_communication_of_a_run_is_a_graph(trace):
    graph = communication_graph(read_lines(trace))
    assert sorted(graph) == list(range(16))
    assert graph.nodes[9] == {"host": "multicore-1", "core": 1}
    assert graph.edges[3, 11]["bytes"] >= 300_000 and graph.edges[3, 11]["messages"] >= 3
    heavy = [ends for ends in graph.edges if graph.edges[ends]["bytes"] >= 300_000]
    assert sorted(heavy) == sorted((rank, (rank + 8) % 16) for rank in range(16))


def test_ranks_that_talk_come_together(trace, tmp_path):
    found = map_ranks(str(trace), {})
    names = [
        sorted((slot.host.name, slot.core) for slot in slots)
        for slots in (found.slots, found.given, place(load("multicore-cluster"), 16))
    ]
    assert names[0] == names[1] == names[2]
    for rank in range(8):
        assert found.slots[rank].host is found.slots[rank + 8].host
    assert found.between[1] < 0.01 * found.between[0] and found.saves > 0.5
    file = tmp_path / "ranks"
    file.write_text(found.rank_file())
    times = [
        pysmpi.run(
            partners, 16, platform="multicore-cluster", compute="none", hostfile=hostfile
        ).seconds
        for hostfile in (None, file)
    ]
    # A replay takes the contents of caches as they are not known (docs: how exact it is).
    assert times[0] == pytest.approx(found.seconds[0], rel=1e-3)
    assert times[1] < 0.5 * times[0]


def test_the_command_writes_a_rank_file_and_a_graph(trace, tmp_path, capfd):
    ranks, graph = tmp_path / "ranks", tmp_path / "graph.json"
    arguments = [str(trace), "-o", str(ranks), "--graph", str(graph)]
    assert command.main(arguments, standalone_mode=False) == 0
    printed = capfd.readouterr()
    assert "as placed now" in printed.err and f"--hostfile {ranks}" in printed.err
    assert printed.out == "" and len(ranks.read_text().splitlines()) == 16
    assert len(json.loads(graph.read_text())["nodes"]) == 16
    # From the new placement there is nothing to gain.
    again = [str(trace), "--platform", "multicore-cluster", "--hostfile", str(ranks), "--json"]
    assert command.main(again, standalone_mode=False) == 0
    printed = capfd.readouterr()
    figures = json.loads(printed.out)
    assert figures["seconds"] == figures["seconds_given"]
    assert "no other placement was better" in printed.err
    with pytest.raises(UsageError, match="--graph x.png: expected a file called .graphml"):
        command.main([str(trace), "--graph", "x.png"], standalone_mode=False)


def total(traffic, distances, order):
    return sum((a * b[numpy.ix_(order, order)]).sum() for a, b in zip(traffic, distances))


@pytest.mark.parametrize("seed", range(6))
def test_exchanges_reach_an_order_that_no_exchange_improves(seed):
    generator = numpy.random.default_rng(seed)
    size = int(generator.integers(3, 12))
    both = []
    for _ in range(4):
        matrix = generator.integers(0, 10, (size, size)).astype(float)
        matrix = numpy.triu(matrix, 1)
        both.append(matrix + matrix.T)
    traffic, distances = both[:2], both[2:]
    order = improved(traffic, distances, list(range(size)))
    assert sorted(order) == list(range(size))
    best = total(traffic, distances, order)
    assert best <= total(traffic, distances, list(range(size)))
    for a, b in itertools.combinations(range(size), 2):
        changed = list(order)
        changed[a], changed[b] = changed[b], changed[a]
        assert total(traffic, distances, changed) >= best * (1 - 1e-6)


def test_hosts_are_filled_with_ranks_that_talk():
    slots = place(load("multicore-cluster"), 16)
    nbytes = numpy.zeros((16, 16))
    for rank in range(0, 16, 2):  # even ranks talk to each other, odd ones, too
        for other in range(0, 16, 2):
            if rank != other:
                nbytes[rank, other] = nbytes[rank + 1, other + 1] = 10.0
    order = filled(nbytes, slots)
    assert {slots[order[rank]].host.name for rank in range(0, 16, 2)} == {"multicore-0"}
    assert {slots[order[rank]].host.name for rank in range(1, 16, 2)} == {"multicore-1"}
