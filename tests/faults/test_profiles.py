"""Profiles of a platform act in runs: speeds, bandwidths, latencies and states change with time."""

from __future__ import annotations

import pytest

import pysmpi
from pysmpi.errors import UsageError
from pysmpi.faults.speeds import SpeedProfile
from pysmpi.platform import load
from pysmpi.platform.dump import dump
from pysmpi.platform.profiles import Course, PlatformProfile, read_profile
from pysmpi.platform.xml_dump import dump_xml
from pysmpi.replay import Replay

MACHINE = """\
name: two
config: {smpi/wtime: 0}
hosts: [{name: a, speed: 1Gf}, {name: b, speed: 1Gf}]
links: [{name: l, bandwidth: 1MBps, latency: 10ms}]
routes: [{from: a, to: b, via: [l]}]
"""
XML = """\
<platform version="4.1">
  <zone id="AS0" routing="Full">
    <host id="a" speed="1Gf" speed_file="speed.txt"/><host id="b" speed="1Gf"/>
    <link id="l" bandwidth="1MBps" latency="10ms" latency_file="latency.txt"/>
    <route src="a" dst="b"><link_ctn id="l"/></route>
  </zone>
  <trace id="t" periodicity="20">
    0 1
    5 0
  </trace>
  <trace_connect kind="LINK_AVAIL" trace="t" element="l"/>
</platform>
"""


@pytest.fixture
def machine(tmp_path):
    def of(profiles):
        path = tmp_path / "two.yaml"
        path.write_text(MACHINE + f"profiles: {profiles}\n")
        return path

    return of


