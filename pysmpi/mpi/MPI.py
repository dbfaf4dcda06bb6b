"""Message Passing Interface.

Programs import this module as `mpi4py.MPI`. Its names come from the chapters.
"""

from .assembly import assemble as _assemble

_assemble(globals())

del _assemble
