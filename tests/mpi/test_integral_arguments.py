"""Ranks and tags may be any integral number, as in mpi4py: of numpy, or with `__index__`."""

from __future__ import annotations

import numpy as np
import pytest

import pysmpi


class Index:
    def __init__(self, value):
        self.value = int(value)

    def __index__(self):
        return self.value


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint16, Index, bool])
def test_ranks_and_tags(kind):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        peer, tag = kind(1 - comm.rank), kind(1)
        mine, theirs = np.array([comm.rank]), np.zeros(1, int)
        found = []
        request = comm.isend(comm.rank, peer, tag)
        found.append(comm.recv(None, peer, tag))
        request.wait()
        request = comm.isend(comm.rank, peer, tag)
        found.append(comm.irecv(None, peer, tag).wait())
        request.wait()
        found.append(comm.sendrecv(comm.rank, peer, tag, None, peer, tag))
        request = comm.isend(comm.rank, peer, tag)
        comm.probe(peer, tag)
        assert comm.iprobe(peer, tag)
        found.append(comm.mprobe(peer, tag).recv())
        request.wait()
        comm.Sendrecv(mine, peer, tag, theirs, peer, tag)
        found.append(int(theirs[0]))
        request = comm.Irecv(theirs, peer, tag)
        comm.Send(mine, peer, tag)
        request.Wait()
        found.append(int(theirs[0]))
        request = comm.Isend(mine, peer, tag)
        comm.Recv(theirs, peer, tag)
        request.Wait()
        found.append(int(theirs[0]))
        found.append(comm.bcast(comm.rank, kind(1)))
        return found

    result = pysmpi.run(main, 2, compute="none")
    assert result.returns == [[1] * 8, [0] * 7 + [1]]
