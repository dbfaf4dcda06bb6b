"""Ranks that share a core measure the time that they measure under SMPI.

The figures of SMPI 3.32 are those that `tests/data/self_timed.c` prints.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import pysmpi

DATA = Path(__file__).resolve().parent.parent / "data"
# SMPI has no cost for the last look at the clock before a message; ours is part of the compute.
CLOSE = 1e-4

FIGURES: dict[tuple[str, int], dict[int, list[float]]] = {}
for _line in (DATA / "self_timed.txt").read_text().splitlines():
    _way, _size, _rank, *_dates = _line.split()
    FIGURES.setdefault((_way, int(_size)), {})[int(_rank)] = list(map(float, _dates))


def self_timed() -> list[float]:
    """The program; each call ends a block of compute."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    outgoing, incoming = np.zeros(1 << 20, np.uint8), np.zeros(1 << 20, np.uint8)
    dates = [MPI.Wtime(), MPI.Wtime()]
    time.sleep(0.1 * (rank % 2) + 1e-6)
    dates.append(MPI.Wtime())
    comm.Barrier()
    dates.append(MPI.Wtime())
    dates.append(MPI.Wtime())
    if size > 1:
        comm.Sendrecv(outgoing, (rank + 1) % size, 0, incoming, (rank - 1) % size, 0)
    dates.append(MPI.Wtime())
    for _ in range(rank + 1):
        dates.append(MPI.Wtime())
    comm.Allreduce(np.ones(1), np.ones(1))
    dates.append(MPI.Wtime())
    return dates


def blocks(rank: int, size: int) -> list[float]:
    """The blocks of compute of a rank (s)."""
    found = [0.0, 0.1 * (1 + rank % 3), 0.0, 0.05, 0.0, 0.0, 0.02 * (size - rank)]
    found += [0.0] * (1 + (size > 1)) + [0.01] * (rank + 1) + [0.03, 0.0, 0.0]
    return found


@pytest.mark.parametrize("size", range(1, 9))
@pytest.mark.parametrize("way", ["given", "constant"])
def test_clocks_on_a_shared_core_are_those_of_smpi(tmp_path, way, size):
    compute: str | float = 0.01
    if way == "given":
        path = tmp_path / "blocks.txt"
        lines = [
            f"{rank} {round(1e9 * block)}\n" for rank in range(size) for block in blocks(rank, size)
        ]
        path.write_text(
            "# pysmpi compute 1, nanoseconds of blocks on a core of flop/s: 1e9\n" + "".join(lines)
        )
        compute = str(path)
    result = pysmpi.run(self_timed, size, platform=DATA / "one_core.xml", compute=compute)
    # The blocks are without identity, and all used.
    assert len(result.remarks) == (way == "given") + (size > 1)
    for rank, dates in enumerate(result.returns):
        assert dates == pytest.approx(FIGURES[way, size][rank], rel=CLOSE, abs=1e-6)


def test_the_compute_of_others_is_a_part_of_the_measured_time():
    """The figures tell ranks that share a core from ranks that do not."""
    alone, all_eight = FIGURES["given", 1][0], FIGURES["given", 8][0]
    assert all_eight[1] - all_eight[0] == pytest.approx(8 * (alone[1] - alone[0]), rel=1e-6)
