"""Tables and arrays of PyTables: each rank its own file, and reads that of its neighbour."""

from __future__ import annotations

import numpy as np
import tables
from mpi4py import MPI

comm = MPI.COMM_WORLD


class Event(tables.IsDescription):
    number = tables.Int64Col()
    energy = tables.Float64Col()
    name = tables.StringCol(16)


name = f"events{comm.rank}.h5"
with tables.open_file(name, "w", title="events") as file:
    group = file.create_group("/", "run")
    table = file.create_table(group, "events", Event, filters=tables.Filters(5, "zlib"))
    row = table.row
    for k in range(400 + comm.rank):
        row["number"], row["energy"], row["name"] = k, (k * 7 % 31) * 0.5 + comm.rank, f"e{k % 9}"
        row.append()
    table.flush()
    table.cols.number.create_index()
    array = file.create_earray(group, "trace", tables.Float32Atom(), (0, 3))
    for k in range(5):
        array.append(np.full((2, 3), k + comm.rank, np.float32))
    table.attrs.owner = comm.rank
comm.barrier()
with tables.open_file(f"events{(comm.rank + 1) % comm.size}.h5") as file:
    table = file.root.run.events
    chosen = [row["energy"] for row in table.where("(energy > 9) & (number < 300)")]
    print(comm.rank, table.nrows, len(chosen), sum(chosen), table.attrs.owner)
    print(comm.rank, file.root.run.trace[:].sum(), file.root.run.trace.shape)
    print(comm.rank, table.read_where("number == 17")["name"][0].decode())
    energies = table.col("energy")
    print(comm.rank, sorted(node._v_name for node in file.walk_nodes("/run", "Leaf")))
total = comm.allreduce(float(energies.sum()))
print(comm.rank, total, tables.file._open_files.filenames)
