"""mpi4py's own test suite, unmodified, in simulations: its verdict is the worst over all ranks.

A test here is a file of the suite on a number of ranks. It reports the failed tests of the file and
their ranks; at the end a line counts the suite's tests. All chosen files run in one or two
simulations, since ranks of a simulation go on after an error: a rank that waits for a failed rank
gets an error.

By default, `expectations.short` chooses between 1, 2 and 3 ranks. PYSMPI_ALL_SUITES=1 runs the
whole suite on 3 ranks, PYSMPI_SUITE_RANKS=1,2,3,5,8 on others. PYSMPI_SUITE_JOBS=1 runs all files
of a number of ranks in one process, one after the other. PYSMPI_SUITE_OPTIONS="selector=ompi" gives
options to the simulations, PYSMPI_INTERPRETED=1 takes the kernel as it is without a compiler, and
pytest's -k chooses files:

    PYSMPI_SUITE_RANKS=8 PYSMPI_SUITE_OPTIONS="selector=mpich4" pytest tests/mpi4py_suite -k cco
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from distribution import Unavailable, suite, without
from expectations import EXCLUDED, FILES, KNOWN_FAILURES, SKIPS, Part, shared_out, short

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
JOBS = int(os.environ.get("PYSMPI_SUITE_JOBS", min(2, os.cpu_count() or 1)))
CHOSEN = [name for name in FILES if f"test_{name}" not in EXCLUDED]
RANKS = os.environ.get("PYSMPI_SUITE_RANKS") or (
    "3" if os.environ.get("PYSMPI_ALL_SUITES") == "1" else ""
)
PARTS = [Part(int(word), tuple(CHOSEN)) for word in RANKS.split(",")] if RANKS else short(CHOSEN)
TIMEOUT = 3600 if RANKS else 600  # seconds, of all processes of a part
WORST = ("skipped", "passed", "started", "failed")
SHOWN = 12  # failed tests of a file that are shown with their traceback


@dataclass
class Verdict:
    """The result of one test: an outcome a rank, and the messages of those that failed."""

    outcomes: dict[int, str] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)

    def hear(self, rank: int, outcome: str, text: str) -> None:
        """Another record of a rank; a subtest that fails is followed by the test's own end."""
        if WORST.index(outcome) >= WORST.index(self.outcomes.get(rank, WORST[0])) or (
            self.outcomes.get(rank) == "started"
        ):
            self.outcomes[rank] = outcome
            self.texts[rank] = text

    def trouble(self, nprocs: int) -> str:
        """Its errors; empty if there are none."""
        for rank in range(nprocs):
            outcome = self.outcomes.get(rank)
            if outcome is None:
                return f"rank {rank} has not run it"
            if outcome == "started":
                return f"rank {rank} has not ended it"
            if outcome == "failed":
                return f"rank {rank}: {self.texts[rank].strip()}"
            if outcome == "skipped" and self.texts[rank] not in SKIPS:
                return f"rank {rank} skipped it: {self.texts[rank]}"
        return ""


@dataclass
class Run:
    """The reports of the ranks on each test, by file; and the output of the simulations."""

    verdicts: dict[str, dict[str, Verdict]] = field(default_factory=dict)
    log: str = ""
    seconds: float = 0.0  # of the processor

    def summary(self, nprocs: int) -> str:
        """The number of tests, and their outcomes on their worst rank."""
        total = {"passed": 0, "skipped": 0, "failed": 0}
        for verdicts in self.verdicts.values():
            for verdict in verdicts.values():
                if verdict.trouble(nprocs):
                    total["failed"] += 1
                elif "skipped" in verdict.outcomes.values():
                    total["skipped"] += 1
                else:
                    total["passed"] += 1
        said = ", ".join(f"{number} {outcome}" for outcome, number in total.items())
        on = f"mpi4py's suite on {nprocs} ranks, {len(self.verdicts)} files"
        return f"{on}: {said}; {self.seconds:.0f} s of CPU time"


def file_of(test: str) -> str:
    """The file of the suite that a test belongs to, by unittest's name for it."""
    for part in test.replace("(", " ").replace(")", " ").replace(".", " ").split():
        if part.startswith("test_") and part.removeprefix("test_") in FILES:
            return part.removeprefix("test_")
    return ""


