"""Chains of Cobaya, one a rank, that exchange their covariance."""

from cobaya.run import run
from mpi4py import MPI

comm = MPI.COMM_WORLD


def chi(a, b):
    return -0.5 * ((a - 0.2) ** 2 / 0.1 + (b + 0.1) ** 2 / 0.2)


info = {
    "likelihood": {"bell": chi},
    "params": {
        "a": {"prior": {"min": -2, "max": 2}, "ref": 0.1, "proposal": 0.3},
        "b": {"prior": {"min": -2, "max": 2}, "ref": 0.0, "proposal": 0.4},
    },
    "sampler": {
        "mcmc": {"max_samples": 300, "burn_in": 0, "seed": 11, "learn_every": "2000d"},
    },
    "output": "chains/bell",
}  # fmt: skip
updated, sampler = run(info)
chain = sampler.products()["sample"]
print("rank", comm.rank, "samples", len(chain), "mean", chain["a"].mean(), chain["b"].mean())
print("sums", comm.allreduce(len(chain)))
