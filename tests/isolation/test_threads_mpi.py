"""Threads of a rank that call MPI, and sockets between ranks."""

from __future__ import annotations

import pytest

import pysmpi


def run(main, nprocs):
    return pysmpi.run(main, nprocs, compute="none").returns


def test_threads_send_and_receive_beside_each_other():
    def main():
        import threading

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        assert MPI.Query_thread() == MPI.THREAD_MULTIPLE
        found = {}

        def work(tag):
            comm = comms[tag]
            peer = 1 - comm.rank
            got = comm.sendrecv((comm.rank, tag), peer, tag, None, peer, tag)
            found[tag] = (*got, comm.allreduce(tag), MPI.Is_thread_main())

        comms = [world.Dup() for _ in range(5)]
        threads = [threading.Thread(target=work, args=(tag,)) for tag in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return [found[tag] for tag in range(5)]

    for rank, seen in enumerate(run(main, 2)):
        assert seen == [(1 - rank, tag, 2 * tag, False) for tag in range(5)]


def test_a_thread_serves_while_the_program_computes():
    def main():
        import threading
        import time

        import numpy as np
        from mpi4py import MPI

        world = MPI.COMM_WORLD
        served = []

        def serve():
            while True:
                status = MPI.Status()
                question = world.recv(source=MPI.ANY_SOURCE, tag=1, status=status)
                if question is None:
                    return
                served.append(question)
                world.Send(np.array([question * 2]), dest=status.source, tag=2)

        if world.rank == 0:
            server = threading.Thread(target=serve)
            server.start()
            time.sleep(10.0)
            world.send(None, dest=0, tag=1)
            server.join()
            return sorted(served), MPI.Wtime() >= 10.0
        answer = np.zeros(1, int)
        world.send(world.rank, dest=0, tag=1)
        world.Recv(answer, source=0, tag=2)
        return int(answer[0]), MPI.Wtime() < 1.0

    assert run(main, 4) == [([1, 2, 3], True), (2, True), (4, True), (6, True)]


def test_a_thread_waits_for_a_request_of_another():
    def main():
        import queue
        import threading

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        requests, results = queue.Queue(), queue.Queue()

        def finish():
            while (request := requests.get()) is not None:
                results.put(request.wait())

        thread = threading.Thread(target=finish)
        thread.start()
        peer = (world.rank + 1) % world.size
        sends = [world.isend(i, dest=peer, tag=i) for i in range(4)]
        for i in range(4):
            requests.put(world.irecv(source=(world.rank - 1) % world.size, tag=i))
        requests.put(None)
        thread.join()
        MPI.Request.Waitall(sends)
        return [results.get() for _ in range(4)]

    assert run(main, 3) == [[0, 1, 2, 3]] * 3


def test_futures_with_mpi_inside():
    def main():
        from concurrent.futures import ThreadPoolExecutor

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        with ThreadPoolExecutor(4) as pool:
            got = pool.map(lambda tag: world.sendrecv(tag, right, tag, None, left, tag), range(8))
            return list(got)

    assert run(main, 3) == [list(range(8))] * 3


@pytest.mark.parametrize("kind", ["stream", "datagram"])
def test_ranks_talk_through_sockets(kind):
    def main(kind):
        import socket

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        family = socket.SOCK_STREAM if kind == "stream" else socket.SOCK_DGRAM
        sock = socket.socket(type=family)
        if world.rank == 0:
            sock.bind((socket.gethostname(), 0))
            if kind == "stream":
                sock.listen(4)
            world.bcast((socket.gethostname(), sock.getsockname()[1]), root=0)
            seen = []
            for _ in range(world.size - 1):
                if kind == "stream":
                    peer, _ = sock.accept()
                    with peer:
                        seen.append(peer.recv(100))
                        peer.sendall(b"thanks")
                else:
                    data, address = sock.recvfrom(100)
                    seen.append(data)
                    sock.sendto(b"thanks", address)
            answer = sorted(seen)
        else:
            address = world.bcast(None, root=0)
            sock.connect(address)
            sock.sendall(b"from %d" % world.rank)
            answer = sock.recv(100)
        sock.close()
        return answer

    result = pysmpi.run(main, 3, args=(kind,), compute="none")
    assert result.returns == [[b"from 1", b"from 2"], b"thanks", b"thanks"]


def test_a_socket_that_nobody_serves_times_out_in_simulated_time():
    def main():
        import socket
        import time

        server = socket.socket()
        server.bind(("127.0.0.1", 0))
        server.listen(1)
        server.settimeout(0.5)
        begin = time.monotonic()
        try:
            server.accept()
        except TimeoutError:
            return time.monotonic() - begin

    (waited,) = run(main, 1)
    assert waited == pytest.approx(0.5, abs=0.01)
