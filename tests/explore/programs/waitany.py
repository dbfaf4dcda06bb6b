"""Results are collected with Waitany. Finished requests leave the list, and the index into the
shorter list is taken for the rank."""

from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank:
    comm.send(comm.rank, dest=0)
else:
    requests = [comm.irecv(source=peer) for peer in range(1, comm.size)]
    found = {}
    while requests:
        i, value = MPI.Request.waitany(requests)
        found[comm.size - len(requests) + i] = value
        del requests[i]
    assert found == {peer: peer for peer in range(1, comm.size)}, found
