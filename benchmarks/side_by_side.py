"""The common part of the benchmarks: run commands, measure them, judge their ratio, print it.

Every measurement is a whole command from its start to its end, as a user meets it, so a
simulator's own start-up counts.  Commands that are compared take turns, so that a busy machine
is busy for both; they are judged by their fastest run, which other work on the machine disturbs
least. The median stands beside it, and the ratio of processor times, which hardly depends on other
work of the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOP = HERE.parent

# Hosts with a full-duplex link of 1 Gbit/s, a limited backplane port and a memory loopback: a
# platform that both simulators read.
CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="flat" prefix="n-" suffix="" radical="0-{last}" speed="3.5Gf" bw="125MBps" lat="24us"
           sharing_policy="SPLITDUPLEX" limiter_link="187.5MBps"
           loopback_bw="6GBps" loopback_lat="1.5ns"/>
</platform>
"""

# Python compiles all modules anew at each start where this is set, as users' machines do not.
_NO_CACHE = "PYTHONDONTWRITEBYTECODE"


class BenchmarkError(Exception):
    """A measured command failed, or does not exist."""


@dataclass
class Measurement:
    """The runs of one command: wall and processor seconds of each, peak resident bytes, output."""

    command: list[str]
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    peak: int = 0
    output: str = ""
    statuses: tuple[int, ...] = (0,)  # exit statuses of a run that counts

    @property
    def fastest(self) -> float:
        """Wall seconds of the fastest run."""
        return min(self.wall)

    @property
    def median(self) -> float:
        """Wall seconds of the median run."""
        return statistics.median(self.wall)

    def run(self, timeout: float = 1800.0) -> None:
        """Run the command once more; its standard output must come with a status that counts."""
        with Running(self) as running:
            if not running.wait(timeout):
                raise BenchmarkError(f"stopped after {timeout:g} s: {self.shown}")

    @property
    def shown(self) -> str:
        """The command as one line."""
        return " ".join(self.command)

    def figure(self, name: str) -> float:
        """The number that the program printed as ``NAME VALUE``."""
        for line in self.output.splitlines():
            words = line.split()
            if len(words) >= 2 and words[0] == name:
                return float(words[1])
        raise BenchmarkError(f"no line '{name} ...' in the output of {self.shown}")

    def record(self) -> dict[str, object]:
        """The measurement for the JSON file."""
        known = asdict(self)
        known.pop("output")
        return known | {"fastest": self.fastest, "median": self.median}


