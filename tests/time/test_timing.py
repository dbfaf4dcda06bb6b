"""Timing of compute: the modes, the work that is left out, recordings."""

from __future__ import annotations

import gc
import math
import random
import time
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ranks_by_hand import run

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.isolation.loading.loader import ScriptProgram
from pysmpi.time import cpu_clock
from pysmpi.time import host_speed as speeds
from pysmpi.time.cpu_clock import SHORT, CpuClock
from pysmpi.time.recordings import HEADER, read_recording
from pysmpi.time.steady import (
    BATCH,
    FIRST,
    KEPT,
    BlockTimes,
    SteadyTimer,
    TimeTally,
)
from pysmpi.time.timing import (
    ConstantTiming,
    NativeTiming,
    PlaybackTiming,
    SteadyTiming,
    find_timing,
)

_clock = [time.thread_time, time.sleep]  # in a list, where a run does not find it to replace it


def spent() -> float:
    return _clock[0]()


def burn(seconds: float) -> None:
    """Keep the CPU busy for about as long."""
    end = spent() + seconds
    while spent() < end:
        pass


def test_native_timing_scales_by_the_speeds():
    with NativeTiming(2e9) as timing:
        same, slow = timing.timer(0, 2e9), timing.timer(1, 1e9)
        for timer, factor in ((same, 1.0), (slow, 2.0), (timing.timer(2, None), 1.0)):
            begin = spent()
            timer.start()
            burn(0.02)
            took = timer.stop()
            # The part of cold caches is left out.
            assert 0.0199 * factor <= took <= (spent() - begin) * factor


def test_an_empty_block_takes_next_to_nothing():
    with NativeTiming(1e9) as timing:
        timer = timing.timer(0, 1e9)
        blocks = []
        for _ in range(101):
            timer.start()
            blocks.append(timer.stop())
    assert sorted(blocks)[50] < 1e-6
    assert min(blocks) >= 0.0


def test_time_without_the_core_is_left_out():
    clock = CpuClock()
    sleep = _clock[1]
    clock.start()
    sleep(0.05)
    assert clock.stop() < 0.025e9


def test_short_blocks_have_the_time_of_the_thread_together():
    # The calls of both clocks are in the whole, so a block does some work.
    clock = CpuClock()
    clock.start()
    begin = spent()
    took = 0
    for _ in range(5000):
        clock.start()
        sum(range(100))
        took += clock.stop()
    whole = (spent() - begin) * 1e9
    assert 0.3 * whole < took < 1.2 * whole


class Clocks:
    """A monotonic clock and a CPU clock (ns), set by hand."""

    def __init__(self, monkeypatch):
        self.wall, self.cpu, self.looks = 10**12, 5 * 10**9, 0
        monkeypatch.setattr(cpu_clock, "perf_counter_ns", lambda: self.wall)
        monkeypatch.setattr(cpu_clock, "thread_time_ns", self.look)

    def look(self):
        self.looks += 1
        return self.cpu

    def run(self, nanoseconds, elsewhere=0):
        """The thread computes, and has to wait for the core."""
        self.cpu += nanoseconds
        self.wall += nanoseconds + elsewhere


