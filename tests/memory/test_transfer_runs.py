"""Messages inside described nodes, in runs: the findings of Putigny, Ruelle and Goglin (2014)."""

import json
import os
import subprocess
import sys

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.kernel.plan import Plan, PlanBook, Transport
from pysmpi.memory.transfer.models import find_memory_model
from pysmpi.memory.transfer.pipeline import copy_seconds, pipelined
from pysmpi.memory.transfer.transport import MemoryTransport
from pysmpi.platform import load
from pysmpi.platform.config import Settings
from pysmpi.platform.model import Host
from pysmpi.platform.placement import Slot

KIB, MIB = 1 << 10, 1 << 20


def pingpong(sizes, peer, send="reused", receive="reused", rounds=4):
    """Seconds one way of the last round, by size; buffers that are not reused are always others.

    Every round of a size takes other buffers of one side or both, spread over 64 MiB.
    """
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    times = {}
    for size in sizes:
        out, into = np.zeros(64 * MIB, "b"), np.zeros(64 * MIB, "b")
        for step in range(rounds):
            place = 64 * MIB // rounds * step
            a = out[:size] if send == "reused" else out[place : place + size]
            b = into[:size] if receive == "reused" else into[place : place + size]
            pysmpi.touch(out, write=True)
            comm.Barrier()
            if send == "reused":
                pysmpi.touch(a, write=True)
            if receive == "reused":
                pysmpi.touch(b, write=True)
            comm.Barrier()
            begin = MPI.Wtime()
            if comm.rank == 0:
                comm.Send(a, peer)
                comm.Recv(b, peer)
            elif comm.rank == peer:
                comm.Recv(b, 0)
                comm.Send(a, 0)
            times[size] = (MPI.Wtime() - begin) / 2
    return times


def measure(platform, peer, sizes, **options):
    cfg = options.pop("cfg", {})
    model = options.pop("memory_model", None)
    program = [sizes, peer, *options.values()]
    result = pysmpi.run(
        pingpong, peer + 1, args=program, platform=platform, map_by="core", compute="none",
        cfg=cfg, memory_model=model,
    )  # fmt: skip
    return result.returns[0]


def bare(platform, peer, sizes, chunk):
    """Times without overheads of the library, as the paper's synthetic experiment has them."""
    cfg = {"memory/overhead": "0", "memory/chunk-overhead": "0", "memory/eager": "0",
           "memory/chunk": str(chunk), "memory/overlap": "1", "smpi/wtime": "0"}  # fmt: skip
    return measure(platform, peer, sizes, cfg=cfg)


