"""The times of calls in a recording agree with the program's own measurements."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pysmpi
from pysmpi.replay import Replay
from pysmpi.trace.lines import read_lines

OPERATIONS = ("send", "isend", "sendrecv", "object", "barrier", "allreduce", "bcast", "ibcast",
              "alltoall", "put", "sleep")  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 100_000)), min_size=1, max_size=8
    ),
    st.integers(2, 4),
)
def test_random_programs_measure_the_same(tmp_path_factory, steps, ranks):
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"

    def main():
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        me, size = comm.rank, comm.size
        after, before = (me + 1) % size, (me - 1) % size
        spent = defaultdict(float)
        count = defaultdict(int)

        def call(name, function, *arguments):
            begin = MPI.Wtime()
            value = function(*arguments)
            spent[name] += MPI.Wtime() - begin
            count[name] += 1
            return value

        window = MPI.Win.Allocate(100_000, 1, comm=comm)
        for operation, nbytes in steps:
            out, back = np.zeros(nbytes, np.uint8), np.zeros(nbytes, np.uint8)
            if operation == "send":
                if me % 2 == 0:
                    call("Send", comm.Send, out, after)
                    call("Recv", comm.Recv, back, before)
                else:
                    call("Recv", comm.Recv, back, before)
                    call("Send", comm.Send, out, after)
            elif operation == "isend":
                requests = [call("Irecv", comm.Irecv, back, before)]
                requests.append(call("Isend", comm.Isend, out, after))
                call("Waitall", MPI.Request.Waitall, requests)
            elif operation == "sendrecv":
                call("Sendrecv", comm.Sendrecv, out, after, 0, back, before, 0)
            elif operation == "object":
                request = call("isend", comm.isend, bytes(nbytes), after, 3)
                assert len(call("recv", comm.recv, None, before, 3)) == nbytes
                call("wait", request.wait)
            elif operation == "barrier":
                call("Barrier", comm.Barrier)
            elif operation == "allreduce":
                call("Allreduce", comm.Allreduce, out, back, MPI.MAX)
            elif operation == "bcast":
                call("Bcast", comm.Bcast, out, nbytes % size)
            elif operation == "ibcast":
                call("Wait", call("Ibcast", comm.Ibcast, out, 0).Wait)
            elif operation == "alltoall":
                many = np.zeros(nbytes // 100 * size, np.uint8)
                call("Alltoall", comm.Alltoall, many, many.copy())
            elif operation == "put":
                call("Fence", window.Fence)
                call("Put", window.Put, out, after)
                call("Fence", window.Fence)
            else:
                time.sleep(nbytes * 1e-8)
        return dict(spent), dict(count)

    result = pysmpi.run(
        main, nprocs=ranks, compute="none", trace=path, cfg={"smpi/wtime": "0"},
        platform="graphene",
    )  # fmt: skip
    recording = read_lines(path)
    for rank, (spent, count) in enumerate(result.returns):
        times, calls = defaultdict(float), defaultdict(int)
        for call in recording.calls_of(rank):
            times[call.name] += call.end - call.start
            calls[call.name] += 1
        for name, seconds in spent.items():
            assert times[name] == pytest.approx(seconds, rel=1e-9, abs=1e-12), name
            assert calls[name] == count[name]
        # Calls, computes and times between calls are all of the rank's life, without gaps.
        last = 0.0
        for call in recording.calls_of(rank):
            total = sum(one[1] for one in call.operations if one[0] == "compute")
            assert call.start - total == pytest.approx(last, abs=1e-9) or not call.name, call
            last = call.end
        assert last == pytest.approx(recording.ends[rank], abs=1e-9)
    assert Replay([(path, 0.0)]).run().seconds == pytest.approx(result.seconds, rel=1e-3)
