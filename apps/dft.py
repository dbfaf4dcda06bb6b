"""Density-functional theory in real space: the parallel structure of BigDFT on a model molecule.

    mpiexec -n 4 python dft.py --grid 24 --orbitals 12 --iterations 5

Orbitals live on a periodic grid of N x N x N points and minimise the energy of electrons in the
wells of a few atoms, with their Hartree repulsion.  As in BigDFT the work is spread in two ways.
Each rank holds some orbitals on the whole grid: there the kinetic energy is a convolution along
each axis. Each rank also holds some points of all orbitals: there overlaps are matrix products, by
which the orbitals are made orthonormal. Alltoallv carries the orbitals from one form to the other.
The density is summed and cut into slabs (Reduce_scatter); its potential is that of a Poisson
equation, solved by a Fourier transform in three dimensions, whose slabs are transposed by
Alltoallv; Allgatherv gives the potential to all. Allreduce sums overlaps and energies.

The program checks itself: the Poisson solver against a density whose potential is known, the
orbitals for being orthonormal, the electrons for being all there, and the energy for decreasing
in each iteration.  The energy is the same for any number of ranks.
"""

import argparse
import sys

import numpy as np
from mpi4py import MPI

BOX = 10.0  # edge of the periodic cell (bohr)
ATOMS = np.array([[0.5, 0.5, 0.42], [0.5, 0.5, 0.58], [0.38, 0.5, 0.5]])  # in edges of the cell
DEPTH, WIDTH = 6.0, 0.8  # of the well of an atom (hartree, bohr)
# Second derivative of order 8: the filter of the convolution along each axis.
FILTER = (-205 / 72, 8 / 5, -1 / 5, 8 / 315, -1 / 560)


