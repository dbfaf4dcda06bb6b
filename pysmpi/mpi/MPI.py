"""Message Passing Interface.

Programs import this module as `mpi4py.MPI`. Its names come from the chapters. PYTEST_DONT_REWRITE:
pytest would add names of its own.
"""

from .assembly import assemble as _assemble

_assemble(globals())

del _assemble
