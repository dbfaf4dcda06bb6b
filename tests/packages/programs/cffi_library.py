"""C through cffi: a compiled module made by rank 0, callbacks, structures and the C library."""

from __future__ import annotations

import importlib
import sys

import numpy as np
from cffi import FFI
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank == 0:
    builder = FFI()
    builder.cdef(
        "typedef struct { double x, y; int n; } point; double norm(const point *);"
        " void scale(double *, int, double); int apply(int (*)(int), int);"
    )
    builder.set_source(
        "_shapes",
        """#include <math.h>
typedef struct { double x, y; int n; } point;
static double norm(const point *p) { return sqrt(p->x * p->x + p->y * p->y) * p->n; }
static void scale(double *a, int n, double f) { for (int i = 0; i < n; i++) a[i] *= f; }
static int apply(int (*f)(int), int n) { int s = 0;
   for (int i = 0; i < n; i++) s += f(i); return s; }
""",
    )
    builder.compile(verbose=False)
comm.barrier()
sys.path.insert(0, ".")
importlib.invalidate_caches()
module = importlib.import_module("_shapes")
ffi, lib = module.ffi, module.lib
point = ffi.new("point *", {"x": 3 + comm.rank, "y": 4, "n": 2})
print(comm.rank, lib.norm(point), ffi.sizeof("point"))
array = np.arange(6, dtype=float)
lib.scale(ffi.cast("double *", ffi.from_buffer(array)), 6, comm.rank + 0.5)
print(comm.rank, array.tolist())


@ffi.callback("int(int)")
def shifted(k: int) -> int:
    return k * k + comm.rank


print(comm.rank, lib.apply(shifted, 10))
received = np.empty((comm.size, ffi.sizeof("point")), np.uint8)
comm.Allgather(np.frombuffer(ffi.buffer(point), np.uint8), received)
points = ffi.cast("point *", ffi.from_buffer(received))
print(comm.rank, [lib.norm(points + k) for k in range(comm.size)])
plain = FFI()
plain.cdef("size_t strlen(const char *); int snprintf(char *, size_t, const char *, ...);")
libc = plain.dlopen(None)
text = plain.new("char[]", 50)
libc.snprintf(
    text, 50, b"rank %d of %d", plain.cast("int", comm.rank), plain.cast("int", comm.size)
)
print(comm.rank, plain.string(text).decode(), libc.strlen(text))
