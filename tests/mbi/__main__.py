"""`python -m tests.mbi [NAME...]`: the codes of MBI under all checkers, and a table by class."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import pysmpi
from pysmpi.cli.cc import line
from tests.mbi.source import Code, codes, generate

_ORDER = "PSM101 PSM111 PSM114 PSM122"  # the ranks wait or may wait, or the calls do not match
_ARGUMENT = "PSM103"  # the error handler of MPI ends the job
#: The codes of pysmpi that are right for a kind of error.
CLASSES = {
    "BufferingHazard": "PSM122 PSM101", "CallMatching": _ORDER, "IHCallMatching": _ORDER,
    "CommunicatorMatching": _ORDER, "DatatypeMatching": "PSM112 PSM113 PSM103",
    "OperatorMatching": "PSM112", "RootMatching": "PSM112 PSM101", "TagMatching": _ORDER,
    "MessageRace": "PSM121", "MissingStart": "PSM101 PSM117", "MissingWait": "PSM117",
    "LocalConcurrency": "PSM115 PSM116 PSM124", "GlobalConcurrency": "PSM124",
    "MissingEpoch": "PSM123 PSM103",
    "DoubleEpoch": "PSM123 PSM103", "InvalidBuffer": "PSM116 PSM103",
    "InvalidSrcDest": "PSM103 PSM114", "CommunicatorLeak": "PSM119", "GroupLeak": "PSM119",
    "OperatorLeak": "PSM119", "TypeLeak": "PSM119", "RequestLeak": "PSM118",
    "InvalidCommunicator": _ARGUMENT, "InvalidDatatype": _ARGUMENT, "InvalidOperator": _ARGUMENT,
    "InvalidOtherArg": _ARGUMENT, "InvalidRoot": _ARGUMENT, "InvalidTag": _ARGUMENT,
}  # fmt: skip
# No message is buffered.
SYNCHRONOUS = {"smpi/send-is-detached-thresh": "0", "smpi/async-small-thresh": "0"}


def run(code: Code, program: Path, limit: int = 0) -> tuple[str, float]:
    """The report of a run, in a process of its own, and its seconds of processor time.

    A run that takes longer than `limit` seconds is ended, if this is not 0.
    """
    with tempfile.TemporaryFile("w+") as answer:
        child = os.fork()
        if child == 0:
            status = 1
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(limit)
            try:
                null = os.open(os.devnull, os.O_RDWR)
                for descriptor in (0, 1, 2):
                    os.dup2(null, descriptor)
                begun = time.process_time()
                settings = {} if code.buffered else {"cfg": SYNCHRONOUS}
                try:
                    result = pysmpi.run(
                        str(program), nprocs=code.ranks, args=list(code.arguments), check="all",
                        compute="none", **settings,
                    )  # fmt: skip
                except pysmpi.ProgramError as error:
                    result = error.result
                json.dump([result.error or "", time.process_time() - begun], answer)
                answer.flush()
                status = 0
            except BaseException as error:
                json.dump([f"pysmpi failed: {error!r}", 0.0], answer)
                answer.flush()
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        answer.seek(0)
        text = answer.read()
        if not text:
            return f"pysmpi failed: status {ended}", 0.0
        report, seconds = json.loads(text)
        return report, seconds


class Verdict:
    """The report of a test beside its header."""

    def __init__(self, code: Code, report: str, seconds: float) -> None:
        self.code, self.report, self.seconds = code, report, seconds
        self.codes = set(re.findall(r"^(PSM\d+) ", report, re.M))
        self.found = bool(self.codes)
        named = {
            int(number) for number in re.findall(re.escape(code.path.name) + r":(\d+)", report)
        }
        expected = CLASSES.get(code.error, "")
        self.right = not code.error or any(each in expected for each in self.codes)
        # Of two calls at fault, the first ends the job where MPI notices it; the header also names
        # the line that sets a wrong argument, and the end of a program that has freed nothing.
        self.named = bool(code.lines & named) if code.lines else self.found
        self.good = self.found and self.right and self.named if code.error else not self.found


def table(verdicts: list[Verdict]) -> str:
    """The figures by kind of error, and of all."""
    kinds = defaultdict(list)
    for verdict in verdicts:
        kinds[verdict.code.error].append(verdict)
    correct = kinds.pop("", [])
    rows = ["kind                 wrong  found  class  lines"]
    wrong = [each for some in kinds.values() for each in some]
    for kind, some in [*sorted(kinds.items()), ("all", wrong)]:
        rows.append(
            f"{kind:20} {len(some):5} {sum(v.found for v in some):6} "
            f"{sum(v.found and v.right for v in some):6} {sum(v.found and v.named for v in some):6}"
        )
    found = sum(v.found for v in wrong)
    alarms = sum(v.found for v in correct)
    cost = statistics.median(v.seconds for v in verdicts)
    rows.append(
        f"{len(correct)} correct codes, {alarms} false alarms; recall "
        f"{found / max(1, len(wrong)):.3f}, precision {found / max(1, found + alarms):.3f}, "
        f"median {1000 * cost:.0f} ms of processor time"
    )
    return "\n".join(rows)


def main() -> int:
    """Run the codes; prints those with a wrong verdict, and the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.mbi")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only codes with it in their name")
    parser.add_argument("--verbose", action="store_true", help="print the reports")
    parser.add_argument("--save", type=Path, help="write all reports to this file")
    given = parser.parse_args()
    verdicts = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        generate(folder)
        program = folder / "program"
        for path in sorted(folder.glob("*.c")):
            if given.names and not any(name in path.name for name in given.names):
                continue
            words = ["-g", "-O0", "-w", str(path), "-lm", "-o", str(program)]
            subprocess.run(line("cc", words), check=True)
            for code in codes(path):
                verdict = Verdict(code, *run(code, program))
                verdicts.append(verdict)
                good = verdict.good
                if not good or given.verbose:
                    print(
                        f"--- {code.name}: expected {code.error or 'nothing'} {sorted(code.lines)}"
                    )
                    print(verdict.report if given.verbose else verdict.report[:200], flush=True)
    if given.save:
        given.save.write_text(
            json.dumps(
                [[v.code.name, v.code.error, sorted(v.code.lines), v.report] for v in verdicts]
            )
        )
    print(table(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
