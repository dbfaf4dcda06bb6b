"""Calibration of a model by Latin hypercubes, its simulations made by the other ranks."""

from __future__ import annotations

import numpy as np
import spotpy
from mpi4py import MPI
from spotpy.examples.spot_setup_rosenbrock import spot_setup

sampler = spotpy.algorithms.lhs(spot_setup(), dbname="lhs", dbformat="ram", parallel="mpi",
                                random_state=6, save_sim=False)  # fmt: skip
sampler.sample(60)
found = sampler.getdata()
print("rank", MPI.COMM_WORLD.rank, len(found), np.sort(found["like1"])[:5])
