"""Runs an entry under real MPICH and under pysmpi, and compares."""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import compare
from .entries import HERE, Entry, Run
from .environments import Environments

# One thread a rank in libraries that have their own; no screen; the same order of sets in all
# ranks and on both sides.
SETTINGS = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "NUMEXPR_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1",
    "RAYON_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONHASHSEED": "0",
    "TZ": "UTC", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "dumb",
    "PYTHONDONTWRITEBYTECODE": "1",
    # MPICH's transport prints warnings of its own at the end of some programs.
    "UCX_LOG_LEVEL": "error",
}  # fmt: skip
KEPT = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "PIP_INDEX_URL", "SSL_CERT_FILE")

# MPICH's launcher now and then kills the last ranks of a job whose ranks end one by one, and
# gives status 9; the results are then those of another try.
ATTEMPTS = 3

# If other processes use more than this part of a processor during a run, its time does not count.
OTHERS = 0.25

# With these, pytest writes a report a rank, and nothing that depends on the time or the place.
PYTEST = ["-q", "-p", "no:cacheprovider", "--junitxml=results.$PMI_RANK.xml"]


@dataclass
class Side:
    """The outcome of one run under MPICH or under pysmpi."""

    status: int | None  # None: it did not end in time
    seconds: float
    output: str
    errors: str
    # The number of ranks that reported each outcome of each test: `name: passed` -> 4.
    tests: dict[str, int] = field(default_factory=dict)
    reports: int = 0
    files: dict[str, str] = field(default_factory=dict)
    disturbed: bool = False  # whether others used the machine meanwhile
    processor: float = 0.0  # seconds of all its processes; 0: unknown


