"""A task farm: rank 0 hands out intervals, a free rank counts the primes in the next one.

    mpiexec -n 4 python master_worker.py --limit 1000000

The master takes answers from any source with any tag, so the order of the work is the machine's;
the number of primes and their sum are not.  With one rank the master works itself.
"""

import argparse
import math

import numpy as np
from mpi4py import MPI

WORK, STOP = 1, 2


def primes_below(limit):
    """All primes below `limit`."""
    sieve = np.ones(max(limit, 2), bool)
    sieve[:2] = False
    for number in range(2, math.isqrt(max(limit, 2) - 1) + 1):
        if sieve[number]:
            sieve[number * number :: number] = False
    return np.flatnonzero(sieve[: max(limit, 0)])


def count_primes(start, stop, small):
    """The number of primes in start <= p < stop, and their sum; `small` holds those up to sqrt."""
    sieve = np.ones(stop - start, bool)
    sieve[: max(0, 2 - start)] = False
    for prime in small.tolist():
        if prime * prime >= stop:
            break
        first = max(prime * prime, -(-start // prime) * prime)
        sieve[first - start :: prime] = False
    found = np.flatnonzero(sieve) + start
    return len(found), int(found.sum())


def master(comm, tasks):
    """Hand out `tasks`; returns (count, sum, number of tasks that each rank did)."""
    answer, status = np.empty(3, np.int64), MPI.Status()
    done = [0] * comm.Get_size()
    count = total = 0
    waiting, busy = iter(tasks), 0

    def hand_out(worker):
        task = next(waiting, None)
        if task is None:
            comm.Send(np.zeros(2, np.int64), worker, STOP)
            return 0
        comm.Send(np.array(task, np.int64), worker, WORK)
        return 1

    for worker in range(1, comm.Get_size()):
        busy += hand_out(worker)
    while busy:
        comm.Recv(answer, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        worker = status.Get_source()
        if status.Get_tag() != answer[2] or status.Get_count(MPI.INT64_T) != 3:
            raise RuntimeError(f"rank {worker} answered with tag {status.Get_tag()}")
        count, total = count + int(answer[0]), total + int(answer[1])
        done[worker] += 1
        busy += hand_out(worker) - 1
    return count, total, done


def work(comm, small):
    """Count primes for the master until it says stop; an answer's tag is the task's size."""
    task, status = np.empty(2, np.int64), MPI.Status()
    while True:
        comm.Recv(task, 0, MPI.ANY_TAG, status)
        if status.Get_tag() == STOP:
            return
        start, stop = task.tolist()
        found = count_primes(start, stop, small)
        comm.Send(np.array([*found, stop - start], np.int64), 0, stop - start)


def main():
    """Split the numbers below the limit into tasks; rank 0 reports."""
    parser = argparse.ArgumentParser(description="task farm with wildcard receives")
    parser.add_argument("--limit", type=int, default=1_000_000, help="count the primes below this")
    parser.add_argument("--task", type=int, default=20_000, help="numbers in one task")
    options = parser.parse_args()
    if options.limit < 1 or not 1 <= options.task <= 30_000:
        parser.error("expected a limit of at least 1 and a task of 1 to 30000 numbers")

    comm = MPI.COMM_WORLD
    small = primes_below(math.isqrt(options.limit) + 1)
    tasks = [
        (start, min(start + options.task, options.limit))
        for start in range(0, options.limit, options.task)
    ]
    start = MPI.Wtime()
    if comm.Get_rank():
        work(comm, small)
        return
    if comm.Get_size() == 1:
        found = [count_primes(*task, small) for task in tasks]
        count, total = sum(n for n, _ in found), sum(s for _, s in found)
        done = [len(tasks)]
    else:
        count, total, done = master(comm, tasks)
    seconds = MPI.Wtime() - start
    print(f"master_worker: primes below {options.limit}, {len(tasks)} tasks")
    print(f"ranks    {comm.Get_size()}")
    print(f"seconds  {seconds:.6f}")
    print(f"tasks    {sum(done)} done, {min(done[1:] or done)} to {max(done)} a worker")
    print(f"primes   {count}")
    print(f"sum      {total}", flush=True)


if __name__ == "__main__":
    main()
