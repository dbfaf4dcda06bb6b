"""Sockets of ZeroMQ in ranks, which would wait in C."""

from __future__ import annotations

import pytest

import pysmpi

pytest.importorskip("zmq", reason="needs pyzmq (pip install 'pysmpi[test]')")


def run(main, size=1, **options):
    return pysmpi.run(main, size, **{"compute": "none", **options})


def test_threads_of_a_rank_exchange_messages():
    def main():
        import threading
        import time

        import zmq

        context = zmq.Context()
        here = context.socket(zmq.PAIR)
        here.bind("inproc://here")

        def work():
            there = context.socket(zmq.PAIR)
            there.connect("inproc://here")
            while (number := there.recv_pyobj()) is not None:
                time.sleep(100.0)
                there.send_multipart([b"square", str(number**2).encode()])
            there.close()

        thread = threading.Thread(target=work)
        thread.start()
        found = []
        for number in (3, 4):
            here.send_pyobj(number)
            found.append((here.recv_multipart(), round(time.monotonic(), 2)))
        here.send_pyobj(None)
        thread.join()
        here.rcvtimeo = 50_000
        with pytest.raises(zmq.Again):
            here.recv()
        assert here.poll(25_000) == 0
        found.append(round(time.monotonic(), 2))
        with pytest.raises(zmq.Again):
            here.recv(zmq.NOBLOCK)
        buffer = bytearray(1)
        with pytest.raises(zmq.Again):
            here.recv_into(buffer)
        here.close()
        context.term()
        return found

    expected = [([b"square", b"9"], 100.0), ([b"square", b"16"], 200.0), 275.0]
    result = run(main, 2)
    assert result.returns == [expected] * 2
    assert result.wall_seconds < 0.5 * result.seconds


def test_ranks_ask_each_other():
    def main():
        import zmq
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        with zmq.Context() as context:
            server = context.socket(zmq.REP)
            ports = comm.allgather(server.bind_to_random_port("tcp://127.0.0.1"))
            client = context.socket(zmq.REQ)
            client.connect(f"tcp://127.0.0.1:{ports[(comm.rank + 1) % comm.size]}")
            client.send(b"%d" % comm.rank)
            poller = zmq.Poller()
            poller.register(server, zmq.POLLIN)
            assert dict(poller.poll()) == {server: zmq.POLLIN}
            server.send(server.recv() + b" answered")
            answer = client.recv()
            for one in (server, client):
                one.close()
        return answer

    assert run(main, 4).returns == [b"%d answered" % rank for rank in range(4)]


def test_a_context_ends_once_the_threads_that_wait_have_closed_their_sockets():
    def main():
        import threading

        import zmq

        context, log = zmq.Context(), []

        def work():
            with context.socket(zmq.PULL) as socket:
                socket.bind("inproc://never")
                try:
                    socket.recv()
                except zmq.ContextTerminated:
                    log.append("told")

        thread = threading.Thread(target=work)
        thread.start()
        context.term()
        log.append("ended")
        thread.join()
        return log

    assert run(main).returns == [["told", "ended"]]


def test_a_proxy_passes_messages_on():
    def main():
        import threading

        import zmq

        context = zmq.Context()
        front, back = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        front.bind("inproc://front")
        back.bind("inproc://back")
        threading.Thread(target=zmq.proxy, args=(front, back), daemon=True).start()
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        push.connect("inproc://front")
        pull.connect("inproc://back")
        push.send_multipart([b"a", b"b"])
        return pull.recv_multipart()

    assert run(main).returns == [[b"a", b"b"]]


def test_who_waits_for_nobody_is_a_deadlock():
    def main():
        import zmq

        with zmq.Context() as context, context.socket(zmq.PULL) as socket:
            socket.bind("inproc://silent")
            socket.recv()

    assert "waits in recv()" in str(run(main, check=False).deadlock)
