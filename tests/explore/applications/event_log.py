"""Ranks append records to one log with the shared file pointer; a reader checks it.

The error: the first rank writes the header, and the others do not wait for that: they usually have
to compute first.
"""

from __future__ import annotations

import os
import sys
import time

import numpy as np
from mpi4py import MPI

HEADER = np.array([-1, 0, 0, 0], "i4")
RECORD = 4  # numbers


class Log:
    """A file of records, one after the other."""

    def __init__(self, comm: MPI.Comm, path: str) -> None:
        mode = MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE
        self.comm = comm
        self.file = MPI.File.Open(comm, path, mode)
        self.file.Set_size(0)
        if comm.rank == 0:
            self.file.Write_shared(HEADER)

    def append(self, kind: int, value: int) -> None:
        self.file.Write_shared(np.array([kind, self.comm.rank, value, kind ^ value], "i4"))

    def records(self) -> np.ndarray:
        self.file.Sync()
        self.comm.Barrier()
        data = np.empty(self.file.Get_size() // 4, "i4")
        self.file.Read_at_all(0, data)
        return data.reshape(-1, RECORD)

    def close(self) -> None:
        self.file.Close()


def simulate(comm: MPI.Comm, log: Log, steps: int) -> None:
    """A token goes around the ring; its holder writes a record."""
    if comm.rank:
        if comm.iprobe(source=comm.rank - 1):  # the token has come early: no wait is recorded
            log.append(1, 0)
        comm.recv(source=comm.rank - 1)
    elif comm.size > 1:
        log.append(3, 0)
    for step in range(steps):
        log.append(2, step)
    if comm.rank < comm.size - 1:
        comm.send(None, dest=comm.rank + 1)


def main() -> None:
    comm = MPI.COMM_WORLD
    path = f"{sys.argv[1]}.{os.environ.get('PYSMPI_LOG', 'log')}"
    log = Log(comm, path)
    if comm.rank == comm.size - 1:
        time.sleep(1e-3)  # "long enough" for the header
        log.append(4, 7)  # the last rank announces itself
    simulate(comm, log, 1)
    records = log.records()
    log.close()
    assert records[0, 0] == -1, f"the first record is {records[0].tolist()}, expected the header"
    assert (records[1:, 0] ^ records[1:, 2] == records[1:, 3]).all()


main()
