"""Noise of the machine: detours of cores, late and lost messages; repeatable by the seed."""

import sys

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.faults.specification import Detours, Drops, Jitter, parse_fault


def pings(times=200):
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    begin = MPI.Wtime()
    for _ in range(times):
        if comm.rank == 0:
            comm.Send(bytearray(8), 1)
            comm.Recv(bytearray(8), 1)
        elif comm.rank == 1:
            comm.Recv(bytearray(8), 0)
            comm.Send(bytearray(8), 0)
    return MPI.Wtime() - begin


def run(main, *noise, **options):
    chosen = {"nprocs": 2, "compute": "none", "platform": "cluster", "map_by": "node", **options}
    return pysmpi.run(main, fault=noise, **chosen)


def test_jitter_delays_messages_between_hosts():
    exact = run(pings).returns[0]
    noisy = [run(pings, "jitter:time=2us", seed=seed).returns[0] for seed in (1, 1, 2)]
    assert noisy[0] == noisy[1] != noisy[2]
    for one in noisy:
        assert (one - exact) / 400 == pytest.approx(2e-6, rel=0.2)
    inside = [run(pings, *noise, map_by="core").returns[0] for noise in ((), ("jitter:time=2us",))]
    assert inside[0] == inside[1]


def test_ranks_that_share_cores_and_spawned_ones_have_late_messages(tmp_path):
    machine = {
        "name": "pair",
        "clusters": [
            {"name": "pair", "hosts": "n[0-1]", "network": {"bandwidth": "1GBps", "latency": "1us"}}
        ],
    }

    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        begin = MPI.Wtime()
        for _ in range(50):
            comm.Sendrecv(bytearray(8), comm.rank ^ 1, recvbuf=bytearray(8))
        passed = MPI.Wtime() - begin
        child = comm.Spawn(sys.executable, [str(tmp_path / "child.py")], maxprocs=2)
        child.bcast(1, root=MPI.ROOT if comm.rank == 0 else MPI.PROC_NULL)
        return passed

    (tmp_path / "child.py").write_text(
        "from mpi4py import MPI\nMPI.Comm.Get_parent().bcast(None, root=0)\n"
    )
    times = [
        run(main, *noise, nprocs=6, platform=machine).returns[0]
        for noise in ((), ("jitter:time=2us",))
    ]
    assert times[1] > times[0] + 50 * 2e-6


def test_a_part_of_the_messages_is_late():
    exact = run(pings).returns[0]
    late = run(pings, "jitter:time=200us:rate=0.05").returns[0] - exact
    assert late / 400 == pytest.approx(0.05 * 200e-6, rel=0.5)


@pytest.mark.parametrize("model", ["hybrid", "loggps", "log_nP"])
def test_jitter_is_the_same_under_all_models(model):
    late = (
        run(pings, "jitter:time=2us", model=model).returns[0] - run(pings, model=model).returns[0]
    )
    assert late / 400 == pytest.approx(2e-6, rel=0.2)


def test_lost_messages_come_after_timeouts():
    exact = run(pings).returns[0]
    late = run(pings, "drop:rate=0.05").returns[0] - exact
    assert late > 0.2 and late / 0.2 == pytest.approx(round(late / 0.2), abs=1e-6)
    tenth = run(pings, "drop:rate=0.05:timeout=20ms").returns[0] - exact
    assert tenth == pytest.approx(late / 10, rel=1e-6)
    # One message at a time never finds another on its way.
    assert run(pings, "drop:rate=0.9:queue=1").returns[0] == exact


def test_lost_messages_in_a_queue():
    def incast():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.Gather(bytearray(1000), bytearray(1000 * comm.size) if comm.rank == 0 else None)
        return MPI.Wtime()

    times = [
        max(run(incast, *noise, nprocs=16, coll={"gather": "ompi_basic_linear"}).returns)
        for noise in ((), ("drop:rate=0.5:queue=4",), ("drop:rate=0.5:queue=15",))
    ]
    assert times[1] > 0.2 > times[0] == times[2]


