"""Costs of non-blocking collectives as in SMPI: `smpi/ois` in the call, `smpi/or` in the wait."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.replay import Replay

PLATFORM = """\
<platform version="4.1"><zone id="world" routing="Full">
<cluster id="c" prefix="c-" suffix="" radical="0-15" speed="1Gf" core="4" bw="1.25GBps" lat="10us"
 loopback_bw="5GBps" loopback_lat="200ns"/>
</zone></platform>
"""
HOSTS = "c-0\nc-1\nc-2\nc-3\nc-4\nc-4\n"
OPTIONS = {
    "smpi/ois": "0:1e-5:1e-10;3000:2e-5:3e-10",
    "smpi/or": "0:3e-6:0",
    "smpi/wtime": "0",
    "smpi/coll-selector": "ompi",
}
N = 100  # elements of a block; rank i has N + i in the forms with counts

# Of SMPI 3.32: microseconds of each rank (in the call; until its wait ends).
SMPI = """\
Ibcast                0.00 53.41 50.05 50.05 0.00 63.42 0.00 73.43 0.00 83.44 0.00 93.45
Igather               10.01 10.01 0.00 65.86 10.01 10.01 10.01 10.01 10.01 10.01 10.01 10.01
Igatherv              10.01 10.01 0.00 65.86 10.01 10.01 10.01 10.01 10.01 10.01 10.01 10.01
Iscatter              0.00 53.41 50.05 50.05 0.00 63.42 0.00 73.43 0.00 83.44 0.00 93.45
Iscatterv             0.00 53.41 50.05 50.05 0.00 63.42 0.00 73.43 0.00 83.44 0.00 93.45
Iallgather            50.05 93.81 50.05 93.81 50.05 93.81 50.05 93.81 50.05 92.80 50.05 102.81
Iallgatherv           50.05 93.83 50.05 93.83 50.05 93.83 50.05 93.83 50.05 92.80 50.05 102.81
Ialltoall             50.05 93.45 50.05 93.45 50.05 93.45 50.05 93.45 50.05 93.45 50.05 83.56
Ialltoallv            50.05 65.87 50.05 72.77 50.05 79.67 50.05 86.81 50.05 92.81 50.05 102.81
Ialltoallw            50.05 65.87 50.05 72.77 50.05 79.67 50.05 86.81 50.05 92.81 50.05 102.81
Ireduce               10.04 10.04 0.00 69.02 10.04 10.04 10.04 10.04 10.04 10.04 10.04 10.04
Iallreduce            50.20 96.39 50.20 96.39 50.20 96.39 50.20 96.39 50.20 95.35 50.20 105.39
Iscan                 50.20 50.20 40.16 53.13 30.12 63.17 20.08 73.16 10.04 84.19 0.00 93.24
Iexscan               50.20 50.20 40.16 53.13 30.12 63.17 20.08 73.16 10.04 84.19 0.00 93.24
Ireduce_scatter       50.20 96.40 50.20 96.44 50.20 96.47 50.20 96.51 50.20 95.51 50.20 105.59
Ireduce_scatter_block 50.20 96.39 50.20 96.39 50.20 96.39 50.20 96.39 50.20 95.35 50.20 105.39
"""


def calls(persistent):
    """Microseconds of each call, and of the call and its wait."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    rank, size = comm.rank, comm.size
    send, receive = numpy.zeros(8000, "b"), numpy.zeros(8000, "b")
    byte, integer = MPI.BYTE, MPI.INT
    counts = [N + i for i in range(size)]
    places = [sum(counts[:i]) for i in range(size)]
    apart = [i * (N + size) for i in range(size)]
    here = counts[rank]
    equal, vector = [send, N, byte], [send, counts, places, byte]
    into, into_vector = [receive, N, byte], [receive, counts, places, byte]
    from_all = [receive, [here] * size, apart]
    numbers, results = [send, N, integer], [receive, N, integer]
    arguments = {
        "Ibcast": (equal, 1),
        "Igather": (equal, into, 1),
        "Igatherv": ([send, here, byte], into_vector, 1),
        "Iscatter": (equal, into, 1),
        "Iscatterv": (vector, [receive, here, byte], 1),
        "Iallgather": (equal, into),
        "Iallgatherv": ([send, here, byte], into_vector),
        "Ialltoall": (equal, into),
        "Ialltoallv": (vector, [*from_all, byte]),
        "Ialltoallw": ([send, counts, places, [byte] * size], [*from_all, [byte] * size]),
        "Ireduce": (numbers, results, MPI.SUM, 1),
        "Iallreduce": (numbers, results, MPI.SUM),
        "Iscan": (numbers, results, MPI.SUM),
        "Iexscan": (numbers, results, MPI.SUM),
        "Ireduce_scatter": (
            [send, sum(counts), integer], [receive, here, integer], counts, MPI.SUM
        ),
        "Ireduce_scatter_block": (numbers, results, MPI.SUM),
    }  # fmt: skip
    found = {}
    for number, (name, values) in enumerate(arguments.items(), 1):
        if persistent:
            request = getattr(comm, f"{name[1:].capitalize()}_init")(*values)
        time.sleep(number - MPI.Wtime())
        begin = MPI.Wtime()
        if persistent:
            request.Start()
        else:
            request = getattr(comm, name)(*values)
        called = MPI.Wtime()
        request.Wait()
        found[name] = [(called - begin) * 1e6, (MPI.Wtime() - begin) * 1e6]
    return found


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "p.xml").write_text(PLATFORM)
    (tmp_path / "hosts").write_text(HOSTS)
    return {
        "platform": tmp_path / "p.xml",
        "hostfile": tmp_path / "hosts",
        "compute": "none",
        "cfg": OPTIONS,
    }


@pytest.mark.parametrize("persistent", [False, True])
def test_calls_and_waits_take_the_times_of_smpi(machine, persistent):
    ranks = pysmpi.run(calls, 6, args=(persistent,), **machine).returns
    for line in SMPI.splitlines():
        name, *numbers = line.split()
        wanted = [float(one) for one in numbers]
        found = [one for rank in ranks for one in rank[name]]
        # SMPI rounds dates to a nanosecond.
        assert found == pytest.approx(wanted, abs=0.03), name


def test_neighbourhood_collectives_pay_for_their_sends_in_the_call(machine):
    def main():
        import numpy
        from mpi4py import MPI

        ring = MPI.COMM_WORLD.Create_cart([MPI.COMM_WORLD.size], [True])
        send, receive = numpy.zeros(2 * N, "b"), numpy.zeros(2 * N, "b")
        begin = MPI.Wtime()
        request = ring.Ineighbor_alltoall(send, receive)
        called = MPI.Wtime()
        request.Wait()
        return called - begin

    found = pysmpi.run(main, 6, **machine).returns
    assert found == pytest.approx([2 * (1e-5 + N * 1e-10)] * 6)


def test_a_replay_pays_in_the_same_calls(machine, tmp_path):
    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        for root in range(comm.size):
            buffer = numpy.zeros(N, "b")
            request = comm.Ibcast(buffer, root)
            comm.Sendrecv(buffer, (comm.rank + 1) % comm.size, recvbuf=buffer.copy())
            request.Wait()
            comm.Iallreduce(buffer, buffer.copy()).Wait()

    path = tmp_path / "run.jsonl"
    machine["hostfile"] = None
    run = pysmpi.run(main, 6, trace=path, **machine)
    replay = Replay([(path, 0.0)]).run()
    assert replay.seconds == pytest.approx(run.seconds, rel=1e-12)
