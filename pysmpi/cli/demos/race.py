"""A manager takes results in the order of arrival, and believes that worker 1 is first."""

from mpi4py import MPI

comm = MPI.COMM_WORLD

if comm.rank == 0:
    results = [comm.recv(source=MPI.ANY_SOURCE) for _ in range(comm.size - 1)]
    assert results[0] == "a result of worker 1", f"the first is {results[0]!r}"
    print("the results came in the expected order")
else:
    comm.send(f"a result of worker {comm.rank}", dest=0)