@pytest.mark.parametrize("chunk", [32 * KIB, 64 * KIB])
def test_from_the_sequential_to_the_parallel_limit(chunk):
    """Figure 4: one chunk is copied twice in turn, many chunks by both cores at once."""
    node = load("xeon-e5-2650").hosts[0].node
    signal = node.latency("LMM", 0)
    sizes = [chunk // 4, chunk, 4 * chunk, 4 * MIB]
    times = bare("xeon-e5-2650", 1, sizes, chunk)

    def speed(access, size):
        return node.throughput(access, 0 if access in ("SHS", "LMM") else -1, size)

    shares = []
    for size in sizes:
        send = size / min(speed("LHM", size), speed("SHS", size))
        receive = size / min(speed("LMM", size), speed("SHM", size))
        low, high = max(send, receive), send + receive
        shares.append((times[size] - signal - low) / (high - low))
    assert shares[0] == pytest.approx(1.0, abs=0.12)
    assert shares[1] == pytest.approx(1.0, abs=0.12)
    assert 0.05 < shares[2] < 0.6
    assert shares[3] == pytest.approx(0.0, abs=0.03)


@pytest.mark.parametrize("platform, peer", [("xeon-e5-2650", 1), ("xeon-e5-2650", 8)])
@pytest.mark.parametrize("size", [256 * KIB, 1 * MIB])
def test_the_receivers_reuse_matters_more_than_the_senders(platform, peer, size):
    """Figure 6, with IMB's options: both buffers reused, one of them, none."""
    time = {
        (send, receive): measure(platform, peer, [size], send=send, receive=receive)[size]
        for send in ("reused", "other")
        for receive in ("reused", "other")
    }
    both, none = time["reused", "reused"], time["other", "other"]
    sender_only, receiver_only = time["reused", "other"], time["other", "reused"]
    assert both <= receiver_only < sender_only <= none
    assert none > 1.2 * both
    assert sender_only - both > 2 * (receiver_only - both)


def test_reusing_buffers_in_alternating_direction_pays_on_the_opteron():
    """Figure 14: 5 to 50 % faster inside a shared L3; nothing of the kind on the Xeon."""
    sizes = [16 * KIB, 64 * KIB, 256 * KIB, 1 * MIB, 4 * MIB]

    def gains(platform, peer):
        same = measure(platform, peer, sizes, cfg={"memory/pool": "sender"})
        alternating = measure(platform, peer, sizes, cfg={"memory/pool": "pair"})
        return [same[size] / alternating[size] - 1.0 for size in sizes]

    opteron = gains("opteron-6272", 2)
    assert max(opteron) <= 0.55
    assert min(opteron[:3]) >= 0.05
    assert opteron[3] >= 0.03
    assert gains("xeon-e5-2650", 1) == pytest.approx([0.0] * 5, abs=0.01)
    # Between sockets the effect is at least as large (figure 13: 4 times, not 3).
    assert gains("opteron-6272", 16)[1] > opteron[1]


def test_a_benchmark_that_reuses_its_buffer_is_told_from_one_that_does_not():
    def program(reuse):
        import numpy as np
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        space = np.zeros((64, 1 * MIB), "b")
        begin = MPI.Wtime()
        for step in range(128):
            buffer = space[0 if reuse else step % 64]
            comm.Send(buffer, 1) if comm.rank == 0 else comm.Recv(buffer, 0)
        return MPI.Wtime() - begin

    def seconds(reuse):
        return pysmpi.run(program, 2, args=(reuse,), platform="xeon-e5-2650", map_by="core",
                          compute="none").returns[1]  # fmt: skip

    assert seconds(False) > 1.3 * seconds(True)


def test_what_fills_the_cache_makes_the_next_message_cost_more():
    def program():
        import numpy as np
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data, large = np.zeros(100_000), np.zeros(8_000_000)

        def once():
            comm.Barrier()
            begin = MPI.Wtime()
            comm.Send(data, 1) if comm.rank == 0 else comm.Recv(data, 0)
            return MPI.Wtime() - begin

        warm = min(once() for _ in range(3))
        pysmpi.touch(large)
        cold = once()
        return warm, cold, once()

    warm, cold, again = pysmpi.run(
        program, 2, platform="xeon-e5-2650", map_by="socket", compute="none"
    ).returns[1]
    assert cold > 1.2 * warm
    assert again == pytest.approx(warm, rel=1e-6)


@pytest.mark.parametrize("model", ["cma", "knem", "xpmem"])
def test_one_copy_is_faster_where_cores_have_much_to_copy(model):
    """In an exchange each core copies in and out; with one copy it only copies in."""

    def program(size):
        import numpy as np
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        out, into = np.zeros(size, "b"), np.zeros(size, "b")
        for _ in range(3):
            begin = MPI.Wtime()
            comm.Sendrecv(out, 1 - comm.rank, 0, into, 1 - comm.rank)
        return MPI.Wtime() - begin

    def seconds(size, model):
        return pysmpi.run(program, 2, args=(size,), platform="xeon-e5-2650", map_by="socket",
                          compute="none", memory_model=model).returns[0]  # fmt: skip

    assert seconds(2 * KIB, model) == seconds(2 * KIB, None)
    assert seconds(2 * MIB, model) < 0.8 * seconds(2 * MIB, None)
    if model == "knem":
        size = 5 * KIB
        one = measure("xeon-e5-2650", 1, [size], memory_model=model)
        assert one[size] > measure("xeon-e5-2650", 1, [size])[size]


def test_without_a_description_or_with_the_loopback_times_are_those_of_the_network():
    sizes = [8, 64 * KIB, MIB]
    with_loopback = measure("xeon-e5-2650", 1, sizes, memory_model="loopback")
    bandwidth = 10e9 * 0.97
    assert with_loopback[MIB] < MIB / bandwidth * 1.5
    plain = measure("laptop", 1, sizes)
    assert plain == measure("laptop", 1, sizes, memory_model="cma")


def test_messages_of_many_pairs_share_the_memory_controller():
    def program(pairs):
        import numpy as np
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        data = np.zeros(64 * MIB, "b")
        comm.Barrier()
        begin = MPI.Wtime()
        if comm.rank < pairs:
            comm.Send(data, 4 + comm.rank)
        elif 4 <= comm.rank < 4 + pairs:
            comm.Recv(data, comm.rank - 4)
        comm.Barrier()
        return MPI.Wtime() - begin

    def seconds(pairs):
        return pysmpi.run(program, 8, args=(pairs,), platform="xeon-e5-2650", map_by="core",
                          compute="none").returns[0]  # fmt: skip

    assert seconds(1) <= seconds(2) * 1.001
    assert seconds(4) > 1.5 * seconds(1)


PROGRAM = """
import numpy as np, pysmpi
from mpi4py import MPI
comm = MPI.COMM_WORLD
names = {f"n{i}": np.zeros(1000 * (i + 1)) for i in range(20)}
for name in set(names):
    pass
for name in sorted(names):
    a = names[name]
    into = np.empty_like(a)
    comm.Sendrecv(a, (comm.rank + 1) % comm.size, 0, into, (comm.rank - 1) % comm.size)
    comm.Sendrecv(a[::1][5:], (comm.rank + 1) % comm.size, 0, into[5:], MPI.ANY_SOURCE)
    pysmpi.touch(into, write=True)
    comm.bcast({"step": name})
    comm.Allreduce(a, into)
column = MPI.DOUBLE.Create_vector(100, 1, 50).Commit()
grid = np.zeros((100, 50))
comm.Sendrecv([grid, 1, column], (comm.rank + 1) % comm.size, 0, [grid, 1, column], MPI.ANY_SOURCE)
window = MPI.Win.Create(grid, comm=comm)
window.Fence()
window.Put(names["n3"], (comm.rank + 1) % comm.size)
window.Fence()
window.Free()
"""


@pytest.mark.slow
@pytest.mark.parametrize("model", ["pipelined", "xpmem"])
def test_runs_repeat_byte_for_byte_compiled_or_not(tmp_path, model):
    traces, reports = set(), set()
    for number, variables in enumerate(
        ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "PYTHONMALLOC": "malloc"},
         {"PYSMPI_INTERPRETED": "1"})
    ):  # fmt: skip
        trace, report = tmp_path / f"{number}.csv", tmp_path / f"{number}.json"
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", "run", "-n", "12", "--platform", "multicore-cluster",
             "--map-by", "core", "--compute", "none", "--memory-model", model,
             "--trace", str(trace), "--report", str(report), "-c", PROGRAM],
            capture_output=True, text=True, timeout=120, env={**os.environ, **variables},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        traces.add(trace.read_bytes())
        reports.add(json.dumps(json.loads(report.read_text()), sort_keys=True))
    assert len(traces) == 1
    assert len(reports) == 1


