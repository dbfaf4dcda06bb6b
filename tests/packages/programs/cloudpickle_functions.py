"""Functions and classes of __main__, closures and lambdas, pickled by value to other ranks."""

from __future__ import annotations

import operator
from functools import partial, reduce

import cloudpickle
import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
MPI.pickle.__init__(cloudpickle.dumps, cloudpickle.loads)
offset = 100 * comm.rank


def make(power: int):
    table = {k: k**power for k in range(5)}

    def look(k: int) -> int:
        return table.get(k, -1) + offset

    return look


class Counter:
    made = comm.rank

    def __init__(self, start: int) -> None:
        self.n = start

    def __call__(self, step: int = 1) -> int:
        self.n += step * type(self).made
        return self.n

    @property
    def twice(self) -> int:
        return 2 * self.n


right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
function = comm.sendrecv(make(comm.rank + 1), right, source=left)
print(comm.rank, [function(k) for k in range(6)])
local = type("Local", (), {"value": comm.rank, "double": lambda self: 2 * self.value})
others = comm.allgather([local(), lambda x: x + offset, partial(pow, comm.rank + 2)])
print(comm.rank, [(one.double(), add(1), power(3)) for one, add, power in others])
counter = cloudpickle.loads(cloudpickle.dumps(Counter(5)))
print(comm.rank, counter(), counter.twice, type(counter) is Counter, Counter.made)
recursive = comm.bcast(
    (lambda f: lambda n: 1 if n < 2 else n * f(f)(n - 1)) if comm.rank == 0 else None
)
print(comm.rank, recursive(recursive)(5 + comm.rank))
operation = comm.allreduce(np.add, op=MPI.Op.Create(lambda a, b, _: a, commute=True))
print(comm.rank, operation(1, comm.rank), reduce(operator.mul, comm.allgather(comm.rank + 1)))
