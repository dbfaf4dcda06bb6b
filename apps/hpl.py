"""High-Performance Linpack: a dense system of equations by LU factorisation with pivoting.

    mpiexec -n 4 python hpl.py --size 512 --block 32

The ranks form a grid of rows and columns, and hold blocks of the matrix in turn (block-cyclic).
For each panel of columns: the column of the grid that holds it searches pivots (Allreduce) and
eliminates, the panel travels along the rows of the grid as a ring, rows are swapped, the row of
the grid that holds the pivots solves for its part and broadcasts it down the columns, and all
update the rest of the matrix.  The solution follows by substitution from the last block to the
first.  It is right if HPL's scaled residual is below 16.

Reference: A. Petitet et al., "HPL - A Portable Implementation of the High-Performance Linpack
Benchmark for Distributed-Memory Computers".
"""

import argparse
import math
import sys

import npb
import numpy as np
from mpi4py import MPI

THRESHOLD = 16.0


def random_part(rows, columns, size):
    """Elements of the random matrix in (-0.5, 0.5); column `size` is the right side."""
    table = npb.powers(size)
    part = np.empty((len(rows), len(columns)))
    for place, column in enumerate(columns):
        part[:, place] = npb.uniforms(npb.skip(npb.SEED, int(column) * size), size, table)[rows]
    return part - 0.5