def blocks():
    from mpi4py import MPI

    begin = MPI.Wtime()
    for _ in range(100):
        MPI.COMM_WORLD.Barrier()
    return MPI.Wtime() - begin


def test_detours_take_time_from_compute():
    exact = run(blocks, compute=1e-3, nprocs=1).returns[0]
    noisy = [
        run(blocks, "detours:rate=1000:time=100us", compute=1e-3, nprocs=1, seed=seed).returns[0]
        for seed in (1, 1, 2)
    ]
    assert noisy[0] == noisy[1] != noisy[2]
    for one in noisy:
        assert one / exact == pytest.approx(1.1, abs=0.06)
    # The barrier waits for the rank that is last: the more ranks, the more of the noise is seen.
    many = run(blocks, "detours:rate=1000:time=100us", compute=1e-3, nprocs=16, seed=1)
    assert many.returns[0] > 1.2 * exact


SHARED = {
    "memory": {"memory_bound": 1, "map_by": "core"},  # the ranks of a node share its memory
    "core": {
        "platform": {
            "name": "one",
            "clusters": [
                {
                    "name": "one",
                    "hosts": "n[0-0]",
                    "network": {"bandwidth": "1GBps", "latency": "1us"},
                }
            ],
        },
    },
    "both": {
        "memory_bound": 1,
        "platform": {
            "name": "one",
            "clusters": [
                {
                    "name": "one",
                    "hosts": "n[0-0]",
                    "cores": 2,
                    "network": {"bandwidth": "1GBps", "latency": "1us"},
                }
            ],
        },
    },
}


@pytest.mark.parametrize("what", SHARED)
def test_detours_take_time_from_compute_that_shares(what):
    def alternate():
        from mpi4py import MPI

        begin = MPI.Wtime()
        for _ in range(200):
            MPI.COMM_WORLD.Barrier()
        return MPI.Wtime() - begin

    options = {"nprocs": 4, "compute": 1e-3, **SHARED[what]}
    exact = run(alternate, **options).returns[0]
    noise = "detours:rate=100:time=1ms"
    noisy = [run(alternate, noise, seed=seed, **options).returns[0] for seed in (1, 1, 2)]
    assert noisy[0] == noisy[1] != noisy[2]
    # A tenth of the work is lost on each core. The barrier waits for the one that loses most.
    alone = run(alternate, nprocs=4, compute=1e-3, map_by="core").returns[0]
    more = run(alternate, noise, nprocs=4, compute=1e-3, map_by="core").returns[0] / alone
    for one in noisy:
        assert 1.05 < one / exact < more + 0.1, (one / exact, more)


def test_what_noise_says():
    assert parse_fault("detours:rate=100:time=2s") == Detours(100.0, 2.0)
    assert parse_fault("jitter:time=2s") == Jitter(2.0)
    assert parse_fault("jitter:time=2s:rate=0.1") == Jitter(2.0, 0.1)
    assert parse_fault("drop:rate=0.1") == Drops(0.1, 0, 0.2)
    assert parse_fault("drop:rate=0.1:queue=8:timeout=1s") == Drops(0.1, 8, 1.0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("detours", "expected detours:rate=RATE:time=TIME, got no rate"),
        ("detours:rate=1", "got no time"),
        ("detours:rate=0:time=1us", "rate: expected a number above 0, got '0'"),
        ("jitter:time=0s", "time: expected a time above 0, got '0s'"),
        ("jitter:time=soon", "--fault jitter:time=soon: time: expected"),
        ("jitter:rate=0.5", "expected jitter:time=TIME[:rate=P], got no time"),
        ("jitter:time=1us:rate=1", "rate: expected a number between 0 and 1, got '1'"),
        ("drop:rate=1", "rate: expected a number between 0 and 1, got '1'"),
        ("drop:rate=0.1:rate=0.2", "got 'rate=0.2'"),
        ("drop:rate=0.1:queue=x", "queue: expected a number of messages, got 'x'"),
        ("drop:rate=0.1:timeout=0", "timeout: expected a time above 0"),
    ],
)
def test_wrong_noise_is_refused(text, message):
    with pytest.raises(UsageError) as raised:
        parse_fault(text)
    assert message in str(raised.value)
