"""NAS Parallel Benchmarks, kernel EP: Gaussian random pairs, counted by their size.

    mpiexec -n 4 python npb_ep.py --class A

Uniform random numbers become independent Gaussian pairs by the acceptance-rejection method.  Each
rank makes its own batches of numbers; there is no communication but three sums at the end.  The
sums of the deviates are compared with those that NPB publishes, to 1e-8, and the counts of pairs
in square rings around the origin exactly.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import sys
from dataclasses import dataclass

import npb
import numpy as np
from mpi4py import MPI

BATCH_LOG = 16  # pairs in a batch, as a power of two
RINGS = 10
SEED = 271828183
TOLERANCE = 1e-8


@dataclass(frozen=True)
class Problem:
    """One NPB class: its size, and the answer that NPB publishes."""

    pairs_log: int  # pairs of uniform numbers, as a power of two
    sum_x: float
    sum_y: float
    counts: tuple[int, ...]  # pairs in each ring, the inner ones first; none in the others


CLASSES = {
    "S": Problem(
        24, -3.247834652034740e3, -6.958407078382297e3, (6140517, 5865300, 1100361, 68546, 1648, 17)
    ),
    "W": Problem(
        25,
        -2.863319731645753e3,
        -6.320053679109499e3,
        (12281576, 11729692, 2202726, 137368, 3371, 36),
    ),
    "A": Problem(
        28,
        -4.295875165629892e3,
        -1.580732573678431e4,
        (98257395, 93827014, 17611549, 1110028, 26536, 245),
    ),
    "B": Problem(
        30,
        4.033815542441498e4,
        -2.660669192809235e4,
        (393058470, 375280898, 70460742, 4438852, 105691, 948, 5),
    ),
    "C": Problem(
        32,
        4.764367927995374e4,
        -8.084072988043731e4,
        (1572172634, 1501108549, 281805648, 17761221, 424017, 3821, 13),
    ),
}


def batch(number, table):
    """The sums of the deviates of batch `number`, and the number of pairs in each ring."""
    length = 2 << BATCH_LOG
    x, y = 2.0 * npb.uniforms(npb.skip(SEED, number * length), length, table).reshape(-1, 2).T - 1.0
    square = x * x + y * y
    inside = np.flatnonzero(square <= 1.0)
    x, y, square = x[inside], y[inside], square[inside]
    factor = np.sqrt(-2.0 * np.log(square) / square)
    x *= factor
    y *= factor
    ring = np.maximum(np.abs(x), np.abs(y)).astype(np.int64)
    return x.sum(), y.sum(), np.bincount(ring, minlength=RINGS)


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    most = 1 << (CLASSES["S"].pairs_log - BATCH_LOG)
    parsed = npb.options("kernel EP", CLASSES, lambda size: npb.at_most(size, most))
    problem = CLASSES[parsed.name]
    batches = 1 << (problem.pairs_log - BATCH_LOG)
    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- EP Benchmark\n")
        print(f" Number of random numbers generated: {2 << problem.pairs_log:15d}")
        print(f" Number of active processes: {size:5d}", flush=True)
    table = npb.powers(2 << BATCH_LOG)
    share, more = divmod(batches, size)
    first = rank * share + min(rank, more)

    comm.Barrier()
    start = MPI.Wtime()
    sums = np.zeros(2)
    counts = np.zeros(RINGS)
    for number in range(first, first + share + (rank < more)):
        sum_x, sum_y, found = batch(number, table)
        sums += sum_x, sum_y
        counts += found
    for index in range(2):
        comm.Allreduce(MPI.IN_PLACE, sums[index : index + 1])
    comm.Allreduce(MPI.IN_PLACE, counts)
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)

    expected = np.zeros(RINGS)
    expected[: len(problem.counts)] = problem.counts
    good = (
        npb.close(sums[0], problem.sum_x, TOLERANCE)
        and npb.close(sums[1], problem.sum_y, TOLERANCE)
        and bool((counts == expected).all())
    )
    if rank == 0:
        print(f" No. Gaussian Pairs = {counts.sum():15.0f}")
        print(f" Sums = {sums[0]:22.15e} {sums[1]:22.15e}")
        print(" Counts:")
        for ring, count in enumerate(counts):
            print(f" {ring:3d} {count:14.0f}")
        length = 2 << problem.pairs_log
        npb.report("EP", parsed.name, str(length), 0, size, seconds, length, good)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
