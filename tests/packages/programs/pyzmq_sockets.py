"""ZeroMQ: pairs of sockets in a rank, and a request to another rank over TCP on this computer."""

from __future__ import annotations

import threading

import numpy as np
import zmq
from mpi4py import MPI

comm = MPI.COMM_WORLD
context = zmq.Context()

# Within the rank: a worker thread answers.
inside = context.socket(zmq.PAIR)
inside.bind("inproc://worker")


def worker() -> None:
    socket = context.socket(zmq.PAIR)
    socket.connect("inproc://worker")
    while True:
        numbers = socket.recv_pyobj()
        if numbers is None:
            break
        socket.send_pyobj(float(np.sum(np.asarray(numbers) ** 2)))
    socket.close()


thread = threading.Thread(target=worker)
thread.start()
for size in (10, 100, 1000):
    inside.send_pyobj(list(range(comm.rank, comm.rank + size)))
    print(comm.rank, size, inside.recv_pyobj())
inside.send_pyobj(None)
thread.join()

# To the next rank: each is a server and a client.
server = context.socket(zmq.REP)
port = server.bind_to_random_port("tcp://127.0.0.1")
ports = comm.allgather(port)
client = context.socket(zmq.REQ)
client.connect(f"tcp://127.0.0.1:{ports[(comm.rank + 1) % comm.size]}")
client.send_multipart([b"square", str(comm.rank + 10).encode()])
poller = zmq.Poller()
poller.register(server, zmq.POLLIN)
assert dict(poller.poll(30000)) == {server: zmq.POLLIN}
verb, number = server.recv_multipart()
server.send(str(int(number) ** 2).encode())
print(comm.rank, verb.decode(), int(client.recv()))
for socket in (inside, server, client):
    socket.close()
context.term()
