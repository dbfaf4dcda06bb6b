"""Measuring this computer: the parts by themselves, and a small measurement from end to end."""

import ctypes
import itertools
import json
import os
import re
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from pysmpi.calibrate import library
from pysmpi.calibrate.accesses import LINE, CLibrary, PointerChain, SharedArena, calls
from pysmpi.calibrate.cache_control import CacheControl
from pysmpi.calibrate.check import Comparison
from pysmpi.calibrate.fragment import fragment
from pysmpi.calibrate.memory import (
    CONTROLLED,
    FROM_MEMORY,
    LATENCIES,
    OWN,
    WITH_PARTNER,
    Bench,
    Figure,
    Measured,
    measure,
    quartiles,
    steps,
)
from pysmpi.calibrate.pingpong import OPERATIONS, PATTERNS, really, simulated
from pysmpi.calibrate.topology import CacheLevel, Near, Topology, find_topology
from pysmpi.cli.main import command, status_of
from pysmpi.errors import PysmpiError, UsageError
from pysmpi.platform.loader import load

TWO = Topology(
    (0, 1), 1, 1, (CacheLevel(1, 32768, 1), CacheLevel(2, 1 << 20, 2)), (Near("L2", 2, 1),), 64
)
two_cores = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="two cores exchange lines, here is one"
)


