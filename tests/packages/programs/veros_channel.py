"""A few steps of Veros' channel: each rank has a part of the ocean, and halos are exchanged."""

import os

os.environ["VEROS_BACKEND"] = "numpy"
os.environ.setdefault("VEROS_LOGLEVEL", "error")

import numpy as np
from mpi4py import MPI
from veros import runtime_settings

comm = MPI.COMM_WORLD
runtime_settings.update(backend="numpy", num_proc=(2, comm.size // 2), diskless_mode=True)

from veros.setups.acc import ACCSetup  # noqa: E402

setup = ACCSetup(override={"runlen": 86400.0 / 4})
setup.setup()
setup.run()
state = setup.state
inner = (slice(2, -2), slice(2, -2))
for name in ("u", "v", "temp"):
    values = np.asarray(getattr(state.variables, name))[inner][..., int(state.variables.tau)]
    total = comm.allreduce(float((values**2).sum()))
    print("rank", comm.rank, name, values.shape, total, float(np.abs(values).max()))
