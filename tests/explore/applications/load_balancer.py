"""Ranks with unequal loads; a rank without tasks asks the others in turn for half of theirs.

The error: a rank that waits for the answer to its own request does not serve those of others. Two
ranks that ask each other wait for ever.
"""

from __future__ import annotations

import sys
import time

from mpi4py import MPI

ASK, GIVE, DONE = 1, 2, 3


class Balancer:
    """The tasks of a rank, and its knowledge of the others."""

    def __init__(self, comm: MPI.Comm, tasks: list[int]) -> None:
        self.comm = comm
        self.tasks = tasks
        self.results = 0
        self.active = {peer for peer in range(comm.size) if peer != comm.rank}

    def handle(self, message: object, status: MPI.Status) -> None:
        """A request of another rank, or the news that it has given up."""
        if status.tag == DONE:
            self.active.discard(status.source)
            return
        half = len(self.tasks) // 2
        given, self.tasks = self.tasks[:half], self.tasks[half:]
        self.comm.send(given, dest=status.source, tag=GIVE)

    def poll(self) -> None:
        status = MPI.Status()
        while self.comm.iprobe(source=MPI.ANY_SOURCE, status=status):
            self.handle(self.comm.recv(source=status.source, tag=status.tag), status)

    def steal(self) -> bool:
        """Ask the active ranks that had tasks at the beginning, one after the other."""
        for peer in sorted(self.active & {0, 1}):
            self.comm.send(None, dest=peer, tag=ASK)
            # Should serve other ranks until the answer comes.
            self.tasks += self.comm.recv(source=peer, tag=GIVE)
            if self.tasks:
                return True
        return False

    def finish(self) -> None:
        """Serve until all have given up."""
        for peer in range(self.comm.size):
            if peer != self.comm.rank:
                self.comm.send(None, dest=peer, tag=DONE)
        status = MPI.Status()
        while self.active:
            self.handle(self.comm.recv(source=MPI.ANY_SOURCE, status=status), status)

    def run(self) -> int:
        while True:
            while self.tasks:
                self.poll()
                if self.tasks:
                    task = self.tasks.pop()
                    time.sleep(1e-3 * (task + 1))  # the work
                    self.results += task**2
            self.poll()
            if not self.steal():
                break
        self.finish()
        return self.results


def main() -> None:
    comm = MPI.COMM_WORLD
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    tasks = list(range(count)) if comm.rank == 0 else [count] if comm.rank == 1 else []
    total = comm.allreduce(Balancer(comm, tasks).run())
    assert total == sum(task**2 for task in range(count + 1)), total


main()
