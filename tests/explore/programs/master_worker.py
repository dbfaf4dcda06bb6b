"""A master hands out tasks. It sends the next task to the next worker in turn, not to the worker
that has answered."""

import sys

from mpi4py import MPI

TASK, STOP = 1, 2
comm = MPI.COMM_WORLD
tasks = int(sys.argv[1]) if len(sys.argv) > 1 else 6

if comm.rank == 0:
    workers = comm.size - 1
    done = {}
    for worker in range(1, comm.size):
        comm.send(worker - 1, dest=worker, tag=TASK)
    given = workers
    turn = 0
    while len(done) < tasks:
        status = MPI.Status()
        task, value = comm.recv(source=MPI.ANY_SOURCE, status=status)
        done[task] = value
        worker = 1 + turn % workers  # should be status.source
        turn += 1
        if given < tasks:
            comm.ssend(given, dest=worker, tag=TASK)
            given += 1
    for worker in range(1, comm.size):
        comm.send(None, dest=worker, tag=STOP)
    assert done == {task: task * task for task in range(tasks)}
else:
    while True:
        status = MPI.Status()
        task = comm.recv(source=0, status=status)
        if status.tag == STOP:
            break
        comm.ssend((task, task * task), dest=0)