def messages(dates, nbytes):
    """Seconds of a message of nbytes - 16 from rank 0 to rank 1 at each date."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    buffer = numpy.zeros(nbytes - 16, "b")
    found = []
    for date in dates:
        time.sleep(date - MPI.Wtime())
        begin = MPI.Wtime()
        comm.Send(buffer, 1) if comm.rank == 0 else comm.Recv(buffer, 0)
        found.append(MPI.Wtime() - begin)
    return found


def times(path, dates, nbytes=500_000, **options):
    options = {"compute": "none", "map_by": "node", **options}
    return pysmpi.run(messages, 2, args=(dates, nbytes), platform=path, **options).returns[1]


def test_bandwidth_and_latency_change_at_their_dates_and_again(machine):
    path = machine(
        "[{link: l, bandwidth: {2s: 2MBps, 4s: 1MBps}, loop_after: 6s}, "
        "{link: l, latency: {3s: 100ms, 5s: 10ms}, loop_after: 95s}]"
    )
    found = times(path, [0, 1.8, 3, 3.8, 5.5, 12, 103])
    assert found == pytest.approx([
        0.51,  # as the link is
        0.01 + 0.19 + (0.5 - 0.19) / 2,  # at 1 MB/s until 2 s, then at 2 MB/s
        0.1 + 0.25,  # another latency
        0.1 + 0.1 + (0.5 - 0.2),  # at 2 MB/s until 4 s, then at 1 MB/s
        0.51,
        0.26,  # 10 s after the first round
        0.1 + 0.25,  # 100 s after the first round
    ], rel=1e-9)  # fmt: skip


def test_collectives_use_the_links_as_they_are_then(machine):
    def main():
        import time

        import numpy
        from mpi4py import MPI

        comm, found = MPI.COMM_WORLD, []
        for date in (0, 3):
            time.sleep(date - MPI.Wtime())
            begin = MPI.Wtime()
            comm.Bcast(numpy.zeros(1_000_000 - 16, "b"))
            found.append(comm.allreduce(MPI.Wtime() - begin, MPI.MAX))
        return found

    path = machine("[{link: l, bandwidth: {2s: 4MBps}}]")
    options = {"platform": path, "map_by": "node", "compute": "none"}
    before, after = pysmpi.run(main, 2, coll={"bcast": "binomial_tree"}, **options).returns[0]
    assert before == pytest.approx(1.01, rel=1e-3)
    assert after == pytest.approx(0.26, rel=1e-3)


def test_compute_takes_longer_while_a_host_is_slow(machine):
    def main():
        from mpi4py import MPI

        dates = []
        for _ in range(4):
            MPI.COMM_WORLD.Iprobe()  # a second of compute before each call
            dates.append(MPI.Wtime())
        return dates

    def ends(profiles):
        cfg = {"smpi/iprobe": "0"}
        result = pysmpi.run(
            main, 2, platform=machine(profiles), compute=1.0, map_by="node", cfg=cfg
        )
        return [rank["compute_seconds"] for rank in result.ranks]

    plain, other = ends("[]")
    assert plain == other
    # A half until 3 s: 1.5 s of work are done by then.
    slow, same = ends("[{host: a, speed: {0s: 0.5, 3s: 1}}]")
    assert (slow, same) == pytest.approx((plain + 1.5, plain))
    # Nothing from 2 to 5 s, and twice the speed from 6 s on.
    slow, same = ends("[{host: a, speed: {2s: 0, 5s: 1, 6s: 2}}]")
    assert slow == pytest.approx(6 + (plain - 3) / 2)


def test_a_speed_over_time():
    profile = PlatformProfile(((1.0, 0.5), (3.0, 2.0)), 1.0)  # again from 5 s on
    speed = SpeedProfile(Course(1.0, [profile]))
    assert speed.seconds(0.0, 1.0) == 1.0
    assert speed.seconds(0.5, 1.0) == pytest.approx(0.5 + 1.0)
    assert speed.seconds(1.0, 3.0) == pytest.approx(2.0 + 1.0)
    assert speed.seconds(4.0, 3.0) == pytest.approx(1.0 + 1.0 / 0.5)
    assert speed.seconds(0.0, 1.0) == 1.0  # an earlier date again
    ended = SpeedProfile(Course(1.0, [PlatformProfile(((1.0, 0.0),))]))
    with pytest.raises(UsageError, match="speed 0 from 1 s on"):
        ended.seconds(0.0, 2.0)


def test_a_host_that_goes_off_ends_the_job(machine):
    path = machine("[{host: b, state: {2s: down, 3s: up}}]")
    with pytest.raises(pysmpi.ProgramError) as failed:
        times(path, [0, 1, 4])
    assert "PSM109" in str(failed.value)
    assert "host b with rank 1 failed at t=2 s (simulated), " in str(failed.value)
    assert f"{path}:6: profiles[0]" in str(failed.value)
    assert failed.value.exit_status == 3
    # No rank runs on the host.
    assert times(machine("[{host: b, state: {2s: down}}]"), [0], map_by="node")


def test_others_survive_a_host_that_goes_off(machine):
    def main():
        import time

        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        if comm.rank == 1:
            time.sleep(9)
        try:
            comm.recv(source=1)
        except MPI.Exception as error:
            assert error.Get_error_class() == MPI.ERR_PROC_FAILED
            return comm.Shrink().size, MPI.Wtime()

    path = machine("[{host: b, state: {2s: down, 3s: up}}]")
    result = pysmpi.run(
        main, 2, platform=path, map_by="node", compute="none", on_failure="continue"
    )
    size, date = result.returns[0]
    assert size == 1 and date == pytest.approx(2.0)
    assert result.lost == [f"rank 1: failed at t=2 s, {path}:6: profiles[0]"]


def test_a_link_that_is_off_fails_messages_until_it_is_on(machine):
    path = machine("[{link: l, state: {2s: down, 3s: up}}]")
    assert times(path, [0, 1, 4]) == pytest.approx([0.51] * 3)
    with pytest.raises(pysmpi.ProgramError, match="link l failed .* a message from rank 0 to"):
        times(path, [0, 2.5])
    with pytest.raises(pysmpi.ProgramError, match="link l failed at t=2 s.*messages are on it"):
        times(path, [1.8])


def test_profiles_that_repeat_for_ever_let_a_deadlock_be_found(machine):
    def main():
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        comm.recv(source=1 - comm.rank)

    profile = "{1s: 1MBps, 2s: 2MBps}, loop_after: 1s}"
    path = machine(f"[{{link: l, bandwidth: {profile}, {{link: l, latency: {{1s: 1ms}}}}]")
    result = pysmpi.run(main, 2, platform=path, compute="none", check=False)
    assert result.exit_status == 3 and "PSM101 deadlock" in result.error


def test_both_formats_keep_profiles(tmp_path):
    (tmp_path / "speed.txt").write_text("# a comment\n0 0.5\n2.5 1.0\nLOOPAFTER 1\n")
    (tmp_path / "latency.txt").write_text("1 0.003\nPERIODICITY 4\n")
    path = tmp_path / "p.xml"
    path.write_text(XML)
    platform = load(path)
    found = [(one.kind, one.name, one.profile) for one in platform.profiles]
    assert found == [
        ("speed", "a", PlatformProfile(((0.0, 0.5), (2.5, 1.0)), 1.0)),
        ("latency", "l", PlatformProfile(((1.0, 0.003),), 3.0)),
        ("link_state", "l", PlatformProfile(((0.0, 1.0), (5.0, 0.0)), 15.0)),
    ]
    for name, text in (
        ("q.yaml", dump(platform.definition)), ("q.xml", dump_xml(platform.definition))
    ):  # fmt: skip
        (tmp_path / name).write_text(text)
        again = load(tmp_path / name)
        assert [(one.kind, one.name, one.profile) for one in again.profiles] == found


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ("[{host: c, speed: {0s: 1}}]", r"yaml:6: profiles\[0\]: expected the name of a host, got"),
        ("[{link: m, latency: {0s: 1s}}]", "expected the name of a link, got 'm'"),
        ("[{link: l, latency: {x: 1s}}]", r"yaml:6: profiles\[0\].latency.x: "),
        ("[{link: l, bandwidth: {0s: 0Bps}}]", "profiles.0..bandwidth: expected a bandwidth above"),
        ("[{link: l, latency: {2s: 1s, 1s: 2s}}]", "expected dates from 0 on in order, got 1 aft"),
        ("[{host: a, speed: {0s: half}}]", "expected a part of the speed, such as 0.5"),
        ("[{host: a, state: {0s: half}}]", "expected up or down"),
        ("[{host: a, state: {0s: up}, speed: {0s: 1}}]", "expected one of speed, state, got 2"),
        ("[{host: a, latency: {0s: 1s}}]", "expected a key among host, speed, state, loop_after"),
        ("[{host: a, speed: {0s: 1}, loop_after: 0s}]", "above 0 before the profile repeats"),
    ],
)
def test_wrong_profiles_are_refused(machine, profiles, message):
    with pytest.raises(UsageError, match=message):
        load(machine(profiles))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 1 2", "line 1: expected a date and a value, got '0 1 2'"),
        ("0 1\nLOOPAFTER x", "line 2: expected a date and a value"),
        ("STOCHASTIC\nDET 0 DET 1", "line 1: profiles whose dates or values are drawn are not"),
    ],
)
def test_wrong_texts_are_refused(text, message):
    with pytest.raises(UsageError, match=message):
        read_profile(text)


def test_models_without_links_that_are_shared_are_refused(machine):
    path = machine("[{link: l, latency: {1s: 1s}}]")
    with pytest.raises(UsageError, match="two.yaml: profiles of links: expected a model .* loggp"):
        times(path, [0], model="loggp")
    with pytest.raises(UsageError, match="--fault link=l@1s: expected a model whose messages sha"):
        times(machine("[]"), [0], model="loggp", fault=["link=l@1s"])


def test_replay_refuses_machines_that_change(machine, tmp_path):
    path = machine("[{link: l, latency: {1s: 1s}}]")
    trace = tmp_path / "run.jsonl"
    pysmpi.run(messages, 2, args=([0], 100), platform=path, compute="none", trace=trace)
    with pytest.raises(UsageError, match="replay: .*two.yaml: expected a machine without profiles"):
        Replay([(str(trace), 0.0)])


def changes_of(monkeypatch):
    """Counts the changes of the machine."""
    from pysmpi.faults.changes import MachineChanges

    counted = []
    change = MachineChanges._change
    monkeypatch.setattr(
        MachineChanges, "_change", lambda *given: (counted.append(given[2]), change(*given))[1]
    )
    return counted


LONG = "{0s: 2MBps, 0.5s: 1MBps}, loop_after: 0.5s}"


def test_changes_that_matter_to_nothing_are_left_out(machine, monkeypatch):
    """A long time between two messages, of a profile that changes each half second."""
    counted = changes_of(monkeypatch)
    path = machine(
        "[{link: l, bandwidth: " + LONG + ", {host: a, speed: {0s: 0.5, 0.25s: 1}, loop_after: 1s}]"
    )
    found = times(path, [0.1, 1e9 + 0.1, 1e9 + 1.1])
    assert found == pytest.approx([0.26, 0.26, 0.26], rel=1e-6)
    assert len(counted) < 10_000
    found = times(path, [1e9 + 0.6, 2e9 + 1.75, 2e9 + 3.6])
    assert found == pytest.approx([0.455, 0.01 + 0.24 + 0.13, 0.455], rel=1e-6)


@pytest.mark.parametrize("begin", [0.0, 0.3, 7.0, 2e6 + 0.75])
def test_compute_over_many_rounds_of_a_profile(machine, begin):
    """As many whole rounds as fit, each of one and a quarter seconds of work, and the rest."""
    from pysmpi.faults.speeds import SpeedProfile
    from pysmpi.platform.profiles import Course, PlatformProfile

    profile = PlatformProfile(((0.0, 0.5), (0.5, 1.0)), 1.0)  # 0.25 + 1 in a period of 1.5 s

    def slow(work):
        """Round by round."""
        now, left = begin, work
        while left > 1e-12:
            phase = now % 1.5
            speed, end = (0.5, 0.5) if phase < 0.5 else (1.0, 1.5)
            step = min(end - phase, left / speed)
            now, left = now + step, left - step * speed
        return now - begin

    pace = SpeedProfile(Course(1.0, [profile]))
    for work in (0.1, 10.0, 1249.0, 1251.0, 20_000.3):
        assert pace.seconds(begin, work) == pytest.approx(slow(work), rel=1e-9)
    assert pace.seconds(begin, 1.25e12) == pytest.approx(1.5e12, rel=1e-9)
    assert len(pace._known) < 10_000


def test_too_many_changes_while_a_message_is_on_its_way_are_an_error(machine, monkeypatch):
    from pysmpi.errors import UsageError
    from pysmpi.faults import changes

    monkeypatch.setattr(changes, "MOST", 5000)
    path = machine("[{link: l, bandwidth: {0s: 2Bps, 0.5s: 1Bps}, loop_after: 0.5s}]")
    assert times(path, [0.0], nbytes=3000) == pytest.approx([2000.0], rel=0.01)
    with pytest.raises(UsageError, match="profile of link 'l': [56],000 changes in a row until"):
        times(path, [0.0])


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [("latency_file 0.5:0.1 2:0.2", 2.339883757821),
     ("bandwidth_file 0.5:1e6 2:2e6", 0.172254789107)],
)  # fmt: skip
def test_a_change_applies_to_a_message_of_its_instant(profile, seconds, tmp_path):
    """The seconds are those of smpirun (SimGrid 3.32) for 100,000 bytes that are sent at 2 s."""
    kind, *events = profile.split()
    (tmp_path / "profile.txt").write_text("\n".join(event.replace(":", " ") for event in events))
    path = tmp_path / "two.xml"
    path.write_text(
        '<platform version="4.1"><config><prop id="smpi/wtime" value="0"/></config>'
        '<zone id="w" routing="Full"><host id="a" speed="1Gf"/><host id="b" speed="1Gf"/>'
        f'<link id="l" bandwidth="10MBps" latency="10ms" {kind}="profile.txt"/>'
        '<route src="a" dst="b"><link_ctn id="l"/></route></zone></platform>'
    )
    assert times(path, [2.0], 100_016)[0] == pytest.approx(seconds, abs=1e-11)


def test_a_rank_that_fails_does_nothing_at_that_instant():
    def main():
        import time

        from mpi4py import MPI

        world = MPI.COMM_WORLD
        time.sleep(0.5)
        time.sleep(1.5)
        if world.rank == 1:
            done.append(MPI.Wtime())
        time.sleep(1.0)

    done = []
    cfg = {"smpi/wtime": "0"}
    result = pysmpi.run(main, 2, compute="none", fault="rank=1@2s", cfg=cfg, check=False)
    assert result.exit_status == 3 and not done
