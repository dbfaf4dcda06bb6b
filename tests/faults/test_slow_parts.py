"""Parts that are slow for some time: exact to the instant, as faults and as profiles."""

from __future__ import annotations

import random

import pytest

import pysmpi
from pysmpi.faults.specification import Fault, parse_fault

MACHINE = """\
name: two
config: {smpi/wtime: 0, smpi/iprobe: 0}
hosts: [{name: a, speed: 1Gf, cores: 1}, {name: b, speed: 1Gf, cores: 1}]
links: [{name: l, bandwidth: 1MBps, latency: 10ms}]
routes: [{from: a, to: b, via: [l]}]
"""
FOREVER = float("inf")


@pytest.fixture
def machine(tmp_path):
    def of(profiles="[]", text=MACHINE):
        path = tmp_path / "two.yaml"
        path.write_text(text + f"profiles: {profiles}\n")
        return path

    return of


def windows(seed):
    """Some windows (begin, end, factor) in hundredths of seconds; they may overlap."""
    draw = random.Random(seed)
    found = []
    for _ in range(draw.randint(1, 4)):
        begin = draw.choice([0.0, draw.randint(1, 250) / 100])
        end = FOREVER if draw.random() < 0.3 else begin + draw.randint(1, 150) / 100
        found.append((begin, end, draw.choice([2, 4, 10])))
    return found


def slowness(date, slow):
    product = 1.0
    for begin, end, factor in slow:
        if begin <= date < end:
            product *= factor
    return product


def dates_of(slow):
    return sorted({date for begin, end, _ in slow for date in (begin, end)} - {FOREVER})


def end_of(begin, work, slow):
    """The date at which `work` seconds at full speed are done."""
    now = begin
    for date in [*[one for one in dates_of(slow) if one > begin], FOREVER]:
        product = slowness(now, slow)
        if now + work * product <= date:
            return now + work * product
        work -= (date - now) / product
        now = date
    raise AssertionError


def faults(part, slow):
    return [
        f"{part}@{begin}s:slow={factor}" + ("" if end == FOREVER else f":for={end - begin:.2f}s")
        for begin, end, factor in slow
    ]


def profile(part, key, unit, slow):
    """The same as a profile."""
    values = {date: 1 / slowness(date, slow) for date in dates_of(slow)}
    points = ", ".join(f"{date}s: {value!r}{unit}" for date, value in values.items())
    return f"[{{{part}, {key}: {{{points}}}}}]"


def block():
    """A block of compute and a call; another block follows until the end."""
    from mpi4py import MPI

    MPI.COMM_WORLD.Iprobe()


def computed(path, fault=(), hosts="a\n"):
    """The dates at which ranks end that compute two blocks of half a second."""
    file = path.with_name("hosts")
    file.write_text(hosts)
    nprocs = len(hosts.split())
    result = pysmpi.run(block, nprocs, platform=path, compute=0.5, fault=fault, hostfile=file)
    return [rank["end_seconds"] for rank in result.ranks]


@pytest.mark.parametrize("seed", range(12))
def test_one_block_is_slowed_to_the_instant_in_both_forms(machine, seed):
    slow = windows(seed)
    wanted = end_of(0.0, 1.0, slow)
    found = computed(machine(), faults("host=a", slow))
    assert found == pytest.approx([wanted], rel=1e-9)
    found = computed(machine(profile("host: a", "speed", "", slow)))
    assert found == pytest.approx([wanted], rel=1e-9)


def test_a_fault_and_a_profile_of_a_host_both_apply(machine):
    path = machine("[{host: a, speed: {0.5s: 0.5}}]")
    found = computed(path, "host=a@0.25s:slow=4:for=0.5s")
    # 0.25 s of work by 0.25 s, then a quarter, from 0.5 s an eighth, from 0.75 s a half.
    assert found == pytest.approx([0.75 + (1 - 0.25 - 0.0625 - 0.03125) * 2])


@pytest.mark.parametrize("seed", range(6))
def test_ranks_that_share_a_core_are_slowed_while_they_compute(machine, seed):
    slow = windows(seed)
    wanted = end_of(0.0, 2.0, slow)
    found = computed(machine(), faults("host=a", slow), "a\na\n")
    assert found == pytest.approx([wanted] * 2, rel=1e-9)
    found = computed(machine(profile("host: a", "speed", "", slow)), (), "a\na\n")
    assert found == pytest.approx([wanted] * 2, rel=1e-9)