def linux(root, packages=2, cores=2, threads=2):
    """The part of /sys that tells the topology of a computer; hardware threads come last."""
    total = packages * cores * threads
    for cpu in range(total):
        core, package = cpu % cores, cpu // cores % packages
        here = root / f"cpu{cpu}"
        (here / "topology").mkdir(parents=True)
        (here / "topology" / "physical_package_id").write_text(f"{package}\n")
        (here / "topology" / "core_id").write_text(f"{core}\n")
        (here / f"node{package}").mkdir()
        mine = [c for c in range(total) if c % (cores * packages) == cpu % (cores * packages)]
        near = [c for c in range(total) if c // cores % packages == package]
        kinds = [
            (1, "Data", "48K", mine),
            (1, "Instruction", "32K", mine),
            (2, "Unified", "16M", near),
        ]
        for i, (level, kind, size, sharers) in enumerate(kinds):
            index = here / "cache" / f"index{i}"
            index.mkdir(parents=True)
            for name, value in (("level", level), ("type", kind), ("size", size),
                                ("coherency_line_size", 64),
                                ("shared_cpu_list", ",".join(map(str, sharers)))):  # fmt: skip
                (index / name).write_text(f"{value}\n")
    return root


def test_topology_of_two_sockets_with_hardware_threads(tmp_path):
    found = find_topology(linux(tmp_path), set(range(8)))
    assert found.cpus == (0, 1, 2, 3)
    assert (found.sockets, found.numa, found.line) == (2, 2, 64)
    assert found.caches == (CacheLevel(1, 48 << 10, 1), CacheLevel(2, 16 << 20, 2))
    assert found.distances == (Near("L2", 2, 1), Near("node", 4, 2))


def test_only_cores_that_may_be_used_count(tmp_path):
    assert find_topology(linux(tmp_path), {1, 3}).cpus == (1, 3)
    assert find_topology(linux(tmp_path / "one", 1, 1, 2), {0, 1}).distances == ()


def test_a_system_that_tells_nothing_is_refused(tmp_path):
    with pytest.raises(UsageError, match="expected the physical_package_id of CPU 0"):
        find_topology(tmp_path, {0})


def test_a_chain_visits_every_line_once():
    arena = SharedArena(1 << 20)
    chain = PointerChain(arena, 100)
    at = ctypes.c_uint64.from_address(chain.root).value
    seen = []
    while at:
        key, at_next, right = (ctypes.c_uint64 * 3).from_address(at)
        assert key // LINE == at // LINE and right == 0
        seen.append((at - chain.address) // LINE)
        at = at_next
    assert sorted(seen) == list(range(100)) and seen != sorted(seen)
    CLibrary().follow(chain.root)
    arena.close()


def test_an_arena_gives_pages_that_nobody_else_has():
    arena = SharedArena(4 * 4096)
    first, second = arena.take(100), arena.take(4097)
    assert second - first == 4096
    library_ = CLibrary()
    library_.store(first, 100)
    ctypes.c_char.from_address(first + 1).value = b"x"
    library_.copy(second, first, 100)
    assert ctypes.c_char.from_address(second + 1).value == b"x"
    with pytest.raises(ValueError, match="the arena holds"):
        arena.take(1 << 20)
    arena.close()


@pytest.mark.parametrize("times", [1, 4])
def test_the_time_of_a_call_is_in_seconds(monkeypatch, times):
    clock, heard = [0], []

    def function(*words):
        heard.append(words)
        clock[0] += 1500

    monkeypatch.setattr("pysmpi.calibrate.accesses.perf_counter_ns", lambda: clock[0])
    assert calls(function, ["a", 1], times) == pytest.approx(1.5e-6)
    assert heard == [("a", 1)] * times


def test_quartiles():
    assert quartiles([4, 1, 3, 2, 5]) == (2, 3, 4)


@pytest.mark.parametrize(("kib", "lines"), [(1, 64), (8, 64), (32, 256), (48, 384)])
def test_near_lines_fill_half_of_the_first_cache(kib, lines):
    first = CacheLevel(1, kib << 10, 1)
    bench = Bench(replace(TWO, caches=(first, TWO.caches[1])), 4096, flooded=False)
    try:
        assert bench.near.lines == lines
    finally:
        bench.close()


def test_what_cannot_be_told_from_the_call_is_no_figure(monkeypatch):
    bench = Bench(TWO, 4096, flooded=False)
    idle = itertools.cycle((300e-9, 320e-9, 340e-9))

    def timed(access):
        pretended = {"full": 300e-9 + access}
        monkeypatch.setattr(
            "pysmpi.calibrate.memory.calls",
            lambda function, what: pretended.get(what[0]) or next(idle),
        )
        return bench.timed(lambda: None, None, ("full",), ("nothing",), 12)

    assert timed(10e-9) is None
    low, middle, high = timed(200e-9)
    assert 150e-9 < low <= middle <= high <= 200e-9 + 1e-12
    bench.close()


class SyntheticComputer:
    """Two cores with the states of MESI; the time of an access follows from its rate.

    Stands for the C library, the cache control, the partner and the stopwatch of a measurement.
    """

    FIXED = 300e-9  # seconds of any call
    HIDDEN = 0.4  # of the shorter half of a copy

    def __init__(self, access_rates, latencies):
        self.rates, self.latencies = access_rates, latencies
        self.states = {}  # own state and the partner's, by address
        self.chains = {}  # by root
        self.key = self.order = None
        self.memchr = self.memset = self.memmove = self.tfind = None
        for name in ("memchr", "memset", "memmove", "tfind", "store_past", "flush"):
            setattr(self, name, getattr(self, f"call_{name}"))
        self.noise = itertools.cycle((0.0, 0.01, 0.6, 0.02))

    def state(self, address):
        return self.states.setdefault(address, ["I", "I"])

    def read(self, who, address):
        state = self.state(address)
        if state[who] == "I":
            state[:] = ["S", "S"] if state[1 - who] != "I" else ["I", "I"]
            state[who] = "S" if state[1 - who] == "S" else "E"

    def write(self, who, address):
        self.states[address] = ["M", "I"] if who == 0 else ["I", "M"]

    def access(self, operation, address):
        mine, other = self.state(address)
        return operation + ("M" + other if mine == "I" else "H" + mine)

    # The functions that are timed: seconds beside FIXED, without effects for 0 bytes.
    def rate(self, access, nbytes):
        return self.rates[access] * (1 + nbytes / (1 << 20))

    def call_memchr(self, address, byte, nbytes):
        if not nbytes:
            return 0.0
        seconds = nbytes / self.rate(self.access("L", address), nbytes)
        self.load(address, nbytes)
        return seconds

    def call_memset(self, address, byte, nbytes):
        if not nbytes:
            return 0.0
        seconds = nbytes / self.rate(self.access("S", address), nbytes)
        self.write(0, address)
        return seconds

    def call_store_past(self, address, byte, nbytes):
        if not nbytes:
            return 0.0
        assert self.state(address) == ["I", "E"] or not self.timing
        self.states[address] = ["I", "I"]
        return nbytes / self.rate("SNT", nbytes)

    def call_flush(self, address, byte, nbytes):
        if not nbytes:
            return 0.0
        access = "F" + self.access("", address)
        self.states[address] = ["I", "I"]
        return nbytes / self.rate(access, nbytes)

    def call_memmove(self, target, source, nbytes):
        if not nbytes:
            return 0.0
        parts = sorted((nbytes / self.rate(self.access("L", source), nbytes),
                        nbytes / self.rate(self.access("S", target), nbytes)))  # fmt: skip
        self.copy(target, source, nbytes)
        return parts[1] + (1 - self.HIDDEN) * parts[0]

    def call_tfind(self, key, root, order):
        if root not in self.chains:
            return 0.0
        chain = self.chains[root]
        seconds = chain.lines * self.latencies[self.access("L", chain.address)]
        self.read(0, chain.address)
        return seconds

    # Preparations.
    def load(self, address, nbytes):
        if address == self.bench.water:
            for state in self.states.values():
                state[0] = "I"
                if nbytes == self.bench.flood:
                    state[1] = "I"
        self.read(0, address)

    def store(self, address, nbytes):
        self.write(0, address)

    def copy(self, target, source, nbytes):
        self.read(0, source)
        self.write(0, target)

    def follow(self, root):
        self.read(0, self.chains[root].address)

    timing = False

    def calls(self, function, arguments):
        self.timing = True
        seconds = self.FIXED + function(*arguments)
        self.timing = False
        return seconds * (1 + next(self.noise))

    def partner(self, cpu):
        class Partner:
            __enter__ = lambda here: here  # noqa: E731
            __exit__ = lambda here, *error: None  # noqa: E731
            load = lambda here, address, nbytes: self.read(1, address)  # noqa: E731
            store = lambda here, address, nbytes: self.write(1, address)  # noqa: E731
            copy = lambda here, target, source, nbytes: self.write(1, target)  # noqa: E731

        return Partner()


def test_a_synthetic_computer_is_recovered(monkeypatch):
    accesses = (*OWN, *WITH_PARTNER, *FROM_MEMORY, *CONTROLLED)
    rates = {access: 1e9 * (5 + 3.7 * i) for i, access in enumerate(accesses)}
    latencies = {access: 1e-9 * (2 + 11 * i) for i, access in enumerate(LATENCIES)}
    computer = SyntheticComputer(rates, latencies)

    class KnownBench(Bench):
        def __init__(self, *arguments, **options):
            super().__init__(*arguments, **options)
            computer.bench = self
            computer.chains = {chain.root: chain for chain in (self.near, self.wide)}

    # The buffers get their first contents before the computer knows which they are.
    computer.bench = type("", (), {"water": None})
    here = "pysmpi.calibrate.memory."
    monkeypatch.setattr(f"{here}Bench", KnownBench)
    monkeypatch.setattr(f"{here}CLibrary", lambda: computer)
    monkeypatch.setattr(f"{here}CacheControl", lambda line: computer)
    monkeypatch.setattr(f"{here}Partner", computer.partner)
    monkeypatch.setattr(f"{here}calls", computer.calls)
    monkeypatch.setattr(f"{here}pin", lambda cpu: None)
    ticks = []
    sizes = (16384, 65536, 1 << 20)
    found = measure(TWO, sizes, ticks.append)
    assert len(ticks) == steps(TWO, sizes) and found.uncontrolled == ""
    assert {access for access, _ in found.curves} == set(accesses)
    for (access, number), points in found.curves.items():
        assert number == (0 if access in WITH_PARTNER else -1)
        for nbytes, figure in points.items():
            assert figure.value == pytest.approx(computer.rate(access, nbytes), rel=0.05), access
    for (access, _), figure in found.latencies.items():
        assert figure.value == pytest.approx(latencies[access], rel=0.05), access
    assert set(found.latencies) == {(a, 0 if a in WITH_PARTNER else -1) for a in LATENCIES}
    for part in found.overlap.values():
        assert part == pytest.approx(computer.HIDDEN, abs=0.05)


def test_stores_past_the_caches_and_flushes():
    control = CacheControl(LINE)
    arena = SharedArena(1 << 14)
    address = arena.take(1 << 13)
    control.store_past(address, 7, 4096)
    control.flush(address, 0, 1 << 13)
    content = ctypes.string_at(address, 1 << 13)
    assert content == b"\7" * 4096 + b"\0" * 4096
    arena.close()


@pytest.mark.parametrize(
    ("module", "name", "answer", "reason"),
    [
        ("platform", "machine", lambda: "aarch64", "expected x86-64, got aarch64"),
        ("shutil", "which", lambda name: None, "expected a C compiler (cc, gcc, clang or $CC)"),
    ],
)
def test_without_control_of_caches_the_rest_is_measured(
    module, name, answer, reason, monkeypatch, tmp_path
):
    monkeypatch.setattr(f"pysmpi.calibrate.cache_control.{module}.{name}", answer)
    with pytest.raises(UsageError, match=re.escape(reason)):
        CacheControl(LINE)
    found = measured()
    found.uncontrolled = reason
    text = fragment(found, "here", 2e9)
    assert f"# Non-temporal stores (SNT) and flushes (FHM, FHS) are not measured: {reason}" in text
    (tmp_path / "here.yaml").write_text(text)
    node = load(tmp_path / "here.yaml").hosts[0].node
    assert node.throughput("SNT", -1, 4096) == node.throughput("SMI", -1, 4096)


def test_a_compiler_that_fails_is_named(monkeypatch):
    monkeypatch.setenv("CC", "false")
    with pytest.raises(UsageError, match="compiler for SSE2, got from false: status 1"):
        CacheControl(LINE)


def measured():
    found = Measured(TWO)
    sizes = (4096, 65536, 1 << 20)
    for access, number in (("LHM", -1), ("SHM", -1), ("SHS", 0), ("LMM", 0), ("SMM", 0),
                           ("LMI", -1), ("SMI", -1)):  # fmt: skip
        rate = 50e9 if access[1] == "H" else 10e9
        found.curves[access, number] = {n: Figure(rate, rate / 2, rate) for n in sizes}
    found.latencies = {("LHM", -1): Figure(2e-9, 2e-9, 3e-9), ("LMM", 0): Figure(5e-8, 5e-8, 6e-8),
                       ("LMI", -1): Figure(9e-8, 9e-8, 1e-7)}  # fmt: skip
    found.overlap = {4096: 1.0, 1 << 20: 0.25}
    return found


@pytest.fixture
def machine(tmp_path):
    path = tmp_path / "here.yaml"
    path.write_text(fragment(measured(), "here", 2e9, {"memory/library": "mpich"}))
    return path


def test_the_fragment_is_a_machine(machine):
    platform = load(machine)
    node = platform.hosts[0].node
    assert (node.cores, node.sockets, len(node.caches)) == (2, 1, 2)
    assert node.throughput("LMM", 0, 1 << 20) == pytest.approx(10e9)
    assert node.latency("LMM", 0) == pytest.approx(50e-9)
    assert node.overlap.at(1 << 20) == 0.25
    assert platform.config["memory/library"] == "mpich"
    assert machine.read_text().startswith("# Measured by pysmpi calibrate memory on ")


def test_the_pingpong_program_runs_on_the_fragment(machine):
    times = simulated(machine, 1 << 21, PATTERNS, OPERATIONS, (8, 100_000))
    assert len(times) == 16 and all(seconds > 0 for seconds in times.values())
    assert times["reuse", "pingpong", 100_000] > times["reuse", "pingpong", 8]
    assert times["fresh", "pingpong", 100_000] >= times["reuse", "pingpong", 100_000]


def test_parameters_of_a_library_are_found(machine, monkeypatch):
    hidden = {
        **library.FIXED, "memory/model": "cma", "memory/eager": "8192", "memory/overhead": "700ns",
        "memory/chunk-overhead": "0ns", "memory/single-copy-start": "2000ns",
        "memory/single-copy-page": "30ns",
    }  # fmt: skip
    monkeypatch.setattr(library, "POOL", 1 << 22)
    monkeypatch.setattr(library, "SIZES", (1024, 4096, 8192, 16384, 65536, 1 << 20))

    def pretend(cpus, pool, patterns, operations, sizes, steady, runs):
        return simulated(machine, pool, patterns, operations, sizes, hidden)

    monkeypatch.setattr(library, "really", pretend)
    found = library.explain(machine, (0, 1), lambda: True)
    assert found.worst_error < 0.02
    assert found.config["memory/model"] == "cma" and found.config["memory/eager"] == "8192"
    for name in ("memory/overhead", "memory/single-copy-start", "memory/single-copy-page"):
        assert float(found.config[name][:-2]) == pytest.approx(float(hidden[name][:-2]), rel=0.1)


def test_parameters_are_not_negative():
    class Part:
        names = ("a", "b")
        base = np.array([1.0, 1.0, 1.0])
        slopes = [np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])]

    target = np.array([3.0, 2.0, 1.2])  # falls, so b would be negative
    found, errors = library._fit(Part, Part, np.array([True, True, True]), target)
    assert found["b"] == 0.0 and found["a"] > 0.0
    assert np.abs(errors).max() < 1.0


