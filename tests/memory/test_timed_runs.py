"""The line model and the model of FAME in runs: messages take the times of their formulas."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.coherence.study import study
from pysmpi.errors import UsageError
from pysmpi.memory.coherence import protocol
from pysmpi.memory.lines.machine import costs_of
from pysmpi.memory.lines.pingpong import multi_line, single_line
from pysmpi.memory.primitives import program
from pysmpi.memory.primitives.placement import at_distance, latencies
from pysmpi.platform.loader import MACHINES

pytestmark = pytest.mark.slow  # scipy solves the chains

PHI = costs_of("xeon-phi-5110p")


def exchange(sizes, partner):
    """For each size: half a ping-pong with rank `partner`, a send, and a receive."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    found = []
    for turn, size in enumerate(sizes):
        if comm.rank not in (0, partner):
            continue
        buffer = numpy.zeros(size, "b")
        other = partner - comm.rank
        time.sleep(2 * turn + 1 - MPI.Wtime())
        begin = MPI.Wtime()
        for _ in range(3):
            if comm.rank == 0:
                comm.Send(buffer, other)
                comm.Recv(buffer, other)
            else:
                comm.Recv(buffer, other)
                comm.Send(buffer, other)
        half = (MPI.Wtime() - begin) / 6
        time.sleep(2 * turn + 2 - MPI.Wtime())
        begin = MPI.Wtime()
        comm.Send(buffer, other) if comm.rank == 0 else comm.Recv(buffer, other)
        found.append((half, MPI.Wtime() - begin))
    return found


def run(sizes, model, platform, partner=1, **cfg):
    options = {f"memory/{name.replace('_', '-')}": value for name, value in cfg.items()}
    result = pysmpi.run(
        exchange, partner + 1, args=(sizes, partner), platform=platform, memory_model=model,
        compute="none", map_by="core", cfg={"smpi/wtime": "0", **options},
    )  # fmt: skip
    return result.returns[0], result.returns[partner]


