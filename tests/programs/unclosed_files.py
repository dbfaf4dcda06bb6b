"""Leaves files open in several ways, each of which a process completes at its end."""

import gc
import gzip
import logging.handlers
import sys
import zipfile

import numpy
from mpi4py import MPI

rank = MPI.COMM_WORLD.rank
sys.modules["another_name"] = sys.modules["__main__"]


class Holder:
    pass


def in_cycle(name):
    holder = Holder()
    holder.itself = holder
    holder.file = open(name, "w")
    holder.file.write("in a cycle")
    return holder


plain = open(f"plain{rank}.txt", "w")
plain.write("plain")
binary = open(f"binary{rank}.txt", "wb")
binary.write(b"binary")
packed = gzip.open(f"packed{rank}.gz", "wt")
packed.write("packed")
listed = [open(f"listed{rank}.txt", "w")]
listed[0].write("listed")
cycle = in_cycle(f"cycle{rank}.txt")
gc.collect()  # the cycle is old from here on
kept = vars(numpy)["kept"] = [*getattr(numpy, "kept", []), open(f"shared{rank}.txt", "w")]
kept[-1].write("shared")
archive = zipfile.ZipFile(f"archive{rank}.zip", "w")
archive.writestr("inner", "archived")
memory = logging.handlers.MemoryHandler(9, target=logging.FileHandler(f"log{rank}.txt"))
logging.getLogger().addHandler(memory)
logging.warning("logged")