def test_a_computer_that_is_never_as_it_was_is_given_up(monkeypatch):
    monkeypatch.setattr("pysmpi.calibrate.pingpong.PAUSE", 0.0)
    monkeypatch.setattr("pysmpi.calibrate.pingpong.mpiexec", lambda: "mpiexec")
    with pytest.raises(PysmpiError, match="the latency between the cores has changed"):
        really((0, 1), 1 << 20, ("reuse",), ("pingpong",), (8,), lambda: False, 2)


def test_errors_of_predictions():
    cases = [("reuse", "pingpong", 1), ("fresh", "pingpong", 1), ("fresh", "exchange", 1)]
    found = Comparison(dict.fromkeys(cases, 2.0), dict(zip(cases, (1.0, 2.0, 2.5), strict=True)))
    assert found.error(cases[0]) == -0.5
    assert found.summary() == (pytest.approx(0.25), 0.5)
    assert found.summary(pattern="fresh") == (0.125, 0.25)
    assert found.summary("fresh", "pingpong") == (0.0, 0.0)


@pytest.mark.parametrize("option", ["--mpi", "--check"])
def test_a_missing_mpiexec_is_found_before_anything_is_measured(option, monkeypatch, capfd):
    from pysmpi.cli.main import status_of

    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("pysmpi.calibrate.topology.find_topology", lambda: pytest.fail("began"))
    assert status_of(["calibrate", "memory", option]) == 2
    assert "expected the mpiexec of MPICH or Open MPI, got none" in capfd.readouterr().err