@pytest.mark.parametrize("state", ["E", "I"])
def test_lines_take_what_the_line_model_says(state):
    name = {"E": "exclusive", "I": "invalid"}[state]
    sizes = (0, 8, 64, 65, 128, 512, 4096, 4097, 8192)
    expected = [
        single_line(PHI, name, simplified=False) if size <= 64
        else multi_line(PHI, -(-size // 64), name)
        for size in sizes
    ]  # fmt: skip
    for partner in (1, 59):
        first, second = run(sizes, "lines", "xeon-phi-5110p", partner, line_state=state)
        for i, size in enumerate(sizes):
            assert first[i][0] == pytest.approx(expected[i], rel=1e-9), size
            last = PHI.remote.modified / expected[1] * expected[i]
            # The receiver waits until a short message is there, then pays for its part.
            assert second[i][1] == pytest.approx(expected[i], rel=1e-9), size
            sent = expected[i] - last if size <= 4096 else expected[i]
            assert first[i][1] == pytest.approx(sent, rel=1e-9), size
    if state == "E":
        printed = [round(seconds * 1e9, 1) for seconds in expected]
        assert printed[1:6] == [479.1, 479.1, 1125.0, 1125.0, 1992.0]


def test_lines_above_the_measured_sizes_are_pipelined():
    sizes = (8193, 65536, 1 << 20)
    first, second = run(sizes, "lines", "xeon-phi-5110p")
    assert (first, second) == run(sizes, "pipelined", "xeon-phi-5110p")


@pytest.mark.parametrize(
    "machine, partner, cfg, size, printed",
    [
        ("xeon-phi-5110p", 1, {}, 8, 479.1),
        ("xeon-phi-5110p", 1, {"line_state": "I"}, 8, 748.1),
        ("xeon-phi-5110p", 59, {}, 128, 1125.0),
        ("xeon-phi-5110p", 59, {}, 512, 1992.0),
        ("novascale", 1, {}, 8, 3450.0),
        ("novascale", 4, {}, 8, 6500.0),
        ("novascale", 8, {}, 8, 11060.0),
        ("novascale", 1, {"primitive": "sr2"}, 8, 2205.0),
    ],
)
def test_a_machine_of_a_paper_has_its_model_by_default(machine, partner, cfg, size, printed):
    first, _ = run((size,), None, machine, partner, **cfg)
    assert first[0][0] * 1e9 == pytest.approx(printed, rel=0.02)


def test_the_overhead_of_a_library_comes_on_both_sides():
    (plain, long), _ = run((8, 8192), "lines", "xeon-phi-5110p")
    (slow, slower), _ = run((8, 8192), "lines", "xeon-phi-5110p", overhead="1us")
    assert slow[0] == pytest.approx(plain[0] + 2e-6)
    assert slow[1] == pytest.approx(plain[1] + 1e-6)
    assert slower[0] == pytest.approx(long[0] + 2e-6)


@pytest.mark.parametrize("primitive", ["sr1", "sr2"])
@pytest.mark.parametrize("table", ["FAME-A", "FAME-B"])
def test_a_packet_takes_what_the_chain_says_at_every_distance(primitive, table):
    priced = latencies("novascale")
    # Cores of one node, of two nodes of a module, of two modules.
    for far, partner in enumerate((1, 4, 8)):
        chain = study(program(primitive), protocol(table), at_distance(2, far), priced)
        packet = chain.solved.latency
        found, _ = run(
            (1, 128, 129, 8192), "fame", "novascale", partner, primitive=primitive, protocol=table
        )
        expected = [packet, packet, 2 * packet, 64 * packet]
        assert [half for half, _ in found] == pytest.approx(expected, rel=1e-9)


def test_protocol_a_is_faster_than_b_and_sr2_than_sr1_at_every_distance():
    times = {
        (primitive, table): [
            run((8,), "fame", "novascale", partner, primitive=primitive, protocol=table)[0][0][0]
            for partner in (1, 4, 8)
        ]
        for primitive in ("sr1", "sr2") for table in ("FAME-A", "FAME-B")
    }  # fmt: skip
    for one, other in zip(times["sr1", "FAME-A"], times["sr1", "FAME-B"]):
        assert one < other
    for one, other in zip(times["sr2", "FAME-A"], times["sr2", "FAME-B"]):
        assert one < other
    for one, other in zip(times["sr2", "FAME-A"], times["sr1", "FAME-A"]):
        assert one < other
    assert times["sr1", "FAME-A"] == pytest.approx([3.5e-6, 6.5e-6, 11.1e-6], rel=0.02)
    assert times["sr2", "FAME-A"] == pytest.approx([2.2e-6, 4.0e-6, 6.7e-6], rel=0.02)


def test_ranks_of_one_core_and_windows_are_priced_too():
    def program():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        window = MPI.Win.Create(numpy.zeros(512, "b"), comm=comm)
        window.Fence()
        if comm.rank == 0:
            window.Put(numpy.ones(512, "b"), 1)
        window.Fence()
        window.Free()
        return comm.sendrecv(comm.rank, comm.rank), MPI.Wtime()

    for model, platform in (("lines", "xeon-phi-5110p"), ("fame", "novascale")):
        for who, (got, when) in enumerate(
            pysmpi.run(program, 2, platform=platform, memory_model=model, compute="none").returns
        ):
            assert got == who and 1e-6 < when < 1e-3


def accesses(kind, readers, nbytes, apart):
    """The longest time of one access of each of ranks 1 to `readers` to rank 0's window.

    The accesses begin at one time, to places `apart` bytes from each other.
    """
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    window = MPI.Win.Create(numpy.zeros(16384, "b"), 1, comm=comm)
    buffer = numpy.zeros(max(nbytes, 8), "b")
    data, place = [buffer, nbytes, MPI.BYTE], apart * comm.rank
    window.Lock_all()
    time.sleep(1.0 - MPI.Wtime())
    begin = MPI.Wtime()
    if 1 <= comm.rank <= readers:
        if kind == "get":
            window.Get(data, 0, place)
        elif kind == "put":
            window.Put(data, 0, place)
        elif kind == "rget":
            window.Rget(data, 0, place).Wait()
        else:
            one, old = numpy.ones(1, "i8"), numpy.zeros(1, "i8")
            window.Fetch_and_op(one, old, 0, place)
        if kind != "rget":
            window.Flush(0)
    took = MPI.Wtime() - begin
    window.Unlock_all()
    window.Free()
    return took


def accessed(kind, readers, nbytes=8, apart=0, model="lines", **cfg):
    """The result of `accesses` on the Xeon Phi (s)."""
    options = {f"memory/{name.replace('_', '-')}": value for name, value in cfg.items()}
    result = pysmpi.run(
        accesses, 60, args=(kind, readers, nbytes, apart), platform="xeon-phi-5110p",
        memory_model=model, compute="none", map_by="core", cfg={"smpi/wtime": "0", **options},
    )  # fmt: skip
    return max(result.returns)


@pytest.mark.parametrize("kind", ["get", "rget"])
def test_readers_of_one_line_take_c_n_plus_b(kind):
    for readers in (1, 2, 5, 30, 59):
        expected = 194.4e-9 + 50e-9 * readers  # figure 6 and equation 3 of the paper
        assert accessed(kind, readers) == pytest.approx(expected, rel=0.02), readers
        assert PHI.contended(readers) == pytest.approx(expected, rel=1e-12)


def test_readers_of_other_lines_do_not_disturb_each_other():
    for readers in (1, 59):
        assert accessed("get", readers, apart=64) == pytest.approx(PHI.contended(1), rel=1e-6)
        assert accessed("put", readers) == pytest.approx(PHI.R_L + PHI.R_R, rel=1e-6)
    # Two places in one line are one line.
    assert accessed("get", 2, nbytes=4, apart=8) == pytest.approx(PHI.contended(2), rel=1e-6)


def test_further_lines_and_states_and_overheads_of_one_sided_reads():
    further = PHI.per_line()
    for readers in (1, 59):
        expected = PHI.contended(readers) + 7 * further
        assert accessed("get", readers, nbytes=512) == pytest.approx(expected, rel=1e-6)
    alone = PHI.R_L + PHI.R_I
    assert accessed("get", 1, line_state="I") == pytest.approx(alone, rel=1e-6)
    assert accessed("get", 1, overhead="1us") == pytest.approx(PHI.contended(1) + 2e-6, rel=1e-6)
    assert accessed("get", 59, nbytes=0) == pytest.approx(PHI.contended(1), rel=1e-6)
    # A fetching access goes to the target and reads there.
    once = PHI.R_L + PHI.R_R
    assert accessed("fetch", 1) == pytest.approx(2 * once, rel=1e-6)
    assert accessed("fetch", 59) == pytest.approx(once + PHI.contended(59), rel=1e-6)
    # Long reads are copies, on which the first line does not matter.
    long = accessed("get", 1, nbytes=16384)
    assert accessed("get", 59, nbytes=16384) == pytest.approx(long, rel=0.3)


@pytest.mark.parametrize("model", ["pipelined", "xpmem"])
def test_readers_share_a_line_in_other_models(model):
    one, two, many = (accessed("get", n, model=model) for n in (1, 2, 59))
    assert one <= two and many >= 59 * 50e-9
    assert accessed("get", 59, apart=64, model=model) == pytest.approx(one, rel=0.5)


@pytest.mark.parametrize(
    ("model", "cfg", "message"),
    [
        ("lines", {"line_state": "M"}, "memory/line-state: expected E or I, got 'M'"),
        ("fame", {"primitive": "sr3"}, 'program: expected a file .*did you mean "sr2"|sr1'),
        ("fame", {"primitive": "barrier-central"}, "memory/primitive: expected a program that"),
        ("fame", {"protocol": "MESY"}, "MESY"),
    ],
)
def test_wrong_options_are_refused(model, cfg, message):
    with pytest.raises(UsageError, match=message):
        run((8,), model, "novascale", **cfg)


def test_lines_need_latencies(tmp_path):
    text = (MACHINES / "xeon-phi-5110p.yaml").read_text()
    before, _, after = text.partition("    latencies:")
    path = tmp_path / "phi.yaml"
    path.write_text(before + "    contention:" + after.partition("    contention:")[2])
    with pytest.raises(pysmpi.ProgramError) as refused:
        run((8,), "lines", path)
    expected = "--memory-model lines: node xeon-phi-5110p: expected latencies of lines, got none"
    assert str(refused.value) == f"pysmpi: error: {expected}"
    assert refused.value.exit_status == 2
