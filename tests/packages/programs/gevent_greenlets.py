"""Greenlets of gevent in each rank: pools, queues, events, timeouts and a server."""

from __future__ import annotations

import gevent
from gevent.event import AsyncResult, Event
from gevent.pool import Pool
from gevent.queue import Queue
from gevent.server import StreamServer
from gevent.socket import create_connection
from mpi4py import MPI

comm = MPI.COMM_WORLD
queue: Queue = Queue(2)
log: list[tuple[str, int]] = []


def produce() -> None:
    for k in range(4):
        queue.put(k * (comm.rank + 1))
        gevent.sleep(0.001)
    queue.put(None)


def consume() -> None:
    while (item := queue.get()) is not None:
        log.append(("got", item))


gevent.joinall([gevent.spawn(produce), gevent.spawn(consume)], raise_error=True)
print(comm.rank, log)
print(comm.rank, Pool(3).map(lambda n: n**2 + comm.rank, range(6)))
event, answer = Event(), AsyncResult()
gevent.spawn_later(0.01, event.set)
gevent.spawn(lambda: (event.wait(), answer.set(comm.rank * 2)))
print(comm.rank, answer.get(timeout=30), event.is_set())
try:
    with gevent.Timeout(0.02):
        gevent.sleep(60)
except gevent.Timeout as error:
    print(comm.rank, "late", error.seconds)


def handle(socket, address) -> None:
    socket.sendall(socket.recv(100)[::-1])
    socket.close()


server = StreamServer(("127.0.0.1", 0), handle)
server.start()
client = create_connection(("127.0.0.1", server.server_port))
client.sendall(b"rank %d" % comm.rank)
print(comm.rank, client.recv(100).decode())
client.close()
server.stop()
print(comm.rank, comm.allreduce(len(log)))
