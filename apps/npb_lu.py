"""NAS Parallel Benchmarks, application LU: the Navier-Stokes equations by SSOR.

    mpiexec -n 4 python npb_lu.py --class A

Symmetric successive over-relaxation solves the compressible equations on a cube.  Each iteration
sweeps through a block lower triangular system, plane by plane, and back through an upper one.  The
ranks form a grid of two dimensions, and each holds a column of the cube: a rank waits for the
edges of a plane from north and west, works on the plane, sends its edges to south and east, and
takes the next plane.  So the sweep runs through the ranks as a wave.  Once in an iteration the
ranks exchange two layers of points with their four neighbours for the residual.

The norms of the residual and of the error and a surface integral are compared with those that NPB
publishes, to 1e-8.  Unlike NPB this program integrates without exchanges, by weights of points.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import math
import sys
from dataclasses import dataclass

import npb
import numpy as np
from mpi4py import MPI

TOLERANCE = 1e-8
OMEGA = 1.2  # over-relaxation
UNKNOWNS = 5  # density, momenta, energy
C1, C2, C34, C1345 = 1.4, 0.4, 0.1, 0.196  # gas: c1, c2, c3 c4, c1 c3 c4 c5
DIFFUSION = (0.75, 0.75, 1.0)  # along x, y, z
DISSIPATION = max(DIFFUSION) / 4.0
# Coefficients of the exact solution, by unknown: 1, then the powers of x, y and z.
EXACT = np.array(
    [
        [2.0, 0.0, 0.0, 4.0, 5.0, 3.0, 0.5, 0.02, 0.01, 0.03, 0.5, 0.4, 0.3],
        [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 0.01, 0.03, 0.02, 0.4, 0.3, 0.5],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.04, 0.03, 0.05, 0.3, 0.5, 0.4],
        [2.0, 2.0, 0.0, 0.0, 0.0, 2.0, 3.0, 0.03, 0.05, 0.04, 0.2, 0.1, 0.3],
        [5.0, 4.0, 3.0, 2.0, 0.1, 0.4, 0.3, 0.05, 0.04, 0.03, 0.1, 0.3, 0.2],
    ]
)
X, Y, Z = 0, 1, 2
# Fields are arrays (unknown, z, y, x) with two layers around in x and y, none in z.
INNER = slice(2, -2)
SOUTHWARD, NORTHWARD, EASTWARD, WESTWARD = 1, 2, 3, 4  # tags: from_n, from_s, from_w, from_e


@dataclass(frozen=True)
class Problem:
    """One NPB class: its size, and the answers that NPB publishes."""

    edge: int
    iterations: int
    step: float
    residual: tuple[float, ...]
    error: tuple[float, ...]
    integral: float


CLASSES = {
    "S": Problem(
        12, 50, 0.5,
        (1.6196343210976702e-02, 2.1976745164821318e-03, 1.5179927653399185e-03,
         1.5029584435994323e-03, 3.4264073155896461e-02),
        (6.4223319957960924e-04, 8.4144342047347926e-05, 5.8588269616485186e-05,
         5.8474222595157350e-05, 1.3103347914111294e-03),
        7.8418928865937083e+00,
    ),
    "W": Problem(
        33, 300, 1.5e-3,
        (0.1236511638192e+02, 0.1317228477799e+01, 0.2550120713095e+01,
         0.2326187750252e+01, 0.2826799444189e+02),
        (0.4867877144216e+00, 0.5064652880982e-01, 0.9281818101960e-01,
         0.8570126542733e-01, 0.1084277417792e+01),
        0.1161399311023e+02,
    ),
    "A": Problem(
        64, 250, 2.0,
        (7.7902107606689367e+02, 6.3402765259692870e+01, 1.9499249727292479e+02,
         1.7845301160418537e+02, 1.8384760349464247e+03),
        (2.9964085685471943e+01, 2.8194576365003349e+00, 7.3473412698774742e+00,
         6.7139225687777051e+00, 7.0715315688392578e+01),
        2.6030925604886277e+01,
    ),
    "B": Problem(
        102, 250, 2.0,
        (3.5532672969982736e+03, 2.6214750795310692e+02, 8.8333721850952190e+02,
         7.7812774739425265e+02, 7.3087969592545314e+03),
        (1.1401176380212709e+02, 8.1098963655421574e+00, 2.8480597317698308e+01,
         2.5905394567832939e+01, 2.6054907504857413e+02),
        4.7887162703308227e+01,
    ),
    "C": Problem(
        162, 250, 2.0,
        (1.03766980323537846e+04, 8.92212458801008552e+02, 2.56238814582660871e+03,
         2.19194343857831427e+03, 1.78078057261061185e+04),
        (2.15986399716949279e+02, 1.55789559239863600e+01, 5.41318863077207766e+01,
         4.82262643154045421e+01, 4.55902910043250358e+02),
        6.66404553572181300e+01,
    ),
}  # fmt: skip


def exact(x, y, z):
    """The exact solution at coordinates from 0 to 1, which are broadcast to (z, y, x)."""
    x, y, z, _ = np.broadcast_arrays(x, y, z, np.empty((1, 1, 1)))
    terms = [np.ones_like(x)]
    for exponent in range(1, 5):
        terms += [x**exponent, y**exponent, z**exponent]
    return np.tensordot(EXACT, np.stack(terms), 1)


class Grid:
    """The place of this rank among the ranks, its part of the cube, and its neighbours."""

    def __init__(self, comm, edge):
        """Lay out the ranks of `comm` for a cube of `edge` points along an edge."""
        self.comm, self.edge = comm, edge
        rank, size = comm.Get_rank(), comm.Get_size()
        columns = math.isqrt(size)
        while size % columns:
            columns -= 1
        rows = size // columns
        column, row = divmod(rank, rows)
        self.shape = (rows, columns)
        self.first_x, self.nx = self.share(edge, rows, row)
        self.first_y, self.ny = self.share(edge, columns, column)
        if edge // rows < 4 or edge // columns < 4:  # as NPB
            message = f"npb_lu.py: {rows} x {columns} ranks leave fewer than 4 points along an edge"
            sys.exit(message if rank == 0 else 1)
        none = MPI.PROC_NULL
        self.north = rank - 1 if row > 0 else none
        self.south = rank + 1 if row < rows - 1 else none
        self.west = rank - rows if column > 0 else none
        self.east = rank + rows if column < columns - 1 else none
        # Points that are not on the surface of the cube, in the arrays of fields.
        self.xs = slice(2 + (row == 0), 2 + self.nx - (row == rows - 1))
        self.ys = slice(2 + (column == 0), 2 + self.ny - (column == columns - 1))
        self.zs = slice(1, edge - 1)
        spread = np.arange(-2, edge + 2) / (edge - 1)
        self.x = spread[self.first_x : self.first_x + self.nx + 4]
        self.y = spread[self.first_y : self.first_y + self.ny + 4, None]
        self.z = (np.arange(edge) / (edge - 1))[:, None, None]

    @staticmethod
    def share(points, parts, index):
        """The first point, and the number of points, of part `index`."""
        size, more = divmod(points, parts)
        return index * size + min(index, more), size + (index < more)

    def trade(self, field, axis):
        """Exchange two layers with the neighbours along x or y (NPB's exchange_3)."""
        comm = self.comm
        if axis == X:
            low, high, tags = self.north, self.south, (SOUTHWARD, NORTHWARD)
            line = field[:, :, INNER, :]
        else:
            low, high, tags = self.west, self.east, (EASTWARD, WESTWARD)
            line = np.moveaxis(field[..., INNER], 2, 3)
        below, first, last, above = (
            line[..., at] for at in (slice(0, 2), slice(2, 4), slice(-4, -2), slice(-2, None))
        )
        for source, target, ghost, edge, tag in (
            (low, high, below, last, tags[0]),
            (high, low, above, first, tags[1]),
        ):
            if source != MPI.PROC_NULL:
                received = np.empty(ghost.shape)
                request = comm.Irecv(received, source, tag)
            if target != MPI.PROC_NULL:
                comm.Send(np.ascontiguousarray(edge), target, tag)
            if source != MPI.PROC_NULL:
                request.Wait()
                ghost[:] = received


def convection(state, axis):
    """The flux along an axis of a state (unknown, ...)."""
    momentum = state[1:4]
    speed = momentum[axis] / state[0]
    kinetic = 0.5 * (momentum[0] ** 2 + momentum[1] ** 2 + momentum[2] ** 2) / state[0]
    flux = state * speed
    flux[0] = momentum[axis]
    flux[1 + axis] += C2 * (state[4] - kinetic)
    flux[4] = (C1 * state[4] - C2 * kinetic) * speed
    return flux


def add_derivatives(state, out, axis, spacing, low, high):
    """Add to `out` the contribution of the derivatives along the last dimension of `state`.

    `out` has the inner points, `state` two more at each end.  `low` and `high` say that the point
    next to the inner ones is on the surface of the cube; those beyond are not used then.
    """
    per, count = 1.0 / spacing, out.shape[-1]
    here = state[..., 2:-2]
    flux = convection(state[..., 1:-1], axis)
    out -= 0.5 * per * (flux[..., 2:] - flux[..., :-2])

    # Viscous terms: differences at points halfway, then differences of those.
    primitive = state[1:, ..., 1:-1] / state[0, ..., 1:-1]
    velocity = primitive[:3]
    square = velocity[0] ** 2 + velocity[1] ** 2 + velocity[2] ** 2
    change = per * np.diff(primitive)
    change[axis] *= 4.0 / 3.0
    change[3] = (
        0.5 * (1.0 - C1 * C1) * per * np.diff(square)
        + per / 6.0 * np.diff(velocity[axis] ** 2)
        + C1 * C1 * change[3]
    )
    out[1:] += per * C34 * np.diff(change)
    out += DIFFUSION[axis] * per**2 * np.diff(state[..., 1:-1], 2)

    fourth = state[..., :-4] - 4.0 * state[..., 1:-3] + 6.0 * here
    fourth += state[..., 4:] - 4.0 * state[..., 3:-1]
    if low:  # without the points on the surface
        fourth[..., 0] = 5.0 * here[..., 0] - 4.0 * here[..., 1] + here[..., 2]
        fourth[..., 1] -= state[..., 1]
    if high:
        fourth[..., count - 1] = 5.0 * here[..., -1] - 4.0 * here[..., -2] + here[..., -3]
        fourth[..., count - 2] -= state[..., -2]
    out -= DISSIPATION * fourth


def right_side(grid, state, out):
    """`out`, at inner points = the steady equations' residual of `state`, and its exchanges."""
    spacing = 1.0 / (grid.edge - 1)
    xs, ys, zs = grid.xs, grid.ys, grid.zs
    out[:] = 0.0
    grid.trade(state, X)
    wide = slice(xs.start - 2, xs.stop + 2)
    low, high = grid.north == MPI.PROC_NULL, grid.south == MPI.PROC_NULL
    add_derivatives(state[:, zs, ys, wide], out, X, spacing, low, high)
    grid.trade(state, Y)
    wide = slice(ys.start - 2, ys.stop + 2)
    low, high = grid.west == MPI.PROC_NULL, grid.east == MPI.PROC_NULL
    part = np.moveaxis(state[:, zs, wide, xs], 2, -1)
    add_derivatives(part, np.moveaxis(out, 2, -1), Y, spacing, low, high)
    # Along z there is nothing beyond the surface: any values do there.
    part = np.pad(state[:, :, ys, xs], ((0, 0), (1, 1), (0, 0), (0, 0)), mode="edge")
    part = np.moveaxis(part, 1, -1)
    add_derivatives(part, np.moveaxis(out, 1, -1), Z, spacing, True, True)


class Blocks:
    """The 5 x 5 blocks of the triangular systems."""

    def __init__(self, grid, step):
        """For a time step of `step`."""
        per = grid.edge - 1.0
        self.convective, self.viscous = 0.5 * step * per, step * per**2
        self.viscosity = []  # of the momenta, for each axis
        for axis in range(3):
            factors = np.full(3, C34)
            factors[axis] *= 4.0 / 3.0
            self.viscosity.append(factors[:, None])

    def add_viscous(self, out, axis, velocity, energy, per_density, scale):
        """Add `scale` times the Jacobian of the viscous flux to blocks (point, 5, 5)."""
        factors = self.viscosity[axis]
        drag = scale * factors * per_density
        dissipated = scale * (factors - C1345) * per_density * velocity
        for index in range(3):
            out[:, 1 + index, 0] -= drag[index] * velocity[index]
            out[:, 1 + index, 1 + index] += drag[index]
            out[:, 4, 1 + index] += dissipated[index]
        out[:, 4, 0] -= (dissipated * velocity).sum(0) + scale * C1345 * per_density * energy
        out[:, 4, 4] += scale * C1345 * per_density

    def diagonal(self, state):
        """The blocks of points themselves, for states (5, points)."""
        blocks = np.zeros((state.shape[1], UNKNOWNS, UNKNOWNS))
        per_density = 1.0 / state[0]
        velocity, energy = state[1:4] * per_density, state[4] * per_density
        for axis in range(3):
            self.add_viscous(blocks, axis, velocity, energy, per_density, 2.0 * self.viscous)
        index = np.arange(UNKNOWNS)
        blocks[:, index, index] += 1.0 + 2.0 * self.viscous * sum(DIFFUSION)
        return blocks

    def neighbours(self, state, axis, side):
        """The blocks of neighbours along an axis, above (`side` 1) or below (-1)."""
        blocks = np.zeros((state.shape[1], UNKNOWNS, UNKNOWNS))
        per_density = 1.0 / state[0]
        velocity, energy = state[1:4] * per_density, state[4] * per_density
        square = (velocity**2).sum(0)
        scale = side * self.convective
        along, momentum = velocity[axis], 1 + axis
        blocks[:, 0, momentum] = scale
        for index in range(3):
            blocks[:, 1 + index, 0] = -scale * velocity[index] * along
            blocks[:, 1 + index, momentum] += scale * velocity[index]
            blocks[:, 1 + index, 1 + index] += scale * along
            blocks[:, momentum, 1 + index] -= scale * C2 * velocity[index]
            blocks[:, 4, 1 + index] = -scale * C2 * velocity[index] * along
        blocks[:, momentum, 0] += 0.5 * scale * C2 * square
        blocks[:, momentum, 4] = scale * C2
        blocks[:, 4, 0] = scale * (C2 * square - C1 * energy) * along
        blocks[:, 4, momentum] += scale * (C1 * energy - 0.5 * C2 * square)
        blocks[:, 4, 4] = scale * C1 * along
        self.add_viscous(blocks, axis, velocity, energy, per_density, -self.viscous)
        index = np.arange(UNKNOWNS)
        blocks[:, index, index] -= self.viscous * DIFFUSION[axis]
        return blocks


class Sweep:
    """One direction through the planes: down (`side` -1) or up (1) along the axes.

    The points of a plane are taken by diagonals: those of one diagonal depend on the one before
    only.  A plane is held as a table (point, unknown) by diagonals, followed by the points of the
    two edges that come from neighbours, which are zero on the surface of the cube.
    """

    def __init__(self, grid, blocks, side):
        """Prepare the order of points."""
        self.grid, self.blocks, self.side = grid, blocks, side
        width, height = grid.xs.stop - grid.xs.start, grid.ys.stop - grid.ys.start
        y, x = (at.reshape(-1) for at in np.indices((height, width)))
        from_x, from_y = (x, y) if side < 0 else (width - 1 - x, height - 1 - y)
        order = np.argsort(from_x + from_y, kind="stable")
        self.y, self.x = y[order] + grid.ys.start, x[order] + grid.xs.start
        points = width * height
        place = np.empty((height, width), int)
        place[y[order], x[order]] = np.arange(points)
        # Both neighbours of each point: along y, along x.
        before_y = np.full((height, width), -1)
        before_x = np.full((height, width), -1)
        beside_y, beside_x = points + height + np.arange(width), points + np.arange(height)
        if side < 0:
            before_y[1:], before_x[:, 1:] = place[:-1], place[:, :-1]
            before_y[0], before_x[:, 0] = beside_y, beside_x
            self.sent_x, self.sent_y = place[:, -1], place[-1]
            self.from_x, self.from_y = grid.north, grid.west
            self.to_x, self.to_y = grid.south, grid.east
            self.tags = (SOUTHWARD, EASTWARD)
        else:
            before_y[:-1], before_x[:, :-1] = place[1:], place[:, 1:]
            before_y[-1], before_x[:, -1] = beside_y, beside_x
            self.sent_x, self.sent_y = place[:, 0], place[0]
            self.from_x, self.from_y = grid.south, grid.east
            self.to_x, self.to_y = grid.north, grid.west
            self.tags = (NORTHWARD, WESTWARD)
        pairs = np.stack([before_y[y[order], x[order]], before_x[y[order], x[order]]], axis=1)
        bounds = np.searchsorted((from_x + from_y)[order], np.arange(width + height))
        self.diagonals = [
            (slice(begin, end), pairs[begin:end]) for begin, end in zip(bounds, bounds[1:])
        ]
        self.points = points
        self.edge_x, self.edge_y = np.zeros((height, UNKNOWNS)), np.zeros((width, UNKNOWNS))
        self.plane = np.zeros((points + height + width, UNKNOWNS))

    def systems(self, state, z):
        """For a plane: the blocks of the neighbours along z, then y and x, by the own blocks."""
        side, y, x = self.side, self.y, self.x
        beside_z = self.blocks.neighbours(state[:, z + side, y, x], Z, side)
        beside_y = self.blocks.neighbours(state[:, z, y + side, x], Y, side)
        beside_x = self.blocks.neighbours(state[:, z, y, x + side], X, side)
        own = np.linalg.inv(self.blocks.diagonal(state[:, z, y, x]))
        return (
            own,
            OMEGA * (own @ beside_z),
            OMEGA * (own @ np.concatenate([beside_y, beside_x], axis=2)),
        )

    def run(self, state, change):
        """Solve for `change` (unknown, z, y, x), plane by plane."""
        comm, grid, plane = self.grid.comm, self.grid, self.plane
        height = len(self.edge_x)
        ys, xs = self.y - grid.ys.start, self.x - grid.xs.start
        planes = range(change.shape[1])
        before = np.zeros((self.points, UNKNOWNS, 1))  # the plane before this one
        for z in planes if self.side < 0 else reversed(planes):
            own, below, beside = self.systems(state, z + 1)
            known = change[:, z, ys, xs].T
            if self.side < 0:
                known = (own @ known[..., None])[..., 0]
            known = known - (below @ before)[..., 0]
            plane[: self.points] = known

            if self.from_x != MPI.PROC_NULL:
                comm.Recv(self.edge_x, self.from_x, self.tags[0])
                plane[self.points : self.points + height] = self.edge_x
            if self.from_y != MPI.PROC_NULL:
                comm.Recv(self.edge_y, self.from_y, self.tags[1])
                plane[self.points + height :] = self.edge_y
            for part, pair in self.diagonals:
                known = plane[pair].reshape(-1, 2 * UNKNOWNS, 1)
                plane[part] -= (beside[part] @ known)[..., 0]
            if self.to_x != MPI.PROC_NULL:
                comm.Send(plane[self.sent_x], self.to_x, self.tags[0])
            if self.to_y != MPI.PROC_NULL:
                comm.Send(plane[self.sent_y], self.to_y, self.tags[1])

            before = plane[: self.points, :, None].copy()
            change[:, z, ys, xs] = plane[: self.points].T


class Solver:
    """The solver of one rank, with its fields."""

    def __init__(self, comm, problem):
        """Lay out the ranks and compute the forcing, for which the exact solution is steady."""
        self.comm, self.problem = comm, problem
        self.grid = grid = Grid(comm, problem.edge)
        self.exact = exact(grid.x, grid.y, grid.z)
        self.state = np.empty_like(self.exact)
        inner = self.exact[:, grid.zs, grid.ys, grid.xs]
        self.forcing, self.residual = np.empty(inner.shape), np.empty(inner.shape)
        right_side(grid, self.exact, self.forcing)
        blocks = Blocks(grid, problem.step)
        self.down, self.up = Sweep(grid, blocks, -1), Sweep(grid, blocks, 1)

    def start(self):
        """Blend the known values on the surface into the cube; set the residual."""
        grid = self.grid
        x, y, z = grid.x, grid.y, grid.z
        along_x = (1.0 - x) * exact(0.0, y, z) + x * exact(1.0, y, z)
        along_y = (1.0 - y) * exact(x, 0.0, z) + y * exact(x, 1.0, z)
        along_z = (1.0 - z) * exact(x, y, 0.0) + z * exact(x, y, 1.0)
        blend = along_x + along_y + along_z
        blend -= along_x * along_y + along_y * along_z + along_z * along_x
        blend += along_x * along_y * along_z
        # On the surface, the exact solution itself.
        self.state[:] = self.exact
        inner = (slice(None), grid.zs, grid.ys, grid.xs)
        self.state[inner] = blend[inner]
        self.update_residual()

    def update_residual(self):
        """The residual of the state: zero for the exact solution."""
        right_side(self.grid, self.state, self.residual)
        self.residual -= self.forcing

    def iterate(self):
        """One iteration of SSOR."""
        grid = self.grid
        self.residual *= self.problem.step
        self.down.run(self.state, self.residual)
        self.up.run(self.state, self.residual)
        inner = self.state[:, grid.zs, grid.ys, grid.xs]
        inner += self.residual / (OMEGA * (2.0 - OMEGA))
        self.update_residual()

    def norms(self, values):
        """The root of the mean square of each unknown over all inner points."""
        sums = (values**2).reshape(UNKNOWNS, -1).sum(1)
        self.comm.Allreduce(MPI.IN_PLACE, sums)
        return np.sqrt(sums / (self.problem.edge - 2) ** 3)

    def error(self):
        """The norms of the difference to the exact solution."""
        grid = self.grid
        difference = (self.exact - self.state)[:, grid.zs, grid.ys, grid.xs]
        return self.norms(difference)

    def integral(self):
        """The pressure, integrated over the surface of a box inside the cube."""
        grid, edge = self.grid, self.problem.edge
        state = self.state[:, :, INNER, INNER]
        kinetic = 0.5 * (state[1] ** 2 + state[2] ** 2 + state[3] ** 2) / state[0]
        pressure = C2 * (state[4] - kinetic)
        weights, ends = [], []  # of trapezoids, and of the two sides, along z, y and x
        for low, high, first, count in (
            (2, edge - 2, 0, edge),
            (1, edge - 3, grid.first_y, grid.ny),
            (1, edge - 2, grid.first_x, grid.nx),
        ):
            at = np.arange(first, first + count)
            end = ((at == low) | (at == high)).astype(float)
            weights.append(2.0 * ((at >= low) & (at <= high)) - end)
            ends.append(end)
        total = 0.0
        for axis in range(3):
            factors = list(weights)
            factors[axis] = ends[axis]
            total += np.einsum("zyx,z,y,x", pressure, *factors)
        total = np.array([total])
        self.comm.Allreduce(MPI.IN_PLACE, total)
        return 0.25 * float(total[0]) / (edge - 1) ** 2


def verify(problem, residual, error, integral):
    """Print NPB's comparisons; false if a value is wrong."""
    good = True
    for title, found, expected in (
        ("RMS-norms of residual", residual, problem.residual),
        ("RMS-norms of solution error", error, problem.error),
        ("surface integral", [integral], [problem.integral]),
    ):
        print(f" Comparison of {title}")
        for index, (value, reference) in enumerate(zip(found, expected, strict=True), 1):
            right = npb.close(value, reference, TOLERANCE)
            good = good and bool(right)
            print(f" {'       ' if right else 'FAILURE'} {index} {value:22.13e} {reference:22.13e}")
    return good


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    parsed = npb.options("application LU", CLASSES)
    problem = CLASSES[parsed.name]
    solver = Solver(comm, problem)
    edge = problem.edge
    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- LU Benchmark\n")
        print(f" Size: {edge:4d}x{edge:4d}x{edge:4d}\n Iterations: {problem.iterations:4d}")
        rows, columns = solver.grid.shape
        print(f" Number of processes: {size:5d} ({rows} x {columns})", flush=True)
    solver.start()
    solver.iterate()  # touches all data before the clock
    solver.start()

    comm.Barrier()
    start = MPI.Wtime()
    for iteration in range(1, problem.iterations + 1):
        if rank == 0 and (iteration in (1, problem.iterations) or iteration % 20 == 0):
            print(f" Time step {iteration:4d}", flush=True)
        solver.iterate()
    residual = solver.norms(solver.residual)
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)

    error, integral = solver.error(), solver.integral()
    good = True
    if rank == 0:
        good = verify(problem, residual, error, integral)
        work = 1984.77 * edge**3 - 10923.3 * edge**2 + 27770.9 * edge - 144010.0
        work *= problem.iterations
        shape = f"{edge}x{edge}x{edge}"
        npb.report("LU", parsed.name, shape, problem.iterations, size, seconds, work, good)
    sys.exit(0 if comm.bcast(good) else 1)


if __name__ == "__main__":
    main()
