"""Calibration of a network: a synthetic cluster is recovered, a real MPI is measured."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import pytest

import pysmpi
from pysmpi.calibrate.network import (
    NetworkMeasurement,
    check,
    drawn,
    explain,
    measure,
    platform_text,
    write_raw,
)
from pysmpi.calibrate.network_fit import fit, line, pieces, scatter, spread
from pysmpi.errors import UsageError
from pysmpi.network.flows import ENVELOPE
from pysmpi.platform import load
from pysmpi.platform.piecewise import parse

SYNTHETIC = """\
name: synthetic
config:
  smpi/os: "0:2e-6:1e-10;1420:5e-6:5e-11;65535:0:0"
  smpi/ois: "0:1e-6:1e-10;1420:4e-6:5e-11;65535:1e-6:0"
  smpi/or: "0:3e-6:2e-10;1420:6e-6:1e-10;65535:0:0"
  smpi/bw-factor: "0:0.4;1436:0.8;65551:1"
  smpi/lat-factor: "0:1;1436:1.5;65551:4"
  smpi/async-small-thresh: 65536
  smpi/send-is-detached-thresh: 65536
clusters:
  - name: c
    hosts: n[0-1]
    network: {bandwidth: 1GBps, latency: 20us}
    limiter: 1.5GBps
