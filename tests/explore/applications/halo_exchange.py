"""Heat in a rod, cut among the ranks; each step exchanges the border cells with both neighbours.

The error: borders carry their side, but not their step. A receive from any source takes the border
of a fast neighbour's next step, if the other neighbour is late.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

CELLS = 4
SPEED = 0.25


class Rod:
    """The cells of a rank, with a border cell on either side."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        place = np.arange(comm.rank * CELLS - 1, (comm.rank + 1) * CELLS + 1)
        self.heat = initial(place % (CELLS * comm.size))
        self.left = (comm.rank - 1) % comm.size
        self.right = (comm.rank + 1) % comm.size

    def exchange(self) -> None:
        """Send the outer cells, and take the borders as they come."""
        comm, heat = self.comm, self.heat
        sends = [
            comm.isend(("from the right", heat[1]), dest=self.left),
            comm.isend(("from the left", heat[-2]), dest=self.right),
        ]
        for _ in range(2):
            side, value = comm.recv(source=MPI.ANY_SOURCE)
            heat[0 if side == "from the left" else -1] = value
        MPI.Request.waitall(sends)

    def step(self) -> None:
        inner = self.heat[1:-1]
        inner += SPEED * (self.heat[:-2] - 2.0 * inner + self.heat[2:])


def initial(place: np.ndarray) -> np.ndarray:
    return np.where(place % 5 == 0, 8.0, place % 3).astype(float)


def expected(cells: int, steps: int) -> np.ndarray:
    """The same on one rank."""
    heat = initial(np.arange(cells))
    for _ in range(steps):
        heat = heat + SPEED * (np.roll(heat, 1) - 2.0 * heat + np.roll(heat, -1))
    return heat


def main() -> None:
    comm = MPI.COMM_WORLD
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    rod = Rod(comm)
    for _ in range(steps):
        rod.exchange()
        rod.step()
    parts = comm.gather(rod.heat[1:-1], root=0)
    if parts is not None:
        heat = np.concatenate(parts)
        wrong = np.abs(heat - expected(heat.size, steps)).max()
        assert wrong < 1e-12, f"the largest difference is {wrong:g}"


main()