def message(nbytes, date):
    """The date at which rank 1 has a message that is sent at a date."""
    import time

    import numpy
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    if date:
        time.sleep(date)
    buffer = numpy.zeros(nbytes - 16, "b")
    comm.Send(buffer, 1) if comm.rank == 0 else comm.Recv(buffer, 0)
    return MPI.Wtime()


def arrived(path, nbytes=500_000, date=0.0, **options):
    return pysmpi.run(
        message, 2, args=(nbytes, date), platform=path, compute="none", map_by="node", **options
    ).returns[1]


@pytest.mark.parametrize("seed", range(12))
def test_a_message_is_slowed_to_the_instant_in_both_forms(machine, seed):
    slow = windows(seed)
    wanted = end_of(0.01, 0.5, slow)
    assert arrived(machine(), fault=faults("link=l", slow)) == pytest.approx(wanted, rel=1e-9)
    path = machine(profile("link: l", "bandwidth", "MBps", slow))
    assert arrived(path) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("model", ["hybrid", "fluid", "cm02", "lv08", "ib"])
def test_a_message_in_its_latency_flows_as_its_links_are_then(machine, model):
    factors = {"network/latency-factor": "1", "network/bandwidth-factor": "1"}
    cfg = {**factors, "network/weight-S": "0", "network/TCP-gamma": "0"}
    cfg["network/crosstraffic"] = "no"
    options = {"fault": ["link=l@5ms:slow=2:for=0.1s"], "model": model, "cfg": cfg}
    assert arrived(machine(), **options) == pytest.approx(0.105 + 0.5 - 0.095 / 2, rel=1e-6)


@pytest.mark.parametrize("model", ["hybrid", "fluid"])
@pytest.mark.parametrize("slow", [2, 1e4, 1e9])
def test_a_message_that_waits_for_its_receive_flows_as_its_links_are_then(machine, model, slow):
    """It is sent while the link is slow, and received after that; or sent before, and after."""

    def main(sent, received):
        import time

        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        buffer = numpy.zeros(500_000 - 16, "b")
        time.sleep(sent if comm.rank == 0 else received)
        comm.Ssend(buffer, 1) if comm.rank == 0 else comm.Recv(buffer, 0)
        return MPI.Wtime()

    def ends(sent, received):
        return pysmpi.run(
            main, 2, args=(sent, received), platform=machine(), compute="none", map_by="node",
            model=model, fault=f"link=l@1s:slow={slow}:for=1s",
        ).returns[1]  # fmt: skip

    exact = ends(3.0, 3.5)
    assert ends(1.5, 3.5) == ends(0.5, 3.5) == pytest.approx(exact, rel=1e-9)


def test_fat_pipes_and_windows_bound_messages_again(machine):
    fat = MACHINE.replace("latency: 10ms", "latency: 10ms, sharing: fatpipe")
    fault = "link=l@0.11s:slow=4:for=0.2s"
    wanted = 0.31 + 0.5 - 0.1 - 0.05
    assert arrived(machine(text=fat), fault=fault) == pytest.approx(wanted, rel=1e-9)
    # A window of 10,000 bytes, and 10 ms: 500 kB/s; the slow link has 250 kB/s.
    cfg = {"network/TCP-gamma": "10000"}
    wanted = 0.31 + (0.5 - 0.05 - 0.05) / 0.5
    assert arrived(machine(), fault=fault, cfg=cfg) == pytest.approx(wanted, rel=1e-9)


def test_messages_that_share_a_slow_link(machine):
    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        buffer = numpy.zeros((2, 500_000 - 16), "b")
        if comm.rank == 0:
            requests = [comm.Isend(buffer[i], 1, i) for i in range(2)]
        else:
            requests = [comm.Irecv(buffer[i], 0, i) for i in range(2)]
        MPI.Request.Waitall(requests)
        return MPI.Wtime()

    options = {"platform": machine(), "compute": "none", "map_by": "node"}
    fault = "link=l@0.51s:slow=2:for=0.5s"
    assert pysmpi.run(main, 2, fault=fault, **options).returns[1] == pytest.approx(1.26, rel=1e-9)


def test_latencies_grow_for_some_time(machine):
    fault = ["link=l@1s:latency=5:for=1s", "link=l@1.5s:latency=2:slow=2:for=1s"]
    found = [
        arrived(machine(), 100_000, date, fault=fault) - date for date in (0, 1, 1.6, 2.1, 2.6)
    ]
    assert found == pytest.approx([0.11, 0.15, 0.1 + 0.2, 0.02 + 0.2, 0.11], rel=1e-9)