"""


def program(count):
    from mpi4py import MPI

    from pysmpi.calibrate.network import measure

    found = measure(MPI.COMM_WORLD, 4 << 20, count, 1)
    return found.samples, found.detached, found.largest


@pytest.fixture(scope="module")
def synthetic(tmp_path_factory):
    """The measurements on the synthetic cluster."""
    path = tmp_path_factory.mktemp("synthetic") / "synthetic.yaml"
    path.write_text(SYNTHETIC)
    result = pysmpi.run(
        program, 2, platform=path, args=(50,), map_by="node", compute="none",
        cfg={"smpi/wtime": "0"},
    )  # fmt: skip
    return NetworkMeasurement(*result.returns[0])


def within(value):
    return pytest.approx(value, rel=0.05)


def test_a_synthetic_cluster_is_recovered(synthetic):
    """Breakpoints and parameters within 5 %."""
    result, _ = explain(synthetic)
    assert [piece.first for piece in result.pieces] == [0, within(1421), 65536]
    assert (result.detached, result.eager) == (65536, 65536)
    assert result.bandwidth == within(1e9) and result.latency == within(20e-6)
    assert result.limiter == within(1.5e9)
    small, medium, large = result.pieces
    assert small.send == (within(2e-6), within(1e-10))
    assert medium.send == (within(5e-6), within(5e-11))
    assert small.receive == (within(3e-6), within(2e-10))
    assert medium.receive == (within(6e-6), within(1e-10))
    assert small.isend == (within(1e-6), within(1e-10))
    assert medium.isend == (within(4e-6), within(5e-11))
    assert large.network[1] == within(1e-9)
    options = result.options()
    factors = [float(text.split(":")[1]) for text in options["smpi/bw-factor"].split(";")]
    assert factors == within([0.4, 0.8, 1.0])
    factors = [float(text.split(":")[1]) for text in options["smpi/lat-factor"].split(";")]
    assert factors == within([1.0, 1.5, 4.0])


def test_what_was_held_out_is_predicted(synthetic, tmp_path):
    result, held = explain(synthetic)
    path = tmp_path / "fit.yaml"
    path.write_text(platform_text(result, "fit", "a fit", ["a test"]))
    assert load(path).sources == ["a test"]
    errors = check(path, synthetic, held)
    assert errors["pingpong"][1] < 0.01
    # The time between the starts of the two ends of an exchange depends on their earlier work.
    assert errors["exchange"][0] < 0.03 and errors["exchange"][1] < 0.15
    raw = tmp_path / "raw.csv"
    write_raw(raw, synthetic, held)
    rows = list(csv.DictReader(raw.open()))
    assert len(rows) == sum(map(len, synthetic.samples.values()))
    assert {int(row["bytes"]) for row in rows if row["held_out"] == "1"} == held


def test_empty_messages_have_no_piece_of_their_own():
    """Above its bound, 0 bytes, a segment begins for messages of a byte."""
    sizes = [0, 1, 2, 5, 20, 50, 200, 1000, 5000, 20000, 100000]
    times = {s: 1e-6 + 1e-9 * s if s else 1e-3 for s in sizes}
    sends = {s: t / 2 for s, t in times.items()}
    result = fit({"pingpong": times, "send": sends, "recv": sends, "isend": sends}, 1e-3, 1 << 30)
    assert [piece.first for piece in result.pieces] == [0]
    network = parse(result.options()["smpi/lat-factor"], "smpi/lat-factor")
    overheads = [parse(result.options()[f"smpi/o{side}"], "smpi/o") for side in "sr"]
    predicted = network.factor(1 + ENVELOPE) * result.latency + sum(o.affine(1) for o in overheads)
    assert predicted == pytest.approx(times[1], rel=0.05)


def test_a_time_limit_ends_the_repeats(tmp_path):
    def main():
        from mpi4py import MPI

        found = measure(MPI.COMM_WORLD, 4096, 10, 50, seconds=0.0)
        return found.cut_short, {len(times) for times in found.samples.values()}

    result = pysmpi.run(main, 2, compute="none")
    assert result.returns == [(True, {1})] * 2


def test_lines_have_no_negative_parameters():
    assert line([1, 1000, 2000], [5.0, 4.0, 3.5])[1] == 0.0
    start, slope = line([0, 100, 200], [1e-6, 2e-6, 3e-6])
    assert (start, slope) == (pytest.approx(1e-6), pytest.approx(1e-8))


def test_noise_makes_no_pieces():
    """Random deviations of 5 % around one line leave one piece."""
    from random import Random

    draw = Random(3)
    sizes = drawn(1 << 20, 60, 2)
    times = {s: (1e-6 + 1e-9 * s) * (1 + draw.gauss(0, 0.05)) for s in sizes}
    assert pieces([times], 0.05, 1 << 30) == [0]
    samples = {("send", s): [t * (1 + draw.gauss(0, 0.1)) for _ in range(20)]
               for s, t in times.items()}  # fmt: skip
    assert spread(samples) == pytest.approx(0.1 * 1.25 / 20**0.5, rel=0.3)


@pytest.mark.parametrize(
    ("sizes", "cut", "firsts"),
    [
        ([100, 200, 1000, 2000, 3000, 4000], 1000, [100, 1000]),
        ([100, 200, 300, 400, 1000, 2000], 1000, [100, 1000]),
        ([100, 200, 1000, 2000], 1000, [100, 1000]),
        ([100, 200, 300], 1 << 30, [100]),
    ],
)
def test_few_sizes_on_one_side_of_the_limit_are_one_piece(sizes, cut, firsts):
    """Elsewhere a piece has four sizes."""
    times = {size: (1e-6 if size < cut else 5e-6) + 1e-9 * size for size in sizes}
    assert pieces([times], 1e-3, cut) == firsts


@pytest.mark.parametrize(("smallest", "alone"), [(0, True), (1, False)])
def test_empty_messages_alone_can_be_a_piece(smallest, alone):
    times = {size: 5e-6 + 1e-9 * size for size in range(100, 900, 100)}
    times[smallest] = 1e-6
    assert (100 in pieces([times], 1e-3, 1 << 30)) == alone


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-o", "x.yaml"], "expected 2 ranks of a real MPI, got 1: mpiexec -n 2 pysmpi"),
        (["-o", "x.txt"], "expected a file called .yaml or .yml"),
        (["-o", "x.yaml", "--max-size", "10B"], "--max-size: expected 1KiB to 1GiB"),
    ],
)
def test_what_is_wrong_is_said(words, message, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "calibrate", "network", *words],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == UsageError.exit_status
    assert message in done.stderr and "Traceback" not in done.stderr


def test_two_ranks_of_a_real_mpi(tmp_path):
    """The command under mpiexec leaves a machine that loads, its raw data and its error."""
    from shutil import which

    launcher = which("mpiexec", path=str(sys.prefix) + "/bin") or which("mpiexec")
    assert launcher is not None
    words = ["-m", "pysmpi", "calibrate", "network", "-o", "here.yaml", "--json"]
    few = ["--sizes", "16", "--repeats", "3", "--max-size", "256KiB", "--time-limit", "20"]
    done = subprocess.run(
        [launcher, "-n", "2", sys.executable, *words, *few],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["bandwidth"] > 1e6 and 0 < facts["latency"] < 1
    machine = load(tmp_path / "here.yaml")
    assert len(machine.hosts) == 2 and "held out" in machine.sources[-1]
    names = {row["experiment"] for row in csv.DictReader((tmp_path / "here.csv").open())}
    assert names >= {"send", "isend", "recv", "pingpong", "exchange"}
    again = subprocess.run(
        [launcher, "-n", "2", sys.executable, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert again.returncode == UsageError.exit_status and "--force overwrites it" in again.stderr


def test_messages_that_other_work_disturbs_are_measured_until_their_times_agree(monkeypatch):
    """Four of five times are far too long, as on a computer with much other work."""
    from random import Random

    from pysmpi.calibrate import network

    chance = Random(3)
    rounds = []

    class Disturbed:
        def __init__(self, comm, largest):
            pass

        def threshold(self, largest):
            return 8192

        plan = staticmethod(network.NetworkBench.plan)

        def run(self, plan):
            rounds.append(len(plan))
            slow = (chance.uniform(1.5, 100) if chance.random() < 0.8 else 1.0 for _ in plan)
            return [(name, size, factor * (1e-6 + size * 1e-9))
                    for (name, size), factor in zip(plan, slow)]  # fmt: skip

    class Alone:
        rank = 0

        def bcast(self, value, root):
            return value

    monkeypatch.setattr(network, "NetworkBench", Disturbed)
    found = network.measure(Alone(), 1 << 20, 20, 5)
    assert not found.cut_short
    for times in found.usual().values():
        for size, seconds in times.items():
            assert seconds == pytest.approx(1e-6 + size * 1e-9, rel=0.06)
    # Only sizes whose times still differ are measured again.
    repeats = rounds[1:6]
    assert len(set(repeats)) == 1 and rounds[6] < repeats[0]


def test_scatter_is_that_of_neighbouring_sizes():
    """It sees the deviations of times from a line, not where the line bends or jumps."""
    from random import Random

    draw = Random(5)
    sizes = drawn(1 << 20, 200, 2)
    smooth = {s: (1e-6 if s < 9000 else 4e-6) + 1e-10 * s for s in sizes}
    assert scatter(smooth) < 1e-3
    noisy = {s: t * (1 + draw.gauss(0, 0.04)) for s, t in smooth.items()}
    assert scatter(noisy) == pytest.approx(0.04, rel=0.25)
    # Repeats of each size may agree far better; still the deviations make no pieces.
    assert len(pieces([noisy], 1e-3, 1 << 30)) == 2
    assert scatter({1: 1e-6}) == 0.0


@pytest.mark.parametrize("more", [-4e-7, 8e-7])
def test_exchanges_show_what_their_sends_cost(more):
    """They take longer, or shorter, than by the measured start of a send."""
    sizes = drawn(20_000, 40, 3)
    pingpong = {s: 2e-6 + 1e-10 * s for s in sizes}
    half = dict.fromkeys(sizes, 5e-7)
    exchange = {s: t + more for s, t in pingpong.items()}
    found = fit(
        {"pingpong": pingpong, "send": half, "recv": half, "isend": half, "exchange": exchange},
        1e-3, 1 << 30,
    )  # fmt: skip
    assert found.limiter is None
    assert found.pieces[0].isend[0] == pytest.approx(5e-7 + more, rel=0.05)


def test_ranks_of_one_computer_are_kept_apart():
    """Each has a core of its own while it measures, and all of them afterwards."""
    import os
    from types import SimpleNamespace

    from pysmpi.cli.calibrate_network import apart

    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("two ranks have two cores only on a computer with two")
    seen = []
    for rank in (0, 1):
        with apart(SimpleNamespace(rank=rank, allgather=lambda mine: [mine, mine])):
            seen.append(os.sched_getaffinity(0))
        assert os.sched_getaffinity(0) == before
    assert [len(cpus) for cpus in seen] == [1, 1] and not seen[0] & seen[1]
    # On two computers each has its own cores.
    with apart(SimpleNamespace(rank=0, allgather=lambda mine: [mine, ("other", mine[1])])):
        assert os.sched_getaffinity(0) == before


def test_buffers_have_memory_of_their_own():
    """Pages that nobody has written are all one page, which no message of a program sends."""

    def written():
        from mpi4py import MPI

        from pysmpi.calibrate.network_program import NetworkBench

        bench = NetworkBench(MPI.COMM_WORLD, 100)
        return bool(bench.out.all() and bench.into.all())

    assert pysmpi.run(written, 2).returns == [True, True]
