"""Approximate Bayesian computation; samples are drawn by workers of `mpi4py.futures`."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import numpy as np
import pyabc
from mpi4py.futures import MPICommExecutor


def model(parameters: dict[str, float]) -> dict[str, float]:
    return {"y": parameters["mean"] + 0.1}


def distance(x: dict[str, float], y: dict[str, float]) -> float:
    return abs(x["y"] - y["y"])


def main() -> None:
    with MPICommExecutor(root=0) as executor:
        if executor is None:
            return
        logging.getLogger("ABC").setLevel(logging.ERROR)
        prior = pyabc.Distribution(mean=pyabc.RV("uniform", 0, 5))
        sampler = pyabc.sampler.ConcurrentFutureSampler(cfuture_executor=executor,
                                                        client_max_jobs=8)  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            abc = pyabc.ABCSMC(model, prior, distance, population_size=30, sampler=sampler)
            abc.new("sqlite:///" + str(Path(folder) / "runs.db"), {"y": 2.5})
            history = abc.run(minimum_epsilon=0.1, max_nr_populations=3)
            frame, weights = history.get_distribution(m=0)
            print("populations", history.n_populations, frame.shape)
            print("mean", abs(float(np.average(frame["mean"], weights=weights)) - 2.4) < 0.2)


if __name__ == "__main__":
    main()
