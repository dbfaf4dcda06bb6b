"""Numbers with uncertainties: propagated, correlated, averaged over ranks."""

from __future__ import annotations

import uncertainties
from mpi4py import MPI
from uncertainties import correlation_matrix, covariance_matrix, ufloat, umath, unumpy

comm = MPI.COMM_WORLD
x = ufloat(3.0 + comm.rank, 0.1, "x")
y = ufloat(0.5, 0.02 * (comm.rank + 1), "y")
z = umath.sin(x) * y**2 / (x + y)
print(comm.rank, z.nominal_value, z.std_dev, f"{x:.3f} {x:P} {x:L} {z:.2ue}")
print(comm.rank, {one.tag: error for one, error in z.error_components().items()}, (x - x).std_dev)
print(comm.rank, covariance_matrix([x, y, z])[2], float(correlation_matrix([x, z])[0][1]))
array = unumpy.uarray([1, 2, 3 + comm.rank], [0.1, 0.2, 0.3])
print(comm.rank, (unumpy.sqrt(array) * 2).sum(), unumpy.std_devs(array**2).tolist())
received = comm.allgather((x.nominal_value, x.std_dev))
mean = sum(ufloat(*one) for one in received) / comm.size
print(
    comm.rank, mean.nominal_value, mean.std_dev, uncertainties.ufloat_fromstr("1.23(4)e2").std_dev
)
others = comm.allgather(z)
print(comm.rank, [one.std_dev for one in others], uncertainties.wrap(pow)(x, 2).std_dev)
