"""Jacobi iteration for Laplace's equation on a square, in two-dimensional blocks.

    mpiexec -n 4 python jacobi2d.py --size 512 --iterations 100

The upper edge is held at 1, the others at 0.  Each rank keeps its block with a border one point
wide, and exchanges edges with four neighbours; an edge that is a column travels as a strided
datatype.  At the end rank 0 receives every block straight into its place in the whole square, as
a subarray datatype.  A point is computed from the same four numbers for any division of the square,
so the residual and the checksum are the same, to the last digit, for any number of ranks.
"""

import argparse

import numpy as np
from mpi4py import MPI

UP, DOWN, LEFT, RIGHT = range(4)  # tags: the way that an edge travels


def evenly(points, parts, index):
    """The (start, stop) of part `index` when `points` are dealt out, the first parts one more."""
    size, more = divmod(points, parts)
    start = index * size + min(index, more)
    return start, start + size + (index < more)


class Block:
    """This rank's part of the square: its bounds, its neighbours, its points with their border."""

    def __init__(self, comm, size):
        """Cut the `size` x `size` interior points among the ranks of `comm`."""
        self.comm = comm
        self.down, self.across = MPI.Compute_dims(comm.Get_size(), 2)
        row, column = divmod(comm.Get_rank(), self.across)
        self.top, self.bottom = evenly(size, self.down, row)
        self.left, self.right = evenly(size, self.across, column)
        self.height, self.width = self.bottom - self.top, self.right - self.left

        rank = comm.Get_rank()
        self.above = rank - self.across if row else MPI.PROC_NULL
        self.below = rank + self.across if row < self.down - 1 else MPI.PROC_NULL
        self.before = rank - 1 if column else MPI.PROC_NULL
        self.after = rank + 1 if column < self.across - 1 else MPI.PROC_NULL

        self.points = np.zeros((self.height + 2, self.width + 2))
        if row == 0:
            self.points[0, :] = 1.0
        self.next = self.points.copy()
        self.line = MPI.DOUBLE.Create_contiguous(self.width).Commit()
        self.column = MPI.DOUBLE.Create_vector(self.height, 1, self.width + 2).Commit()

    def exchange(self):
        """Fill the border with the neighbours' edges."""
        flat, stride = self.points.reshape(-1), self.width + 2

        def line(row):
            return [flat[row * stride + 1 :], 1, self.line]

        def column(place):
            return [flat[stride + place :], 1, self.column]

        trade = self.comm.Sendrecv
        trade(line(1), self.above, UP, line(self.height + 1), self.below, UP)
        trade(line(self.height), self.below, DOWN, line(0), self.above, DOWN)
        trade(column(1), self.before, LEFT, column(self.width + 1), self.after, LEFT)
        trade(column(self.width), self.after, RIGHT, column(0), self.before, RIGHT)

    def step(self):
        """One Jacobi step; returns the largest change of a point of this block."""
        old, new = self.points, self.next
        inner = new[1:-1, 1:-1]
        np.add(old[:-2, 1:-1], old[2:, 1:-1], out=inner)
        inner += old[1:-1, :-2]
        inner += old[1:-1, 2:]
        inner *= 0.25
        change = float(np.abs(inner - old[1:-1, 1:-1]).max(initial=0.0))
        self.points, self.next = new, old
        return change

    def collect(self, size):
        """The whole square on rank 0, None on the others."""
        comm = self.comm
        inner = self.points[1:-1, 1:-1]
        shape = list(self.points.shape)
        mine = MPI.DOUBLE.Create_subarray(shape, list(inner.shape), [1, 1]).Commit()
        request = comm.Isend([self.points, 1, mine], 0)
        whole = None
        if comm.Get_rank() == 0:
            whole = np.empty((size, size))
            for rank in range(comm.Get_size()):
                row, column = divmod(rank, self.across)
                top, bottom = evenly(size, self.down, row)
                left, right = evenly(size, self.across, column)
                place = MPI.DOUBLE.Create_subarray(
                    [size, size], [bottom - top, right - left], [top, left]
                ).Commit()
                comm.Recv([whole, 1, place], rank)
                place.Free()
        request.Wait()
        mine.Free()
        return whole

    def free(self):
        """Free the datatypes."""
        self.line.Free()
        self.column.Free()


def main():
    """Iterate, collect and print the check values."""
    parser = argparse.ArgumentParser(description="2-D Jacobi iteration with halo exchange")
    parser.add_argument("--size", type=int, default=512, help="interior points along an edge")
    parser.add_argument("--iterations", type=int, default=100, help="Jacobi steps")
    options = parser.parse_args()

    comm = MPI.COMM_WORLD
    most = max(MPI.Compute_dims(comm.Get_size(), 2))
    if options.size < most or options.iterations < 1:
        parser.error(f"expected a size of at least {most} and at least one iteration")

    block = Block(comm, options.size)
    comm.Barrier()
    start = MPI.Wtime()
    change = np.zeros(1)
    for _ in range(options.iterations):
        block.exchange()
        change[0] = block.step()
        comm.Allreduce(MPI.IN_PLACE, change, op=MPI.MAX)
    # mpi4py's `reduce` of objects would take log2(ranks) messages of each rank.
    seconds = np.full(1, MPI.Wtime() - start)
    comm.Allreduce(MPI.IN_PLACE, seconds, op=MPI.MAX)

    whole = block.collect(options.size)
    block.free()
    if comm.Get_rank() == 0:
        print(f"jacobi2d: {options.size} x {options.size} points, {options.iterations} iterations")
        print(f"ranks     {comm.Get_size()} as {block.down} x {block.across}")
        print(f"seconds   {seconds[0]:.6f}")
        print(f"residual  {change[0]:.17g}")
        print(f"checksum  {whole.sum():.17g}", flush=True)


if __name__ == "__main__":
    main()
