"""NAS Parallel Benchmarks, kernel FT: a diffusion equation, solved by Fourier transforms.

    mpiexec -n 4 python npb_ft.py --class A

The random field on a grid of three dimensions is transformed once.  Each iteration lets it evolve
in Fourier space, transforms it back and sums 1,024 of its elements; the sums are compared with
those that NPB publishes, to 1e-12.

With up to as many ranks as planes, a rank holds whole planes: two dimensions are transformed
there, an Alltoall transposes the field, and the third dimension follows.  With more ranks, a grid
of ranks holds pencils; the field is transposed in the columns, then in the rows of this grid.

Reference: D. Bailey et al., "The NAS Parallel Benchmarks", RNR-94-007; version 3 of the code.
"""

import math
import sys
from dataclasses import dataclass

import npb
import numpy as np
from mpi4py import MPI

ALPHA = 1e-6
ELEMENTS = 1024  # of a checksum
TOLERANCE = 1e-12
AT_ONCE = 1 << 19  # random numbers made together: they stay in the cache


@dataclass(frozen=True)
class Problem:
    """One NPB class: points along x, y and z, and the checksums that NPB publishes."""

    x: int
    y: int
    z: int
    checksums: tuple[complex, ...]


CLASSES = {
    "S": Problem(
        64, 64, 64,
        (
            5.546087004964e02 + 4.845363331978e02j,
            5.546385409189e02 + 4.865304269511e02j,
            5.546148406171e02 + 4.883910722336e02j,
            5.545423607415e02 + 4.901273169046e02j,
            5.544255039624e02 + 4.917475857993e02j,
            5.542683411902e02 + 4.932597244941e02j,
        ),
    ),
    "W": Problem(
        128, 128, 32,
        (
            5.673612178944e02 + 5.293246849175e02j,
            5.631436885271e02 + 5.282149986629e02j,
            5.594024089970e02 + 5.270996558037e02j,
            5.560698047020e02 + 5.260027904925e02j,
            5.530898991250e02 + 5.249400845633e02j,
            5.504159734538e02 + 5.239212247086e02j,
        ),
    ),
    "A": Problem(
        256, 256, 128,
        (
            5.046735008193e02 + 5.114047905510e02j,
            5.059412319734e02 + 5.098809666433e02j,
            5.069376896287e02 + 5.098144042213e02j,
            5.077892868474e02 + 5.101336130759e02j,
            5.085233095391e02 + 5.104914655194e02j,
            5.091487099959e02 + 5.107917842803e02j,
        ),
    ),
    "B": Problem(
        512, 256, 256,
        (
            5.177643571579e02 + 5.077803458597e02j,
            5.154521291263e02 + 5.088249431599e02j,
            5.146409228649e02 + 5.096208912659e02j,
            5.142378756213e02 + 5.101023387619e02j,
            5.139626667737e02 + 5.103976610617e02j,
            5.137423460082e02 + 5.105948019802e02j,
            5.135547056878e02 + 5.107404165783e02j,
            5.133910925466e02 + 5.108576573661e02j,
            5.132470705390e02 + 5.109577278523e02j,
            5.131197729984e02 + 5.110460304483e02j,
            5.130070319283e02 + 5.111252433800e02j,
            5.129070537032e02 + 5.111968077718e02j,
            5.128182883502e02 + 5.112616233064e02j,
            5.127393733383e02 + 5.113203605551e02j,
            5.126691062020e02 + 5.113735928093e02j,
            5.126064276004e02 + 5.114218460548e02j,
            5.125504076570e02 + 5.114656139760e02j,
            5.125002331720e02 + 5.115053595966e02j,
            5.124551951846e02 + 5.115415130407e02j,
            5.124146770029e02 + 5.115744692211e02j,
        ),
    ),
}  # fmt: skip