class Running:
    """One run of a measurement, which can be held; at its end the measurement gets its times.

    Leaving the context kills a run that has not ended.
    """

    def __init__(self, measurement: Measurement) -> None:
        self.measurement = measurement
        self.wall = 0.0  # seconds in which it was not held
        self.ended = False

    def __enter__(self) -> Running:
        self._out = tempfile.TemporaryFile("w+")
        self._err = tempfile.TemporaryFile("w+")
        # In a session of its own, so that its child processes are held with it.
        self._process = subprocess.Popen(
            self.measurement.command,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
            env={name: value for name, value in os.environ.items() if name != _NO_CACHE},
        )
        return self

    def __exit__(self, *_: object) -> None:
        if not self.ended:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._out.close()
        self._err.close()

    def wait(self, seconds: float) -> bool:
        """Let it run for some seconds; return whether it has ended."""
        begun = time.perf_counter()
        while True:
            # wait4 gives the peak memory of this one command and of its children.
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            elapsed = time.perf_counter() - begun
            if pid:
                self.wall += elapsed
                self._end(status, usage)
                return True
            if elapsed > seconds:
                self.wall += elapsed
                return False
            time.sleep(0.002)

    def hold(self) -> None:
        """Stop it until `go_on`."""
        os.killpg(self._process.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Continue it."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def _end(self, status: int, usage: resource.struct_rusage) -> None:
        self.ended = True
        code = self._process.returncode = os.waitstatus_to_exitcode(status)
        measurement = self.measurement
        measurement.wall.append(self.wall)
        measurement.processor.append(usage.ru_utime + usage.ru_stime)
        # Linux counts in KiB, macOS in bytes.
        unit = 1 if sys.platform == "darwin" else 1024
        measurement.peak = max(measurement.peak, usage.ru_maxrss * unit)
        self._out.seek(0)
        self._err.seek(0)
        measurement.output = self._out.read()
        if code not in measurement.statuses:
            last = self._err.read().strip().splitlines()[-5:]
            raise BenchmarkError(f"exit status {code}: {measurement.shown}\n  " + "\n  ".join(last))


def take_turns(measurements: Sequence[Measurement], repeats: int) -> None:
    """Run each command `repeats` times, one after the other."""
    for _ in range(repeats):
        for measurement in measurements:
            measurement.run()


def take_slices(measurements: Sequence[Measurement], seconds: Sequence[float]) -> None:
    """Run each command once, a slice of so many seconds at a time, while the others are held.

    A machine that slows down for a minute then does so for all of them, in proportion.
    """
    with ExitStack() as stack:
        runs: list[Running | None] = [None] * len(measurements)
        while any(run is None or not run.ended for run in runs):
            for index, (run, length) in enumerate(zip(runs, seconds, strict=True)):
                if run is None:
                    run = runs[index] = stack.enter_context(Running(measurements[index]))
                elif run.ended:
                    continue
                else:
                    run.go_on()
                if not run.wait(length):
                    run.hold()


def need(command: str, hint: str) -> str:
    """The path of `command`, or a BenchmarkError with a hint where to get it."""
    found = shutil.which(command)
    if found is None:
        raise BenchmarkError(f"{command}: not found on this machine; {hint}")
    return found


def pysmpi(*arguments: object) -> list[str]:
    """A `pysmpi run` command without compute time, by the Python that runs the benchmark."""
    fixed = [sys.executable, "-m", "pysmpi", "run", "--compute", "none"]
    return fixed + [str(argument) for argument in arguments]


def refuse_interpreted() -> None:
    """Raise BenchmarkError if the kernel that would be measured is interpreted, and nobody asked.

    With PYSMPI_INTERPRETED=1 the interpreted kernel is measured on purpose.
    """
    if os.environ.get("PYSMPI_INTERPRETED"):
        return
    done = subprocess.run(
        [sys.executable, "-m", "pysmpi", "--version"], capture_output=True, text=True
    )
    if "kernel interpreted" in done.stdout:
        raise BenchmarkError(
            f"{done.stdout.strip()}: this kernel is several times slower. "
            "`pip install -e .` compiles the one of this clone; PYSMPI_INTERPRETED=1 measures it "
            "as it is"
        )


def write_cluster(directory: Path, hosts: int) -> tuple[Path, Path]:
    """Write a cluster of `hosts` machines: (platform file, host file)."""
    machine, hostfile = directory / "cluster.xml", directory / "hosts.txt"
    machine.write_text(CLUSTER.format(last=hosts - 1))
    hostfile.write_text("".join(f"n-{index}\n" for index in range(hosts)))
    return machine, hostfile


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A plain table: the first column to the left, the others to the right."""
    lines = [list(headings), *map(list, rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(headings))]

    def shown(line: Sequence[str]) -> str:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([shown(lines[0]), rule, *(shown(line) for line in lines[1:])])


def parser(description: str, repeats: int) -> argparse.ArgumentParser:
    """The options that all benchmarks have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--repeats", type=int, default=repeats, help="runs of each command")
    made.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    return made


def machine() -> dict[str, object]:
    """The computer on which the figures were measured."""
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "processor": _processor_name(),
    }


def _processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor()


def write_json(path: Path | None, name: str, rows: list[dict[str, object]]) -> None:
    """Write the rows and the computer of the measurement, if a file is wanted."""
    if path is not None:
        record = {"benchmark": name, "machine": machine(), "rows": rows}
        path.write_text(json.dumps(record, indent=2) + "\n")


def run(main: Callable[[], int]) -> None:
    """Run a benchmark's main: exit status 0, 1 for a missed figure, 2 when it could not run."""
    try:
        if "-h" not in sys.argv and "--help" not in sys.argv:
            refuse_interpreted()
        sys.exit(main())
    except BenchmarkError as error:
        print(f"{Path(sys.argv[0]).name}: {error}", file=sys.stderr)
        sys.exit(2)
