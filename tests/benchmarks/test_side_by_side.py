"""The common part of the benchmarks: measuring commands, judging, tables."""

import importlib
import json
import resource
import sys
import time
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def shared(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("side_by_side")


def python(shared, code):
    return shared.Measurement([sys.executable, "-c", code])


def test_measurement_takes_time_memory_and_output(shared):
    measurement = python(shared, "print('simulated 0.25'); x = bytearray(64_000_000)")
    shared.take_turns([measurement], 3)
    assert len(measurement.wall) == 3
    assert 0 < measurement.fastest <= measurement.median <= max(measurement.wall)
    # Linux counts what the child shares with this process until it begins its program.
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    assert 64e6 < measurement.peak < 1e9 + own
    assert measurement.figure("simulated") == 0.25


def test_missing_figure(shared):
    measurement = python(shared, "print('nothing')")
    measurement.run()
    with pytest.raises(shared.BenchmarkError, match="no line 'simulated"):
        measurement.figure("simulated")


def test_failing_command_says_why(shared):
    with pytest.raises(shared.BenchmarkError, match=r"(?s)exit status 1.*no such luck"):
        python(shared, "raise SystemExit('no such luck')").run()


def test_endless_command_is_stopped(shared):
    with pytest.raises(shared.BenchmarkError, match="stopped after"):
        python(shared, "import time; time.sleep(60)").run(timeout=0.1)


BUSY = "import time; t = time.thread_time()\nwhile time.thread_time() < t + {}: pass\nprint('x 1')"


def test_slices_are_of_one_command_at_a_time(shared):
    long, short = python(shared, BUSY.format(0.4)), python(shared, BUSY.format(0.1))
    begun = time.perf_counter()
    shared.take_slices([long, short], [0.1, 0.02])
    took = time.perf_counter() - begun
    assert long.fastest >= 0.4 and short.fastest >= 0.1
    # Each counts the time in which it ran, not that in which it was held.
    assert long.fastest + short.fastest <= took
    assert long.figure("x") == short.figure("x") == 1.0


def test_a_command_that_fails_in_a_slice_ends_the_others(shared):
    endless = python(shared, "import time; time.sleep(600)")
    with pytest.raises(shared.BenchmarkError, match="no such luck"):
        shared.take_slices([endless, python(shared, "raise SystemExit('no such luck')")], [0.1, 9])
    assert endless.wall == []


def test_missing_command(shared):
    with pytest.raises(shared.BenchmarkError, match="no-such-tool: not found.*try that"):
        shared.need("no-such-tool", "try that")


def test_table(shared):
    assert shared.table(("what", "s"), [("a", "1.5"), ("long name", "10")]) == (
        "what         s\n"
        "---------  ---\n"
        "a          1.5\n"
        "long name   10"
    )  # fmt: skip


def test_json(shared, tmp_path):
    shared.write_json(tmp_path / "out.json", "test", [{"ratio": 0.5}])
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["benchmark"] == "test"
    assert record["rows"] == [{"ratio": 0.5}]
    assert record["machine"]["processors"] >= 1
    shared.write_json(None, "test", [])


def test_cluster_is_a_platform(shared, tmp_path):
    from pysmpi.platform import load

    machine, hostfile = shared.write_cluster(tmp_path, 12)
    platform = load(str(machine))
    assert [host.name for host in platform.hosts] == hostfile.read_text().split()
    route = platform.route(platform.hosts[0], platform.hosts[11])
    assert route.latency == pytest.approx(48e-6)


@pytest.mark.parametrize("name", ["against_smpi", "against_mpich", "scale", "micro"])
def test_exit_status_when_it_cannot_run(shared, name, monkeypatch, capsys):
    module = importlib.import_module(name)

    def broken():
        raise shared.BenchmarkError("smpirun: not found")

    monkeypatch.setattr(module, "main", broken)
    with pytest.raises(SystemExit) as ended:
        module.run(module.main)
    assert ended.value.code == 2
    assert "smpirun: not found" in capsys.readouterr().err


def test_micro_benchmarks_fit_the_kernel(shared, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["micro.py", "--repeats", "1"])
    micro = importlib.import_module("micro")
    assert micro.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 + len(micro.CASES)


def test_bare_greenlets_move_the_bytes_of_their_neighbours(shared, monkeypatch, capsys):
    bare = importlib.import_module("bare_greenlets")
    monkeypatch.setattr(bare, "MESSAGES", 100)
    monkeypatch.setattr(sys, "argv", ["bare_greenlets.py", "--ranks", "3", "5", "--repeats", "1"])
    assert bare.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == ["3", "5"]
    assert all(float(line.split()[1]) > 0.0 for line in lines[2:])
