"""Runge-Kutta steps of a size that a local error estimate decides; the slowest rank decides."""

import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
limit = float(sys.argv[2]) if len(sys.argv) > 2 else 1e-5
y = np.linspace(0.5, 1.5, n) + 0.1 * comm.rank
rate = 1.0 + 3.0 * np.random.default_rng(comm.rank).random(n)


def slope(t, y):
    return -rate * (y - np.cos(t))


def step(t, y, h):
    one = slope(t, y)
    two = slope(t + h, y + h * one)
    return y + 0.5 * h * (one + two), 0.5 * h * (two - one)


t, h, steps = 0.0, 0.01, 0
while t < 2.0 and steps < 2000:
    new, error = step(t, y, h)
    worst = comm.allreduce(float(np.abs(error).max()), MPI.MAX)
    steps += 1
    if worst <= limit:
        t, y = t + h, new
    h *= min(2.0, max(0.3, 0.9 * (limit / max(worst, 1e-30)) ** 0.5))
if comm.rank == 0:
    print("steps", steps)