def test_a_model_of_a_users_own_derives_from_the_channel():
    from pysmpi.memory.transfer.channel import Channel

    class Own(Channel):
        def sending(self, send):
            """Add no cost."""

    assert isinstance(Own.__new__(Own), Channel)


SOCKETS = 8  # cores of a socket of the Xeon


def other_socket(size, **cfg):
    """Seconds one way between two sockets, without overheads of the library."""
    options = {f"memory/{name}": value for name, value in cfg.items()}
    options |= {"memory/overhead": "0", "memory/chunk-overhead": "0", "memory/eager": "0"}
    options["smpi/wtime"] = "0"
    return measure("xeon-e5-2650", SOCKETS, [size], cfg=options)[size]


def closed_form(size, stored, loaded, sent=0.0, received=0.0):
    """Equation 1 with the accesses (name, distance) to the shared buffers, and the work after them.

    `sent` and `received` are seconds a byte.
    """
    node = load("xeon-e5-2650").hosts[0].node
    overlap = node.overlap.at(size)
    send = copy_seconds(node.throughput("LHM", -1, size), node.throughput(*stored, size), overlap)
    take = copy_seconds(node.throughput(*loaded, size), node.throughput("SHM", -1, size), overlap)
    signal = node.latency("LMM", 1)
    return signal + pipelined(size, 32 * KIB, 32 * KIB, send + sent, take + received)


