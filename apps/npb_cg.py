"""NAS Parallel Benchmarks, kernel CG: the smallest eigenvalue of a sparse matrix.

    mpiexec -n 4 python npb_cg.py --class A

Inverse power iteration; each of its steps solves ``A z = x`` by 25 conjugate-gradient steps.
The matrix is NPB's own random one, so the estimate ``zeta`` of the eigenvalue is compared with
the value that NPB publishes, to 1e-10.

The ranks, any power of two, form NPB's grid: as many columns as rows, or twice as many.  A rank
holds one block of the matrix.  A product is summed over a row of the grid by exchanges with
partners at half the distance each time, then handed to the transposed rank; a scalar product is
summed over a row of the grid in the same way.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import argparse
import math
import sys
from dataclasses import dataclass

import numpy as np
from mpi4py import MPI

CG_STEPS = 25
CONDITION = 0.1  # reciprocal of the condition number of the matrix, NPB's rcond
TOLERANCE = 1e-10  # relative error of zeta that NPB accepts

SEED = 314159265
MULTIPLIER = 5**13
MODULUS_BITS = 46

NONZEROS_AT_ONCE = 1 << 16  # elements assembled and multiplied together: they stay in the cache


@dataclass(frozen=True)
class Problem:
    """One NPB class: its size, and the answer that NPB publishes."""

    name: str
    order: int  # rows of the matrix
    nonzeros: int  # entries of each random vector of which the matrix is made
    iterations: int
    shift: float
    zeta: float


CLASSES = {
    problem.name: problem
    for problem in (
        Problem("S", 1400, 7, 15, 10.0, 8.5971775078648),
        Problem("W", 7000, 8, 15, 12.0, 10.362595087124),
        Problem("A", 14000, 11, 15, 20.0, 17.130235054029),
        Problem("B", 75000, 13, 75, 60.0, 22.712745482631),
        Problem("C", 150000, 15, 75, 110.0, 28.973605592845),
    )
}


def random_states(count):
    """The first `count` numbers of NPB's generator, x' = 5**13 x mod 2**46, times 2**46.

    The table doubles: its numbers times a power of the multiplier are the next ones.  Products
    wrap at 2**64, a multiple of the modulus.
    """
    mask = (1 << MODULUS_BITS) - 1
    states = np.empty(count, np.uint64)
    states[0] = SEED * MULTIPLIER & mask
    known = 1
    while known < count:
        more = min(known, count - known)
        factor = np.uint64(pow(MULTIPLIER, known, 1 << MODULUS_BITS))
        np.multiply(states[:more], factor, out=states[known : known + more])
        states[known : known + more] &= np.uint64(mask)
        known += more
    return states


def vector_bounds(positions, count, width):
    """The beginning of each of `count` vectors in the sequence of drawn positions, and the end.

    A vector draws until it has `width` different positions.  Nearly always that takes `width`
    draws, so whole runs of such vectors are laid out at a stroke; the loop below runs once for
    each vector that drew a position twice, some width**2 / 2 of them for a matrix of any size.
    """
    windows = len(positions) - width + 1
    repeats = np.zeros(windows, bool)  # does a vector that begins here draw a position twice?
    for distance in range(1, width):
        first = np.flatnonzero(positions[distance:] == positions[:-distance])
        begins = (first[:, None] - np.arange(width - distance)).ravel()
        repeats[begins[(begins >= 0) & (begins < windows)]] = True
    stops = [np.flatnonzero(repeats[phase::width]) * width + phase for phase in range(width)]

    bounds = np.empty(count + 1, np.int64)
    vector, start = 0, 0
    while vector < count:
        ahead = stops[start % width]
        index = np.searchsorted(ahead, start)
        plain = count - vector
        if index < len(ahead):
            plain = min(plain, (ahead[index] - start) // width)
        bounds[vector : vector + plain] = start + width * np.arange(plain)
        vector += plain
        start += width * plain
        if vector < count:
            bounds[vector] = start
            vector += 1
            seen = set()
            while len(seen) < width:
                seen.add(int(positions[start]))
                start += 1
    bounds[count] = start
    return bounds


def random_vectors(problem):
    """The sparse vectors of which the matrix is made, as two tables: positions and values.

    Vector i has `nonzeros` random values at different places, and 0.5 at place i, instead of a
    random value or beside them; a place of the table that is not used holds position -1.
    """
    order, width = problem.order, problem.nonzeros
    bits = (order - 1).bit_length()
    # Draws beyond the order are thrown away, so more are made, and some for bad luck.
    draws = int(1.02 * width * (1 << bits)) + 4096
    states = random_states(1 + 2 * draws)[1:]  # NPB throws the first number away
    drawn = (states[1::2] >> np.uint64(MODULUS_BITS - bits)).astype(np.int64)
    kept = np.flatnonzero(drawn < order)
    drawn = drawn[kept]
    drawn_values = states[::2][kept] * 2.0**-MODULUS_BITS

    bounds = vector_bounds(drawn, order, width)
    places = np.full((order, width + 1), -1)
    values = np.zeros((order, width + 1))
    index = bounds[:-1, None] + np.arange(width)
    places[:, :width] = drawn[index]
    values[:, :width] = drawn_values[index]
    for row in np.flatnonzero(np.diff(bounds) > width):
        start, end = bounds[row], bounds[row + 1]
        first = np.sort(np.unique(drawn[start:end], return_index=True)[1]) + start
        places[row, :width] = drawn[first]
        values[row, :width] = drawn_values[first]

    diagonal = places == np.arange(order)[:, None]
    values[diagonal] = 0.5
    beside = np.flatnonzero(~diagonal.any(axis=1))
    places[beside, width] = beside
    values[beside, width] = 0.5
    return places, values


def spread(starts, counts):
    """The indices starts[i], starts[i] + 1, ... (counts[i] of them), one i after the other."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(counts.sum())


