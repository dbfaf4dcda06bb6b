"""A plug-in of each kind is one file of another distribution, found by its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from pysmpi.errors import UsageError
from pysmpi.plugins import Registry

# One file a kind: its entry point group, and what it holds.
MODEL = """
from pysmpi.kernel.plan import Transport
from pysmpi.network.models import delay, model


class Hourly(Transport):
    def plan(self, source, destination, nbytes):
        return delay(3600.0)


@model("hourly", "every message takes an hour")
def hourly(platform, hosts, settings):
    return Hourly()
"""

MEMORY_MODEL = """
from pysmpi.kernel.plan import Plan
from pysmpi.memory.transfer.channel import Channel
from pysmpi.memory.transfer.models import memory_model


class Daily(Channel):
    def plan(self, nbytes):
        return Plan(86400.0, eager=True)


@memory_model("daily", "every message takes a day")
def daily(settings):
    return Daily
"""

ALGORITHM = """
from pysmpi.collectives.registry import algorithm


@algorithm("bcast", "outside_star", "root sends to all; P-1 steps, m bytes each")
def star(s, c):
    if c.rank != c.root:
        s.recv(c.root, c.nbytes)
    else:
        for peer in range(c.size):
            if peer != c.rank:
                s.send(peer, c.nbytes)
"""

SELECTOR = """
from pysmpi.collectives.registry import selector


@selector("stars", "broadcasts as stars")
def stars():
    return {"bcast": lambda call: "outside_star"}
"""

STRATEGY = """
from pysmpi.explore.strategy import Seeded, strategy


class Last(Seeded):
    def step(self, options):
        return len(options) - 1


@strategy("last", "the last option at every step")
def last(argument, seed):
    return Last(seed)
"""

ZONE = """
from dataclasses import dataclass

from pysmpi.platform.zones import Counts, LeafZone, zone_kind


@dataclass(frozen=True)
class RingShape(Counts):
    hosts: int

    def size(self):
        return self.hosts


@zone_kind("one_way_ring", "each host reaches the next")
class Ring(LeafZone):
    shape = RingShape

    def populate(self, cluster, make):
        self.make_hosts(cluster, make)
        self.cables = [
            make.link(f"cable_{i}", cluster.bandwidth, cluster.latency, "shared")[0]
            for i in range(cluster.shape.hosts)
        ]

    def walk(self, src, dst, links):
        while src != dst:
            links.append(self.cables[src])
            src = (src + 1) % len(self.cables)
"""

PROTOCOL = """
from pathlib import Path

from pysmpi.memory.coherence.library import add_table

add_table(Path(__file__).with_name("MSI.yaml"))
"""

MSI = """\
name: MSI
description: three states
states: {M: [exclusive, dirty], S: [], I: [invalid]}
read:
  - {own: [M, S], other: any, data: own}
  - {own: I, other: [S, I], becomes: S, data: memory}
  - {own: I, other: M, becomes: S, others: S, data: cache, write_back: true}
write:
  - {own: M, other: I, becomes: M, data: own}
  - {own: S, other: [S, I], becomes: M, others: I, data: own}
  - {own: I, other: [S, I], becomes: M, others: I, data: memory}
  - {own: I, other: M, becomes: M, others: I, data: cache}
evict:
  - {own: M, other: I, write_back: true}
  - {own: S, other: any}
"""

TRACE_FORMAT = """
from pysmpi.trace.formats import trace_format


@trace_format("ends", "a line an event")
class Ends:
    def __init__(self, path, compressed):
        self.stream = open(path, "w")

    def begin(self, places):
        print("ranks", len(places), file=self.stream)

    def call(self, call):
        print(call.name, file=self.stream)

    def transfer(self, transfer):
        print("message of", transfer.nbytes, file=self.stream)

    def end(self, ends):
        print("ends", *ends, file=self.stream)

    def close(self):
        self.stream.close()
