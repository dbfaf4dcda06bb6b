"""Gravitation among bodies that travel around a ring of ranks.

    mpiexec -n 4 python nbody.py --bodies 512 --steps 20

Each rank owns some of the bodies.  For the forces, a copy of each rank's bodies goes once around
the ring, and each rank adds the forces of the visitors. The integrator is leapfrog, so energy stays
nearly constant and momentum, zero at the start, stays zero up to rounding. Rank 0 does the whole
system once more alone and compares.
"""

import argparse
import sys

import numpy as np
from mpi4py import MPI

SOFTENING = 0.05  # a length added to every distance, against close encounters
STEP = 1e-3  # time step; masses sum to 1 and the gravitational constant is 1


def initial(count):
    """Masses, positions and velocities of `count` bodies at rest in the mean, the same always."""
    random = np.random.Generator(np.random.PCG64(20080915))
    mass = random.uniform(0.5, 1.5, count)
    mass /= mass.sum()
    position = random.normal(size=(count, 3))
    velocity = 0.3 * random.normal(size=(count, 3))
    velocity -= mass @ velocity
    return mass, position, velocity


def pull(position, other_mass, other_position):
    """The effect of the other bodies on those at `position`: (accelerations, potentials)."""
    apart = other_position[None, :, :] - position[:, None, :]
    square = np.einsum("ijk,ijk->ij", apart, apart) + SOFTENING**2
    near = other_mass / np.sqrt(square)
    return np.einsum("ij,ijk->ik", near / square, apart), -near.sum(axis=1)


def ring_pull(comm, mass, position, most):
    """Accelerations and potentials of this rank's bodies, due to the bodies of all ranks.

    No rank has more than `most` bodies; visitors without mass fill up, so that every rank sends
    as much as it receives.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    visitors = np.zeros((most, 4))
    visitors[: len(mass), 0] = mass
    visitors[: len(mass), 1:] = position
    acceleration, potential = np.zeros_like(position), np.zeros_like(mass)
    for hop in range(size):
        more, deeper = pull(position, visitors[:, 0], visitors[:, 1:])
        acceleration += more
        potential += deeper
        if hop < size - 1:
            comm.Sendrecv_replace(visitors, (rank + 1) % size, hop, (rank - 1) % size, hop)
    return acceleration, potential + mass / SOFTENING  # a body does not pull itself


def simulate(comm, count, steps):
    """The (positions, energy at start, energy at end, momentum) of this rank's bodies at the end.

    Energies and momentum are sums over all ranks.
    """
    rank, size = comm.Get_rank(), comm.Get_size()
    mine = slice(rank * count // size, (rank + 1) * count // size)
    most = -(-count // size)
    mass, position, velocity = (array[mine].copy() for array in initial(count))

    def energy(potential):
        local = 0.5 * mass @ ((velocity * velocity).sum(axis=1) + potential)
        return comm.allreduce(float(local), op=MPI.SUM)

    acceleration, potential = ring_pull(comm, mass, position, most)
    before = energy(potential)
    for _ in range(steps):
        velocity += 0.5 * STEP * acceleration
        position += STEP * velocity
        acceleration, potential = ring_pull(comm, mass, position, most)
        velocity += 0.5 * STEP * acceleration
    momentum = np.empty(3)
    comm.Allreduce(mass @ velocity, momentum, op=MPI.SUM)
    return position, before, energy(potential), momentum


def main():
    """Simulate on all ranks, compare with one rank, print the check values."""
    parser = argparse.ArgumentParser(description="n-body ring pipeline")
    parser.add_argument("--bodies", type=int, default=512, help="number of bodies")
    parser.add_argument("--steps", type=int, default=20, help="time steps")
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    if options.bodies < comm.Get_size() or options.steps < 1:
        parser.error(f"expected at least {comm.Get_size()} bodies (one a rank) and one step")

    comm.Barrier()
    start = MPI.Wtime()
    position, before, after, momentum = simulate(comm, options.bodies, options.steps)
    seconds = comm.reduce(MPI.Wtime() - start, op=MPI.MAX, root=0)

    counts = np.array(comm.gather(position.size, root=0))
    if comm.Get_rank():
        comm.Gatherv(position, None, root=0)
        return
    together = np.empty((options.bodies, 3))
    comm.Gatherv(position, [together, counts], root=0)
    alone, _, energy, _ = simulate(MPI.COMM_SELF, options.bodies, options.steps)
    apart = float(np.abs(together - alone).max())
    good = (
        apart < 1e-9
        and abs(after - energy) < 1e-9
        and abs(after - before) < 1e-4 * abs(before)
        and float(np.abs(momentum).max()) < 1e-12
    )
    print(f"nbody: {options.bodies} bodies, {options.steps} steps")
    print(f"ranks     {comm.Get_size()}")
    print(f"seconds   {seconds:.6f}")
    print(f"energy    {after:.10f}")
    print(f"drift     {abs(after - before) / abs(before):.1e}")
    print(f"centre    {' '.join(f'{x:.10f}' for x in together.mean(axis=0))}")
    print("check     " + ("as on one rank" if good else f"WRONG: {apart:.3e} apart"), flush=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