def test_a_dead_link_lives_again(machine):
    fault = ["link=l@1s:for=1s", "link=l@1.5s:dead:for=1s"]
    for date in (0, 2.5, 3):
        assert arrived(machine(), date=date, fault=fault) == pytest.approx(date + 0.51)
    for date in (1, 1.6, 2.1):
        with pytest.raises(pysmpi.ProgramError, match="link l failed at t=1.* needs it"):
            arrived(machine(), date=date, fault=fault)
    with pytest.raises(pysmpi.ProgramError, match="link l failed at t=1 s.*messages are on it"):
        arrived(machine(), date=0.8, fault=fault)


def test_parts_of_faults_that_end():
    text = "link=l@1s:for=0.5s:latency=3:slow=2"
    assert parse_fault(text) == Fault("link", "l", 1.0, 2.0, text, latency=3.0, end=1.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("host=a@1s:slow=2:for=0s", "for: expected a time above 0, got '0s'"),
        ("host=a@1s:slow=2:for=soon", "for: expected a time"),
        ("host=a@1s:slow=2:for=", "for: "),
        ("host=a@1s:slow=2:slow=3", "expected slow once"),
        ("host=a@1s:for=1s", "ranks that die do not come back; for=TIME is for slow hosts and"),
        ("host=a@1s:latency=2", "expected dead, slow=FACTOR or for=TIME, got 'latency=2'"),
        ("link=l@1s:latency=0.5", "expected latency=FACTOR, with a factor of at least 1"),
        ("link=l@1s:slow=nan", "expected slow=FACTOR, with a factor of at least 1"),
        ("link=l@1s:dead:slow=2", "a part is dead or changed, not both"),
        ("link=l@1s:fast", "expected dead, slow=FACTOR, latency=FACTOR or for=TIME, got 'fast'"),
        ("link=l@1s:", "got ''"),
        ("rank=0@1s:for=1s", "ranks that die do not come back"),
        ("rank=0@1s:slow=2", "a rank cannot be slow, expected its host"),
        ("rank=0@1s:sick", "expected no effect of a rank, got 'sick'"),
        ("host=a@1e99s:slow=2:for=1s", "the time of for= is too short at this date"),
        ("randomly:rate=1", "expected random:rate=RATE"),
    ],
)
def test_wrong_effects_are_refused(text, message):
    with pytest.raises(pysmpi.UsageError) as caught:
        parse_fault(text)
    assert message in str(caught.value) and f"--fault {text}" in str(caught.value)


SHARED = """\
name: three
config: {smpi/wtime: 0, smpi/iprobe: 0}
hosts: [{name: a, speed: 1Gf}, {name: b, speed: 1Gf}, {name: c, speed: 1Gf}]
links:
  - {name: l, bandwidth: 40MBps, latency: 10ms}
  - {name: m, bandwidth: 1MBps, latency: 10ms}
routes:
  - {from: a, to: c, via: [l, m]}
  - {from: b, to: c, via: [m]}
"""


def test_the_share_of_a_message_changes_with_a_link_that_does_not_bound_it(machine):
    """Messages share link m by their resistances, of which that of link l is a part."""

    def main():
        import numpy
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
        buffer = numpy.zeros(500_000 if comm.rank != 1 else 5_000_000, "b")
        if comm.rank < 2:
            comm.Send(buffer, 2)
            return None
        requests = [
            comm.Irecv(buffer, 0),
            comm.Irecv(numpy.zeros(5_000_000, "b"), 1),
        ]
        requests[0].Wait()
        end = MPI.Wtime()
        requests[1].Wait()
        return end

    cfg = {"network/weight-S": "1000000", "network/crosstraffic": "no"}
    options = {"platform": machine(text=SHARED), "compute": "none", "map_by": "node", "cfg": cfg}

    def end(*fault):
        return pysmpi.run(main, 3, fault=list(fault), **options).returns[2]

    before, after = end(), end("link=l@0s:slow=20")
    assert after > 1.2 * before
    middle = 0.5
    done = (middle - 0.02) / (before - 0.02)
    wanted = middle + (1 - done) * (after - 0.02)
    assert end(f"link=l@{middle}s:slow=20") == pytest.approx(wanted, rel=1e-3)