"""

CHECKER = '''
from pysmpi.checkers import Checker, checker
from pysmpi.checkers.describing import place
from pysmpi.diagnostics import Diagnostic, register
from pysmpi.reports.findings import Finding


@register
class Broadcasts(Diagnostic):
    """A program broadcasts."""

    code = "PSM999"
    title = "a broadcast"


@checker("quiet", "programs that broadcast")
class Quiet(Checker):
    def call_made(self, call):
        if call.name == "bcast":
            self.session.report(
                Finding(Broadcasts, "bcast", [place(call)], "MPI 4.1, section 6.4", "send")
            )
'''

INSTRUMENT = '''
from pysmpi.instruments import Instrument, instrument


@instrument("counter", "counts events")
class Counter(Instrument):
    """Hears of every kind of event, makes messages slow, and adds a remark to the result."""

    def __init__(self, argument):
        if argument is None or not argument.isdigit():
            raise ValueError(f"expected counter:FACTOR such as counter:2, got {argument!r}")
        self.factor = int(argument)
        self.counts = {}
        self.steps = []

    def count(self, name):
        self.counts[name] = self.counts.get(name, 0) + 1

    def prepare(self, run):
        self.steps.append("prepare")
        self.nprocs = run.options.nprocs

    def attach(self, run):
        self.steps.append("attach")
        assert run.simulation.universe.ranks == []

    def ranks_ready(self, simulation):
        self.steps.append("ready")
        assert len(simulation.universe.ranks) == self.nprocs

    def timer_for(self, rank, timer):
        self.count("timer_for")
        return timer

    def thread_begun(self, rank):
        self.count("thread_begun")

    def call_begun(self, call):
        self.count("call_begun")
        call.rank.process.debt += 1.0 * self.factor

    def call_made(self, call):
        self.count("call_made")

    def call_returned(self, call, result):
        self.count("call_returned")

    def call_left(self, call):
        self.count("call_left")

    def message_matched(self, send, receive, now):
        self.count("message_matched")

    def rank_ended(self, rank):
        self.count("rank_ended")

    def run_ended(self, result):
        self.steps.append("ended")

    def finish(self, result):
        self.steps.append("finish")
        counts = [f"{name}={count}" for name, count in sorted(self.counts.items())]
        result.remarks.append(" ".join([*self.steps, *counts]))

    def close(self, error):
        print("closed", error)
'''

PATCH = """
from pysmpi.isolation.loading import libraries

libraries.containers("shared_counter", "counts")
"""

GROUPS = {
    "models": MODEL,
    "memory_models": MEMORY_MODEL,
    "collectives": ALGORITHM + SELECTOR,
    "strategies": STRATEGY,
    "zones": ZONE,
    "protocols": PROTOCOL,
    "trace_formats": TRACE_FORMAT,
    "checkers": CHECKER,
    "instruments": INSTRUMENT,
    "patches": PATCH,
}

PROGRAM = """\
from mpi4py import MPI

comm = MPI.COMM_WORLD
begin = MPI.Wtime()
if comm.rank == 0:
    comm.send(b"", 1)
    comm.recv(source=1)
    print(MPI.Wtime() - begin)
elif comm.rank == 1:
    comm.recv(source=0)
    comm.send(b"", 0)
comm.bcast(b"x" * 5)
"""

BROADCAST = """\
import numpy
from mpi4py import MPI

MPI.COMM_WORLD.Bcast(numpy.zeros(100000, "b"))
if MPI.COMM_WORLD.rank == 7:
    print(MPI.Wtime())
"""

WILDCARD = """\
from mpi4py import MPI

comm = MPI.COMM_WORLD
if comm.rank:
    comm.send(comm.rank, 0)
else:
    print(*(comm.recv() for _ in range(1, comm.size)))
"""

COUNTS = """\
import shared_counter
from mpi4py import MPI

comm = MPI.COMM_WORLD
shared_counter.counts[comm.rank] = 1
comm.Barrier()
print(*shared_counter.counts)
"""

RING = """\
name: ring
clusters:
  - name: ring
    hosts: n[0-3]
    speed: 1Gf
    link: {bandwidth: 1GBps, latency: 10ms}
    topology: {kind: one_way_ring, hosts: 4}
