"""`--noise`: files, presets and dictionaries that describe the noise of a machine."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
import yaml

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.faults.noise import RandomDetours
from pysmpi.faults.noise_files import PRESETS, read_noise, write_detours
from pysmpi.faults.specification import Detours, Jitter, parse_fault
from pysmpi.platform.units import parse_time

FILE = """
description: all that there is
detours:
  - {rate: 100, time: 20us}
  - {rate: 2.5, time: 1ms, times: constant}
jitter: {time: 2us}
drop: {rate: 0.01, queue: 4, timeout: 10ms}
"""


def test_a_file_and_a_dictionary_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_text(FILE)
    expected = [
        parse_fault("detours:rate=100:time=20us"), Detours(2.5, parse_time("1ms"), True),
        parse_fault("jitter:time=2us"), parse_fault("drop:rate=0.01:queue=4:timeout=10ms"),
    ]  # fmt: skip
    assert read_noise(path) == read_noise(str(path)) == expected
    data = {
        "detours": [
            {"rate": 100, "time": "20us"}, {"rate": 2.5, "time": "1ms", "times": "constant"},
        ],
        "jitter": {"time": "2us"}, "drop": [{"rate": 0.01, "queue": 4, "timeout": "10ms"}],
    }  # fmt: skip
    assert read_noise(data) == expected


def test_presets_have_their_published_part_of_the_time() -> None:
    for name, share in (("light-kernel", 2e-5), ("linux-tuned", 2e-4),
                        ("linux-cluster", 1.2e-3), ("linux-desktop", 1.02e-2)):  # fmt: skip
        [one] = read_noise(name)
        assert isinstance(one, Detours)
        assert one.rate * one.seconds == pytest.approx(share, rel=0.01)
        assert PRESETS[name]["description"] and PRESETS[name]["sources"]


def test_presets_of_messages_have_their_published_percentiles() -> None:
    """Shortest, mean, 99 % and 99.9 % of one way, and of a round trip (us)."""
    from random import Random

    for name, messages, shortest, mean, most, tail in (
        ("infiniband", 1, 1.55, 1.59, 1.62, 3.29), ("cloud-tcp", 2, 36.64, 45.57, 57.2, 210.2),
    ):  # fmt: skip
        kinds = read_noise(name)
        assert PRESETS[name]["description"] and PRESETS[name]["sources"]
        random = Random(7)
        times = []
        for _ in range(200_000):
            late = 0.0
            for one in kinds * messages:
                assert isinstance(one, Jitter)
                if random.random() < one.rate:
                    late += random.expovariate(1.0 / one.seconds)
            times.append(shortest + 1e6 * late)
        times.sort()
        assert math.fsum(times) / len(times) == pytest.approx(mean, rel=0.02)
        assert times[int(0.99 * len(times))] == pytest.approx(most, rel=0.2)
        assert times[int(0.999 * len(times))] == pytest.approx(tail, rel=0.35)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("description: quiet\n", ":1: expected detours, jitter, drop, got no noise"),
        ("detours: {rate: 0, time: 1us}\n", "expected a number above 0, got \"0\""),
        ("detours: {rate: 1}\n", 'expected the key "time", got none'),
        ("detours: [{rate: 1, time: 0s}]\n", 'expected a time above 0, got "0s"'),
        ("detours: {rate: 1, time: 1us, times: odd}\n", 'got "odd"'),
        ("jitter: 2us\n", "expected a mapping"),
        ("jitter: {time: 2us, rate: 2}\n", "expected a number between 0 and 1"),
        ("jitters: {time: 2us}\n", 'got "jitters"; did you mean "jitter"?'),
        ("drop: {rate: 1.0}\n", "expected a number between 0 and 1"),
        ("drop: {rate: 0.1, queue: -1}\n", "expected a number of messages"),
    ],
)  # fmt: skip
def test_wrong_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_noise(path)
    assert str(caught.value).startswith(f"{path}:1: ") and message in str(caught.value)


def test_names_that_are_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a file or one of light-kernel, .*did you mean"):
        read_noise("linux-cluste")
    with pytest.raises(UsageError, match=r"nowhere\.yaml"):
        read_noise(tmp_path / "nowhere.yaml")


def test_several_kinds_take_their_own_parts_of_the_work() -> None:
    """The rates are those of work: a kind is not more frequent for the time that others take."""
    from random import Random

    kinds = [Detours(1000.0, 1e-3), Detours(10.0, 0.1, True), Detours(2.0, 0.5)]
    core = RandomDetours([(one, Random(at)) for at, one in enumerate(kinds)])
    lost = math.fsum(core.seconds(0.01) for _ in range(200_000))
    assert lost / 2000.0 == pytest.approx(1.0 + 1.0 + 1.0, rel=0.05)


def steps() -> float:
    from mpi4py import MPI

    for _ in range(200):
        MPI.COMM_WORLD.Barrier()
    if MPI.COMM_WORLD.rank == 0:
        return MPI.Wtime()
    return 0.0


def run(noise: object, seed: int = 0) -> float:
    result = pysmpi.run(
        steps, 8, platform="cluster", map_by="node", compute=1e-3, noise=noise, seed=seed
    )
    return result.seconds


def test_runs_repeat_and_are_exact_without_noise() -> None:
    exact = run(None)
    assert exact == run(None, seed=5)
    noisy = [run("linux-desktop", seed=seed) for seed in (1, 1, 2)]
    assert noisy[0] == noisy[1] != noisy[2]
    assert exact < run("linux-cluster") < noisy[0] < 1.2 * exact
    assert run({"jitter": {"time": "2us"}}) > exact


def test_written_files_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "noise.yaml"
    path.write_text(write_detours([Detours(12.5, 3e-6, True), Detours(0.25, 0.0421)], "some"))
    one, two = read_noise(path)
    assert isinstance(one, Detours) and isinstance(two, Detours)
    assert (one.rate, one.constant, two.rate, two.constant) == (12.5, True, 0.25, False)
    assert (one.seconds, two.seconds) == pytest.approx((3e-6, 0.0421))


def test_the_file_of_the_page_is_read() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "faults.md"
    blocks = re.findall(r"```yaml\n(# noise.yaml\n.*?)```", page.read_text(encoding="utf-8"), re.S)
    assert [read_noise(yaml.safe_load(block)) for block in blocks] == [[
        Detours(250, parse_time("3.1us"), True), Detours(0.5, parse_time("12ms"), True),
        parse_fault("jitter:time=2us"), parse_fault("drop:rate=1e-6:queue=8:timeout=0.2s"),
    ]]  # fmt: skip
