"""A farm: rank 0 hands tasks to the workers that ask for them, and adds up what they send back.

A task is a row of the Mandelbrot set. The program is correct in every order.
"""

from __future__ import annotations

import sys

from mpi4py import MPI

READY, DONE, START, EXIT = range(4)
WIDTH, DEPTH = 12, 20

comm = MPI.COMM_WORLD
rank, size = comm.Get_rank(), comm.Get_size()
status = MPI.Status()
rows = int(sys.argv[1]) if len(sys.argv) > 1 else 6


def escapes(real: float, imaginary: float) -> int:
    """The number of steps after which a point escapes."""
    c = complex(real, imaginary)
    z = 0j
    for step in range(DEPTH):
        z = z * z + c
        if abs(z) > 2.0:
            return step
    return DEPTH


if rank == 0:
    task, closed = 0, 0
    picture: dict[int, list[int]] = {}
    while closed < size - 1:
        answer = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        worker = status.Get_source()
        tag = status.Get_tag()
        if tag == READY:
            if task < rows:
                comm.send(task, dest=worker, tag=START)
                task += 1
            else:
                comm.send(None, dest=worker, tag=EXIT)
        elif tag == DONE:
            row, counts = answer
            picture[row] = counts
        elif tag == EXIT:
            closed += 1
    total = sum(map(sum, picture.values()))
    print(f"{len(picture)} rows, {total} steps")
else:
    while True:
        comm.send(None, dest=0, tag=READY)
        row = comm.recv(source=0, tag=MPI.ANY_TAG, status=status)
        if status.Get_tag() == EXIT:
            break
        counts = [escapes(-2.0 + 3.0 * x / WIDTH, row / rows) for x in range(WIDTH)]
        comm.send((row, counts), dest=0, tag=DONE)
    comm.send(None, dest=0, tag=EXIT)