@two_cores
def test_a_small_measurement_from_the_command_line(tmp_path):
    path = tmp_path / "here.yaml"
    args = ["calibrate", "memory", "--max-size", "32KiB", "-o", str(path)]
    before = os.sched_getaffinity(0)
    result = CliRunner().invoke(command, args, standalone_mode=False)
    assert result.exception is None, result.exception
    assert os.sched_getaffinity(0) == before
    node = load(path).hosts[0].node
    assert node.cores == len(find_topology().cpus)
    assert all(rate > 0 for curve in node.curves.values() for rate in curve.values)
    # Even beside other work, memory is not as near as the first cache.
    assert node.latency("LMI") > node.latency("LHM")


def test_a_file_that_exists_is_kept(tmp_path, capsys):
    path = tmp_path / "here.yaml"
    path.write_text("mine")
    assert status_of(["calibrate", "memory", "-o", str(path)]) == 2
    assert "--force overwrites it" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--max-size", "1KiB"], "expected 4KiB to 1GiB"),
        (["--plot", "curves.txt"], "expected a name that ends in .png, .svg or .pdf"),
        (["-o", "/nowhere/at/all.yaml"], "no such directory"),
    ],
)
def test_bad_input_is_one_line(args, message, capsys):
    assert status_of(["calibrate", "memory", *args]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_curves_are_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need the extra plots")
    from pysmpi.calibrate.curves import draw

    draw(measured(), tmp_path / "curves.svg")
    assert "<svg" in (tmp_path / "curves.svg").read_text()


def test_a_report_as_json(capsys):
    from pysmpi.cli.calibrate_memory import _report

    case = ("reuse", "pingpong", 8)
    _report(Comparison({case: 2e-6}, {case: 1e-6}), True)
    found = json.loads(capsys.readouterr().out)
    assert found["mean_error"] == 0.5 and found["cases"][0]["bytes"] == 8
