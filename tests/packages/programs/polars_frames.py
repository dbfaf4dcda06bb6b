"""Frames of polars: lazy queries, joins, groups; frames sent to other ranks."""

from __future__ import annotations

import io

import polars as pl
from mpi4py import MPI

comm = MPI.COMM_WORLD
rows = 500 + 10 * comm.rank
frame = pl.DataFrame(
    {
        "key": [(7 * i + comm.rank) % 13 for i in range(rows)],
        "value": [((i * 37 + comm.rank * 11) % 101) / 4 for i in range(rows)],
        "name": [f"n{(i * i) % 17}" for i in range(rows)],
    }
)
summary = (
    frame.lazy()
    .filter(pl.col("value") > 3)
    .group_by("key")
    .agg(
        pl.len().alias("count"),
        pl.col("value").mean().alias("mean"),
        pl.col("value").quantile(0.9).alias("q90"),
        pl.col("name").n_unique().alias("names"),
    )
    .sort("key")
    .collect()
)
for row in summary.iter_rows():
    print(comm.rank, row)

# As objects, and as Arrow's bytes in a buffer.
everything = pl.concat(comm.allgather(frame))
joined = everything.join(summary.select("key", "mean"), on="key", how="inner")
print(
    comm.rank, joined.height, joined.select((pl.col("value") - pl.col("mean")).abs().sum()).item()
)
buffer = io.BytesIO()
summary.write_ipc(buffer)
size = comm.allgather(buffer.tell())
neighbour = (comm.rank - 1) % comm.size
received = bytearray(size[neighbour])
comm.Sendrecv(buffer.getvalue(), (comm.rank + 1) % comm.size, recvbuf=received, source=neighbour)
other = pl.read_ipc(bytes(received))
print(comm.rank, other.select(pl.all().sum()).row(0))
sql = pl.SQLContext(frame=everything).execute(
    "SELECT name, COUNT(*) AS n, MAX(value) AS top FROM frame GROUP BY name ORDER BY name",
    eager=True,
)
print(comm.rank, sql.rows()[comm.rank :: comm.size])
windows = everything.with_columns(
    rolling=pl.col("value").rolling_mean(5), rank=pl.col("value").rank().over("key")
)
print(comm.rank, windows.select(pl.col("rolling").sum(), pl.col("rank").sum()).row(0))
