"""Learning with subset stacking: local estimators are fitted by all ranks."""

from __future__ import annotations

import numpy as np
from lessmpi import LESSRegressor
from mpi4py import MPI

rank = MPI.COMM_WORLD.Get_rank()
generator = np.random.RandomState(5)
x = generator.uniform(-1, 1, (400, 3))
y = np.sin(3 * x[:, 0]) + x[:, 1] ** 2 - 0.5 * x[:, 2]
model = LESSRegressor(random_state=np.random.RandomState(11))
model.fit(x[:300], y[:300])
found = model.predict(x[300:])
if rank == 0:
    print("error", float(np.mean((found - y[300:]) ** 2)), found[:5])
print("rank", rank, "ends")
