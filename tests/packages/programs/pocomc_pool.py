"""Samples of a Gaussian with pocoMC's own pool of ranks."""

import numpy
from mpi4py import MPI
from pocomc.parallel import MPIPool
from scipy import stats


def likelihood(x):
    return float(-0.5 * (x**2).sum())


def where(x):
    return float(x[0]) ** 2


if __name__ == "__main__":
    with MPIPool(use_dill=False) as pool:
        points = numpy.random.default_rng(3).normal(size=(40, 3))
        found = list(pool.map(likelihood, points))
        print("sum", sum(found), "of", len(found), "workers", pool.size)
        print("squares", list(pool.map(where, points[:5])))
        import pocomc

        prior = pocomc.Prior([stats.norm(0.0, 2.0), stats.norm(0.0, 2.0)])
        sampler = pocomc.Sampler(
            prior=prior, likelihood=likelihood, n_effective=64, n_active=32, precondition=False,
            random_state=1, pool=pool,
        )  # fmt: skip
        sampler.run(n_total=128, n_evidence=0, progress=False)
        samples, weights, *_ = sampler.posterior()
        print("samples", samples.shape, "mean", numpy.average(samples, weights=weights, axis=0))
        print("rank", MPI.COMM_WORLD.rank)