class Block:
    """The elements of the matrix in some rows and columns, and their product with a vector.

    The matrix is the sum of ``scale[i] v_i v_i'`` over the random vectors, plus ``(CONDITION -
    shift)`` on the diagonal.
    """

    def __init__(self, problem, rows, columns):
        """Assemble the part in the ranges `rows` and `columns`."""
        places, values = random_vectors(problem)
        ratio = CONDITION ** (1.0 / problem.order)
        scale = np.full(problem.order, ratio)
        scale[0] = 1.0
        scale = np.multiply.accumulate(scale)

        # An element of v_i in our rows, sorted by row, meets every element of v_i in our columns.
        vector, place = np.nonzero((places >= rows.start) & (places < rows.stop))
        row = places[vector, place] - rows.start
        by_row = np.argsort(row, kind="stable")
        row, vector, place = row[by_row], vector[by_row], place[by_row]
        row_value = values[vector, place]

        inside = (places >= columns.start) & (places < columns.stop)
        partners = inside.sum(axis=1)
        partner_starts = np.cumsum(partners) - partners
        column = places[inside] - columns.start
        column_value = values[inside] * np.repeat(scale, partners)

        # Whole rows at a time, about as many products as the cache holds.
        at_once = max(1, NONZEROS_AT_ONCE * len(rows) // max(1, partners[vector].sum()))
        self.parts = []
        for first in range(0, len(rows), at_once):
            last = min(first + at_once, len(rows))
            part = slice(*np.searchsorted(row, (first, last)))
            counts = partners[vector[part]]
            partner = spread(partner_starts[vector[part]], counts)
            diagonal = np.arange(
                max(first + rows.start, columns.start), min(last + rows.start, columns.stop)
            )
            row_of = np.concatenate((np.repeat(row[part], counts), diagonal - rows.start)) - first
            column_of = np.concatenate((column[partner], diagonal - columns.start))
            product = np.concatenate(
                (
                    np.repeat(row_value[part], counts) * column_value[partner],
                    np.full(len(diagonal), CONDITION - problem.shift),
                )
            )
            # reduceat, here and in the product, wants no empty row: such a row gets a zero.
            empty = np.flatnonzero(np.bincount(row_of, minlength=last - first) == 0)
            key = np.concatenate((row_of * len(columns) + column_of, empty * len(columns)))
            product = np.concatenate((product, np.zeros(len(empty))))
            by_key = np.argsort(key, kind="stable")
            key = key[by_key]
            new = np.flatnonzero(np.diff(key, prepend=-1))
            key, product = key[new], np.add.reduceat(product[by_key], new)
            starts = np.searchsorted(key, np.arange(last - first) * len(columns))
            self.parts.append((slice(first, last), key % len(columns), product, starts))
        self.room = np.empty(max(len(values) for _, _, values, _ in self.parts))

    def times(self, vector, out):
        """Store the product with `vector` in `out`."""
        for rows, columns, values, starts in self.parts:
            product = self.room[: len(values)]
            np.take(vector, columns, out=product, mode="clip")
            product *= values
            np.add.reduceat(product, starts, out=out[rows])


def evenly(order, parts, index):
    """The range of part `index` when `order` things are dealt out, the first parts one more."""
    size, more = divmod(order, parts)
    start = index * size + min(index, more)
    return range(start, start + size + (index < more))


class Grid:
    """The place of this rank in NPB's grid, its partners, and the sums over a row of the grid."""

    def __init__(self, comm, order):
        """Lay out the ranks of `comm`, a power of two, for a matrix of `order` rows."""
        self.comm = comm
        rank, size = comm.Get_rank(), comm.Get_size()
        height = 1 << (size.bit_length() - 1) // 2
        width = size // height
        row, column = divmod(rank, width)
        self.rows = evenly(order, height, row)
        if width == height:
            self.columns = evenly(order, width, column)
            self.transposed = rank % height * height + rank // height
            self.share = slice(0, len(self.rows))
        else:  # two ranks side by side share the part of the transposed one
            pair = evenly(order, height, column // 2)
            middle = (len(pair) + 1) // 2
            self.columns = pair[middle:] if rank % 2 else pair[:middle]
            self.transposed = 2 * (rank // 2 % height * height + rank // 2 // height) + rank % 2
            middle = (len(self.rows) + 1) // 2
            self.share = slice(middle, len(self.rows)) if rank % 2 else slice(0, middle)

        self.partners = []
        distance = width // 2
        while distance:
            self.partners.append(row * width + (column ^ distance))
            distance //= 2
        # The first partner at the nearest distance needs the half that is not ours.
        whole = slice(0, len(self.rows))
        self.halves = []
        for step in reversed(range(len(self.partners))):
            given = self.share
            if width != height and step == len(self.partners) - 1:
                given = slice(self.share.stop, whole.stop)
                if rank % 2:
                    given = slice(0, self.share.start)
            self.halves.append((step + 1, self.partners[step], given))
        self.received = np.empty(len(self.rows))
        self.scalars = {1: np.empty(1), 2: np.empty(2)}

    def sum_row(self, *terms):
        """The sums of one or two numbers over a row of the grid."""
        mine, theirs = np.array(terms), self.scalars[len(terms)]
        for step, partner in enumerate(self.partners, 1):
            request = self.comm.Irecv(theirs, partner, step)
            self.comm.Send(mine, partner, step)
            request.Wait()
            mine += theirs
        return mine if len(terms) > 1 else float(mine[0])

    def hand_over(self, product, out):
        """Sum `product` (of our rows) over the row of the grid; `out` gets that of our columns."""
        received = self.received[self.share]
        for step, partner, given in self.halves:
            request = self.comm.Irecv(received, partner, step)
            self.comm.Send(product[given], partner, step)
            request.Wait()
            product[self.share] += received
        if self.partners:
            request = self.comm.Irecv(out, self.transposed, 1)
            self.comm.Send(product[self.share], self.transposed, 1)
            request.Wait()
        else:
            out[:] = product


class Solver:
    """The conjugate-gradient solver of one rank, with its vectors."""

    def __init__(self, grid, block):
        """Solve with the matrix whose part in our place of `grid` is `block`."""
        self.grid, self.block = grid, block
        columns = len(grid.columns)
        self.z, self.r, self.p, self.q, self.step = (np.empty(columns) for _ in range(5))
        self.w = np.empty(len(grid.rows))

    def multiply(self, vector, out):
        """`out` = A `vector`, both spread over the columns of the grid."""
        self.block.times(vector, self.w)
        self.grid.hand_over(self.w, out)

    def solve(self, x):
        """Approximate z with A z = x: (z, ||x - A z||); the next call overwrites z."""
        z, r, p, q, step = self.z, self.r, self.p, self.q, self.step
        z[:] = 0.0
        r[:] = x
        p[:] = x
        rho = self.grid.sum_row(r @ r)
        for _ in range(CG_STEPS):
            self.multiply(p, q)
            alpha = rho / self.grid.sum_row(p @ q)
            z += np.multiply(p, alpha, out=step)
            r -= np.multiply(q, alpha, out=step)
            rho, before = self.grid.sum_row(r @ r), rho
            p *= rho / before
            p += r
        self.multiply(z, q)
        q -= x
        return z, math.sqrt(self.grid.sum_row(q @ q))


def power_iterations(solver, problem, count, report):
    """Inverse power iteration from a vector of ones: the last estimate of the eigenvalue."""
    x = np.ones(len(solver.grid.columns))
    zeta = 0.0
    for iteration in range(1, count + 1):
        z, residual = solver.solve(x)
        xz, zz = solver.grid.sum_row(x @ z, z @ z)
        zeta = problem.shift + 1.0 / float(xz)
        report(iteration, residual, zeta)
        np.multiply(z, 1.0 / math.sqrt(zz), out=x)
    return zeta


def fortran(value, width=20, digits=12):
    """A number as Fortran's E format writes it, as NPB's reports do."""
    exponent = math.floor(math.log10(abs(value))) + 1 if value else 0
    return f"{value / 10.0**exponent:.{digits}f}E{exponent:+03d}".rjust(width)


def verify(problem, iterations, zeta):
    """Print NPB's verdict; false if zeta is wrong."""
    print(" Benchmark completed")
    if iterations != problem.iterations:
        print(f" Zeta is     {fortran(zeta)}")
        print(f" NO VERIFICATION PERFORMED (it takes {problem.iterations} iterations)")
        return True
    error = abs(zeta - problem.zeta) / problem.zeta
    if error <= TOLERANCE:
        print(" VERIFICATION SUCCESSFUL")
        print(f" Zeta is     {fortran(zeta)}")
        print(f" Error is    {fortran(error)}")
        return True
    print(" VERIFICATION FAILED")
    print(f" Zeta                {fortran(zeta)}")
    print(f" The correct zeta is {fortran(problem.zeta)}")
    return False


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    parser = argparse.ArgumentParser(description="NAS Parallel Benchmarks, kernel CG")
    parser.add_argument("--class", dest="name", choices=CLASSES, default="S", help="problem size")
    parser.add_argument(
        "--iterations", type=int, metavar="N", help="outer iterations, instead of the class's own"
    )
    options = parser.parse_args()
    problem = CLASSES[options.name]
    iterations = problem.iterations if options.iterations is None else options.iterations
    if iterations < 1:
        parser.error(f"--iterations: found {iterations}, expected at least 1")

    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    if size & (size - 1):
        sys.exit(f"npb_cg.py: found {size} ranks, expected a power of two" if rank == 0 else 1)

    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- CG Benchmark\n")
        print(f" Size: {problem.order:10d}\n Iterations: {iterations:5d}")
        print(f" Number of active processes: {size:5d}")
        print(f" Number of nonzeroes per row: {problem.nonzeros:8d}")
        print(f" Eigenvalue shift: {problem.shift:8.3f}\n")

    def report(iteration, residual, zeta):
        if rank == 0:
            if iteration == 1:
                print("   iteration           ||r||                 zeta")
            print(f"    {iteration:5d}       {residual:.14E}{zeta:20.13f}", flush=True)

    grid = Grid(comm, problem.order)
    block = Block(problem, grid.rows, grid.columns)
    solver = Solver(grid, block)
    power_iterations(solver, problem, 1, lambda *_: None)  # touches all data before the clock

    comm.Barrier()
    start = MPI.Wtime()
    zeta = power_iterations(solver, problem, iterations, report)
    seconds = comm.reduce(MPI.Wtime() - start, op=MPI.MAX, root=0)

    good = True
    if rank == 0:
        good = verify(problem, iterations, zeta)
        per_row = problem.nonzeros * (problem.nonzeros + 1)
        work = 2.0 * iterations * problem.order * (6.0 + per_row + CG_STEPS * (5.0 + per_row))
        rate = work / seconds / 1e6 if seconds > 0.0 else math.inf
        print("\n CG Benchmark Completed.")
        print(f" Class           = {problem.name:>24s}")
        print(f" Size            = {problem.order:24d}")
        print(f" Iterations      = {iterations:24d}")
        print(f" Time in seconds = {seconds:24.6f}")
        print(f" Total processes = {size:24d}")
        print(f" Mop/s total     = {rate:24.2f}")
        print(f" Mop/s/process   = {rate / size:24.2f}")
        print(f" Verification    = {'SUCCESSFUL' if good else 'UNSUCCESSFUL':>24s}", flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
