"""Measures messages between two ranks: an mpi4py program, under any MPI and under pysmpi.

    mpiexec -n 2 python network_program.py OUTPUT EXPERIMENT,... BYTES...

writes the seconds of each experiment and size. `pysmpi calibrate network` calls `NetworkBench`.
Ranks other than the first and the last only wait.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np

# The timed operations: a blocking send whose receive is posted; the call of a non-blocking send; a
# receive whose message has come; half a round trip; a message in each direction at once; a message
# of many in flight, in one direction and in both.
EXPERIMENTS = ("send", "isend", "recv", "pingpong", "exchange", "window", "both")
FLIGHT, LARGE_FLIGHT = 32, 8  # messages in flight: up to 64 KiB, and larger ones
SETTLE = 5e-4  # seconds until a sent message has arrived
DELAY = 0.02  # delay (s) of a late receiver

Rows = list[tuple[str, int, float]]  # experiment, bytes, seconds


class NetworkBench:
    """Two ends of a communicator that measure; collective over both."""

    def __init__(self, comm: Any, largest: int) -> None:
        # Importing starts the MPI of the ranks.
        from mpi4py import MPI

        self.mpi = MPI
        self.comm = comm
        self.first = comm.rank == 0
        self.peer = 1 - comm.rank
        # Buffers that nobody has written would all be one page of zeros, in the first cache.
        self.out = np.full(max(largest, 1), 1, "b")
        self.into = np.full(max(largest, 1), 2, "b")

    def run(self, plan: list[tuple[str, int]]) -> Rows:
        """Seconds of each experiment and size, in the order of the plan, on both ends."""
        samples: list[float] = []
        for experiment, size in plan:
            samples.append(getattr(self, f"_{experiment}")(size))
        both = self.comm.allgather(samples)
        rows: Rows = []
        for (experiment, size), here, there in zip(plan, *both):
            seconds = there if experiment == "recv" else here
            if experiment == "exchange":
                seconds = max(here, there)
            rows.append((experiment, size, seconds))
        return rows

    @staticmethod
    def plan(experiments: tuple[str, ...], sizes: list[int]) -> list[tuple[str, int]]:
        """All experiments at all sizes."""
        return [(name, size) for name in experiments for size in sizes]

    def blocks(self, size: int) -> bool:
        """Whether a blocking send of this size waits for its receive."""
        comm = self.comm
        comm.Barrier()
        took = 0.0
        if self.first:
            begin = self.mpi.Wtime()
            comm.Send([self.out, size, self.mpi.BYTE], 1)
            took = self.mpi.Wtime() - begin
        else:
            time.sleep(DELAY)
            comm.Recv([self.into, size, self.mpi.BYTE], 0)
        return bool(comm.bcast(took, 0) > DELAY / 2)

    def threshold(self, largest: int) -> int:
        """The smallest size at which a blocking send waits; largest + 1 if there is none."""
        low, high = 0, largest + 1
        while low < high:
            middle = (low + high) // 2
            if middle <= largest and not self.blocks(middle):
                low = middle + 1
            else:
                high = middle
        return low

    @staticmethod
    def _times(size: int) -> int:
        """The number of repeats of an experiment in a row."""
        return 20 if size <= 4096 else 6 if size <= 65536 else 2

    def _messages(self, size: int) -> tuple[list[Any], list[Any]]:
        """The message out and the one in, as programs make them before they send."""
        return [self.out, size, self.mpi.BYTE], [self.into, size, self.mpi.BYTE]

    def _send(self, size: int) -> float:
        comm, times = self.comm, self._times(size)
        out, into = self._messages(size)
        if self.first:
            comm.Barrier()
            time.sleep(SETTLE / 10)
            for turn in range(-1, times):  # the first warms up
                if turn == 0:
                    begin = self.mpi.Wtime()
                comm.Send(out, 1)
            return float((self.mpi.Wtime() - begin) / times)
        requests = [comm.Irecv(into, 0) for _ in range(times + 1)]
        comm.Barrier()
        self.mpi.Request.Waitall(requests)
        return 0.0

    def _isend(self, size: int) -> float:
        comm, times = self.comm, self._times(size)
        out, into = self._messages(size)
        if self.first:
            comm.Barrier()
            time.sleep(SETTLE / 10)
            requests = [comm.Isend(out, 1)]
            begin = self.mpi.Wtime()
            requests += [comm.Isend(out, 1) for _ in range(times)]
            took = (self.mpi.Wtime() - begin) / times
            self.mpi.Request.Waitall(requests)
            return float(took)
        requests = [comm.Irecv(into, 0) for _ in range(times + 1)]
        comm.Barrier()
        self.mpi.Request.Waitall(requests)
        return 0.0

    def _recv(self, size: int) -> float:
        comm, times = self.comm, self._times(size)
        out, into = self._messages(size)
        if self.first:
            requests = [comm.Isend(out, 1) for _ in range(times + 1)]
            comm.Barrier()
            self.mpi.Request.Waitall(requests)
            return 0.0
        comm.Barrier()
        time.sleep(SETTLE)
        for turn in range(-1, times):
            if turn == 0:
                begin = self.mpi.Wtime()
            comm.Recv(into, 0)
        return float((self.mpi.Wtime() - begin) / times)

    def _pingpong(self, size: int) -> float:
        comm, times, peer = self.comm, self._times(size), self.peer
        out, into = self._messages(size)
        comm.Barrier()
        for turn in range(-1, times):  # the first warms up
            if turn == 0:
                begin = self.mpi.Wtime()
            if self.first:
                comm.Send(out, peer)
                comm.Recv(into, peer)
            else:
                comm.Recv(into, peer)
                comm.Send(out, peer)
        return float((self.mpi.Wtime() - begin) / (2 * times))

    def _exchange(self, size: int) -> float:
        comm, times, peer = self.comm, self._times(size), self.peer
        out, into = self._messages(size)
        comm.Barrier()
        for turn in range(-1, times):
            if turn == 0:
                begin = self.mpi.Wtime()
            comm.Sendrecv(out, peer, recvbuf=into, source=peer)
        return float((self.mpi.Wtime() - begin) / times)

    def _windows(self, size: int, sends: bool, both: bool) -> float:
        """Seconds of a message of windows; in one direction, an answer ends each."""
        comm, peer, waitall = self.comm, self.peer, self.mpi.Request.Waitall
        out, into = self._messages(size)
        back = self._messages(0)
        flight = FLIGHT if size <= 65536 else LARGE_FLIGHT
        times = 2 if size <= 65536 else 1
        comm.Barrier()
        for turn in range(-1, times):
            if turn == 0:
                begin = self.mpi.Wtime()
            requests = []
            if both or not sends:
                requests += [comm.Irecv(into, peer) for _ in range(flight)]
            if both or sends:
                requests += [comm.Isend(out, peer) for _ in range(flight)]
            waitall(requests)
            if not both and sends:
                comm.Recv(back[1], peer)
            elif not both:
                comm.Send(back[0], peer)
        return float((self.mpi.Wtime() - begin) / (times * flight))

    def _window(self, size: int) -> float:
        return self._windows(size, self.first, False)

    def _both(self, size: int) -> float:
        return self._windows(size, True, True)


def main(output: str, experiments: str, sizes: list[int]) -> None:
    """Measure and write the times."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    bench = NetworkBench(comm, max(sizes))
    names = tuple(experiments.split(","))
    rows = bench.run([(name, size) for name in names for size in sizes])
    if comm.rank == 0:
        with open(output, "w", encoding="utf-8") as stream:
            json.dump(rows, stream)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [int(size) for size in sys.argv[3:]])
