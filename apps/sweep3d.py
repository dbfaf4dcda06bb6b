"""A transport sweep in the manner of Sweep3D: particles through a box, direction by direction.

    mpiexec -n 4 python sweep3d.py --edge 16 --iterations 4

The flux of particles in a box follows from sweeps in the directions of eight octants, each of
which begins in another corner.  The ranks form a grid of two dimensions, and each holds a column
of the box. It works on a few planes and a few angles at a time: it receives the inflow from two
neighbours, and sends the outflow to the two others, so that all octants run through the ranks as
waves. Between sweeps the scattered particles become sources.

The program checks itself: in each iteration as many particles are absorbed, scattered or leave as
the sources make, to 1e-12, and the flux is that of its mirror image in all three directions.

Reference: K. R. Koch, R. S. Baker, R. E. Alcouffe, "Solution of the First-Order Form of the 3-D
Discrete Ordinates Equation on a Massively Parallel Processor", Trans. ANS 65 (1992).
"""

import argparse
import itertools
import math
import sys

import numpy as np
from mpi4py import MPI

TOTAL, SCATTERED, SOURCE = 1.0, 0.5, 1.0  # cross sections, particles made
BOX = 4.0  # edge, in mean free paths
# Cosines and weights of the S6 level-symmetric quadrature, of one octant.
COSINES = (0.2666355, 0.6815076, 0.9261808)
WEIGHTS = {(0, 0, 2): 0.1761263, (0, 1, 1): 0.1572071}
TOLERANCE = 1e-12


def angles():
    """Directions (3, angles) of an octant and their weights, which sum to an eighth."""
    found = [
        (levels, WEIGHTS[tuple(sorted(levels))])
        for levels in itertools.product(range(3), repeat=3)
        if sum(levels) == 2
    ]
    directions = np.array([[COSINES[level] for level in levels] for levels, _ in found]).T
    weights = np.array([weight for _, weight in found])
    return directions, weights / weights.sum() / 8.0


def share(points, parts, index):
    """The number of `points` of part `index`, and the first of them."""
    size, more = divmod(points, parts)
    return size + (index < more), index * size + min(index, more)