class System:
    """The part of the matrix, with the right side as its last column, of one rank."""

    def __init__(self, comm, size, block, height):
        """Deal out blocks of `block` rows and columns on a grid of `height` rows of ranks."""
        self.comm, self.size, self.block = comm, size, block
        self.height, self.width = height, comm.Get_size() // height
        self.row, self.column = divmod(comm.Get_rank(), self.width)
        self.row_comm = comm.Split(self.row, self.column)
        self.column_comm = comm.Split(self.column, self.row)
        every = np.arange(size + 1)
        self.rows = every[:-1][every[:-1] // block % height == self.row]
        self.columns = every[every // block % self.width == self.column]
        self.part = random_part(self.rows, self.columns, size)
        self.blocks = -(-size // block)

    def row_place(self, row):
        """The number of own rows before row `row` of the matrix."""
        return int(np.searchsorted(self.rows, row))

    def column_place(self, column):
        """The number of own columns before column `column` of the matrix."""
        return int(np.searchsorted(self.columns, column))

    def owner(self, row):
        """The row of the grid that holds row `row` of the matrix."""
        return row // self.block % self.height

    def swap(self, one, other, columns):
        """Swap two rows of the matrix in some of the own columns."""
        if one == other:
            return
        owners = self.owner(one), self.owner(other)
        if owners[0] == owners[1]:
            if self.row == owners[0]:
                places = [self.row_place(one), self.row_place(other)]
                self.part[places, columns] = self.part[places[::-1], columns]
        elif self.row in owners:
            mine, peer = (one, owners[1]) if self.row == owners[0] else (other, owners[0])
            line = self.part[self.row_place(mine), columns]
            outgoing = line.copy()
            received = np.empty_like(outgoing)
            self.column_comm.Sendrecv(outgoing, peer, 1, received, peer, 1)
            line[:] = received

    def factor_panel(self, first, width):
        """Eliminate in a panel of columns; returns the pivot rows."""
        start = self.column_place(first)
        panel = slice(start, start + width)
        pivots = np.empty(width, np.int64)
        for step in range(width):
            row = first + step
            below = self.row_place(row)
            candidates = np.abs(self.part[below:, start + step])
            best = (0.0, row)
            if len(candidates):
                place = int(candidates.argmax())
                best = (float(candidates[place]), int(self.rows[below + place]))
            _, pivot = self.column_comm.allreduce(best, op=MPI.MAXLOC)
            pivots[step] = pivot
            self.swap(row, pivot, panel)
            line = np.empty(width)
            if self.row == self.owner(row):
                line[:] = self.part[below, panel]
                below += 1
            self.column_comm.Bcast(line, root=self.owner(row))
            factors = self.part[below:, start + step]
            factors /= line[step]
            rest = self.part[below:, start + step + 1 : start + width]
            rest -= np.outer(factors, line[step + 1 :])
        return pivots

    def pass_on(self, data, root):
        """Broadcast along a row of the grid as a ring."""
        if self.width == 1:
            return
        left, right = (self.column - 1) % self.width, (self.column + 1) % self.width
        if self.column != root:
            self.row_comm.Recv(data, left, 2)
        if right != root:
            self.row_comm.Send(data, right, 2)

    def factor(self):
        """Factorise the matrix; the right side follows."""
        for index in range(self.blocks):
            first = index * self.block
            width = min(self.block, self.size - first)
            root = index % self.width
            start, below = self.column_place(first), self.row_place(first)
            pivots = np.empty(width, np.int64)
            lower = np.empty((len(self.rows) - below, width))
            if self.column == root:
                pivots[:] = self.factor_panel(first, width)
                lower[:] = self.part[below:, start : start + width]
            self.pass_on(pivots, root)
            self.pass_on(lower, root)

            rest = slice(self.column_place(first + width), None)
            for step, pivot in enumerate(pivots.tolist()):
                self.swap(first + step, pivot, rest)
            upper = np.empty((width, len(self.columns) - rest.start))
            owner = index % self.height
            after = below
            if self.row == owner:
                after += width
                unit = np.tril(lower[:width], -1) + np.eye(width)
                upper[:] = np.linalg.solve(unit, self.part[below:after, rest])
                self.part[below:after, rest] = upper
            self.column_comm.Bcast(upper, root=owner)
            self.part[after:, rest] -= lower[after - below :] @ upper

    def solve(self):
        """The solution, on all ranks."""
        solution = np.zeros(self.size)
        # The known part, and the right side, of the own rows; its sum counts.
        known = np.zeros(len(self.rows))
        if len(self.columns) and self.columns[-1] == self.size:
            known += self.part[:, -1]
        for index in reversed(range(self.blocks)):
            first = index * self.block
            width = min(self.block, self.size - first)
            owner, root = index % self.height, index % self.width
            below, start = self.row_place(first), self.column_place(first)
            part = np.zeros(width)
            if self.row == owner:
                self.row_comm.Reduce(known[below : below + width].copy(), part, root=root)
            if self.column == root:
                if self.row == owner:
                    square = np.triu(self.part[below : below + width, start : start + width])
                    part = np.linalg.solve(square, part)
                self.column_comm.Bcast(part, root=owner)
                known[:below] -= self.part[:below, start : start + width] @ part
                if self.row == 0:
                    solution[first : first + width] = part
        self.comm.Allreduce(MPI.IN_PLACE, solution)
        return solution

    def residual(self, solution):
        """HPL's scaled residual, with the matrix made anew."""
        matrix = random_part(self.rows, self.columns, self.size)
        vector = np.append(solution, -1.0)[self.columns]
        difference = matrix @ vector
        self.row_comm.Allreduce(MPI.IN_PLACE, difference)
        inner = self.columns < self.size
        sums = np.abs(matrix[:, inner]).sum(1)
        self.row_comm.Allreduce(MPI.IN_PLACE, sums)
        largest = np.zeros(3)
        largest[0] = np.abs(difference).max(initial=0.0)
        largest[1] = sums.max(initial=0.0)
        largest[2] = np.abs(matrix[:, ~inner]).max(initial=0.0)
        self.comm.Allreduce(MPI.IN_PLACE, largest, op=MPI.MAX)
        scale = largest[1] * np.abs(solution).max() + largest[2]
        return float(largest[0] / (np.finfo(float).eps * scale * self.size))


def main():
    """Solve on all ranks; rank 0 reports.  The exit status is 1 if the residual is too large."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=int, default=256, help="number of equations (256)")
    parser.add_argument("--block", type=int, default=32, help="rows and columns of a block (32)")
    parser.add_argument("--rows", type=int, help="rows of the grid of ranks (nearly a square)")
    arguments = parser.parse_args()
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    if arguments.size < 1 or arguments.block < 1:
        parser.error("expected --size and --block from 1")
    height = arguments.rows
    if height is None:
        height = next(rows for rows in range(math.isqrt(size), 0, -1) if size % rows == 0)
    if height < 1 or size % height:
        parser.error(f"--rows: found {height}, expected a divisor of the {size} ranks")

    system = System(comm, arguments.size, arguments.block, height)
    comm.Barrier()
    start = MPI.Wtime()
    system.factor()
    solution = system.solve()
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)
    residual = system.residual(solution)
    system.row_comm.Free()
    system.column_comm.Free()
    good = residual < THRESHOLD
    if rank == 0:
        n = arguments.size
        rate = (2.0 / 3.0 * n**3 + 1.5 * n**2) / seconds / 1e9 if seconds else math.inf
        print(f"equations          {n}")
        print(f"block              {arguments.block}")
        print(f"ranks              {system.height} x {system.width}")
        print(f"residual           {residual:.4f}, expected less than {THRESHOLD:.0f}")
        print(f"time               {seconds:.6f} s")
        print(f"rate               {rate:.3f} Gflop/s")
        print(f"VERIFICATION {'SUCCESSFUL' if good else 'FAILED'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
