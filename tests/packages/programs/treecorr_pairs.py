"""Correlations of points on the sky: each rank works on a part of the patches."""

from __future__ import annotations

import numpy as np
import treecorr
from mpi4py import MPI

comm = MPI.COMM_WORLD
generator = np.random.RandomState(8)
x, y = generator.uniform(0, 100, (2, 2000))
kappa = generator.normal(size=2000)
centers = treecorr.Catalog(x=x, y=y, npatch=6, rng=np.random.RandomState(1)).patch_centers
catalog = treecorr.Catalog(x=x, y=y, k=kappa, patch_centers=centers)
counts = treecorr.NNCorrelation(min_sep=1, max_sep=50, nbins=6)
counts.process(catalog, comm=comm, low_mem=True)
fields = treecorr.KKCorrelation(min_sep=1, max_sep=50, nbins=6, var_method="jackknife")
fields.process(catalog, comm=comm)
if comm.rank == 0:
    print(counts.npairs, counts.meanr)
    print(fields.xi, fields.varxi)
print("rank", comm.rank, "ends")
