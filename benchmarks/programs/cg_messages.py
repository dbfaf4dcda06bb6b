"""The program c/cg_messages.c in mpi4py: cg_messages.py ITERATIONS ORDER."""

import sys

import numpy as np
from mpi4py import MPI


class Messages:
    """The partners of a rank in CG's grid, and its exchanges with them."""

    def __init__(self, comm, order):
        """Lay out the ranks of `comm`, a power of two, for a matrix of `order` rows."""
        self.comm = comm
        rank, size = comm.Get_rank(), comm.Get_size()
        height = 1 << (size.bit_length() - 1) // 2
        width = size // height
        row, column = divmod(rank, width)
        if width == height:
            self.transposed = rank % height * height + rank // height
        else:
            self.transposed = 2 * (rank // 2 % height * height + rank // 2 // height) + rank % 2
        self.partners = []
        distance = width // 2
        while distance:
            self.partners.append(row * width + (column ^ distance))
            distance //= 2
        self.received, self.given = np.zeros(order // width), np.zeros(order // width)

    def exchange(self, count, partner, tag):
        """Give and take `count` numbers."""
        request = self.comm.Irecv(self.received[:count], partner, tag)
        self.comm.Send(self.given[:count], partner, tag)
        request.Wait()

    def sum_row(self, count):
        """The messages of a sum over a row of the grid."""
        for step, partner in enumerate(self.partners, 1):
            self.exchange(count, partner, step)

    def hand_over(self):
        """The messages that follow a product with the matrix."""
        count = len(self.given)
        for step in range(len(self.partners), 0, -1):
            self.exchange(count, self.partners[step - 1], step)
        self.exchange(count, self.transposed, 1)


def main():
    """Send the messages of CG; rank 0 prints the time of the slowest rank."""
    iterations, order = map(int, sys.argv[1:])
    comm = MPI.COMM_WORLD
    messages = Messages(comm, order)
    start = MPI.Wtime()
    for _ in range(iterations):
        messages.sum_row(1)
        for _ in range(25):
            messages.hand_over()
            messages.sum_row(1)
            messages.sum_row(1)
        messages.hand_over()
        messages.sum_row(1)
        messages.sum_row(2)
    taken, slowest = np.array([MPI.Wtime() - start]), np.zeros(1)
    comm.Reduce(taken, slowest, op=MPI.MAX, root=0)
    if comm.Get_rank() == 0:
        print(f"simulated {slowest[0]:.9g}")


main()
