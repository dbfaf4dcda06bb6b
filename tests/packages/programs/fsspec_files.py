"""Files in memory, in directories, in archives and cached, through fsspec."""

from __future__ import annotations

import hashlib

import fsspec
from fsspec.core import url_to_fs
from mpi4py import MPI

comm = MPI.COMM_WORLD
memory = fsspec.filesystem("memory")
for k in range(comm.rank + 2):
    with memory.open(f"/mine/part{k}.txt", "w") as file:
        file.write(f"{comm.rank}:{k}\n" * (100 * k + 1))
print(comm.rank, sorted(memory.glob("/mine/*")), memory.du("/mine"))

# Each rank sees its own memory, and all see the same directory.
comm.barrier()
fs, path = url_to_fs("file://shared")
fs.makedirs(path, exist_ok=True)
with fsspec.open(f"file://{path}/{comm.rank}.gz", "wb", compression="gzip") as file:
    file.write(bytes(range(256)) * (comm.rank + 1))
comm.barrier()
sizes = []
for other in sorted(one for one in fs.ls(path, detail=False) if one.endswith(".gz")):
    with fsspec.open(f"file://{other}", "rb", compression="gzip") as file:
        sizes.append(len(file.read()))
print(comm.rank, sizes)

with fsspec.open(f"{comm.rank}.zip", "wb") as file:
    archive = fsspec.filesystem("zip", fo=file, mode="w")
    for k in range(3):
        archive.pipe(f"inner/{k}.bin", bytes([comm.rank, k]) * 50)
    archive.close()
comm.barrier()
neighbour = (comm.rank + 1) % comm.size
archive = fsspec.filesystem("zip", fo=f"{neighbour}.zip")
content = archive.cat([f"inner/{k}.bin" for k in range(3)])
print(comm.rank, {name: hashlib.md5(data).hexdigest() for name, data in sorted(content.items())})
mapper = fsspec.get_mapper("memory://store")
mapper["a/b"] = comm.bcast(b"root" * 3 if comm.rank == 0 else None)
print(comm.rank, list(mapper), len(mapper["a/b"]))
