"""Executes the lines of a random program in a rank of pysmpi; returns its readings of the clock."""

from __future__ import annotations

ROOM = 1 << 24


def execute(program: list[list[str]]) -> list[float]:
    """The readings of the clock of the calling rank."""
    import time

    import numpy
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    comms = {0: world}
    send, receive = numpy.zeros(ROOM, "b"), numpy.zeros(ROOM, "b")
    byte, integer = MPI.BYTE, MPI.INT
    requests: dict[int, MPI.Request] = {}
    window = None
    times = []

    def sleep(seconds: float) -> None:
        if seconds > 0:
            time.sleep(int(seconds * 1e9 + 0.5) / 1e9)

    for line in program[world.rank]:
        op, *texts = line.split()
        words = [int(text) for text in texts]
        if op == "time":
            times.append(MPI.Wtime())
        elif op == "align":
            sleep(words[0] - MPI.Wtime())
        elif op == "sleep":
            sleep(words[0] * 1e-6)
        elif op in ("send", "ssend"):
            comm, dest, tag, size = words
            getattr(comms[comm], op.capitalize())([send, size, byte], dest, tag)
        elif op == "recv":
            comm, source, tag, size = words
            comms[comm].Recv([receive, size, byte], source, tag)
        elif op in ("isend", "issend", "irecv", "send_init", "recv_init"):
            comm, peer, tag, size, number = words
            buffer = receive if "recv" in op else send
            start = getattr(comms[comm], op.capitalize())
            requests[number] = start([buffer, size, byte], peer, tag)
        elif op == "startall":
            MPI.Prequest.Startall([requests[i] for i in range(words[0])])
        elif op == "wait":
            requests[words[0]].Wait()
        elif op == "waitall":
            MPI.Request.Waitall([requests[i] for i in range(words[0])])
        elif op == "sendrecv":
            comm, dest, size, source, got = words
            comms[comm].Sendrecv([send, size, byte], dest, 9, [receive, got, byte], source, 9)
        elif op == "dup":
            comms[words[0]] = world.Dup()
        elif op == "split":
            comms[words[1]] = world.Split(words[0], world.rank)
        elif op == "window":
            window = MPI.Win.Create(receive, 1, comm=world)
        elif op == "fence":
            window.Fence()
        elif op in ("put", "get"):
            getattr(window, op.capitalize())([send, words[1], byte], words[0])
        elif op == "accumulate":
            window.Accumulate([send, words[1] // 4, integer], words[0], op=MPI.SUM)
        else:
            comm, root, *counts = words
            requests[0] = _collective(comms[comm], op, root, counts, send, receive)
    return times


def _collective(comm, op, root, counts, send, receive):
    """A collective call; returns its request, if it is non-blocking."""
    from mpi4py import MPI

    call = getattr(comm, op.capitalize())
    kind = op if op in ("barrier", "bcast") else op.removeprefix("i")
    n = counts[0] if counts else 0
    first = counts[: comm.size]
    places = [sum(first[:i]) for i in range(comm.size)]
    own = [send, n, MPI.BYTE], [receive, n, MPI.BYTE]
    numbers = [send, n, MPI.INT], [receive, n, MPI.INT]
    if kind == "barrier":
        return call()
    if kind == "bcast":
        return call(own[0], root)
    if kind == "reduce":
        return call(*numbers, MPI.SUM, root)
    if kind in ("allreduce", "scan", "exscan", "reduce_scatter_block"):
        return call(*numbers, MPI.SUM)
    if kind in ("gather", "scatter"):
        return call(*own, root)
    if kind in ("allgather", "alltoall"):
        return call(*own)
    here = counts[comm.rank]
    vector = counts[: comm.size], places, MPI.BYTE
    if kind == "reduce_scatter":
        return call([send, sum(counts), MPI.INT], [receive, here, MPI.INT], counts, MPI.SUM)
    if kind == "gatherv":
        return call([send, here, MPI.BYTE], [receive, *vector], root)
    if kind == "scatterv":
        return call([send, *vector], [receive, here, MPI.BYTE], root)
    if kind == "allgatherv":
        return call([send, here, MPI.BYTE], [receive, *vector])
    last = counts[comm.size :]
    others = [sum(last[:i]) for i in range(comm.size)]
    return call([send, *vector], [receive, last, others, MPI.BYTE])