def transpose(comm, field, split, join):
    """Split axis `split` of `field` among the ranks of `comm`, and join axis `join` from them."""
    parts = comm.Get_size()
    if parts == 1:
        return field
    shape = list(field.shape)
    shape[split : split + 1] = [parts, shape[split] // parts]
    outgoing = np.ascontiguousarray(np.moveaxis(field.reshape(shape), split, 0))
    incoming = np.empty_like(outgoing)
    comm.Alltoall(outgoing, incoming)
    # A part is a rank's section of the joined axis; parts are in the order of the ranks.
    joined = np.moveaxis(incoming, 0, join)
    shape = list(field.shape)
    shape[split] //= parts
    shape[join] *= parts
    return joined.reshape(shape)


class Field:
    """The layout of a field among the ranks, and its transforms.

    In space a rank holds (z, y, x) with a part of z and of y; in Fourier space it holds all z, and
    a part of y and of x.
    """

    def __init__(self, comm, problem):
        """Lay out the ranks of `comm`, a power of two."""
        size, rank = comm.Get_size(), comm.Get_rank()
        self.problem = problem
        self.rows = min(size, problem.z)  # ranks that z is split among
        self.columns = size // self.rows
        column, row = divmod(rank, self.rows)
        self.row_comm = comm.Split(column, row)
        self.column_comm = comm.Split(row, column)
        self.shape = (problem.z // self.rows, problem.y // self.columns, problem.x)
        self.starts = (row * self.shape[0], column * self.shape[1])
        self.wave_shape = (problem.z, problem.y // self.rows, problem.x // self.columns)
        self.wave_starts = (row * self.wave_shape[1], column * self.wave_shape[2])

    def initial(self):
        """The random field in space."""
        planes, lines, points = self.shape
        field = np.empty(self.shape, complex)
        flat = field.reshape(planes, -1).view(float)
        table = npb.powers(min(flat.shape[1], AT_ONCE))
        for plane, values in enumerate(flat):
            line = (self.starts[0] + plane) * self.problem.y + self.starts[1]
            for start in range(0, len(values), AT_ONCE):
                part = values[start : start + AT_ONCE]
                seed = npb.skip(npb.SEED, 2 * line * points + start)
                part[:] = npb.uniforms(seed, len(part), table)
        return field

    def factors(self):
        """The factor of each wave in an iteration."""
        sizes = (self.problem.z, self.problem.y, self.problem.x)
        starts = (0, *self.wave_starts)
        squares = []
        for axis, (size, start, here) in enumerate(zip(sizes, starts, self.wave_shape)):
            wave = np.fft.fftfreq(size, 1.0 / size)[start : start + here]
            squares.append(np.expand_dims(wave**2, [other for other in range(3) if other != axis]))
        return np.exp(-4.0 * ALPHA * math.pi**2 * (squares[0] + squares[1] + squares[2]))

    def to_waves(self, field):
        """The Fourier transform, not normalised."""
        field = np.fft.fft(field, axis=2)
        field = transpose(self.column_comm, field, 2, 1)
        field = np.fft.fft(field, axis=1)
        field = transpose(self.row_comm, field, 1, 0)
        return np.fft.fft(field, axis=0)

    def to_space(self, waves):
        """The inverse of `to_waves`."""
        waves = np.fft.ifft(waves, axis=0)
        waves = transpose(self.row_comm, waves, 0, 1)
        waves = np.fft.ifft(waves, axis=1)
        waves = transpose(self.column_comm, waves, 1, 2)
        return np.fft.ifft(waves, axis=2)

    def checked(self):
        """The places of the elements of a checksum that this rank holds."""
        index = np.arange(1, ELEMENTS + 1)
        problem = self.problem
        z = index * 5 % problem.z - self.starts[0]
        y = index * 3 % problem.y - self.starts[1]
        mine = (z >= 0) & (z < self.shape[0]) & (y >= 0) & (y < self.shape[1])
        return z[mine], y[mine], index[mine] % problem.x


def main():
    """Run the benchmark on all ranks; rank 0 reports."""
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()

    def wanted(size):
        return npb.power_of_two(size) or npb.at_most(size, 2048)

    parsed = npb.options("kernel FT", CLASSES, wanted)
    problem = CLASSES[parsed.name]
    field = Field(comm, problem)
    iterations = len(problem.checksums)
    if rank == 0:
        print(" NAS Parallel Benchmarks 3 -- FT Benchmark\n")
        print(f" Size                : {problem.x:4d}x{problem.y:4d}x{problem.z:4d}")
        print(f" Iterations          : {iterations:14d}")
        print(f" Number of processes : {size:14d}")
        print(f" Processor array     : {field.columns:9d}x{field.rows:4d}", flush=True)
    field.to_waves(field.initial())  # touches all data before the clock

    comm.Barrier()
    start = MPI.Wtime()
    factors = field.factors()
    waves = field.to_waves(field.initial())
    checked = field.checked()
    sums = []
    for iteration in range(1, iterations + 1):
        waves *= factors
        space = field.to_space(waves)
        mine, total = np.array([space[checked].sum()]), np.empty(1, complex)
        comm.Reduce(mine, total, root=0)
        if rank == 0:
            sums.append(complex(total[0]))
            line = f"Checksum = {sums[-1].real:21.12e} {sums[-1].imag:21.12e}"
            print(f" T = {iteration:4d}     {line}", flush=True)
    seconds = comm.allreduce(MPI.Wtime() - start, op=MPI.MAX)

    good = True
    if rank == 0:
        good = all(
            npb.close(found, expected, TOLERANCE)
            for found, expected in zip(sums, problem.checksums, strict=True)
        )
        points = problem.x * problem.y * problem.z
        per_point = 14.8157 + 7.19641 * math.log(points)
        per_point += (5.23518 + 7.21113 * math.log(points)) * iterations
        shape = f"{problem.x}x{problem.y}x{problem.z}"
        npb.report("FT", parsed.name, shape, iterations, size, seconds, points * per_point, good)
    field.row_comm.Free()
    field.column_comm.Free()
    sys.exit(0 if comm.bcast(good) else 1)


if __name__ == "__main__":
    main()
