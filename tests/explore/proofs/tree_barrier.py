"""A barrier in a tree: children report to their parent, which releases them; all polls of messages.

The error, with the argument `count`: a parent counts messages, and not children: one that comes
round again early is taken for another one.
"""

import sys

from mpi4py import MPI

ROUNDS = 2
UP, DOWN = 1, 2

comm = MPI.COMM_WORLD
count = "count" in sys.argv
parent = (comm.rank - 1) // 2
children = [one for one in (2 * comm.rank + 1, 2 * comm.rank + 2) if one < comm.size]


def take(source: int, tag: int) -> int:
    """Poll for a message, and take it."""
    while not comm.iprobe(source=source, tag=tag):
        pass
    value: int = comm.recv(source=source, tag=tag)
    return value


def barrier(number: int) -> None:
    """Wait for all ranks."""
    for child in children:
        came = take(MPI.ANY_SOURCE if count else child, UP)
        assert came == number, f"round {came} in round {number}"
    if comm.rank:
        comm.send(number, dest=parent, tag=UP)
        if not count or number:
            take(parent, DOWN)
    for child in children:
        comm.send(number, dest=child, tag=DOWN)


for number in range(ROUNDS):
    barrier(number)
