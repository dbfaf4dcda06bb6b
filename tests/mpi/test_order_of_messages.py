"""Messages of a sender do not overtake each other, also where a later one takes less time."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

import pysmpi

MACHINE = """\
name: pair
config: {{smpi/lat-factor: "0:{0};1000:{1};100000:{2}", network/latency-factor: 1}}
clusters:
  - name: pair
    hosts: n[0-1]
    cores: 2
    network: {{bandwidth: 1GBps, latency: 100us}}
"""
SIZES = (8, 10_000, 200_000)  # of each of the three factors


ORDERS = list(itertools.product(SIZES, repeat=3))


def stream(pattern: str) -> list[tuple[int, ...]]:
    """The sizes in the orders in which rank 0 gets messages from rank 1."""
    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    buffer, orders = numpy.zeros(max(SIZES), "b"), []
    source = MPI.ANY_SOURCE if pattern == "any source" else 1
    tag = 7 if pattern in ("named", "any source") else MPI.ANY_TAG
    for order in ORDERS:
        comm.Barrier()
        if comm.rank == 1:
            MPI.Request.Waitall([comm.Isend(buffer[:size], 0, tag=7) for size in order])
            continue
        got = []
        for _ in order:
            status, probed = MPI.Status(), MPI.Status()
            if pattern == "probe":
                comm.Probe(source, tag, probed)
            comm.Recv(buffer, source, tag, status)
            assert pattern != "probe" or probed.Get_count() == status.Get_count()
            got.append(status.Get_count())
        orders.append(tuple(got))
    return orders


@pytest.mark.parametrize("factors", [(1, 0, 0), (1, 1, 0), (5, 1, 0), (1, 0, 5)])
@pytest.mark.parametrize("pattern", ["named", "any tag", "any source", "probe"])
def test_no_message_overtakes(pattern: str, factors: tuple[float, ...], tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text(MACHINE.format(*factors))
    run = pysmpi.run(stream, 2, args=(pattern,), platform=file, map_by="node", compute="none")
    assert run.returns[0] == ORDERS
