"""Times calls that all ranks enter at the same virtual instant."""

import sys
import time

from mpi4py import MPI

PERIOD = 8.0  # seconds between the starts of two calls; each is over within half of it


def wait_until(instant):
    """Sleep until a virtual instant, in seconds since the start."""
    left = instant - MPI.Wtime()
    if left > 0:
        time.sleep(left)


def main(prepare):
    """Time ``prepare(name, count)()`` for each ``name:count,count,...`` of the command line.

    Rank 0 prints a line for each: ``TIME name count t0 t1 ...``, seconds of each rank.
    """
    world = MPI.COMM_WORLD
    wanted = []
    for argument in sys.argv[1:]:
        name, _, sizes = argument.partition(":")
        wanted += [(name, int(size)) for size in sizes.split(",")]
    for turn, (name, count) in enumerate(wanted, 1):
        call = prepare(name, count)
        wait_until(PERIOD * turn)
        start = MPI.Wtime()
        call()
        taken = MPI.Wtime() - start
        wait_until(PERIOD * turn + PERIOD / 2)
        taken = world.gather(taken, root=0)
        if world.Get_rank() == 0:
            print("TIME", name, count, *(f"{seconds:.12g}" for seconds in taken), flush=True)
