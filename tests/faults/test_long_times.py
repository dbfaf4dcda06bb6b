"""Profiles that repeat during astronomical times or very often: runs end, or say why not."""

from __future__ import annotations

import math
import time

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.faults import changes, speeds
from pysmpi.faults.speeds import SpeedProfile
from pysmpi.platform.profiles import Change, Course, PlatformProfile

MACHINE = """\
name: two
config: {{{config}}}
hosts: [{{name: a, speed: 1Gf}}, {{name: b, speed: 1Gf}}]
links: [{{name: l, bandwidth: 1MBps, latency: 10ms}}]
routes: [{{from: a, to: b, via: [l]}}]
profiles: {profiles}
"""
# Each repeats after two seconds.
KINDS = {
    "speed": "{host: a, speed: {0s: 0.5, 1s: 1}, loop_after: 1s}",
    "host": "{host: a, state: {0s: up, 1s: up}, loop_after: 1s}",
    "bandwidth": "{link: l, bandwidth: {0s: 2MBps, 1s: 1MBps}, loop_after: 1s}",
    "latency": "{link: l, latency: {0s: 1ms, 1s: 2ms}, loop_after: 1s}",
    "link": "{link: l, state: {0s: up, 1s: up}, loop_after: 1s}",
}
HUGE = 2.0**63


def _program(seconds):
    import time

    from mpi4py import MPI

    world = MPI.COMM_WORLD
    if seconds and world.rank == 0:
        time.sleep(seconds)
    return world.allreduce(1)


# What lasts so long: (options, seconds that a rank sleeps, settings of SimGrid).
def _lengths(seconds):
    return {
        "compute": ({"compute": seconds}, 0.0, ""),
        "sleep": ({}, min(seconds, 9e9), ""),  # of Python's
        **{
            name: ({}, 0.0, f"smpi/{name}: '0:{seconds!r}:2'")
            for name in ("os", "ois")
        },
        "latency": ({"fault": f"link=l@0:latency={seconds!r}"}, 0.0, ""),
        "slow": ({"fault": f"host=a@0:slow={seconds!r}", "compute": 1.0}, 0.0, ""),
        "later": ({"fault": f"host=a@{seconds!r}:slow=2", "compute": seconds * 2}, 0.0, ""),
        "until": (
            {"fault": f"host=a@1:slow=2:for={seconds!r}", "compute": seconds}, 0.0, ""
        ),
    }  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_times_of_any_length_end(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(changes, "MOST", 5000)
    monkeypatch.setattr(speeds, "MOST", 20_000)
    path = tmp_path / "two.yaml"
    lengths = [(HUGE, *one) for one in _lengths(HUGE).items()]
    lengths += [(1e99, *one) for one in _lengths(1e99).items() if one[0] == "later"]
    for seconds, name, (options, sleep, config) in lengths:
        path.write_text(MACHINE.format(config=config, profiles=f"[{KINDS[kind]}]"))
        options = {"compute": "none", "platform": path, "map_by": "node"} | options
        before = time.process_time()
        try:
            result = pysmpi.run(_program, 2, args=[sleep], **options)
        except UsageError as error:
            # The rounds differ, or a message is on its way during all of them.
            assert name in ("latency", "later", "until"), (name, error)
            assert "expected a longer time before it repeats" in str(error)
        else:
            assert result.returns == [2, 2] and math.isfinite(result.seconds), name
            assert result.seconds >= min(seconds, 9e9), name
        assert time.process_time() - before < 4.0, (name, seconds)


@pytest.mark.parametrize("period", [5e-324, 1e-300, 1e-12])
def test_compute_over_rounds_of_any_length(period):
    profile = PlatformProfile(((0.0, 0.5), (period / 2.0, 1.0)), period - period / 2.0)
    speed = SpeedProfile(Course(1.0, [profile]))
    for begin in (0.0, 1.0, 1e18):
        found = speed.seconds(begin, 3.0)
        assert 3.0 <= found <= 6.0
    assert len(speed._known) < 10_000


def test_compute_over_many_rounds_and_a_change():
    """A change that ends, and one that does not: the rounds after them are multiplied, too."""
    profile = PlatformProfile(((0.0, 0.5), (0.5, 1.0)), 1.0)  # 1.25 of work in 1.5 s
    changes = [Change(3.0, 6.0, 0.5), Change(9.0, math.inf, 0.25)]
    speed = SpeedProfile(Course(1.0, [profile], changes))
    # Until 9 s: two rounds, two at half the speed, two; then at a quarter of the speed.
    done = 1.25 * (2 + 2 * 0.5 + 2)
    assert speed.seconds(0.0, done) == pytest.approx(9.0)
    for rounds in (1, 10, 10_000_000):
        found = speed.seconds(0.0, done + rounds * 1.25 * 0.25)
        assert found == pytest.approx(9.0 + rounds * 1.5, rel=1e-9)
        assert speed.seconds(9.0 + 1.5e9, rounds * 1.25 * 0.25) == pytest.approx(rounds * 1.5)
    assert len(speed._known) < 20_000
