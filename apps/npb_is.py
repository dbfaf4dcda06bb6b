"""NAS Parallel Benchmarks, kernel IS: ranks of small integers by a bucket sort.

    mpiexec -n 4 python npb_is.py --class A

The keys are sums of random numbers, nearly Gaussian.  In each of ten iterations every rank sorts
its keys into buckets; Allreduce gives the sizes of all buckets, Alltoall says how many keys
follow, and Alltoallv sends each bucket to the rank that counts its keys.  Five keys are checked
against the ranks that NPB publishes in each iteration, and the whole sequence once at the end.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import sys
from dataclasses import dataclass

import npb
import numpy as np
from mpi4py import MPI

ITERATIONS = 10
TESTS = 5
AT_ONCE = 1 << 20  # random numbers made together: they stay in the cache


@dataclass(frozen=True)
class Problem:
    """One NPB class: its size, and the ranks of five keys that NPB publishes."""

    keys_log: int
    largest_log: int  # keys are below this power of two
    buckets_log: int
    places: tuple[int, ...]  # of the keys that are checked
    ranks: tuple[int, ...]  # of them before the first iteration...
    slopes: tuple[int, ...]  # ... and how they change in each iteration, as keys are replaced
    shift: int = 0  # iterations that this is late


CLASSES = {
    "S": Problem(
        16, 11, 9, (48427, 17148, 23627, 62548, 4431), (0, 18, 346, 64917, 65463), (1, 1, 1, -1, -1)
    ),
    "W": Problem(
        20, 16, 10,
        (357773, 934767, 875723, 898999, 404505), (1247, 11696, 1039987, 1043896, 1048018),
        (1, 1, -1, -1, -1),
    ),
    "A": Problem(
        23, 19, 10,
        (2112377, 662041, 5336171, 3642833, 4250760), (104, 17523, 123928, 8288932, 8388264),
        (1, 1, 1, -1, -1), 1,
    ),
    "B": Problem(
        25, 21, 10,
        (41869, 812306, 5102857, 18232239, 26860214), (33422937, 10244, 59149, 33135281, 99),
        (-1, 1, 1, -1, 1),
    ),
    "C": Problem(
        27, 23, 10,
        (44172927, 72999161, 74326391, 129606274, 21736814),
        (61147, 882988, 266290, 133997595, 133525895), (1, 1, 1, -1, -1),
    ),
}  # fmt: skip


def make_keys(problem, rank, size):
    """The keys of this rank: a quarter of the range times the sum of four random numbers."""
    count = (1 << problem.keys_log) // size
    keys = np.empty(count, np.int32)
    table = npb.powers(min(4 * count, AT_ONCE))
    for start in range(0, count, AT_ONCE // 4):
        part = keys[start : start + AT_ONCE // 4]
        seed = npb.skip(npb.SEED, 4 * (rank * count + start))
        numbers = npb.uniforms(seed, 4 * len(part), table).reshape(-1, 4)
        # One after the other, as NPB does.
        total = ((numbers[:, 0] + numbers[:, 1]) + numbers[:, 2]) + numbers[:, 3]
        part[:] = total * (1 << (problem.largest_log - 2))
    return keys


class Sorter:
    """The keys of one rank, and the numbers of occurrences of the keys that it counts."""

    def __init__(self, comm, problem):
        """Make the keys."""
        self.comm, self.problem = comm, problem
        self.rank, self.size = comm.Get_rank(), comm.Get_size()
        self.keys = make_keys(problem, self.rank, self.size)
        self.shift = problem.largest_log - problem.buckets_log
        self.buckets = 1 << problem.buckets_log

    def sort(self, iteration):
        """One iteration of NPB; returns the number of test keys of this rank that are right."""
        comm, problem = self.comm, self.problem
        keys, count = self.keys, len(self.keys)
        if self.rank == 0:
            keys[iteration] = iteration
            keys[iteration + ITERATIONS] = (1 << problem.largest_log) - iteration

        bucket = (keys >> self.shift).astype(np.uint16)
        sizes = np.zeros(self.buckets + TESTS, np.int32)
        sizes[: self.buckets] = np.bincount(bucket, minlength=self.buckets)
        for test, place in enumerate(problem.places):  # the test keys travel with the sizes
            if place // count == self.rank:
                sizes[self.buckets + test] = keys[place % count]
        by_bucket = keys[np.argsort(bucket, kind="stable")]

        totals = np.empty_like(sizes)
        comm.Allreduce(sizes, totals)
        totals, tests = totals[: self.buckets], totals[self.buckets :]

        # Rank j gets buckets until the total is that of j + 1 even shares.
        reached = np.cumsum(totals.astype(np.int64))
        ends = np.searchsorted(reached, count * np.arange(1, self.size + 1)) + 1
        ends = np.minimum(ends, self.buckets)
        begins = np.concatenate(([0], ends[:-1]))
        sums = np.concatenate(([0], np.cumsum(sizes[: self.buckets])))
        send_counts = (sums[ends] - sums[begins]).astype(np.int32)
        receive_counts = np.empty_like(send_counts)
        comm.Alltoall(send_counts, receive_counts)
        self.mine = np.empty(receive_counts.sum(), np.int32)
        comm.Alltoallv(
            [by_bucket, send_counts, MPI.INT32_T], [self.mine, receive_counts, MPI.INT32_T]
        )

        begin, end = int(begins[self.rank]), int(ends[self.rank])
        self.first = begin << self.shift
        length = (end - begin) << self.shift
        self.occurrences = np.bincount(self.mine - self.first, minlength=length)
        below = np.cumsum(self.occurrences)  # keys of this rank up to each
        lesser = int(reached[begin - 1]) if begin else 0

        right = 0
        for test, key in enumerate(tests.tolist()):
            if self.first <= key < self.first + length:
                # With the keys below it come those of lesser ranks; key 0 has none.
                place = key - 1 - self.first
                found = lesser + (int(below[place]) if place >= 0 else 0)
                steps = iteration - problem.shift
                wanted = problem.ranks[test] + problem.slopes[test] * steps
                right += found == wanted
                if found != wanted:
                    print(f" iteration {iteration}: key {test} has rank {found}, not {wanted}")
        return right

    def in_sequence(self):
        """Whether the keys of this rank, sorted, follow those of the rank before."""
        ordered = self.first + np.repeat(np.arange(len(self.occurrences)), self.occurrences)
        last = np.array([ordered[-1] if len(ordered) else 0], np.int32)
        before = np.zeros(1, np.int32)
        if self.rank > 0:
            request = self.comm.Irecv(before, self.rank - 1, 1000)
        if self.rank < self.size - 1:
            self.comm.Send(last, self.rank + 1, 1000)
        if self.rank > 0:
            request.Wait()
        same = len(ordered) == len(self.mine) and bool((np.sort(self.mine) == ordered).all())
        return same and (not len(ordered) or before[0] <= ordered[0])


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()

    def wanted(size):
        return npb.power_of_two(size) or npb.at_most(size, 128)

    parsed = npb.options("kernel IS", CLASSES, wanted)
    problem = CLASSES[parsed.name]
    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- IS Benchmark\n")
        print(f" Size: {1 << problem.keys_log:10d}\n Iterations: {ITERATIONS:5d}")
        print(f" Number of active processes: {size:5d}", flush=True)
    sorter = Sorter(comm, problem)
    sorter.sort(1)  # touches all data before the clock

    start = MPI.Wtime()
    right = 0
    for iteration in range(1, ITERATIONS + 1):
        right += sorter.sort(iteration)
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)

    right = comm.allreduce(right + sorter.in_sequence())
    good = right == TESTS * ITERATIONS + size
    if rank == 0:
        print(f" Checks passed: {right} of {TESTS * ITERATIONS + size}")
        keys = 1 << problem.keys_log
        npb.report("IS", parsed.name, str(keys), ITERATIONS, size, seconds, keys * ITERATIONS, good)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
