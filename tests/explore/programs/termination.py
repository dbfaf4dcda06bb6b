"""Work spreads, and rank 0 asks all ranks whether they are idle. Work under way belongs to no rank:
if all answer before it arrives, rank 0 stops the others too early."""

from mpi4py import MPI

WORK, ASK, IDLE, STOP = 1, 2, 3, 4
comm = MPI.COMM_WORLD
done = 0

if comm.rank == 0:
    comm.send(2, dest=1, tag=WORK)
    comm.recv(source=1, tag=WORK)  # rank 1 has begun
    for peer in range(1, comm.size):
        comm.send(None, dest=peer, tag=ASK)
    idle = [comm.recv(source=peer, tag=IDLE) for peer in range(1, comm.size)]
    for peer in range(1, comm.size):
        comm.send(None, dest=peer, tag=STOP)
    total = sum(comm.recv(source=peer, tag=STOP) for peer in range(1, comm.size))
    assert total == 2, f"{total} of 2 pieces of work were done"
else:
    stopping = False
    while not stopping:
        status = MPI.Status()
        work = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
        if status.tag == WORK:
            done += 1
            if work > 1:
                comm.send(work - 1, dest=2, tag=WORK)
                comm.send(None, dest=0, tag=WORK)
        elif status.tag == ASK:
            comm.send(True, dest=0, tag=IDLE)
        else:
            stopping = True
    comm.send(done, dest=0, tag=STOP)
