"""Lower-case reductions of objects that do not combine, on two ranks.

    object_reductions.py OUTCOMES.json FAST

The outcome of each call in each rank is its result, or the type of its exception and the message.
FAST is 1 for reductions along trees, 0 for those without (`mpi4py.rc.fast_reduce`).
"""

from __future__ import annotations

import json
import operator
import sys
import warnings
from fractions import Fraction

import mpi4py
import numpy as np

FAST = mpi4py.rc.fast_reduce = sys.argv[2] == "1"

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
# After an exception in rank 0, rank 1 still waits for its part of an allreduce.
SIMULATED = "pysmpi" in MPI.Get_library_version()
rest = comm if SIMULATED or not FAST else MPI._commctx_intra(comm)[0]


class Angry:
    def __add__(self, other):
        raise LookupError("on purpose")

    __mul__ = __and__ = __or__ = __xor__ = __gt__ = __lt__ = __add__

    def __bool__(self):
        raise LookupError("on purpose")


class Odd:
    def __add__(self, other):
        return NotImplemented

    def __bool__(self):
        return 3

    def __iter__(self):
        return 3


THINGS = {
    "dict": {"a": 1}, "None": None, "int": 3, "float": 2.5, "huge": 1e308, "str": "a",
    "bytes": b"a", "list": [1], "single": (1,), "pair": (1, 2), "triple": (1, 2, 3), "text": "ab",
    "values": ({}, 1), "places": (1, {}), "arrays": (np.arange(2), 1), "array": np.arange(3),
    "shapes": np.arange(3 + comm.rank), "strings": np.array(["a"]), "record": np.zeros(2, "i4,f8"),
    "date": np.datetime64("2020"), "angry": Angry(), "odd": Odd(), "object": object(), "type": int,
    "mixed": 1 if comm.rank else "x", "fraction": Fraction(1, 2), "set": {1}, "complex": 1j,
}  # fmt: skip
PREDEFINED = (
    "MAX", "MIN", "SUM", "PROD", "LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MAXLOC", "MINLOC",
    "REPLACE", "NO_OP",
)  # fmt: skip
OPERATIONS = {name: getattr(MPI, name) for name in PREDEFINED} | {
    "add": operator.add, "truediv": operator.truediv, "numpy": np.add, "raises": lambda x, y: {}[1],
    "one argument": len, "a number": 3, "None": None, "null": MPI.OP_NULL,
    "lambda": lambda x, y: lambda: 3, "own": MPI.Op.Create(lambda x, y, datatype: x + y),
}  # fmt: skip


def told(call, *arguments):
    try:
        return repr(call(*arguments))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def scanned(scan, thing, op):
    try:
        return scan(thing, op)
    except Exception:
        if comm.rank == 0 and not FAST:
            comm.scatter([None] * comm.size)
        raise


def allreduced(thing, op):
    try:
        return comm.allreduce(thing, op)
    except Exception:
        if comm.rank == 0 and FAST:
            rest.bcast(None)
        raise


warnings.simplefilter("ignore")
outcomes = {}
for name, op in OPERATIONS.items():
    for what, thing in THINGS.items():
        key = f"{name} of {what}"
        outcomes[f"reduce {key}"] = told(comm.reduce, thing, op)
        outcomes[f"allreduce {key}"] = told(allreduced, thing, op)
        outcomes[f"scan {key}"] = told(scanned, comm.scan, thing, op)
        if callable(op):
            outcomes[f"exscan {key}"] = told(scanned, comm.exscan, thing, op)
        if isinstance(op, MPI.Op):
            outcomes[f"call {key}"] = told(op, thing, thing)
everything = comm.gather(outcomes)
if everything is not None:
    with open(sys.argv[1], "w") as stream:
        json.dump(everything, stream)