"""


@pytest.fixture(params=["compiled", "interpreted"])
def outside(request, tmp_path):
    """Runs pysmpi with the distribution of plug-ins installed; returns a finished process."""
    site = tmp_path / "site"
    package = site / "other_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "MSI.yaml").write_text(MSI)
    info = site / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    entries = []
    for group, text in GROUPS.items():
        (package / f"a_{group}.py").write_text(text)
        entries.append(f"[pysmpi.{group}]\nmine = other_package.a_{group}\n")
    (info / "entry_points.txt").write_text("\n".join(entries))
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "ring.yaml").write_text(RING)
    interpreted = "1" if request.param == "interpreted" else ""

    def run(*arguments, status=0):
        done = subprocess.run(
            [sys.executable, "-m", "pysmpi", *map(str, arguments)],
            cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": str(site), "PYSMPI_INTERPRETED": interpreted},
            timeout=300,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done

    run.folder = tmp_path
    run.site = site
    return run


def test_a_checker(outside):
    done = outside("run", "-n", 2, "-q", "--check", "quiet", "program.py", status=3)
    assert "PSM999 a broadcast: bcast\n  ranks 0-1  bcast(root=0)  program.py:12\n" in done.stderr
    assert "PSM999" in outside("explain", "PSM999").stdout


def test_an_instrument(outside):
    """It hears of events, changes the run, and completes the result before the report."""
    done = outside("run", "-n", 2, "--compute", "none", "--report", "run.json",
                   "--instrument", "counter:3", "program.py")  # fmt: skip
    seconds, closed = done.stdout.splitlines()
    assert closed == "closed None"
    assert float(seconds) > 6.0  # each call takes three seconds more
    counts = "call_begun=6 call_left=9 call_made=9 call_returned=9 message_matched=4 "
    steps = "prepare attach ready ended finish"
    remark = f"{steps} {counts}rank_ended=2 thread_begun=2 timer_for=2"
    assert f"warning: {remark}" in done.stderr
    assert json.loads((outside.folder / "run.json").read_text())["remarks"] == [remark]

    fails = outside("run", "-n", 2, "--instrument", "counter:3", "--trace", "no/run.json",
                    "program.py", status=2)  # fmt: skip
    assert "closed" not in fails.stdout  # it was not prepared
    wrong = outside("run", "--instrument", "counter", "program.py", status=2)
    expected = "--instrument counter: expected counter:FACTOR such as counter:2, got None"
    assert expected in wrong.stderr
    wrong = outside("run", "--instrument", "counting:3", "program.py", status=2)
    assert "no such instrument; did you mean counter?" in wrong.stderr


def test_a_model(outside):
    done = outside("run", "-n", 2, "--map-by", "node", "--model", "hourly", "--compute", "none",
                   "program.py")  # fmt: skip
    assert float(done.stdout) == pytest.approx(2 * 3600, abs=1)
    assert "every message takes an hour" in outside("models").stdout


def test_a_memory_model(outside):
    done = outside("run", "-n", 2, "--platform", "xeon-e5-2650", "--memory-model", "daily",
                   "--compute", "none", "program.py")  # fmt: skip
    assert float(done.stdout) == pytest.approx(2 * 86400, abs=1)
    assert "every message takes a day" in outside("models").stdout


def test_an_algorithm(outside):
    assert "outside_star" in outside("collectives", "bcast").stdout
    outside("run", "-n", 3, "--coll", "bcast=outside_star", "--compute", "none", "program.py")


def test_a_selector(outside):
    """Its choice takes what its algorithm takes, and its name is among the selectors."""
    (outside.folder / "broadcast.py").write_text(BROADCAST)
    times = [
        outside("run", "-n", 8, "--map-by", "node", *choice, "--compute", "none", "-q",
                "broadcast.py").stdout
        for choice in (("--selector", "stars"), ("--coll", "bcast=outside_star"),
                       ("--selector", "ompi"))
    ]  # fmt: skip
    assert times[0] == times[1] != times[2]
    assert "stars" in outside("collectives").stdout
    assert "stars" in outside("collectives", "bcast", "--bytes", 8).stdout
    wrong = outside("run", "-n", 2, "--selector", "start", "program.py", status=2)
    assert "did you mean stars?" in wrong.stderr


def test_a_strategy(outside):
    (outside.folder / "wildcard.py").write_text(WILDCARD)
    found = {
        name: outside("run", "-n", 4, "-q", "--schedule", name, "--compute", "none",
                      "wildcard.py").stdout
        for name in ("time", "last")
    }  # fmt: skip
    assert found["time"] == "1 2 3\n" != found["last"]
    assert sorted(found["last"].split()) == ["1", "2", "3"]


def test_a_patch_of_a_library(outside):
    """Each rank has its own contents of a dictionary of a library that ranks share."""
    library = outside.site / "shared_counter"
    library.mkdir()
    (library / "__init__.py").write_text("counts = {}\n")
    (outside.folder / "counts.py").write_text(COUNTS)
    arguments = ["run", "-n", 2, "-q", "--shared", "shared_counter", "counts.py"]
    assert sorted(outside(*arguments).stdout.split()) == ["0", "1"]
    (outside.site / "other_package" / "a_patches.py").write_text("")
    assert outside(*arguments).stdout == "0 1\n0 1\n"  # without the patch


def test_a_kind_of_zone(outside):
    done = outside("run", "-n", 4, "--platform", "ring.yaml", "--compute", "none", "program.py")
    # One cable forth, three back.
    assert float(done.stdout) == pytest.approx(4 * 0.01, rel=0.01)


def test_a_coherence_protocol(outside):
    done = outside("coherence", "protocols")
    assert "MSI" in done.stdout
    assert "three states" in outside("coherence", "protocols", "MSI").stdout


def test_a_format_of_timelines(outside):
    outside("run", "-n", 2, "--trace", "run.ends", "--compute", "none", "program.py")
    lines = (outside.folder / "run.ends").read_text().splitlines()
    assert lines[0] == "ranks 2" and lines[-1].startswith("ends ")
    assert any(line.startswith("message of") for line in lines)
    refused = outside("run", "-n", 2, "--trace", "run.what", "program.py", status=2)
    assert ".ends" in refused.stderr


@pytest.mark.parametrize(
    "group, command",
    [
        ("models", ["run", "-n", 2, "program.py"]),
        ("memory_models", ["models"]),
        ("collectives", ["collectives"]),
        ("collectives", ["run", "-n", 2, "--selector", "ompi", "program.py"]),
        ("strategies", ["run", "-n", 2, "--schedule", "last", "program.py"]),
        ("zones", ["platform", "check", "ring.yaml"]),
        ("protocols", ["coherence", "protocols"]),
        ("trace_formats", ["run", "--trace", "run.ends", "program.py"]),
        ("checkers", ["run", "-n", 2, "--check", "quiet", "program.py"]),
        ("instruments", ["run", "--instrument", "counter:1", "program.py"]),
    ],
)
def test_a_broken_plug_in_is_named(outside, group, command):
    broken = outside.site / "other_package" / f"a_{group}.py"
    broken.write_text("import nothing_like_it\n")
    done = outside(*command, status=2)
    place = f"other-package: entry point mine = other_package.a_{group} of group pysmpi.{group}: "
    expected = "expected a module that registers plug-ins, got ModuleNotFoundError"
    assert place + expected in done.stderr
    assert "Traceback" not in done.stderr
    broken.write_text("from pysmpi.errors import UsageError\nraise UsageError('told it')\n")
    assert f"{place}told it" in outside(*command, status=2).stderr


def test_an_algorithm_of_no_operation_is_named(outside):
    text = ALGORITHM.replace('"bcast"', '"bcst"')
    (outside.site / "other_package" / "a_collectives.py").write_text(text)
    done = outside("collectives", status=2)
    place = "entry point mine = other_package.a_collectives of group pysmpi.collectives: "
    assert f"{place}collective operation bcst: no such collective operation; did you" in done.stderr


@dataclass
class Thing:
    name: str
    line: str = ""


def test_a_registry_finds_suggests_and_refuses_doubles():
    things: Registry[Thing] = Registry("thing", "pysmpi.no_such_group")
    first = things.add(Thing("first"))
    things.add(Thing("second"))
    assert things.find("first") is first and "second" in things
    assert things.names() == ["first", "second"] and [t.name for t in things] == things.names()
    with pytest.raises(UsageError, match="^--thing frist: no such thing; did you mean first\\? "):
        things.find("frist", "--thing frist")
    with pytest.raises(UsageError, match="^thing zzz: no such thing; there are first, second$"):
        things.find("zzz")
    with pytest.raises(ValueError, match="thing 'first' is registered twice"):
        things.add(Thing("first"))
    things.discard("first")
    assert "first" not in things


def test_a_registry_imports_every_module_of_its_home():
    from pysmpi.network.models import MODELS
    from pysmpi.platform.zones import ZONE_KINDS

    for registry, folder in ((MODELS, "network/kinds"), (ZONE_KINDS, "platform/zones")):
        registry.known()
        import pysmpi

        files = (Path(pysmpi.__file__).parent / folder).glob("[!_]*.py")
        package = registry.home
        missing = [f.stem for f in files if f"{package}.{f.stem}" not in sys.modules]
        assert not missing, json.dumps(missing)