class Sweep:
    """The part of the box of one rank, and its sweeps."""

    def __init__(self, comm, edge, planes, angles_at_once):
        """Lay out the ranks of `comm` for a box of `edge` cells along an edge."""
        self.comm, self.edge, self.planes = comm, edge, planes
        size, rank = comm.Get_size(), comm.Get_rank()
        self.height = next(rows for rows in range(math.isqrt(size), 0, -1) if size % rows == 0)
        self.width = size // self.height
        self.row, self.column = divmod(rank, self.width)
        (self.nx, self.x), (self.ny, self.y) = (
            share(edge, self.width, self.column),
            share(edge, self.height, self.row),
        )
        directions, weights = angles()
        count = len(weights)
        self.angles = [
            (directions[:, start : start + angles_at_once], weights[start : start + angles_at_once])
            for start in range(0, count, angles_at_once)
        ]
        self.flux = np.zeros((edge, self.ny, self.nx))
        self.leaked = 0.0
        self.order = {}  # cells of a block by diagonal, for each number of planes

    def neighbour(self, row, column):
        """The rank at a place of the grid, or none."""
        if 0 <= row < self.height and 0 <= column < self.width:
            return row * self.width + column
        return MPI.PROC_NULL

    def diagonals(self, planes):
        """The cells (z, y, x) of a block, grouped so that each group needs those before only."""
        if planes not in self.order:
            cells = np.indices((planes, self.ny, self.nx)).reshape(3, -1)
            level = cells.sum(0)
            self.order[planes] = [cells[:, level == at] for at in range(level.max() + 1)]
        return self.order[planes]

    def octant(self, signs, source, flux):
        """Sweep in the directions of one octant; adds to `flux`, returns the outflow of the box."""
        z_sign, y_sign, x_sign = signs
        flip = (slice(None, None, z_sign), slice(None, None, y_sign), slice(None, None, x_sign))
        source, flux = source[flip], flux[flip]
        west = self.neighbour(self.row, self.column - x_sign)
        east = self.neighbour(self.row, self.column + x_sign)
        north = self.neighbour(self.row - y_sign, self.column)
        south = self.neighbour(self.row + y_sign, self.column)
        cell = BOX / self.edge
        leaked = 0.0
        for directions, weights in self.angles:
            flow = 2.0 / cell * directions  # of x, y, z
            below = np.zeros((self.ny, self.nx, len(weights)))
            for first in range(0, self.edge, self.planes):
                planes = min(self.planes, self.edge - first)
                from_x = np.zeros((planes, self.ny, len(weights)))
                from_y = np.zeros((planes, self.nx, len(weights)))
                if west != MPI.PROC_NULL:
                    self.comm.Recv(from_x, west, 1)
                if north != MPI.PROC_NULL:
                    self.comm.Recv(from_y, north, 2)
                for z, y, x in self.diagonals(planes):
                    inflow = from_x[z, y], from_y[z, x], below[y, x]
                    inside = source[first + z, y, x, None]
                    inside = inside + sum(rate * part for rate, part in zip(flow, inflow))
                    inside /= TOTAL + flow.sum(0)
                    flux[first + z, y, x] += inside @ weights
                    from_x[z, y] = 2.0 * inside - inflow[0]
                    from_y[z, x] = 2.0 * inside - inflow[1]
                    below[y, x] = 2.0 * inside - inflow[2]
                if east != MPI.PROC_NULL:
                    self.comm.Send(from_x, east, 1)
                else:
                    leaked += float((from_x @ (weights * directions[0])).sum())
                if south != MPI.PROC_NULL:
                    self.comm.Send(from_y, south, 2)
                else:
                    leaked += float((from_y @ (weights * directions[1])).sum())
            leaked += float((below @ (weights * directions[2])).sum())
        return leaked * cell**2

    def iterate(self):
        """Sweep all octants; returns the relative error of the balance of particles."""
        source = SOURCE + SCATTERED * self.flux
        flux = np.zeros_like(self.flux)
        leaked = sum(
            self.octant(signs, source, flux) for signs in itertools.product((1, -1), repeat=3)
        )
        cell = (BOX / self.edge) ** 3
        change = float(np.abs(flux - self.flux).max(initial=0.0))
        sums = np.array([source.sum() * cell, TOTAL * flux.sum() * cell + leaked])
        self.comm.Allreduce(MPI.IN_PLACE, sums)
        self.flux = flux
        return abs(sums[1] / sums[0] - 1.0), self.comm.allreduce(change, op=MPI.MAX)

    def asymmetry(self):
        """The relative moments of the flux around the middle; none, for a symmetric flux."""
        moments = np.empty(4)
        moments[3] = self.flux.sum()
        for axis, (first, count) in enumerate(
            ((0, self.edge), (self.y, self.ny), (self.x, self.nx))
        ):
            along = self.flux.sum(tuple(other for other in range(3) if other != axis))
            moments[axis] = along @ (first + np.arange(count) - (self.edge - 1) / 2.0)
        self.comm.Allreduce(MPI.IN_PLACE, moments)
        return float(np.abs(moments[:3]).max() / moments[3] / self.edge), float(moments[3])


def main():
    """Sweep on all ranks; rank 0 reports.  The exit status is 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--edge", type=int, default=16, help="cells along an edge (16)")
    parser.add_argument("--iterations", type=int, default=4, help="iterations (4)")
    parser.add_argument("--planes", type=int, default=4, help="planes of a message (4)")
    parser.add_argument("--angles", type=int, default=3, help="angles of a message (3)")
    arguments = parser.parse_args()
    if min(arguments.edge, arguments.iterations, arguments.planes, arguments.angles) < 1:
        parser.error("expected --edge, --iterations, --planes and --angles from 1")
    comm = MPI.COMM_WORLD
    sweep = Sweep(comm, arguments.edge, arguments.planes, arguments.angles)
    if arguments.edge < max(sweep.height, sweep.width):
        parser.error(f"--edge: expected {max(sweep.height, sweep.width)} or more on these ranks")

    comm.Barrier()
    start = MPI.Wtime()
    worst = 0.0
    for _ in range(arguments.iterations):
        error, change = sweep.iterate()
        worst = max(worst, error)
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)
    asymmetry, total = sweep.asymmetry()
    good = worst < TOLERANCE and asymmetry < TOLERANCE
    if comm.Get_rank() == 0:
        print(f"cells              {arguments.edge}^3 on {sweep.height} x {sweep.width} ranks")
        print(f"mean flux          {total / arguments.edge**3:.12f}")
        print(f"last change        {change:.3e}")
        print(f"balance            {worst:.1e}")
        print(f"asymmetry          {asymmetry:.1e}")
        print(f"time               {seconds:.6f} s")
        print(f"VERIFICATION {'SUCCESSFUL' if good else 'FAILED'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