@dataclass
class Result:
    """The outcome of the comparison of an entry."""

    package: str
    version: str
    equal: bool
    mpich: str
    pysmpi: str
    seconds: tuple[float, float]
    difference: str | None = None
    message: str | None = None  # pysmpi's own, one line
    invalid: str | None = None  # the reason why MPICH's run is no reference
    reused: bool = False  # MPICH's run is an earlier one: its seconds are not comparable
    disturbed: bool = False  # others used the machine meanwhile: nor are these
    # Seconds that the processors have worked for each side; 0: unknown.
    processor: tuple[float, float] = (0.0, 0.0)
    # The ratios of these times, if they come from the page of results, which rounds the times.
    ratios: tuple[float, float] = (0.0, 0.0)

    @property
    def comparable(self) -> bool:
        """Whether its wall times can be compared with each other."""
        return all(self.seconds) and not (self.invalid or self.reused or self.disturbed)

    def data(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def run_entry(
    entry: Entry, environments: Environments, path: Path, reuse: bool = False, only: bool = False
) -> Result:
    """Run all of an entry's programs on both sides, one after the other.

    With `reuse`, MPICH's earlier result of the same run is used; with `only`, pysmpi is left out.
    """
    seconds, processor = [0.0, 0.0], [0.0, 0.0]
    summaries: tuple[list[str], list[str]] = ([], [])
    difference: str | None = None
    message: str | None = None
    invalid: str | None = None
    reused = disturbed = False
    for number, run in enumerate(entry.runs, 1):
        folder = environments.folder / "work" / entry.package / str(number)
        mpich = _reused(entry, run, environments, number) if reuse else None
        reused = reused or mpich is not None
        if mpich is None:
            for _ in range(ATTEMPTS):
                mpich = _side(entry, run, environments, path, folder, simulated=False)
                if mpich.status != signal.SIGKILL:
                    break
            assert mpich is not None
            _keep(entry, run, environments, number, mpich)
        disturbed = disturbed or mpich.disturbed
        seconds[0] += mpich.seconds
        processor[0] += mpich.processor
        summaries[0].append(_summary(run, mpich))
        problem = _invalid(run, mpich)
        if problem is not None:
            invalid = f"run {number}: {problem}"
            summaries[1].append("not run")
            break
        if only:
            continue
        pysmpi = _side(entry, run, environments, path, folder, simulated=True)
        disturbed = disturbed or pysmpi.disturbed
        seconds[1] += pysmpi.seconds
        processor[1] += pysmpi.processor
        summaries[1].append(_summary(run, pysmpi))
        found = _difference(run, mpich, pysmpi)
        if found is not None and difference is None:
            difference = f"run {number}: {found}" if len(entry.runs) > 1 else found
            message = _message(pysmpi)
    return Result(
        entry.package, entry.version, difference is None and invalid is None,
        _together(summaries[0]), _together(summaries[1]), (seconds[0], seconds[1]),
        difference, message, invalid, reused, disturbed, (processor[0], processor[1]),
    )  # fmt: skip


def _key(entry: Entry, run: Run) -> str:
    own = HERE / run.program if run.program is not None else None
    text = own.read_text(encoding="utf-8") if own is not None and own.exists() else ""
    return hashlib.sha256(f"{entry.requirements}{run}{text}".encode()).hexdigest()


def _keep(entry: Entry, run: Run, environments: Environments, number: int, side: Side) -> None:
    path = environments.folder / "mpich" / f"{entry.package}-{number}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"key": _key(entry, run), **asdict(side)}), encoding="utf-8")


def _reused(entry: Entry, run: Run, environments: Environments, number: int) -> Side | None:
    path = environments.folder / "mpich" / f"{entry.package}-{number}.json"
    if not path.exists():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    return Side(**data) if data.pop("key") == _key(entry, run) else None


# The first line of a finding, and the lines of the program and of libraries that it names.
_REPORTED = re.compile(r"PSM\d+|  ranks? \d|    made by ")


def findings(entry: Entry, environments: Environments, path: Path) -> list[str]:
    """The findings of all checkers in an entry's programs, and the statuses of these."""
    found = []
    for number, run in enumerate(entry.runs, 1):
        folder = environments.folder / "work" / entry.package / str(number)
        side = _side(entry, run, environments, path, folder, True, ("--check", "all"))
        reported = [f"    {line}" for line in side.errors.splitlines() if _REPORTED.match(line)]
        found += [f"run {number}: status {side.status}, {side.seconds:.0f} s", *reported]
    return found


def command(run: Run, path: Path, simulated: bool, options: Sequence[str] = ()) -> list[str]:
    """The command that starts a run's ranks."""
    if run.program is not None:
        own = HERE / run.program
        what = [str(own) if own.exists() else run.program]
    elif run.module is not None:
        what = ["-m", run.module]
    elif run.code is not None:
        what = ["-c", run.code]
    else:
        what = ["-m", "pytest", *PYTEST, *(run.pytest or [])]
    what = [part.replace("$HERE", str(HERE)) for part in [*what, *run.args]]
    start = [str(path / "bin" / "pysmpi"), "run"] if simulated else [str(path / "bin" / "mpiexec")]
    start += ["-n", str(run.ranks), *options]
    if not simulated:
        start += ["-outfile-pattern", ".stdout.%r", "-errfile-pattern", ".stderr.%r",
                  str(path / "bin" / "python")]  # fmt: skip
    return start + what


def environ(run: Run, path: Path, home: Path, simulated: bool) -> dict[str, str]:
    """The environment of a run, the same on both sides, but for the libraries of MPICH."""
    settings = {name: os.environ[name] for name in KEPT if name in os.environ}
    settings["PATH"] = f"{path / 'bin'}{os.pathsep}{settings.get('PATH', os.defpath)}"
    if not simulated:
        paths = [str(path / "lib"), *settings.get("LD_LIBRARY_PATH", "").split(os.pathsep)]
        settings["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, paths))
    return {**settings, **SETTINGS, "HOME": str(home), **run.environ}


def _side(
    entry: Entry, run: Run, environments: Environments, path: Path, folder: Path, simulated: bool,
    options: Sequence[str] = (),
) -> Side:  # fmt: skip
    # The same folder on both sides, so that no path differs.
    shutil.rmtree(folder, ignore_errors=True)
    home = folder / "home"
    home.mkdir(parents=True)
    place = folder / "run"
    if entry.source:
        python = path / "bin" / "python"
        folder_of_source = environments.source(entry.package, entry.version, python)
        shutil.copytree(folder_of_source, place, symlinks=True)
    else:
        place.mkdir()
    place = place / run.directory
    with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
        begun, busy = time.perf_counter(), _busy_with_others()
        process = subprocess.Popen(
            command(run, path, simulated, options), cwd=place,
            env=environ(run, path, home, simulated),
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
        )  # fmt: skip
        status, processor = _wait(process, run.timeout)
        seconds = time.perf_counter() - begun
        _end(process)
    disturbed = _busy_with_others() - busy > OTHERS * seconds
    output, errors = _text(folder / "stdout"), _text(folder / "stderr")
    for rank in range(run.ranks):
        output += _text(place / f".stdout.{rank}")
        errors += _text(place / f".stderr.{rank}")
    side = Side(status, seconds, output, errors, disturbed=disturbed, processor=processor)
    if run.pytest is not None:
        _read_reports(place, run, side)
    for pattern in run.files:
        for name in sorted(glob.glob(pattern, root_dir=place, recursive=True)):
            if (place / name).is_file():
                side.files[name] = _text(place / name)
    return side


def _busy_with_others() -> float:
    """The time (s) that processors have spent on other processes than this one and its children."""
    try:
        words = Path("/proc/stat").read_text().splitlines()[0].split()
    except OSError:
        return 0.0
    # user, nice, system; then idle, waiting for disks, interrupts, taken by other machines
    busy = sum(map(int, [*words[1:4], *words[6:9]])) / os.sysconf("SC_CLK_TCK")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return busy - sum(one.ru_utime + one.ru_stime for one in used)


def _wait(process: subprocess.Popen[bytes], timeout: float) -> tuple[int | None, float]:
    """The exit status, and the processor time (s) of the process and of all its descendants.

    The status is None if the process does not end within `timeout` seconds.
    """
    end = time.perf_counter() + timeout
    while time.perf_counter() < end:
        ended, status, used = os.wait4(process.pid, os.WNOHANG)
        if ended:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, used.ru_utime + used.ru_stime
        time.sleep(0.02)
    return None, 0.0


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the processes that a run has left behind."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        time.sleep(0.2)
    process.wait()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _read_reports(place: Path, run: Run, side: Side) -> None:
    """Each rank's report of pytest: the outcome of each test."""
    tests: Counter[str] = Counter()
    for rank in range(run.ranks):
        path = place / f"results.{rank}.xml"
        try:
            root = ElementTree.parse(path).getroot()
        except (OSError, ElementTree.ParseError):
            continue
        side.reports += 1
        for case in root.iter("testcase"):
            outcomes = sorted({child.tag for child in case} & {"failure", "error", "skipped"})
            name = f"{case.get('classname')}::{case.get('name')}"
            name = re.sub(compare.RULES["addresses"][0], "<address>", name)
            tests[f"{name}: {' and '.join(outcomes) or 'passed'}"] += 1
    side.tests = dict(tests)


def _invalid(run: Run, mpich: Side) -> str | None:
    """The reason why MPICH's run is no reference: it did not do what the entry says."""
    if mpich.status is None:
        return f"MPICH did not end within {run.timeout} s"
    right = mpich.status != 0 if run.status == "nonzero" else mpich.status == run.status
    if not right:
        last = [line for line in (mpich.errors + mpich.output).splitlines() if line.strip()]
        return f"MPICH's exit status is {mpich.status}: {last[-1][:200] if last else 'no output'}"
    for pattern in run.expect:
        if not re.search(pattern, mpich.output, re.MULTILINE):
            return f"MPICH's ranks print nothing that matches {pattern!r}"
    if run.pytest is not None:
        passed = sum(count for name, count in mpich.tests.items() if name.endswith(": passed"))
        if mpich.reports != run.ranks or passed < run.passes * run.ranks:
            return (f"{mpich.reports} of {run.ranks} ranks of MPICH's gave a report, "
                    f"{passed} tests passed")  # fmt: skip
    elif not compare.lines(mpich.output, run.only, run.ignore) and not mpich.files:
        return "MPICH's ranks print nothing to compare"
    return None


def _difference(run: Run, mpich: Side, pysmpi: Side) -> str | None:
    if pysmpi.status is None:
        return f"pysmpi does not end within {run.timeout} s"
    if run.pytest is not None:
        if pysmpi.reports != mpich.reports:
            return f"{pysmpi.reports} of {run.ranks} ranks end their tests"
        for name in {**mpich.tests, **pysmpi.tests}:
            one, other = mpich.tests.get(name, 0), pysmpi.tests.get(name, 0)
            if one != other:
                different = sum(mpich.tests.get(name, 0) != pysmpi.tests.get(name, 0)
                                for name in {**mpich.tests, **pysmpi.tests})  # fmt: skip
                return f"{name} in {other} ranks, MPICH {one} ({different} outcomes differ)"
    else:
        rules = (run.only, run.ignore, run.replace)
        found = compare.difference(
            compare.lines(mpich.output, *rules), compare.lines(pysmpi.output, *rules),
            run.tolerance, run.absolute,
        )  # fmt: skip
        if found is not None:
            return found
    if pysmpi.status != mpich.status:
        return f"exit status {pysmpi.status}, MPICH {mpich.status}"
    for name in {**mpich.files, **pysmpi.files}:
        if name not in mpich.files or name not in pysmpi.files:
            return f"only {'MPICH' if name in mpich.files else 'pysmpi'} writes {name}"
        rules = (run.only, run.ignore, run.replace)
        found = compare.difference(
            compare.lines(mpich.files[name], *rules), compare.lines(pysmpi.files[name], *rules),
            run.tolerance, run.absolute,
        )  # fmt: skip
        if found is not None:
            return f"{name}: {found}"
    return None


def _message(side: Side) -> str | None:
    """The line of pysmpi that names the error, else the last line of errors."""
    said = [line.strip() for line in side.errors.splitlines() if line.strip()]
    for line in said:
        if re.match(r"(pysmpi: |PSM\d+|Error: )", line):
            return re.sub(r" \(/[^)]*\)$", "", line)[:300]  # without the path of a file
    last = [line for line in said if re.match(r"[\w.]+(Error|Exception|Exit)\b", line)]
    return (last[-1] if last else said[-1])[:300] if said else None


def _summary(run: Run, side: Side) -> str:
    """A few words: `ok`, or for pytest the number of tests of each outcome."""
    if side.status is None:
        return "no end"
    if run.pytest is None:
        return "ok" if side.status == 0 else f"status {side.status}"
    counts: Counter[str] = Counter()
    for name, count in side.tests.items():
        counts[name.rsplit(": ", 1)[1]] += count
    words = {"passed": "passed", "failure": "failed", "skipped": "skipped"}
    return ", ".join(f"{count} {words.get(kind, kind)}" for kind, count in sorted(
        counts.items(), key=lambda one: (one[0] != "passed", one[0])) if kind != "skipped"
    ) or f"status {side.status}"  # fmt: skip


def _together(summaries: list[str]) -> str:
    return "; ".join(f"{count} × {text}" if count > 1 else text
                     for text, count in Counter(summaries).items())  # fmt: skip
