"""A small run before the executions: it does once what each of them would do for the first time.

It finds algorithms and reads the tables of the selector, defines the classes of a result, fills
caches. Executions are copies of a process that has all of this.
"""

from __future__ import annotations

import pickle

import numpy

from pysmpi.explore.events import Decision, Trace
from pysmpi.isolation.loading.loader import FunctionProgram
from pysmpi.job.job import Job
from pysmpi.job.options import Options

_warm: set[object] = set()  # selectors of earlier runs
_NOTHING = Decision("", "", (), "", "")


def warm(options: Options) -> None:
    """Run a program as a job with these options would, once in this process."""
    selector = str(options.selector)
    if selector in _warm:
        return
    _warm.add(selector)
    few = Options(nprocs=2, compute="none", schedule="random", selector=options.selector)
    Job(FunctionProgram(_program, ()), few).run()
    pickle.dumps(Trace([_NOTHING], options=[[_NOTHING]]))


def _program() -> None:
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if comm.rank:
        comm.send(1, dest=0)
        comm.Send(numpy.zeros(1), dest=0)
    else:
        comm.recv()
        comm.Recv(numpy.zeros(1), source=MPI.ANY_SOURCE)
    comm.Barrier()
    comm.bcast(1)
    comm.allreduce(1)
    comm.gather(1)
    comm.Allreduce(numpy.zeros(1), numpy.zeros(1))