@pytest.mark.parametrize("size", [64 * KIB, 512 * KIB])
def test_flushes_and_non_temporal_stores_change_both_sides_accesses(size):
    """The receiver loads from memory; the next store finds the lines with the receiver, or not."""
    node = load("xeon-e5-2650").hosts[0].node
    flush, clean = (1 / node.throughput(access, -1, size) for access in ("FHM", "FHS"))
    usual = closed_form(size, ("SHS", 1), ("LMM", 1))
    start = other_socket(size) - usual  # one side is a little late

    def check(expected, **cfg):
        assert expected != pytest.approx(usual, rel=0.02)
        assert other_socket(size, **cfg) == pytest.approx(start + expected, rel=1e-6)

    assert 0 <= start < 1e-7
    check(closed_form(size, ("SME", 1), ("LMI", 1), sent=flush), stores="flush")
    for drain in (0.0, 3e-6):
        expected = closed_form(size, ("SNT", -1), ("LMI", 1), sent=drain / (32 * KIB))
        check(expected, stores="non-temporal", drain=f"{drain}s")
    # A flush by the receiver leaves the sender's shared line without another copy.
    expected = closed_form(size, ("SHS", -1), ("LMM", 1), received=clean)
    check(expected, release="flush")


def test_short_messages_pay_for_flushes_too():
    usual = measure("xeon-e5-2650", SOCKETS, [2 * KIB])[2 * KIB]
    for option in ("memory/stores", "memory/release"):
        found = measure("xeon-e5-2650", SOCKETS, [2 * KIB], cfg={option: "flush"})[2 * KIB]
        assert found > 1.1 * usual


def test_shared_buffers_that_stay_in_caches_use_no_memory():
    """A message of 16 MiB uses the memory for its own buffers alone; the pool has 256 KiB."""
    node = load("opteron-6272").hosts[0].node
    size = 16 * MIB
    found = measure("opteron-6272", 2, [size], cfg={"memory/pool": "pair"})[size]
    receiver = node.throughput("LMM", 1, size)
    assert size / found == pytest.approx(receiver, rel=0.02)


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("memory/stores", "fast", "expected one of cached, flush, non-temporal, got 'fast'"),
        ("memory/release", "no", "expected one of keep, flush, got 'no'"),
        ("memory/drain", "soon", "memory/drain: "),
    ],
)
def test_wrong_choices_of_stores(option, text, message):
    with pytest.raises(UsageError, match=message):
        measure("xeon-e5-2650", 1, [1], cfg={option: text})


def test_slots_of_hosts_without_a_description_share_plans():
    class Network(Transport):
        made = 0

        def plan(self, source, destination, nbytes):
            Network.made += 1
            return Plan(1e-6, float(nbytes), 1e9)

        def place(self, slot):
            return slots[slot].host.index

    inside = load("xeon-e5-2650").hosts[0]
    plain = Host("plain", inside.index + 1, (1e9,), 16)
    slots = [Slot(host, core) for host in (inside, plain) for core in range(16)]
    settings = Settings()
    prepare = find_memory_model("pipelined").prepare
    assert prepare is not None
    book = PlanBook(MemoryTransport(Network(), slots, settings, prepare(settings)), len(slots))
    for source in range(16, 32):
        for destination in range(16, 32):
            book.plan(source, destination, 1000)
    assert Network.made == 1
    one, other = (book.plan(16, destination, 1000) for destination in (0, 1))
    assert one is not other  # the caches of two cores
    assert book.plan(31, 0, 1000) is one
