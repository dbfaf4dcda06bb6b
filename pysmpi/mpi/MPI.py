"""Message Passing Interface.

This module is what a program imports as `mpi4py.MPI`. Its names come from the chapters.
"""

from .assembly import assemble as _assemble

_assemble(globals())

del _assemble
