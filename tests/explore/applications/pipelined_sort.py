"""A sample sort: ranks agree on splitters, and send each other the numbers of their ranges in
blocks.

The error: each rank announces how many blocks it will send. A rank stops as soon as it has all that
were announced, although the announcement of a late rank may still be under way.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

BLOCK = 4
COUNT, DATA = 1, 2


def numbers(rank: int, count: int) -> np.ndarray:
    """The numbers of a rank: pseudo-random, the same in each run."""
    values = (np.arange(count) * 37 + rank * 11) % 101
    return values.astype("i8")


class Sorter:
    """One rank's part of the sort."""

    def __init__(self, comm: MPI.Comm, values: np.ndarray) -> None:
        self.comm = comm
        self.values = np.sort(values)

    def splitters(self) -> np.ndarray:
        """The first number of the range of each rank but the first."""
        sample = self.values[:: max(1, len(self.values) // self.comm.size)]
        every = np.sort(np.concatenate(self.comm.allgather(sample)))
        places = np.arange(1, self.comm.size) * len(every) // self.comm.size
        return every[places]

    def blocks(self, part: np.ndarray) -> list[np.ndarray]:
        return [part[i : i + BLOCK] for i in range(0, len(part), BLOCK)] or [part]

    def exchange(self) -> np.ndarray:
        comm = self.comm
        ends = np.searchsorted(self.values, self.splitters())
        parts = np.split(self.values, ends)
        own = parts[comm.rank]
        peers = [(comm.rank + shift) % comm.size for shift in range(1, comm.size)]
        blocks = {peer: self.blocks(parts[peer]) for peer in peers}
        requests = [comm.isend(len(blocks[peer]), dest=peer, tag=COUNT) for peer in peers]
        for peer in peers:
            requests += [comm.isend(block, dest=peer, tag=DATA) for block in blocks[peer]]
        got = [own]
        status = MPI.Status()
        left = comm.recv(source=max(peers), tag=COUNT)
        while left:  # should wait for all announcements, too
            message = comm.recv(source=MPI.ANY_SOURCE, status=status)
            if status.tag == COUNT:
                left += message
            else:
                got.append(message)
                left -= 1
        MPI.Request.waitall(requests)
        return np.sort(np.concatenate(got))


def main() -> None:
    comm = MPI.COMM_WORLD
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 6
    mine = numbers(comm.rank, count + 4 * (comm.rank == comm.size - 1))
    part = Sorter(comm, mine).exchange()
    whole = comm.gather(part, root=0)
    every = comm.gather(mine, root=0)
    if whole is not None and every is not None:
        expected = np.sort(np.concatenate(every))
        found = np.concatenate(whole)
        assert np.array_equal(found, expected), f"{len(found)} of {len(expected)} numbers"


main()
