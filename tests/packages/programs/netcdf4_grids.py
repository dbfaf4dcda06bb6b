"""Grids of netCDF4: groups, unlimited dimensions, packing, times; read by the other ranks."""

from __future__ import annotations

from datetime import datetime, timedelta

import netCDF4
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
name = f"grid{comm.rank}.nc"
with netCDF4.Dataset(name, "w") as data:
    data.createDimension("time", None)
    data.createDimension("x", 8)
    time = data.createVariable("time", "f8", ("time",))
    time.units, time.calendar = "hours since 2001-01-01 00:00:00", "gregorian"
    field = data.createVariable("temperature", "i2", ("time", "x"), zlib=True, fill_value=-999)
    field.scale_factor, field.add_offset = 0.01, 280.0
    dates = [datetime(2001, 3, 1) + k * timedelta(hours=6 + comm.rank) for k in range(10)]
    time[:] = netCDF4.date2num(dates, time.units, time.calendar)
    field[:] = np.ma.masked_less(
        280 + np.add.outer(np.arange(10), np.arange(8)) * 0.5 - comm.rank, 279.5
    )
    inner = data.createGroup("inner/deep")
    inner.createDimension("n", comm.rank + 1)
    inner.createVariable("name", str, ("n",))[:] = np.array(
        [f"station {k}" for k in range(comm.rank + 1)], dtype=object
    )
    data.history = f"rank {comm.rank}"
comm.barrier()
with netCDF4.Dataset(f"grid{(comm.rank + 1) % comm.size}.nc") as data:
    field = data["temperature"][:]
    print(comm.rank, data.history, field.shape, field.mean(), int(field.mask.sum()))
    times = netCDF4.num2date(data["time"][:], data["time"].units, data["time"].calendar)
    print(comm.rank, times[0], times[-1], list(data.groups), data["inner/deep/name"][:].tolist())
with netCDF4.Dataset(f"classic{comm.rank}.nc", "w", format="NETCDF3_CLASSIC") as data:
    data.createDimension("time", None)
    data.createVariable("load", "f4", ("time",))[:] = np.arange(3 + comm.rank) / 2
comm.barrier()
many = netCDF4.MFDataset([f"classic{k}.nc" for k in range(comm.size)], aggdim="time")
print(comm.rank, many["load"].shape, float(many["load"][:].sum()))
many.close()
print(comm.rank, comm.allreduce(float(field.sum()), MPI.MAX))
