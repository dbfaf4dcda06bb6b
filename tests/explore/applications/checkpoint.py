"""A time loop whose ranks send their state to rank 0 now and then, which writes checkpoints.

The error: rank 0 takes the next pieces from any source, without the number of the checkpoint. A
fast rank's next piece can get into the checkpoint of a slow rank.
"""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

PIECE = 7
CELLS = 3


class Model:
    """The state of a rank: it depends on the step only."""

    def __init__(self, rank: int) -> None:
        self.state = np.full(CELLS, 100.0 * rank)

    def advance(self) -> None:
        self.state += 1.0


class Writer:
    """Collects the pieces of checkpoints at rank 0."""

    def __init__(self, comm: MPI.Comm) -> None:
        self.comm = comm
        self.checkpoints: list[dict[int, np.ndarray]] = []

    def collect(self, own: np.ndarray) -> None:
        pieces = {0: own.copy()}
        status = MPI.Status()
        for _ in range(self.comm.size - 1):
            piece = np.empty(CELLS)
            self.comm.Recv(piece, source=MPI.ANY_SOURCE, tag=PIECE, status=status)
            pieces[status.source] = piece
        self.checkpoints.append(pieces)

    def restart(self) -> np.ndarray:
        """The state of all ranks at the last checkpoint."""
        pieces = self.checkpoints[-1]
        return np.concatenate([pieces[rank] for rank in sorted(pieces)])


def check(checkpoints: list[dict[int, np.ndarray]], size: int, every: int) -> None:
    """Each checkpoint has the state of all ranks at one step."""
    for number, pieces in enumerate(checkpoints, 1):
        assert sorted(pieces) == list(range(size)), f"checkpoint {number}: ranks {sorted(pieces)}"
        steps = {float(piece[0]) - 100.0 * rank for rank, piece in pieces.items()}
        assert steps == {float(number * every)}, f"checkpoint {number} has the steps {steps}"


def main() -> None:
    comm = MPI.COMM_WORLD
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    every = 2
    model, writer = Model(comm.rank), Writer(comm)
    for step in range(1, steps + 1):
        model.advance()
        if step % every:
            continue
        if comm.rank == 0:
            writer.collect(model.state)
        else:
            comm.Send(model.state, dest=0, tag=PIECE)
    if comm.rank == 0:
        check(writer.checkpoints, comm.size, every)
        assert writer.restart().size == CELLS * comm.size


main()