def test_the_cpu_clock_is_read_after_a_while_only(monkeypatch):
    clocks = Clocks(monkeypatch)
    clock = CpuClock()
    clocks.run(10 * SHORT)
    clocks.looks = 0
    clock.start()
    for _ in range(100):
        clocks.run(SHORT // 50)
        assert clock.stop() == SHORT // 50
        clock.start()
    assert 1 <= clocks.looks <= 4
    clocks.run(7 * SHORT, elsewhere=10**9)  # the core was another thread's for a second
    assert clock.stop() == 7 * SHORT


@given(
    st.lists(
        st.tuples(st.integers(0, 2 * SHORT), st.integers(0, 3 * SHORT), st.booleans()), max_size=60
    )
)
def test_the_cpu_clock_never_runs_backwards_and_is_never_far_off(steps):
    with pytest.MonkeyPatch.context() as monkeypatch:
        clocks = Clocks(monkeypatch)
        clock = CpuClock()
        clocks.run(10 * SHORT)
        clock.start()
        begin, latest = clocks.cpu, 0
        for computed, waited, new in steps:
            clocks.run(computed, waited)
            elapsed = clock.elapsed()
            assert elapsed >= latest
            # Too late by no wait, and too early by no more than a short one.
            assert clocks.cpu - begin <= elapsed + 1
            assert elapsed <= clocks.cpu - begin + SHORT
            latest = elapsed
            if new:
                clock.start()
                begin, latest = begin + elapsed, 0


def test_pauses_are_left_out():
    clock = CpuClock()
    begin = spent()
    clock.start()
    clock.pause()
    burn(0.01)
    clock.pause()
    burn(0.01)
    depth = clock.release()
    burn(0.005)
    clock.restore(depth)
    clock.resume()
    burn(0.01)
    clock.resume()
    took = clock.stop() / 1e9
    whole = spent() - begin
    assert depth == 2
    assert 0.005 <= took <= whole - 0.029


def test_a_block_may_end_within_a_pause():
    clock = CpuClock()
    clock.start()
    clock.pause()
    burn(0.01)
    assert clock.stop() < 5e6
    clock.start()
    burn(0.01)
    clock.resume()
    assert clock.stop() < 5e6


def test_garbage_collection_is_left_out():
    nodes = [[] for _ in range(200_000)]
    for node in nodes:
        node.append(node)
    with NativeTiming(1e9) as timing:
        timer = timing.timer(0, 1e9)
        timer.start()
        begin = spent()
        del nodes[:], node
        gc.collect()
        whole = spent() - begin
        took = timer.stop()
        collecting = timing.clock.collecting
        assert collecting in gc.callbacks
    assert took < whole
    assert collecting not in gc.callbacks


def test_imports_are_left_out_and_bodies_of_the_program_are_not(write, tmp_path):
    # Compiling it takes long, executing it does not: the body makes one function. Many of them
    # would need new memory, which some machines are slow to give.
    source = "def f(x):\n" + "\n".join(f"    x = [x, {number}]" for number in range(40_000))
    for number in range(3):
        write(f"big{number}.py", source)
    write(
        "busy.py",
        """
        from mpi4py import MPI
        MPI.burn(0.05)
        """,
    )
    path = write(
        "program.py",
        """
        from mpi4py import MPI
        for name in ("big0", "big1", "big2", "busy"):
            MPI.timer.start()
            __import__(name)
            MPI.blocks.append(MPI.timer.stop())
        """,
    )
    from ranks_by_hand import fake_mpi

    mpi = fake_mpi()
    mpi.burn, mpi.blocks = burn, []
    gc.collect()  # the objects of earlier tests are not searched in the block
    with NativeTiming(1e9) as timing:
        mpi.timer = timing.timer(0, 1e9)
        run(ScriptProgram(path), 1, mpi, stopwatch=timing.stopwatch)
    begin = spent()
    compile(source, "big.py", "exec")
    # The least of three: a machine that stops for 0.1 s must do so three times to matter.
    assert min(mpi.blocks[:3]) < (spent() - begin) / 2
    assert 0.05 <= mpi.blocks[3] < 0.2


def test_recorded_blocks_are_played_back_exactly(tmp_path):
    file = str(tmp_path / "blocks")
    recorded = []
    with NativeTiming(3e9, file) as timing:
        timers = [timing.timer(pid, 1.5e9) for pid in range(2)]
        for block in range(10):
            timer = timers[block % 2]
            timer.start()
            sum(range(100 * block))
            recorded.append(timer.stop())
    with find_timing(file) as timing:
        timers = [timing.timer(pid, 1.5e9) for pid in range(2)]
        for block, took in enumerate(recorded):
            timers[block % 2].start()
            assert timers[block % 2].stop() == took
        with pytest.raises(UsageError, match="rank 1: expected more than 5 blocks of compute"):
            timers[1].stop()
        # A core of half the speed takes twice as long.
        assert timing.timer(0, 0.75e9).stop() == pytest.approx(2 * recorded[0])


@pytest.mark.parametrize(
    "text, message",
    [
        ("", ":1: expected the header of a recording of compute, got ''"),
        ("nonsense\n", "of compute, got 'nonsense'"),
        ("{header}-1\n", ":1: "),
        ("{header}1e9\n0 5\n0 x\n", ":3: expected a rank and nanoseconds"),
        ("{header}1e9\n0 5\n1 1", "got '1 1'"),
        ("{header}1e9\n0 -5\n", "got '0 -5'"),
        ("{header}1e9\n0 99999999999999999999\n", "expected a recording of compute"),
    ],
)
def test_a_damaged_recording_is_named_with_its_line(tmp_path, text, message):
    file = tmp_path / "blocks"
    file.write_text(text.replace("{header}", HEADER))
    with pytest.raises(UsageError, match=message):
        read_recording(str(file))


def test_binary_data_is_no_recording(tmp_path):
    file = tmp_path / "blocks"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="expected a recording of compute"):
        PlaybackTiming(str(file))


