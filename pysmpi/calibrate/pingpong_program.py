"""An mpi4py program: two ranks exchange messages, with several patterns of reusing buffers.

    python pingpong_program.py OUTPUT.json POOL_BYTES PATTERN,... OPERATION,... SIZE...

OUTPUT.json gets, for each pattern, operation (pingpong, exchange) and size, the lower quartile of
the seconds of one message. The patterns define the buffers that are new to the caches: those of the
sender, of the receiver, both (`fresh`) or none (`reuse`). New buffers come in turn from a pool that
is larger than any cache. With PYSMPI_PIN=CPU,CPU in the environment each rank is pinned to its CPU.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable

import numpy as np
from mpi4py import MPI

PATTERNS = {
    "reuse": (False, False),
    "fresh-send": (True, False),
    "fresh-receive": (False, True),
    "fresh": (True, True),
}


TOGETHER = 4  # exchanges in one measurement; reduces the effect of the start


class BufferPool:
    """Buffers of one size: always the same one, or the next one of the pool."""

    def __init__(self, pool: np.ndarray, nbytes: int, fresh: bool) -> None:
        self.pool = pool
        self.nbytes = nbytes
        self.stride = -(-max(nbytes, 1) // 4096) * 4096
        self.count = len(pool) // self.stride if fresh else 1
        self.next = 0

    def take(self) -> np.ndarray:
        begin = self.next * self.stride
        self.next = (self.next + 1) % self.count
        return self.pool[begin : begin + self.nbytes]


def pingpong(comm: MPI.Intracomm, sends: BufferPool, receives: BufferPool) -> float:
    other = 1 - comm.rank
    outgoing, incoming = sends.take(), receives.take()
    begin = MPI.Wtime()
    if comm.rank == 0:
        comm.Send(outgoing, other)
        comm.Recv(incoming, other)
    else:
        comm.Recv(incoming, other)
        comm.Send(outgoing, other)
    return (MPI.Wtime() - begin) / 2


def exchange(comm: MPI.Intracomm, sends: BufferPool, receives: BufferPool) -> float:
    other = 1 - comm.rank
    pairs = [(sends.take(), receives.take()) for _ in range(TOGETHER)]
    comm.Barrier()
    begin = MPI.Wtime()
    for outgoing, incoming in pairs:
        comm.Sendrecv(outgoing, other, 0, incoming, other, 0)
    return (MPI.Wtime() - begin) / TOGETHER


OPERATIONS: dict[str, Callable[[MPI.Intracomm, BufferPool, BufferPool], float]] = {
    "pingpong": pingpong,
    "exchange": exchange,
}


def rounds(nbytes: int) -> int:
    return max(16, min(200, (16 << 20) // max(nbytes, 1)))


def lower_quartile(values: list[float]) -> float:
    return sorted(values)[len(values) // 4]


def main() -> None:
    comm = MPI.COMM_WORLD
    pinned = os.environ.get("PYSMPI_PIN")
    if pinned:
        os.sched_setaffinity(0, {int(pinned.split(",")[comm.rank])})
    output, pool_bytes, patterns, operations, *sizes = sys.argv[1:]
    pools = [np.ones(int(pool_bytes), "u1") for _ in range(2)]
    rows: list[list[object]] = []
    for nbytes in map(int, sizes):
        for pattern in patterns.split(","):
            fresh_send, fresh_receive = PATTERNS[pattern]
            for operation in operations.split(","):
                sends = BufferPool(pools[0], nbytes, fresh_send)
                receives = BufferPool(pools[1], nbytes, fresh_receive)
                comm.Barrier()
                do = OPERATIONS[operation]
                times = [do(comm, sends, receives) for _ in range(rounds(nbytes) + 4)][4:]
                rows.append([pattern, operation, nbytes, lower_quartile(times)])
    if comm.rank == 0:
        with open(output, "w") as stream:
            json.dump(rows, stream)


if __name__ == "__main__":
    main()
