"""Fits of lmfit: each rank its peak, with constraints; the best parameters over ranks."""

from __future__ import annotations

import numpy as np
from lmfit import Parameters, minimize
from lmfit.models import GaussianModel, LinearModel
from mpi4py import MPI

comm = MPI.COMM_WORLD
rng = np.random.default_rng(10 + comm.rank)
x = np.linspace(-5, 5, 101)
y = 3 * np.exp(-((x - 0.3 * comm.rank) ** 2) / 2) + 0.2 * x + rng.normal(size=101) * 0.05
model = GaussianModel(prefix="g_") + LinearModel(prefix="l_")
parameters = model.make_params(g_center=0, g_sigma=0.7, g_amplitude=5, l_slope=0, l_intercept=0)
parameters["g_sigma"].set(min=0.1, max=4)
result = model.fit(y, parameters, x=x)
for name, parameter in result.params.items():
    print(comm.rank, name, round(parameter.value, 6), round(parameter.stderr or 0, 6))
print(
    comm.rank,
    result.success,
    result.nvarys,
    round(result.redchi, 8),
    len(result.fit_report()) > 500,
)
mine = Parameters()
mine.add("a", value=1, min=0)
mine.add("b", expr="2*a + 1")
fit = minimize(lambda p: np.array([p["a"] - comm.rank - 0.5, p["b"] - 3]), mine, method="leastsq")
print(comm.rank, round(fit.params["a"].value, 6), round(fit.params["b"].value, 6))
texts = comm.allgather(result.params.dumps())
centers = [Parameters().loads(text)["g_center"].value for text in texts]
print(comm.rank, [round(one, 5) for one in centers])
