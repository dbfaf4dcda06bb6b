"""Classes of attrs: converted, validated, compared, sent to other ranks and evolved there."""

from __future__ import annotations

import attrs
from mpi4py import MPI

comm = MPI.COMM_WORLD


@attrs.define(order=True)
class Particle:
    mass: float = attrs.field(converter=float, validator=attrs.validators.gt(0))
    position: tuple[int, ...] = attrs.field(factory=tuple)
    owner: int = attrs.field(default=-1, eq=False, order=False)


@attrs.frozen
class Cloud:
    particles: list[Particle]

    @property
    def mass(self) -> float:
        return sum(one.mass for one in self.particles)


mine = Cloud(
    [Particle(str(k + 1.5 * comm.rank + 0.25), (k, comm.rank), comm.rank) for k in range(5)]
)
try:
    Particle(-1)
    refused = ""
except ValueError as error:
    refused = str(error).split(":")[0]
print(comm.rank, mine.mass, refused, attrs.asdict(mine.particles[-1]))

clouds = comm.allgather(mine)
assert clouds[comm.rank] == mine and clouds[comm.rank] is not mine
merged = sorted(one for cloud in clouds for one in cloud.particles)
print(comm.rank, [(one.mass, one.position, one.owner) for one in merged][comm.rank :: comm.size])
moved = comm.sendrecv(
    attrs.evolve(merged[comm.rank], owner=comm.rank),
    dest=(comm.rank + 1) % comm.size,
    source=(comm.rank - 1) % comm.size,
)
print(comm.rank, moved, comm.allreduce(moved.mass, MPI.MAX))
