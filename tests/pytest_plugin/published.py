"""`python -m tests.pytest_plugin.published`: published test suites, under MPICH and on ranks.

Each suite runs from its source distribution, unchanged, twice with each version of pytest: under
`mpiexec -n N python -m pytest`, and in one process with pysmpi's plugin. The outcomes are compared
test by test. Environments are those of `versions.py`; packages that a suite needs are in folders of
their own, which are the same for all versions. MPICH's outcomes are kept in the cache.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.packages.environments import Environments, NoNetwork, cache_folder
from tests.packages.running import SETTINGS
from tests.pytest_plugin.versions import environment

# The last patch of each minor version that the plugin supports, and the first of two of them.
VERSIONS = ("8.0", "8.1", "8.2", "8.3", "8.4", "9.0.0", "9.0", "9.1.0", "9.1", "9.2")
TIMEOUT = 300  # seconds of one run
# Ranks that wait for one that has failed do not end: its report is there, theirs never will be.
PATIENCE = 20  # seconds after the first report


@dataclass(frozen=True)
class Suite:
    """The tests of a published package."""

    package: str
    version: str
    tests: str  # pytest's arguments, in the unpacked source distribution
    ranks: tuple[int, ...] = (3,)
    needs: tuple[str, ...] = ()  # requirements of pip, without those that they have themselves
    path: str = "."  # the folder of its modules
    plugin: str = ""  # a plugin of pytest that the suite needs under mpiexec
    marked: bool = False  # whether its marks say on how many ranks a test runs
    # Patterns of names of tests whose outcomes differ, with the reasons.
    different: Mapping[str, str] = field(default_factory=dict)


WORKERS = (
    "the worker ranks stay in their first test until rank 0 exits, while rank 0 runs the others; "
    "here all ranks end a test before the next one begins"
)
ARRAYS = ("cunumpy==0.6.3", "maybempi==0.1.2", "array-api-compat==1.16.0")
UNITS = "src/mpiarray/tests/unit/test_"

SUITES = (
    Suite("mpi-list", "0.4.0", "tests -o addopts=", path="src"),
    Suite("mpiplus", "0.0.3", "mpiplus/tests"),
    Suite("pyske", "0.1.1", "pyske/test/list pyske/test/tree"),
    Suite("mpiarray", "0.2.1", f"{UNITS}layout.py {UNITS}redistribute.py {UNITS}boundary.py "
          f"{UNITS}neighbourhood.py", ranks=(2,), needs=ARRAYS, path="src"),
    Suite("mpiparticles", "0.1.0", "src/mpiparticles/tests", needs=(*ARRAYS, "mpiarray==0.2.1"),
          path="src"),
    Suite("ezmpi", "0.1.0", "tests", needs=("dill==0.4.1",), path="src", plugin="pytest-mpi==0.6",
          different={"test_integration": WORKERS}),
    Suite("mpi-pytest", "2026.0", "tests", (1, 2, 3), plugin="mpi-pytest==2026.0", marked=True),
    # Its conftest.py stops the session with pytest 9.2, on both sides.
    Suite("pylops-mpi", "0.8.0", "tests/test_blockdiag.py tests/test_linearop.py",
          needs=("pylops==2.8.0", "pyproximal==0.13.0"), plugin="pytest-mpi==0.6"),
    Suite("numpi", "0.18.1", "test/Tools test/test_fft.py", ranks=(2,), needs=ARRAYS[2:]),
    Suite("anamnesis", "1.0.4", "anamnesis -o addopts=", ranks=(2,), needs=("h5py==3.16.0",)),
    Suite("shift-fft", "1.1.1", "tests/mpi_tests", needs=("numba==0.68.1", "llvmlite==0.50.0")),
)  # fmt: skip


@dataclass
class Outcomes:
    """The outcome of each test on one side, and what went wrong with the whole."""

    tests: dict[str, str]
    seconds: float  # of the processors
    said: str
    trouble: str = ""

    def summary(self) -> str:
        """Numbers of tests by outcome."""
        counts = Counter(self.tests.values())
        return self.trouble or ", ".join(f"{counts[one]} {one}" for one in sorted(counts))


def compare(
    suite: Suite, version: str, renew: bool = False
) -> tuple[Outcomes, Outcomes, list[str]]:
    """A suite under MPICH and with the plugin; the differences without a reason."""
    python = environment(version)
    mpich = None if renew else _kept(suite, version)
    if mpich is None:
        mpich = run(suite, python, mpich=True)
        _keep(suite, version, mpich)
    ours = run(suite, python, mpich=False)
    return mpich, ours, differences(suite, mpich, ours)


def differences(suite: Suite, mpich: Outcomes, ours: Outcomes) -> list[str]:
    """One line for each test whose outcome differs and has no reason in the list."""
    lines = []
    for name in sorted({*mpich.tests, *ours.tests}):
        pair = mpich.tests.get(name, "not run"), ours.tests.get(name, "not run")
        if pair[0] != pair[1] and not any(re.search(one, name) for one in suite.different):
            lines.append(f"{name}: MPICH {pair[0]}, pysmpi {pair[1]}")
    if mpich.trouble != ours.trouble:
        lines.append(f"all: MPICH {mpich.trouble or 'ends'}, pysmpi {ours.trouble or 'ends'}")
    return lines


def run(suite: Suite, python: Path, mpich: bool) -> Outcomes:
    """The outcomes of a suite on one side."""
    total = Outcomes({}, 0.0, "")
    for ranks in suite.ranks if mpich else suite.ranks[-1:]:
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            shutil.copytree(source(suite), folder / "source", symlinks=True)
            (folder / "home").mkdir()
            part = _run(suite, python, mpich, ranks, folder)
        total.tests.update(part.tests)
        total.seconds += part.seconds
        total.said += part.said
        total.trouble = total.trouble or part.trouble
    return total


def _run(suite: Suite, python: Path, mpich: bool, ranks: int, folder: Path) -> Outcomes:
    needs = [*suite.needs, *([suite.plugin] if mpich and suite.plugin else [])]
    paths = [folder / "source" / suite.path, *map(library, needs)]
    settings = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    settings |= SETTINGS
    settings["LD_LIBRARY_PATH"] = str(Path(sysconfig.get_path("data")) / "lib")
    settings |= {"PYTHONPATH": os.pathsep.join(map(str, paths)), "HOME": str(folder / "home")}
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly",
               "-p", "no:asyncio",
               "--color=no", f"--junitxml={folder}/results.$PMI_RANK.xml"]  # fmt: skip
    scripts = sysconfig.get_path("scripts")
    settings["PATH"] = f"{scripts}{os.pathsep}{settings['PATH']}"
    expected = 1
    if mpich:
        command += ["-p", "no:pysmpi"]
        command = [str(Path(scripts) / "mpiexec"), "-n", str(ranks), *command]
        expected = ranks
        if suite.marked:
            command += ["-m", f"parallel[{ranks}]"]
        elif suite.plugin:
            command += ["--with-mpi"]
    elif not suite.marked:
        command += ["--with-mpi", "--mpi-ranks", str(ranks)]
    said, seconds, ended = _call([*command, *shlex.split(suite.tests)], settings, folder, expected)
    reports = sorted(folder.glob("results.*.xml"))
    tests = merged([read(path, suite) for path in reports])
    trouble = ""
    if len(reports) < expected:
        trouble = "does not end" if not ended else "gives no report"
    return Outcomes(tests, seconds, said, trouble)


def read(path: Path, suite: Suite) -> list[tuple[str, str]]:
    """The tests that one process of pytest reports, and their outcomes."""
    try:
        root = ElementTree.parse(path).getroot()
    except ElementTree.ParseError:
        return []
    outcomes = []
    for case in root.iter("testcase"):
        tags = {child.tag for child in case}
        name = re.sub(
            r"0x[0-9a-f]{6,}", "<address>", f"{case.get('classname')}::{case.get('name')}"
        )
        kinds = {"failure": "failed", "error": "error", "skipped": "skipped"}
        outcome = next((kinds[tag] for tag in kinds if tag in tags), "passed")
        outcomes.append((_name(name, suite), outcome))
    return outcomes


def _name(name: str, suite: Suite) -> str:
    """The name of a test without what only one side writes into it."""
    name = re.sub(r"\[Rank \d+\]", "", name)  # from pylops-mpi's conftest.py
    return name if suite.marked else re.sub(r"\[ranks=\d+\]|-ranks=\d+(?=\])", "", name)


def merged(reports: Sequence[Sequence[tuple[str, str]]]) -> dict[str, str]:
    """The outcome of each test on all ranks: a test fails that fails in one of them."""
    order = ("failed", "error", "passed", "skipped")
    tests: dict[str, str] = {}
    for name, outcome in itertools.chain.from_iterable(reports):
        tests[name] = min(tests.get(name, outcome), outcome, key=order.index)
    return tests


def _call(
    command: Sequence[str], settings: Mapping[str, str], folder: Path, expected: int
) -> tuple[str, float, bool]:
    """The output of a command, its processor time (s), and whether it ended by itself."""
    with open(folder / "said", "wb+") as said:
        process = subprocess.Popen(
            command, cwd=folder / "source", env=dict(settings), stdin=subprocess.DEVNULL,
            stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        end = time.monotonic() + TIMEOUT
        seconds, ended = 0.0, False
        while time.monotonic() < end:
            pid, status, used = os.wait4(process.pid, os.WNOHANG)
            if pid:
                process.returncode = os.waitstatus_to_exitcode(status)
                seconds, ended = used.ru_utime + used.ru_stime, True
                break
            if 0 < len(list(folder.glob("results.*.xml"))) < expected:
                end = min(end, time.monotonic() + PATIENCE)
            time.sleep(0.05)
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        said.seek(0)
        return said.read().decode(errors="replace"), seconds, ended


def source(suite: Suite) -> Path:
    """The unpacked source distribution."""
    return Environments(cache_folder()).source(suite.package, suite.version, Path(sys.executable))


def library(requirement: str) -> Path:
    """A folder with one package and nothing that it needs."""
    folder = cache_folder() / "libraries" / re.sub(r"\W+", "-", requirement)
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            done = subprocess.run(
                [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check",
                 "--no-deps", "--target", f"{scratch}/library", requirement],
                capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=TIMEOUT,
            )  # fmt: skip
            if done.returncode:
                raise NoNetwork(f"cannot install {requirement}: {done.stderr[-800:]}")
            Path(f"{scratch}/library").rename(folder)
    return folder


def _store(suite: Suite, version: str) -> Path:
    digest = hashlib.sha256(repr((suite, version)).encode()).hexdigest()[:16]
    return cache_folder() / "outcomes" / f"{suite.package}-{version}-{digest}.json"


def _kept(suite: Suite, version: str) -> Outcomes | None:
    path = _store(suite, version)
    return Outcomes(**json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None


def _keep(suite: Suite, version: str, outcomes: Outcomes) -> None:
    path = _store(suite, version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(vars(outcomes)), encoding="utf-8")


def main() -> int:
    """Run the matrix; the exit status is 1 if an outcome differs without a reason."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.pytest_plugin.published",
        description="Run published test suites under MPICH and with pysmpi's plugin of pytest, "
        "and compare the outcome of each test.",
    )
    packages = " ".join(suite.package for suite in SUITES)
    parser.add_argument("suites", nargs="*", metavar="SUITE",
                        help=f"packages (default: {packages})")  # fmt: skip
    parser.add_argument("--pytest", action="append", metavar="VERSION",
                        help=f"a version of pytest (default: {' '.join(VERSIONS)})")  # fmt: skip
    parser.add_argument("--renew", action="store_true", help="run MPICH again")
    parser.add_argument("--verbose", action="store_true", help="show what pytest prints")
    options = parser.parse_args()
    wrong = 0
    suites = [one for one in SUITES if not options.suites or one.package in options.suites]
    for version in options.pytest or VERSIONS:
        for suite in suites:
            mpich, ours, lines = compare(suite, version, options.renew)
            wrong += bool(lines)
            print(f"{suite.package} {suite.version}, pytest {version}: "
                  f"{'DIFFERENT' if lines else 'equal'}; MPICH {mpich.summary()} "
                  f"({mpich.seconds:.1f} s), pysmpi {ours.summary()} ({ours.seconds:.1f} s)",
                  flush=True)  # fmt: skip
            for line in lines[:20]:
                print(f"    {line}")
            if options.verbose:
                print("MPICH:", mpich.said, "pysmpi:", ours.said, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