def test_modes_are_found_by_name(tmp_path):
    assert find_timing("none").timer(0, 1e9) is None
    for text, seconds in (("1e-6", 1e-6), ("10us", 1e-5), (0.5, 0.5), ("2", 2.0), (0, 0.0)):
        timing = find_timing(text)
        assert isinstance(timing, ConstantTiming)
        assert timing.timer(0, 1e9).stop() == pytest.approx(seconds)
    native = find_timing("native", "2Gf")
    assert isinstance(native, NativeTiming) and native.speed == 2e9
    steady = find_timing("steady", "2Gf")
    assert isinstance(steady, SteadyTiming) and steady.speed == 2e9


@pytest.mark.parametrize("text", ["-1", "-5us", "3parsec", "1e999", "no/such/file", "nan"])
def test_wrong_modes_are_refused_in_one_line(text):
    with pytest.raises(UsageError) as refusal:
        find_timing(text)
    assert "--compute" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_only_native_blocks_can_be_recorded(tmp_path):
    with pytest.raises(UsageError, match="only native"):
        find_timing("none", record=str(tmp_path / "blocks"))
    with pytest.raises(UsageError, match="cannot record"):
        find_timing("native", 1e9, record=str(tmp_path / "no" / "such")).__enter__()


def test_the_speed_of_the_host_is_measured_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(speeds, "_known", None)
    measured = speeds.host_speed()
    assert 1e6 < measured < 1e13
    assert speeds.cache_file().exists()
    monkeypatch.setattr(speeds, "_known", None)
    monkeypatch.setattr(speeds, "measure_host_speed", lambda: pytest.fail("measured again"))
    assert speeds.host_speed() >= measured


def found(speed: float) -> speeds.Measurement:
    return speeds.Measurement(speed, speed, speed, 1)


@pytest.mark.parametrize(
    ("check", "known", "kept", "doubts"),
    [(6e9, 6e9, 6e9, False), (5.2e9, 5e9, 5e9, False), (1e9, 5e9, 5e9, True)],
)
def test_a_kept_speed_is_checked(tmp_path, monkeypatch, check, known, kept, doubts):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(speeds, "_known", None)
    monkeypatch.setattr(speeds, "_checked", None)
    speeds._write_cache(5e9)
    monkeypatch.setattr(speeds, "measure", lambda blocks: found(check))
    assert speeds.host_speed() == known
    assert speeds._read_cache() == kept
    assert (speeds.doubt() is not None) == doubts


def test_the_speed_is_that_of_the_fastest_block(monkeypatch):
    clock = iter(range(0, 10**9, 1000))
    slow = iter([0, 5000, 0, 300, 0, 90_000] + [0, 7000] * 20)
    monkeypatch.setattr(speeds, "thread_time_ns", lambda: next(clock) + next(slow))
    found = speeds.measure(6)
    assert found.blocks == 6
    assert found.slowest < found.usual < found.speed
    assert found.speed == pytest.approx(2.0 * speeds._ELEMENTS * speeds._ROUNDS / 1300e-9)


