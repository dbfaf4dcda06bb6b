"""Reads the programs of `programs/` and runs them under all checkers.

A file holds programs of one class:

    #% name  ranks=2  code=PSM114
    if rank == 0:
        comm.send(1, dest=1)  # error
        #: pass

The lines marked `# error` are those that the report must name; with `# error 1`, it names them for
rank 1. `#:` lines replace the line before them in the corrected twin, and `#+` lines are added to
it. Several codes are separated by bars. A program with `code=none` is correct, and has no twin;
`level=funneled` sets its thread level. `MPI`, numpy as `np`, and `comm`, `rank`, `size` are given.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pysmpi

HERE = Path(__file__).parent / "programs"
HEAD = """import numpy as np
from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
"""


@dataclass
class Bug:
    """One program: its class, its text, and the expected codes; none if it is correct."""

    kind: str
    name: str
    ranks: int
    codes: frozenset[str]
    text: str
    lines: dict[int, int | None] = field(default_factory=dict)  # with their rank, if it is given

    @property
    def wrong(self) -> bool:
        """Whether the program has an error."""
        return bool(self.codes)


@dataclass
class Verdict:
    """The outcome of a run of a program."""

    bug: Bug
    found: bool
    right: bool  # the class
    named: bool  # all lines at fault
    seconds: float  # of this process
    report: str


def _head(level: str) -> str:
    """The lines before a program; `level` is its thread level, if it has one of its own."""
    return f'import mpi4py\n\nmpi4py.rc.thread_level = "{level}"\n{HEAD}' if level else HEAD


_MARK = re.compile(r"# error(?: (\d+))?$", re.MULTILINE)


def _wrong(lines: list[str], head: str) -> tuple[str, dict[int, int | None]]:
    kept = [line.rstrip() for line in lines if not line.lstrip().startswith(("#:", "#+"))]
    text = head + "\n".join(kept) + "\n"
    marks = {i: _MARK.search(line) for i, line in enumerate(text.splitlines(), 1)}
    return text, {i: mark[1] and int(mark[1]) for i, mark in marks.items() if mark}


def _corrected(lines: list[str], head: str) -> str:
    kept: list[str] = []
    replaced = False
    for line in lines:
        mark = line.lstrip()[:2]
        if mark in ("#:", "#+"):
            if mark == "#:" and not replaced:
                kept.pop()
                replaced = True
            indent = line[: len(line) - len(line.lstrip())]
            rest = line.lstrip()[2:].removeprefix(" ")
            if rest.strip():
                kept.append(indent + rest)
        else:
            replaced = False
            kept.append(line)
    return head + _MARK.sub("", "\n".join(kept)) + "\n"


def programs() -> Iterator[Bug]:
    """All programs, each wrong one followed by its corrected twin."""
    for path in sorted(HERE.glob("*.txt")):
        for part in re.split(r"^#% ", path.read_text(), flags=re.M)[1:]:
            head, _, body = part.partition("\n")
            name, *options = head.split()
            given = dict(option.split("=") for option in options)
            ranks = int(given.get("ranks", 2))
            lines = body.rstrip().splitlines()
            codes = frozenset(given["code"].split("|")) - {"none"}
            front = _head(given.get("level", ""))
            text, marked = _wrong(lines, front)
            if codes:
                assert marked, f"{path.name}: {name} marks no line"
                yield Bug(path.stem, name, ranks, codes, text, marked)
                twin = _corrected(lines, front)
                yield Bug(path.stem, f"{name}, corrected", ranks, frozenset(), twin)
            else:
                yield Bug(path.stem, name, ranks, codes, text)


def judge(bug: Bug, directory: Path) -> Verdict:
    """Run a program under all checkers, and compare the report with the expected one."""
    path = directory / "program.py"
    path.write_text(bug.text)
    begun = time.process_time()
    with contextlib.chdir(directory):  # some open files
        try:
            result = pysmpi.run(path, nprocs=bug.ranks, check="all", compute="none")
        except pysmpi.ProgramError as error:
            result = error.result
    seconds = time.process_time() - begun
    report = result.error or ""
    named: dict[int, set[int]] = {}
    for row in report.splitlines():
        ranks = _ranks(row)
        for number in re.findall(r"program\.py(?:\"?, line |:)(\d+)", row):
            named.setdefault(int(number), set()).update(ranks)
    all_named = all(
        line in named and (rank is None or rank in named[line]) for line, rank in bug.lines.items()
    )
    codes = set(re.findall(r"^(PSM\d+) ", report, flags=re.M))
    return Verdict(bug, bool(report), bool(codes & bug.codes), all_named, seconds, report)


def _ranks(row: str) -> set[int]:
    """The ranks at the begin of a row of a report, such as `ranks 0-2, 5`."""
    listed = re.match(r" *ranks? ([\d, -]+)", row)
    ranks: set[int] = set()
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", listed[1] if listed else ""):
        ranks.update(range(int(first), int(last or first) + 1))
    return ranks
