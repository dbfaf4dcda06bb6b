"""The evidence of a Gaussian by nested sampling; the ranks share the likelihood calls."""

import numpy
from mpi4py import MPI
from ultranest import ReactiveNestedSampler

comm = MPI.COMM_WORLD
numpy.random.seed(7 + comm.rank)
width = numpy.array([0.1, 0.2])


def likelihood(theta):
    return float(-0.5 * (((theta - 0.5) / width) ** 2).sum())


sampler = ReactiveNestedSampler(["x", "y"], likelihood)
result = sampler.run(min_num_live_points=60, show_status=False, viz_callback=False)
print("rank", comm.rank, "calls", sampler.ncall, "region", sampler.use_mpi)
if comm.rank == 0:
    print("evidence", result["logz"], result["logzerr"], result["niter"])
    print("mean", result["posterior"]["mean"])
