"""Collective calls whose send and receive buffers begin at one address, on one process.

aliased_buffers.py OUTCOMES.json
"""

from __future__ import annotations

import json
import sys

import numpy as np
from mpi4py import MPI

comm = MPI.COMM_SELF
ring = comm.Create_cart([1], [True])
x = np.zeros(8, "i4")
empty = np.zeros(0, "i4")
tail = x[4:]
pairs = MPI.INT.Create_contiguous(2).Commit()
strided = MPI.INT.Create_vector(2, 1, 2).Commit()
TWO = {
    "same array": (x, x), "view": (x, x[:]), "memoryview": (memoryview(x), x),
    "head": (x[:4], [x, 4, MPI.INT]), "tail": ([x, (4, 4), MPI.INT], tail), "empty": (x[:0], empty),
    "empty head": ([x, 0, MPI.INT], [x, 0, MPI.INT]), "derived": ([x, 2, pairs], [x, 2, pairs]),
    "strided": ([x, 1, strided], [x, 1, strided]), "apart": (x[:4], x[4:]),
    "copy": (x, x.copy()),
}  # fmt: skip
REDUCING = ("Reduce", "Allreduce", "Scan", "Exscan", "Reduce_scatter", "Reduce_scatter_block")
MOVING = (
    "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv", "Alltoall",
)  # fmt: skip
outcomes = {}


def note(name, call):
    try:
        call()
    except MPI.Exception as error:
        outcomes[name] = f"MPI {error.Get_error_class()}"
    except Exception as error:
        outcomes[name] = type(error).__name__
    else:
        outcomes[name] = "accepted"


def perform(name, form, arguments):
    if form == "blocking":
        getattr(comm, name)(*arguments)
    elif form == "nonblocking":
        getattr(comm, "I" + name.lower())(*arguments).Wait()
    else:
        request = getattr(comm, name + "_init")(*arguments)
        request.Start()
        request.Wait()
        request.Free()


for what, (send, receive) in TWO.items():
    for form in ("blocking", "nonblocking", "persistent"):
        for name in REDUCING + MOVING:
            if name in REDUCING and what in ("derived", "strided"):
                continue
            note(f"{name} {form} {what}", lambda: perform(name, form, (send, receive)))  # noqa: B023
    if what not in ("derived", "strided"):
        note(f"Reduce_local {what}", lambda: MPI.SUM.Reduce_local(send, receive))  # noqa: B023
note("other operator", lambda: comm.Allreduce(x, x, MPI.MAXLOC))
note("other root", lambda: comm.Reduce(x, x, MPI.SUM, 5))
note("no operator", lambda: comm.Allreduce(x, x, 3))
with open(sys.argv[1], "w") as stream:
    json.dump(outcomes, stream)
