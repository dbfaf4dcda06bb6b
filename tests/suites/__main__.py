"""`python -m tests.suites FOLDER...`: programs in C of suites, as mpi4py, under all checkers.

MBI, MPI-BugBench, RMARaceBench and MPI-CorrBench are known by the labels in their files, MPICH's
tests, which are correct, by the file `testlist` beside them. The programs are translated, run and
judged; a table has the figures by kind of error.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pysmpi
from tests.mbi.__main__ import run
from tests.mbi.source import Code
from tests.suites.judged import judged
from tests.suites.labels import labelled
from tests.suites.translate import Translator, Untranslated


def execute(
    path: Path, place: Path, limit: int, small: int
) -> list[tuple[Code, str, str, list[int]]]:
    """The tests of a file, each with the reason why it is left out or its report, and its lines."""
    tests = list(labelled(path))
    program = place / (path.stem.replace(".", "_").replace("-", "_") + f"_{abs(hash(path))}.py")
    try:
        text, lines = Translator(path, small=small).translate()
    except Untranslated as error:
        return [(code, f"untranslated: {error}", "", []) for code in tests]
    program.write_text(text)
    return [(code, "", run(code, program, limit)[0], lines) for code in tests]


def _warm(folder: str) -> None:
    """Load what a run needs, so that the processes of the tests have it."""
    program = Path(folder) / "warm.py"
    program.write_text("from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n")
    pysmpi.run(str(program), nprocs=2, check="all", compute="none")


def main() -> int:
    """Run the programs; prints those with a wrong verdict, and the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.suites")
    parser.add_argument("folders", nargs="+", metavar="FOLDER", type=Path)
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="TEXT",
        help="only files with it in their path",
    )
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="programs at once")
    parser.add_argument("--limit", type=int, default=60, metavar="S", help="seconds of a run")
    parser.add_argument(
        "--small",
        type=int,
        default=0,
        metavar="N",
        help="macros that are larger numbers are N (MPICH's tests repeat much)",
    )
    parser.add_argument("--save", type=Path, help="write all reports to this file")
    parser.add_argument("--show", action="store_true", help="print the program and its report")
    given = parser.parse_args()
    paths = [
        path
        for folder in given.folders
        for path in sorted([folder] if folder.is_file() else folder.rglob("*.c*"))
        if not given.only or any(text in str(path) for text in given.only)
    ]
    rows: dict[str, list[int]] = defaultdict(lambda: [0] * 5)
    saved = []
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(given.jobs, initializer=_warm, initargs=(folder,)) as pool,
    ):
        many = len(paths)
        for results in pool.map(
            execute, paths, [Path(folder)] * many, [given.limit] * many, [given.small] * many
        ):
            for code, left, report, lines in results:
                verdict = judged(code)
                row = rows[verdict.kind]
                named = {
                    lines[number - 1]
                    for name, number in (
                        (name, int(number))
                        for name, number in re.findall(r"([\w.]+\.py):(\d+)", report)
                    )
                    if name.startswith(code.path.stem.replace(".", "_").replace("-", "_"))
                    and number <= len(lines)
                }
                found = sorted(set(re.findall(r"^(PSM\d+) ", report, re.M)))
                broken = report.startswith("pysmpi failed")
                expected = verdict.expected
                right = bool(found) and (not expected or any(each in expected for each in found))
                saved.append(
                    [
                        str(code.path),
                        code.name,
                        code.error,
                        verdict.kind,
                        left or verdict.left,
                        found,
                        report,
                        sorted(code.lines),
                        sorted(named),
                    ]
                )
                if left or verdict.left:
                    row[4] += 1
                    continue
                row[0] += 1
                row[1] += bool(found)
                row[2] += right
                row[3] += bool(found) and (not code.lines or bool(code.lines & named))
                if broken or bool(found) != bool(verdict.kind) or given.show:
                    print(
                        f"--- {code.path} {code.name}: expected {verdict.kind or 'nothing'}", *found
                    )
                    print(report if given.show else report[:300], flush=True)
    if given.save:
        given.save.write_text(json.dumps(saved, indent=0))
    print(f"{'kind':44} tests  found  class  lines   left out")
    for kind, row in sorted(rows.items()):
        print(f"{kind or 'correct':44} {row[0]:5} {row[1]:6} {row[2]:6} {row[3]:6} {row[4]:6}")
    wrong = [sum(row[i] for kind, row in rows.items() if kind) for i in range(5)]
    alarms = rows[""][1] if "" in rows else 0
    print(f"{'all wrong':44} {wrong[0]:5} {wrong[1]:6} {wrong[2]:6} {wrong[3]:6} {wrong[4]:6}")
    print(f"recall {wrong[1] / max(1, wrong[0]):.4f}, false alarms {alarms}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
