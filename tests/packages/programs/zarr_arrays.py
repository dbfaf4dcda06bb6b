"""Chunked arrays of zarr: ranks write their chunks of one array, and read those of others."""

from __future__ import annotations

import numpy as np
import zarr
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    root = zarr.open_group("data.zarr", mode="w")
    field = root.create_array("field", shape=(40, 30), chunks=(10, 15), dtype="f8", fill_value=-1)
    field.attrs["unit"] = "K"
    root.create_array("names", shape=(comm.size,), chunks=(1,), dtype="U12")
comm.barrier()
root = zarr.open_group("data.zarr", mode="r+")
rows = slice(10 * comm.rank, 10 * comm.rank + 10)
root["field"][rows, :20] = np.add.outer(np.arange(10) * 0.5, np.arange(20)) + 1000 * comm.rank
root["names"][comm.rank] = f"rank {comm.rank}"
comm.barrier()
field = root["field"]
print(comm.rank, field[:, comm.rank].sum(), float(field[...].mean()), field.attrs["unit"])
print(comm.rank, list(root["names"][:]), field.nchunks_initialized, sorted(root.array_keys()))
print(comm.rank, field.oindex[[1, 11, 35], 3].tolist(), field.blocks[comm.rank, 1].shape)
memory = zarr.create_array(zarr.storage.MemoryStore(), shape=100, chunks=7, dtype="i4")
memory[:] = np.arange(100) * (comm.rank + 1)
memory.append(np.arange(5))
print(comm.rank, memory.shape, int(memory[::9].sum()), memory.nbytes)
total = np.empty(30)
comm.Allreduce(np.ascontiguousarray(field[5 * comm.rank]), total)
print(comm.rank, total.sum(), total[:3].tolist())