def run_suite(folder: Path, part: Part, files: Sequence[str], place: Path) -> Run:
    """Run some files of a part of the suite."""
    exclusions = [word for name in EXCLUDED if "." in name
                  for word in ("-x", name.partition(".")[2])]  # fmt: skip
    paths = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), **dict(part.variables)}
    end = time.monotonic() + TIMEOUT
    started = []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for number, group in enumerate(shared_out(files, JOBS)):
        records, log = place / f"records-{number}.jsonl", place / f"log-{number}.txt"
        command = [sys.executable, str(HERE / "suite_run.py"), str(part.nprocs), str(records),
                   str(folder / "main.py"), "-q", *part.arguments, *exclusions]  # fmt: skip
        for name in group:
            command += ["-i", rf"^test_{name}\.py$"]
        with open(log, "w") as stream:
            process = subprocess.Popen(
                command, cwd=place, env=environment, stdout=stream, stderr=stream
            )
        started.append((process, records, log))
    run = Run()
    for process, records, log in started:
        try:
            process.wait(max(0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            run.log += f"ended after {TIMEOUT} s\n"
        run.log += log.read_text(errors="replace")
        for line in records.read_text().splitlines() if records.exists() else ():
            record: dict[str, Any] = json.loads(line)
            verdicts = run.verdicts.setdefault(file_of(record["test"]), {})
            verdict = verdicts.setdefault(record["test"], Verdict())
            verdict.hear(record["rank"], record["outcome"], record["text"])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    run.seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return run


@pytest.fixture(scope="session")
def folder() -> Path:
    """The unpacked suite."""
    try:
        return suite()
    except Unavailable as error:
        without("mpi4py's test suite", error)


@pytest.fixture(scope="session")
def runs() -> dict[Part, Run]:
    """The runs that there were."""
    return {}


def chosen_files(items: Sequence[Any], part: Part) -> list[str]:
    """The files of a part that this session is to run."""
    return [
        item.callspec.params["file"]
        for item in items
        if getattr(item, "originalname", "") == "test_file" and item.callspec.params["part"] == part
    ]


@pytest.mark.parametrize(
    ("part", "file"),
    [pytest.param(part, file, id=f"{part.nprocs}-{file}") for part in PARTS for file in part.files],
)
def test_file(
    part: Part,
    file: str,
    folder: Path,
    runs: dict[Part, Run],
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    summaries: list[str],
):
    nprocs = part.nprocs
    if part not in runs:
        files = chosen_files(request.session.items, part)
        place = tmp_path_factory.mktemp(f"suite-{nprocs}")
        runs[part] = run_suite(folder, part, files, place)
        summaries.append(runs[part].summary(nprocs))
    run = runs[part]
    verdicts = run.verdicts.get(file, {})
    assert verdicts, f"no test of test_{file}.py has run:\n{run.log[-3000:]}"
    troubles = {name: verdict.trouble(nprocs) for name, verdict in verdicts.items()}
    known = {name for name in KNOWN_FAILURES if file_of(name) == file}
    failed = {name: text for name, text in troubles.items() if text}
    report = [f"{name}: {text}" for name, text in failed.items() if name not in known]
    report += [f"{name} is listed as failing and passes" for name in known - failed.keys()]
    if report:
        more = f"\nand {len(report) - SHOWN} more" if len(report) > SHOWN else ""
        pytest.fail("\n\n".join(report[:SHOWN]) + more, pytrace=False)


def test_every_file_is_in_one_part() -> None:
    assert sorted(name for part in short(CHOSEN) for name in part.files) == sorted(CHOSEN)


def test_all_files_are_known(folder: Path):
    found = sorted(path.stem.removeprefix("test_") for path in folder.glob("test_*.py"))
    assert found == sorted(FILES)


@pytest.mark.parametrize("name", [name for name in EXCLUDED if "." in name])
def test_what_is_left_out_exists(name: str, folder: Path):
    module, _, rest = name.partition(".")
    kind, _, method = rest.partition(".")
    source = (folder / f"{module}.py").read_text()
    assert f"class {kind}(" in source and f"def {method}(" in source
