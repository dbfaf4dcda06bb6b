"""Ranks and tags may be floats, which lose their fraction, as in mpi4py."""

from __future__ import annotations

import pysmpi


def test_messages_with_float_ranks_and_tags():
    def main():
        import numpy as np
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        peer = (comm.rank + 1) % 2 / 1.0  # programs that divide get such
        data, seen = np.full(1, comm.rank), np.zeros(1, int)
        request = comm.Isend(data, peer, 1.5)
        comm.Recv(seen, peer, 1.0)
        request.Wait()
        found = [int(seen[0])]
        request = comm.isend("text", peer, 2.0)
        assert comm.Probe(peer, 2.0)
        found.append(comm.mprobe(peer, 2.9).recv())
        request.wait()
        receive = comm.Recv_init(seen, peer, 3.0)
        receive.Start()
        comm.Send(data, peer, 3)
        receive.Wait()
        comm.Sendrecv(data, peer, 4.0, seen, peer, 4.0)
        return [*found, comm.Iprobe(peer, 5.0)]

    assert pysmpi.run(main, 2).returns == [[1, "text", False], [0, "text", False]]
