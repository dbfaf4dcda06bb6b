"""A log with a shared file pointer. Rank 0 writes the header, and no rank waits for it."""

import os
import sys
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD
path = f"{sys.argv[1]}.{os.environ.get('PYSMPI_LOG', 'log')}"
mode = MPI.MODE_CREATE | MPI.MODE_RDWR | MPI.MODE_DELETE_ON_CLOSE
log = MPI.File.Open(comm, path, mode)
if comm.rank:
    time.sleep(1e-3)  # "long enough"
log.Write_shared(b"#" if comm.rank == 0 else b"x")
comm.Barrier()
data = bytearray(1)
log.Read_at(0, data)
log.Close()
assert data == b"#", data