def test_the_speed_belongs_to_this_computer_whoever_asks(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    real = speeds._machine()

    def ask():
        import platform

        return platform.node(), speeds._machine()

    (result,) = pysmpi.run(ask, 1, compute="none").returns
    assert result == ("cluster-n0", real)
    assert not real.startswith("cluster-n0")


def compute_for_a_while(seconds: float) -> float:
    import time

    begin = time.perf_counter()
    burn(seconds)
    return time.perf_counter() - begin


def test_a_second_of_compute_is_a_second_on_the_default_machine(monkeypatch):
    monkeypatch.setattr(speeds, "measure", lambda *_: pytest.fail("a speed that nobody needs"))
    monkeypatch.setattr(speeds, "_known", None)
    for platform in (None, "laptop"):
        result = pysmpi.run(compute_for_a_while, 1, args=(0.2,), platform=platform)
        assert 0.2 <= result.returns[0]
        assert 0.2 <= result.ranks[0]["compute_seconds"]
        assert (result.compute_factor, result.host_speed) == (1.0, None)


def test_compute_is_scaled_where_the_platform_gives_a_speed():
    result = pysmpi.run(
        compute_for_a_while, 1, args=(0.1,), platform="graphene", host_speed="7.084Gf"
    )
    assert (result.compute_factor, result.host_speed) == (2.0, 7.084e9)
    assert result.ranks[0]["compute_seconds"] >= 0.2
    report = result.report()
    assert (report["compute_factor"], report["host_speed"]) == (2.0, 7.084e9)
    assert (report["schema"], report["pysmpi"]) == (2, pysmpi.__version__)
    from pysmpi.cli.summary import summary

    assert "compute native x 2 (this computer: 7.08 Gflop/s a core, simulated: 3.54)" in summary(
        result
    )


def test_a_damaged_cache_is_measured_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(speeds, "measure_host_speed", lambda: 7e9)
    for text in ("{", "[]", '{"x": 1}', "null"):
        monkeypatch.setattr(speeds, "_known", None)
        speeds.cache_file().parent.mkdir(exist_ok=True)
        speeds.cache_file().write_text(text)
        assert speeds.host_speed() == 7e9


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(speeds, "measure_host_speed", lambda: 7e9)
    monkeypatch.setattr(speeds, "_known", None)
    assert speeds.host_speed() == 7e9


@pytest.mark.parametrize("text", ["fast", "0", "-1Gf", "nan", "3 GHz"])
def test_wrong_speeds_are_refused(text):
    with pytest.raises(UsageError, match="--host-speed"):
        speeds.host_speed(text)


@given(st.floats(1.0, 1e15))
def test_given_speeds_are_taken(speed):
    assert math.isclose(speeds.host_speed(repr(speed)), speed)


def test_a_steady_block_takes_what_it_usually_takes():
    place = BlockTimes()
    noise = [0, 300, 20, 900_000, 50, 10, 700, 5, 80, 2_000, 40, 60]  # ns, now and then a lot
    blocks = [100_000 + noise[i % len(noise)] for i in range(30 * BATCH)]
    charged = [place.usual(block) for block in blocks]
    assert charged[:FIRST] == blocks[:FIRST]
    assert all(100_000 <= each <= 100_100 for each in charged[FIRST:])


def test_a_slow_while_is_not_the_programs():
    place = BlockTimes()
    usual, slow = KEPT // 2, KEPT // 2 - 1  # batches
    charged = [place.usual(100_000) for _ in range(usual * BATCH)]
    charged += [place.usual(150_000) for _ in range(slow * BATCH)]
    assert set(charged) == {100_000}


def test_few_executions_expect_the_same_as_many():
    draw = random.Random(0)
    early, late = [], []
    for _ in range(400):
        place = BlockTimes()
        charged = [place.usual(round(draw.gauss(1e6, 3e4))) for _ in range(12 * BATCH)]
        early += charged[BATCH : 2 * BATCH]
        late += charged[-BATCH:]
    assert abs(fmean(early) / fmean(late) - 1.0) < 0.002


def test_blocks_whose_work_varies_take_what_is_measured():
    place = BlockTimes()
    blocks = [(100_000, 400_000)[i % 2] for i in range(10 * BATCH)]
    charged = [place.usual(block) for block in blocks]
    assert charged[BATCH:] == blocks[BATCH:]


def test_a_program_that_does_more_from_now_on_is_charged_for_it():
    place = BlockTimes()
    for _ in range(3 * BATCH):
        place.usual(100_000)
    charged = [place.usual(400_000) for _ in range(3 * BATCH)]
    assert charged[-2 * BATCH :] == [400_000] * (2 * BATCH)


class _Clock:
    """A clock with given times."""

    def __init__(self) -> None:
        self.block = 0

    def start(self) -> None:
        """A block begins."""

    start_inside = start

    def stop(self) -> int:
        return self.block


def test_a_place_is_the_way_to_the_calls_around_a_block():
    clock = _Clock()
    tally = TimeTally()
    timer = SteadyTimer(clock, 1.0, tally, 0)

    def call(block):
        clock.block = block
        return timer.stop()

    def often(block):
        return call(block)

    def seldom(block):
        return call(block)

    for block in [1_000] * 40 + [900_000]:
        assert often(block) == 1_000.0
        assert seldom(5_000_000) == 5_000_000.0
    assert (tally.measured - tally.charged, tally.rare) == (899_000, 900_000)


def test_steady_compute_of_a_run(burn, tmp_path):
    def main():
        from mpi4py import MPI

        for step in range(30):
            burn(100_000 if step < 10 else 50_000)
            MPI.COMM_WORLD.Barrier()

    record = str(tmp_path / "blocks")
    result = pysmpi.run(main, 2, compute="steady", record_compute=record)
    steady = result.report()["steady"]
    assert steady["measured_seconds"] == pytest.approx(2 * (10 * 1e-4 + 20 * 5e-5))
    # A machine that becomes faster in the midst is noticed some executions later.
    assert 1.0 <= steady["charged_seconds"] / steady["measured_seconds"] < 1.5
    blocks = read_recording(record).blocks
    charged = sum(sum(each) for each in blocks.values()) * 1e-9
    assert charged == pytest.approx(steady["charged_seconds"])
    assert pysmpi.run(main, 2, compute=record).seconds == pytest.approx(result.seconds)
    assert pysmpi.run(main, 2, compute="none").report()["steady"] is None
