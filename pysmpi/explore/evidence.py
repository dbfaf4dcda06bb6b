"""Evidence for message races: the program once more, with the other message.

A race matters if the result differs. Two children of the process run the program in the default
order: in one of them the receive in question takes the message of the run, in the other one the
other message. Time is off, so that the clock makes no difference. The child that takes the message
of the run is the last one: files that the program writes are then as before.
"""

from __future__ import annotations

import gc
import io
import os
import pickle
import select
import signal
import sys
import tempfile
from collections.abc import Sequence

from pysmpi.checkers import CheckSession, exemptions, listeners
from pysmpi.explore.executions import Trial
from pysmpi.explore.executor import OUTPUT, redirect
from pysmpi.explore.guide import StrategyGuide
from pysmpi.explore.schedule import Decisions, Replayed
from pysmpi.explore.strategy import TIME
from pysmpi.isolation import simulator
from pysmpi.job.job import Job
from pysmpi.job.options import Options
from pysmpi.kernel.process import Process
from pysmpi.kernel.requests import KernelRequest, Receive, Transfer
from pysmpi.own_process import interruption
from pysmpi.own_process.descendants import end_with_parent
from pysmpi.ranks.instruments import Instrument
from pysmpi.reports.findings import Finding, OtherMatch
from pysmpi.reports.result import Result

# A rank has its own; installed before any run.
_fork, _leave, _kill, _waitpid, _getpid = os.fork, os._exit, os.kill, os.waitpid, os.getpid

MOST = 4  # races that are tried
LONGEST = 20.0  # seconds of wall time that a run may have taken to be repeated


class ForcedMatch(Instrument):
    """Lets one receive from any source take the message of a certain source."""

    def __init__(self, match: OtherMatch, source: int) -> None:
        self.match = match
        self.source = source
        self.count = 0

    def request_started(self, request: KernelRequest, process: Process, now: float) -> None:
        """Name the source of the receive before it is posted."""
        if not isinstance(request, Receive) or isinstance(request, Transfer):
            return
        match = self.match
        if (request.context.number, request.destination) == (match.context, match.destination):
            if self.count == match.index:
                request.source = self.source
            self.count += 1


def checks_of(options: Options) -> CheckSession | None:
    """The checkers that the options of a run ask for."""
    checkers = listeners(options.check)
    exempt = exemptions(options.check)
    return CheckSession(checkers, judged, exempt) if checkers else None


def judged(job: Job, result: Result, findings: Sequence[Finding]) -> list[Finding]:
    """The findings, without those that make no difference to the result of the program."""
    kept = []
    tried = 0
    for finding in findings:
        match = finding.match
        if match is None:
            kept.append(finding)
            continue
        told = None
        if tried < MOST and _repeatable(job, result):
            tried += 1
            told = _difference(job, match, result.wall_seconds)
        if told:
            finding.more.append(f"tried with the other message: {told}")
        elif finding.doubtful:
            continue
        elif told is not None:
            finding.more.append("tried with the other message: the program gives the same result")
        kept.append(finding)
    return kept


def _repeatable(job: Job, result: Result) -> bool:
    options = job.options
    timed = options.schedule == TIME and options.replay_schedule is None
    return timed and result.wall_seconds <= LONGEST


def _difference(job: Job, match: OtherMatch, seconds: float) -> str | None:
    """The difference of the result with the other message; None if this is not known."""
    limit = 10.0 + 5.0 * seconds
    other = _execute(job, match, match.other, limit)
    usual = _execute(job, match, match.taken, limit)
    if other is None or usual is None:
        return None
    if other.status != usual.status or other.cause != usual.cause:
        first = (other.error or f"exit status {other.status}").strip().splitlines()[0]
        return first.partition(" at t=")[0] if other.failed else "the program does not fail"
    if other.result[0] != usual.result[0]:
        before, after = (set(one.result[0]) for one in (usual, other))
        pair = [min(lines, default=b"") for lines in (before - after, after - before)]
        shown = [repr(line.decode(errors="replace").strip()[:60]) for line in pair]
        return f"the output differs: {shown[1]} instead of {shown[0]}"
    if other.returns != usual.returns:
        return "the program returns other values"
    return ""


def _execute(job: Job, match: OtherMatch, source: int, limit: float) -> Trial | None:
    """Run the program in a child; None if it has no result within `limit` seconds."""
    output, answer = tempfile.TemporaryFile(), tempfile.TemporaryFile()
    sys.stdout.flush()
    sys.stderr.flush()
    mine, its = os.pipe()
    parent = _getpid()
    pid = _fork()
    if not pid:
        try:
            end_with_parent(parent)
            interruption.disregard()
            gc.freeze()  # a search for cycles would copy all older objects
            os.close(mine)
            simulator.begin()
            sys.stdin = io.StringIO()
            sys.stdout = sys.stderr = io.TextIOWrapper(output, write_through=True)
            redirect(output.fileno())
            pickle.dump(_run(job, match, source), answer)
            answer.flush()
        finally:
            _leave(0)
    os.close(its)
    poll = select.poll()
    poll.register(mine, select.POLLIN | select.POLLHUP)
    if not poll.poll(1000.0 * limit):
        _kill(pid, signal.SIGKILL)
    os.close(mine)
    _waitpid(pid, 0)
    answer.seek(0)
    output.seek(0)
    with answer, output:
        try:
            found = pickle.load(answer)
        except (EOFError, pickle.UnpicklingError):
            return None
        assert isinstance(found, Trial)
        found.output = output.read(OUTPUT)
        return found


def _run(job: Job, match: OtherMatch, source: int) -> Trial:
    instruments = [StrategyGuide(Replayed(Decisions())), ForcedMatch(match, source)]
    result = Job(job.program, job.options, job.segments, instruments).run()
    sys.stdout.flush()
    return Trial(result.exit_status, result.error, returns=repr(result.returns))
