"""NAS Parallel Benchmarks, kernel MG: a Poisson equation, solved by multigrid V-cycles.

    mpiexec -n 4 python npb_mg.py --class A

The grid is periodic and has three dimensions; the right side is +1 at ten random points and -1 at
ten others.  The norm of the residual after some V-cycles is compared with the one that NPB
publishes, to 1e-8.

The ranks, any power of two, form a grid of three dimensions.  After each step a rank exchanges
faces with two neighbours along each axis, one axis after the other, so that edges and corners
travel along.  On coarse grids there are fewer points than ranks: some ranks have none there, and
their neighbours are farther away.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import itertools
import math
import sys
from dataclasses import dataclass

import npb
import numpy as np
from mpi4py import MPI

CHARGES = 10  # of each sign
TOLERANCE = 1e-8
# Weights of a point, its neighbours at faces, at edges, at corners.
OPERATOR = (-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0)
SMOOTHER_SMALL = (-3.0 / 8.0, 1.0 / 32.0, -1.0 / 64.0)
SMOOTHER_LARGE = (-3.0 / 17.0, 1.0 / 33.0, -1.0 / 61.0)
X, Y, Z = 2, 1, 0  # axes of the arrays: x runs fastest
INNER = slice(1, -1)


@dataclass(frozen=True)
class Problem:
    """One NPB class: its size, and the norm that NPB publishes."""

    edge_log: int  # points along an edge, as a power of two
    iterations: int
    smoother: tuple[float, float, float]
    norm: float


CLASSES = {
    "S": Problem(5, 4, SMOOTHER_SMALL, 0.5307707005734e-04),
    "W": Problem(7, 4, SMOOTHER_SMALL, 0.6467329375339e-05),
    "A": Problem(8, 4, SMOOTHER_SMALL, 0.2433365309069e-05),
    "B": Problem(8, 20, SMOOTHER_LARGE, 0.1800564401355e-05),
    "C": Problem(9, 20, SMOOTHER_LARGE, 0.5706732285740e-06),
}


@dataclass
class Level:
    """A rank's part of one grid; lists are by axis (z, y, x).

    `shape` is that of the rank's part with a layer of its neighbours' points around it; a rank
    without points of its own has a part that is 2 thick.  On the way down to the next coarser
    grid some ranks lose all points along an axis: `gives` says that this rank's points are still
    needed by such a neighbour when the correction comes back, `takes` that it is the neighbour.
    """

    shape: tuple[int, int, int]
    below: list[int]  # neighbours towards lower coordinates
    above: list[int]
    gives: list[bool]
    takes: list[bool]

    @property
    def dead(self):
        """Whether the rank has no points."""
        return 2 in self.shape


class Grid:
    """The ranks as a grid, and their parts of all levels, the finest last."""

    def __init__(self, comm, levels):
        """Lay out the ranks of `comm`, a power of two, for an edge of 2**levels points."""
        self.comm = comm
        rank, size = comm.Get_rank(), comm.Get_size()
        log_size = size.bit_length() - 1
        wide = 1 << log_size // 3
        high = 1 << (log_size - log_size // 3) // 2
        self.ranks = (size // (wide * high), high, wide)
        self.place = (rank // (wide * high), rank // wide % high, rank % wide)
        edge = 1 << levels
        self.starts = [edge * at // parts for at, parts in zip(self.place, self.ranks)]

        self.levels = []
        distance = [1, 1, 1]
        finer = ([False] * 3, [False] * 3)  # gives and takes of the next finer level
        for log in range(levels, 0, -1):
            edge, shape = 1 << log, []
            gives, takes = [False] * 3, [False] * 3
            for axis, (at, parts) in enumerate(zip(self.place, self.ranks)):
                mine = 2 + (at + 1) * edge // parts - at * edge // parts
                next_at = at + distance[axis]
                other = 2 + (next_at + 1) * edge // parts - next_at * edge // parts
                if 2 in (mine, other):
                    distance[axis] *= 2
                if log < levels:
                    finer[0][axis] = (other, mine) == (2, 3)
                    finer[1][axis] = (other, mine) == (3, 2)
                shape.append(mine)
            below = [self.neighbour(axis, -distance[axis]) for axis in range(3)]
            above = [self.neighbour(axis, distance[axis]) for axis in range(3)]
            self.levels.append(Level(tuple(shape), below, above, gives, takes))
            finer = (gives, takes)
        self.levels.reverse()

    def neighbour(self, axis, steps):
        """The rank that is `steps` places away along an axis."""
        place = list(self.place)
        place[axis] = (place[axis] + steps) % self.ranks[axis]
        return (place[0] * self.ranks[1] + place[1]) * self.ranks[2] + place[2]

    def exchange(self, level, field):
        """Fill the layer around `field` with the neighbours' points (NPB's comm3)."""
        if level.dead:
            field[:] = 0.0
            return
        for axis in (X, Y, Z):
            # Axes that were exchanged before take their layers along.
            span = [slice(None) if axis < other else INNER for other in range(3)]
            low, first, last, high = (
                (*span[:axis], at, *span[axis + 1 :]) for at in (0, 1, -2, -1)
            )
            if self.comm.Get_size() == 1:
                field[low], field[high] = field[last], field[first]
                continue
            from_above, from_below = np.empty_like(field[high]), np.empty_like(field[low])
            tags = (100 * (1 + 10 * (3 - axis)), 100 * (3 + 10 * (3 - axis)))
            down = self.comm.Irecv(from_above, level.above[axis], tags[0])
            up = self.comm.Irecv(from_below, level.below[axis], tags[1])
            self.comm.Send(np.ascontiguousarray(field[last]), level.above[axis], tags[1])
            self.comm.Send(np.ascontiguousarray(field[first]), level.below[axis], tags[0])
            down.Wait()
            field[high] = from_above
            up.Wait()
            field[low] = from_below

    def hand_back(self, level, field):
        """Give points to neighbours that had none on the coarser grid (NPB's comm3_ex)."""
        for axis in (X, Y, Z):
            span = [slice(None)] * 3
            low, first, last, high = (
                (*span[:axis], at, *span[axis + 1 :])
                for at in (slice(0, 2), slice(1, 2), slice(-2, None), slice(-1, None))
            )
            tags = (100 * (1 + 10 * (3 - axis)), 100 * (3 + 10 * (3 - axis)))
            if level.takes[axis]:
                from_above, from_below = np.empty_like(field[high]), np.empty_like(field[low])
                down = self.comm.Irecv(from_above, level.above[axis], tags[0])
                up = self.comm.Irecv(from_below, level.below[axis], tags[1])
                down.Wait()
                field[high] = from_above
                up.Wait()
                field[low] = from_below
            if level.gives[axis]:
                self.comm.Send(np.ascontiguousarray(field[last]), level.above[axis], tags[1])
                self.comm.Send(np.ascontiguousarray(field[first]), level.below[axis], tags[0])


def shifted(field, z, y, x):
    """The inner points of `field`, moved by -1, 0 or 1 along each axis."""
    depth, height, width = field.shape
    return field[1 + z : depth - 1 + z, 1 + y : height - 1 + y, 1 + x : width - 1 + x]


def around(field):
    """For inner z and y, all x: the sums of the four neighbours at faces, and at edges."""
    sides = field[INNER, :-2] + field[INNER, 2:]
    sides += field[:-2, INNER]
    sides += field[2:, INNER]
    edges = field[:-2, :-2] + field[:-2, 2:]
    edges += field[2:, :-2]
    edges += field[2:, 2:]
    return sides, edges


class Solver:
    """The multigrid solver of one rank, with its fields on all levels."""

    def __init__(self, grid, problem):
        """Make room for the correction and the residual on each level."""
        self.grid, self.smoother = grid, problem.smoother
        self.corrections = [np.zeros(level.shape) for level in grid.levels]
        self.residuals = [np.zeros(level.shape) for level in grid.levels]
        self.points = float(1 << 3 * problem.edge_log)
        self.right = np.zeros(grid.levels[-1].shape)

    def residual(self, index, right):
        """residual = right - A correction, on a level."""
        correction, out = self.corrections[index], self.residuals[index]
        sides, edges = around(correction)
        found = right[INNER, INNER, INNER] - OPERATOR[0] * correction[INNER, INNER, INNER]
        found -= OPERATOR[2] * (edges[..., INNER] + sides[..., :-2] + sides[..., 2:])
        found -= OPERATOR[3] * (edges[..., :-2] + edges[..., 2:])
        out[INNER, INNER, INNER] = found
        self.grid.exchange(self.grid.levels[index], out)

    def smooth(self, index):
        """correction += S residual, on a level."""
        residual, correction = self.residuals[index], self.corrections[index]
        sides, edges = around(residual)
        found = self.smoother[0] * residual[INNER, INNER, INNER]
        found += self.smoother[1] * (
            residual[INNER, INNER, :-2] + residual[INNER, INNER, 2:] + sides[..., INNER]
        )
        found += self.smoother[2] * (edges[..., INNER] + sides[..., :-2] + sides[..., 2:])
        correction[INNER, INNER, INNER] += found
        self.grid.exchange(self.grid.levels[index], correction)

    def restrict(self, index):
        """The residual of a level on the next coarser one."""
        fine, coarse = self.residuals[index], self.residuals[index - 1]
        spans = []
        for size, small in zip(fine.shape, coarse.shape):
            # A rank with one point has it at the even place or at the odd one.
            start = 1 if size == 3 else 2
            spans.append([slice(start + at, start + at + 2 * (small - 2), 2) for at in (-1, 0, 1)])
        found = np.zeros([max(0, size - 2) for size in coarse.shape])
        if found.size:
            for offsets in itertools.product((-1, 0, 1), repeat=3):
                weight = 0.5 ** (1 + sum(map(abs, offsets)))
                found += weight * fine[tuple(span[1 + at] for span, at in zip(spans, offsets))]
        coarse[INNER, INNER, INNER] = found
        self.grid.exchange(self.grid.levels[index - 1], coarse)

    def interpolate(self, index):
        """Add the correction of the next coarser level to that of a level."""
        coarse, fine = self.corrections[index - 1], self.corrections[index]
        for between in itertools.product((False, True), repeat=3):
            targets, spans = [], []
            for small, size, halfway in zip(coarse.shape, fine.shape, between):
                # A coarse point is at every second fine one; a rank with one fine point has it
                # at the coarse point 1, others have coarse point 0 at their fine point 0.
                single = size == 3
                start = 1 if single and not halfway else 0
                target = 1 if single != halfway else 0
                count = small - 1 - start
                targets.append(slice(target, target + 2 * count, 2))
                spans.append([slice(at, at + count) for at in range(start, start + 1 + halfway)])
            total = sum(coarse[span] for span in itertools.product(*spans))
            fine[tuple(targets)] += 0.5 ** sum(between) * total
        self.grid.hand_back(self.grid.levels[index], fine)

    def norm(self):
        """The root of the mean square of the residual on the finest level."""
        inner = self.residuals[-1][INNER, INNER, INNER]
        largest, square = np.array([np.abs(inner).max(initial=0.0)]), np.array([np.sum(inner**2)])
        self.grid.comm.Allreduce(MPI.IN_PLACE, largest, op=MPI.MAX)
        self.grid.comm.Allreduce(MPI.IN_PLACE, square)
        return math.sqrt(square[0] / self.points)

    def start(self):
        """Set the right side, no correction, and the residual; returns its norm."""
        self.right[:] = 0.0
        charge(self.grid, self.right)
        self.grid.exchange(self.grid.levels[-1], self.right)
        self.corrections[-1][:] = 0.0
        self.residual(len(self.residuals) - 1, self.right)
        return self.norm()

    def cycle(self):
        """One V-cycle, and the residual after it."""
        top = len(self.residuals) - 1
        for index in range(top, 0, -1):
            self.restrict(index)
        self.corrections[0][:] = 0.0
        self.smooth(0)
        for index in range(1, top):
            self.corrections[index][:] = 0.0
            self.interpolate(index)
            self.residual(index, self.residuals[index])
            self.smooth(index)
        self.interpolate(top)
        self.residual(top, self.right)
        self.smooth(top)
        self.residual(top, self.right)


def charge(grid, field):
    """Put -1 at the places of the smallest numbers of a random field, +1 at the largest."""
    inner = field[INNER, INNER, INNER]
    edge = 1 << len(grid.levels)
    numbers = np.empty(inner.shape)
    table = npb.powers(edge)
    for z, plane in enumerate(numbers):
        for y, line in enumerate(plane):
            before = ((grid.starts[Z] + z) * edge + grid.starts[Y] + y) * edge + grid.starts[X]
            line[:] = npb.uniforms(npb.skip(npb.SEED, before), len(line), table)
    flat = numbers.reshape(-1)
    for sign, operation in ((-1.0, MPI.MIN), (1.0, MPI.MAX)):
        order = np.argsort(-sign * flat, kind="stable")[:CHARGES]
        taken = 0
        for _ in range(CHARGES):
            mine = flat[order[taken]] if taken < len(order) else 0.5 - sign
            best = np.array([mine])
            grid.comm.Allreduce(MPI.IN_PLACE, best, op=operation)
            if best[0] == mine:
                inner[np.unravel_index(order[taken], inner.shape)] = sign
                taken += 1


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    parsed = npb.options("kernel MG", CLASSES, npb.power_of_two)
    problem = CLASSES[parsed.name]
    edge = 1 << problem.edge_log
    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- MG Benchmark\n")
        print(f" Size: {edge}x{edge}x{edge}  (class {parsed.name})")
        print(f" Iterations: {problem.iterations:5d}\n Number of processes: {size:5d}", flush=True)
    grid = Grid(comm, problem.edge_log)
    solver = Solver(grid, problem)
    solver.start()
    solver.cycle()  # touches all data before the clock
    solver.start()

    comm.Barrier()
    start = MPI.Wtime()
    solver.residual(len(solver.residuals) - 1, solver.right)
    solver.norm()
    for iteration in range(1, problem.iterations + 1):
        if rank == 0 and (iteration in (1, problem.iterations) or iteration % 5 == 0):
            print(f"  iter {iteration:4d}", flush=True)
        solver.cycle()
    norm = solver.norm()
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)

    good = npb.close(norm, problem.norm, TOLERANCE)
    if rank == 0:
        print(f" L2 norm is {norm:.13e}, expected {problem.norm:.13e}")
        work = 58.0 * problem.iterations * edge**3
        shape = f"{edge}x{edge}x{edge}"
        npb.report("MG", parsed.name, shape, problem.iterations, size, seconds, work, good)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