def shares(items, parts):
    """The number of `items` of each part, and the first item of each."""
    sizes = np.full(parts, items // parts)
    sizes[: items % parts] += 1
    return sizes, np.concatenate(([0], np.cumsum(sizes)[:-1]))


def convolve(field, spacing, out, work):
    """out = -1/2 the Laplacian of a periodic field."""
    scale = -0.5 / spacing**2
    np.multiply(field, 3 * FILTER[0] * scale, out=out)
    for axis in range(3):
        source, target = np.moveaxis(field, axis, 0), np.moveaxis(work, axis, 0)
        for reach in range(1, len(FILTER)):
            np.add(source[: -2 * reach], source[2 * reach :], out=target[reach:-reach])
            np.add(source[-reach:], source[reach : 2 * reach], out=target[:reach])
            np.add(source[-2 * reach : -reach], source[:reach], out=target[-reach:])
            np.multiply(work, FILTER[reach] * scale, out=work)
            np.add(out, work, out=out)


def apply_potential(field, potential, out, work):
    """out += potential * field."""
    np.multiply(field, potential, out=work)
    np.add(out, work, out=out)


def descend(orbital, gradient, step, volume, work):
    """Take a step down, across the orbital itself; returns its part of the band energy."""
    energy = float(np.vdot(orbital, gradient)) * volume
    np.multiply(orbital, -energy, out=work)
    np.add(gradient, work, out=work)
    np.multiply(work, step, out=work)
    np.subtract(orbital, work, out=orbital)
    return energy


def add_density(orbital, density, work):
    """density += orbital squared."""
    np.multiply(orbital, orbital, out=work)
    np.add(density, work, out=density)


def pack(orbitals, starts, sizes, out):
    """Sort the points of some orbitals by the rank that is to get them."""
    count, points = orbitals.shape
    for start, size in zip(starts, sizes):
        block = out[count * start : count * (start + size)]
        block.reshape(count, size)[:] = orbitals[:, start : start + size]


def unpack(blocks, starts, sizes, out):
    """The reverse of `pack`."""
    count, points = out.shape
    for start, size in zip(starts, sizes):
        block = blocks[count * start : count * (start + size)]
        out[:, start : start + size] = block.reshape(count, size)


def overlaps(points, volume, out):
    """Scalar products of all orbitals with all, as far as this rank's points go."""
    np.matmul(points, points.T, out=out)
    np.multiply(out, volume, out=out)


def orthonormalise(points, overlap, out):
    """Combine the orbitals so that they become orthonormal, by the Cholesky factor of overlaps."""
    try:
        factor = np.linalg.inv(np.linalg.cholesky(overlap))
    except np.linalg.LinAlgError:
        # Orbitals that depend on each other: they keep their directions, and the check fails.
        factor = np.diag(1.0 / np.sqrt(np.maximum(np.abs(np.diag(overlap)), 1e-300)))
    np.matmul(factor, points, out=out)


def start_orbital(number, grid, out):
    """A standing wave with a bump, the slowest waves first."""
    reach = 1
    while 4 * reach**3 < number + 8:
        reach += 1
    wave = np.arange(-reach, reach + 1)
    vectors = np.stack(np.meshgrid(wave, wave, wave, indexing="ij"), -1).reshape(-1, 3)
    vectors = vectors[np.lexsort((*vectors.T, (vectors**2).sum(1)))]
    half = [v for v in vectors.tolist() if v > [0, 0, 0]]
    vector = half[(number - 1) // 2] if number else [0, 0, 0]
    place = np.arange(grid) / grid
    phases = [2 * np.pi * k * place for k in vector]
    np.add(phases[0][:, None, None], phases[1][:, None] + phases[2], out=out)
    (np.sin if number % 2 else np.cos)(out, out=out)
    np.multiply(out, 1 + 0.3 * np.cos(2 * np.pi * place), out=out)


def wells(grid):
    """The potential of the atoms on a whole grid."""
    place = np.arange(grid) / grid
    potential = np.zeros((grid, grid, grid))
    for atom in ATOMS:
        # Periodic, and smooth everywhere.
        bumps = [
            np.exp((np.cos(2 * np.pi * (place - x)) - 1) * (BOX / (2 * np.pi * WIDTH)) ** 2)
            for x in atom
        ]
        potential -= DEPTH * bumps[0][:, None, None] * (bumps[1][:, None] * bumps[2])
    return potential


def transform_planes(slab, out):
    """Fourier transform of each plane of a slab."""
    out[:] = np.fft.fft2(slab, axes=(1, 2))


def transform_lines(lines, kernel, out):
    """Across the planes: transform, solve the Poisson equation, transform back."""
    out[:] = np.fft.ifft(np.fft.fft(lines, axis=0) * kernel, axis=0)


def transform_back(slab, out):
    """The potential from its planes."""
    out[:] = np.fft.ifft2(slab, axes=(1, 2)).real


class Poisson:
    """Solves Laplace(v) = -4 pi rho on slabs of planes (hartree atomic units)."""

    def __init__(self, comm, grid):
        """Cut a grid of `grid` planes among the ranks of `comm`."""
        self.comm, self.grid = comm, grid
        self.sizes, self.starts = shares(grid, comm.Get_size())
        rank = comm.Get_rank()
        mine, first = self.sizes[rank], self.starts[rank]
        self.planes = np.empty((mine, grid, grid), complex)
        self.lines = np.empty((grid, mine, grid), complex)
        self.moved = np.empty(mine * grid * grid, complex)
        self.counts = self.sizes * mine * grid
        self.offsets = self.starts * mine * grid
        wave = 2 * np.pi / BOX * np.fft.fftfreq(grid, 1 / grid)
        square = wave[:, None, None] ** 2 + (wave[first : first + mine, None] ** 2 + wave**2)
        # A constant density has no potential in a periodic cell.
        square[square == 0] = np.inf
        self.kernel = 4 * np.pi / square

    def solve(self, density):
        """The potential of a slab of the density."""
        mine, grid = self.planes.shape[:2]
        transform_planes(density, self.planes)
        planes = self.planes.reshape(mine, grid**2)
        pack(planes, self.starts * grid, self.sizes * grid, self.moved)
        move = [self.counts, self.offsets]
        self.comm.Alltoallv(
            [self.moved, *move, MPI.C_DOUBLE_COMPLEX], [self.lines, *move, MPI.C_DOUBLE_COMPLEX]
        )
        transform_lines(self.lines, self.kernel, self.lines)
        self.comm.Alltoallv(
            [self.lines, *move, MPI.C_DOUBLE_COMPLEX], [self.moved, *move, MPI.C_DOUBLE_COMPLEX]
        )
        unpack(self.moved, self.starts * grid, self.sizes * grid, planes)
        potential = np.empty((mine, grid, grid))
        transform_back(self.planes, potential)
        return potential

    def error(self):
        """The largest error for waves whose potential is known, over all ranks."""
        mine, first = self.sizes[self.comm.Get_rank()], self.starts[self.comm.Get_rank()]
        place = np.arange(self.grid) / self.grid * 2 * np.pi
        here = place[first : first + mine, None, None]
        one, two = np.cos(here + 2 * place[:, None] - place), np.sin(here) * np.cos(3 * place)
        two = two + np.zeros_like(one)
        known = 4 * np.pi * (one / 6 + two / 10) * (BOX / (2 * np.pi)) ** 2
        worst = float(np.abs(self.solve(one + two) - known).max(initial=0.0))
        return self.comm.allreduce(worst, op=MPI.MAX)


class Calculation:
    """The orbitals of this rank, and the fields that improve them."""

    def __init__(self, comm, grid, orbitals):
        """Share `orbitals` orbitals on `grid`**3 points among the ranks of `comm`."""
        self.comm, self.grid, self.number = comm, grid, orbitals
        rank, size = comm.Get_rank(), comm.Get_size()
        points = grid**3
        self.spacing = BOX / grid
        self.volume = self.spacing**3
        self.counts, self.firsts = shares(orbitals, size)
        self.sizes, self.starts = shares(points, size)
        mine = self.counts[rank]
        self.orbitals = np.empty((mine, grid, grid, grid))
        self.gradient = np.empty((mine, grid, grid, grid))
        self.packed = np.empty(mine * points)
        self.points = np.empty((orbitals, self.sizes[rank]))
        self.work = np.empty((grid, grid, grid))
        self.density = np.empty((grid, grid, grid))
        self.potential = np.empty((grid, grid, grid))
        self.overlap = np.empty((orbitals, orbitals))
        self.poisson = Poisson(comm, grid)
        planes, first = self.poisson.sizes[rank], self.poisson.starts[rank]
        self.plane_counts = self.poisson.sizes * grid**2
        self.plane_offsets = self.poisson.starts * grid**2
        self.slab = np.empty((planes, grid, grid))
        self.wells = wells(grid)[first : first + planes].copy()
        # The largest curvature of the energy: that of the steepest wave, and some.
        steepest = 1.5 * sum(abs(c) * (1 if i == 0 else 2) for i, c in enumerate(FILTER))
        self.step = 0.7 / (steepest / self.spacing**2 + DEPTH)
        for index in range(mine):
            start_orbital(int(self.firsts[rank]) + index, grid, self.orbitals[index])
        self.orthonormalise()

    def to_points(self):
        """From whole orbitals to some points of all."""
        mine = len(self.orbitals)
        pack(self.orbitals.reshape(mine, self.grid**3), self.starts, self.sizes, self.packed)
        share = self.sizes[self.comm.Get_rank()]
        self.comm.Alltoallv(
            [self.packed, (mine * self.sizes, mine * self.starts), MPI.DOUBLE],
            [self.points, (self.counts * share, self.firsts * share), MPI.DOUBLE],
        )

    def to_orbitals(self):
        """From some points of all orbitals to whole orbitals."""
        mine = len(self.orbitals)
        share = self.sizes[self.comm.Get_rank()]
        self.comm.Alltoallv(
            [self.points, (self.counts * share, self.firsts * share), MPI.DOUBLE],
            [self.packed, (mine * self.sizes, mine * self.starts), MPI.DOUBLE],
        )
        unpack(self.packed, self.starts, self.sizes, self.orbitals.reshape(mine, self.grid**3))

    def orthonormalise(self):
        """Make the orbitals orthonormal."""
        self.to_points()
        overlaps(self.points, self.volume, self.overlap)
        self.comm.Allreduce(MPI.IN_PLACE, self.overlap)
        # The gradient is made anew in each iteration: until then its memory is free.
        room = self.gradient.reshape(-1)[: self.points.size]
        if room.size < self.points.size:
            room = np.empty(self.points.size)
        mixed = room.reshape(self.points.shape)
        orthonormalise(self.points, self.overlap, mixed)
        np.copyto(self.points, mixed)
        self.to_orbitals()

    def orthonormality(self):
        """The deviation of the overlaps from those of orthonormal orbitals."""
        self.to_points()
        overlaps(self.points, self.volume, self.overlap)
        self.comm.Allreduce(MPI.IN_PLACE, self.overlap)
        return float(np.abs(self.overlap - np.eye(self.number)).max())

    def update_potential(self):
        """The potential of atoms and electrons on the whole grid; (electrons, double counting)."""
        self.density[:] = 0
        for orbital in self.orbitals:
            add_density(orbital, self.density, self.work)
        self.comm.Reduce_scatter(self.density, self.slab, self.plane_counts.tolist())
        hartree = self.poisson.solve(self.slab)
        sums = np.array([self.slab.sum(), 0.5 * np.vdot(self.slab, hartree)]) * self.volume
        self.comm.Allreduce(MPI.IN_PLACE, sums)
        hartree += self.wells
        self.comm.Allgatherv(
            hartree, [self.potential, (self.plane_counts, self.plane_offsets), MPI.DOUBLE]
        )
        return sums

    def iterate(self):
        """One step down; the energy before it (hartree), and the number of electrons."""
        electrons, doubled = self.update_potential()
        bands = np.zeros(1)
        for orbital, gradient in zip(self.orbitals, self.gradient):
            convolve(orbital, self.spacing, gradient, self.work)
            apply_potential(orbital, self.potential, gradient, self.work)
            bands += descend(orbital, gradient, self.step, self.volume, self.work)
        self.comm.Allreduce(MPI.IN_PLACE, bands)
        self.orthonormalise()
        # Bands count the repulsion of each pair of electrons twice.
        return float(bands[0] - doubled), float(electrons)


def main():
    """Minimise, print energies, and check them; the exit status is 1 if a check fails."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--grid", type=int, default=24, help="points along an edge (24)")
    parser.add_argument("--orbitals", type=int, default=12, help="number of orbitals (12)")
    parser.add_argument("--iterations", type=int, default=5, help="steps of the minimisation (5)")
    arguments = parser.parse_args()
    if arguments.grid < 12 or arguments.orbitals < 1 or arguments.iterations < 1:
        parser.error("expected --grid from 12, --orbitals and --iterations from 1")
    comm = MPI.COMM_WORLD
    size = comm.Get_size()
    say = print if comm.Get_rank() == 0 else lambda *words, **how: None

    calculation = Calculation(comm, arguments.grid, arguments.orbitals)
    error = calculation.poisson.error()
    say(f"grid {arguments.grid}^3, {arguments.orbitals} orbitals on {size} ranks")
    say(f"poisson error      {error:.1e}")
    comm.Barrier()
    begun = MPI.Wtime()
    energies = []
    for iteration in range(1, arguments.iterations + 1):
        energy, electrons = calculation.iterate()
        energies.append(energy)
        say(f"iteration {iteration:3d}      {energy:.8f} hartree", flush=True)
    comm.Barrier()
    seconds = MPI.Wtime() - begun
    orthonormality = calculation.orthonormality()
    say(f"electrons          {electrons:.8f}")
    say(f"orthonormality     {orthonormality:.1e}")
    say(f"time               {seconds:.4f} s")

    good = (
        error < 1e-9
        and orthonormality < 1e-9
        and abs(electrons - arguments.orbitals) < 1e-8
        and all(after < before for before, after in zip(energies, energies[1:]))
    )
    say(f"VERIFICATION {'SUCCESSFUL' if good else 'FAILED'}", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
