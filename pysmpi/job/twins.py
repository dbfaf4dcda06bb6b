"""Runs that know when their shortcuts make them wrong: twins, and remarks on decisions.

A run with folded, skipped or missing data has the right time if its calls are those of a full run.
`--twin` runs the program in full first, on the same or fewer ranks, and `shadow/twin.py` compares.
Without it, the result names the lines that decide by data.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.isolation.loading.loader import FunctionProgram, RankProgram, StdinProgram
from pysmpi.job.job import Job
from pysmpi.job.options import DEFAULTS, Options
from pysmpi.platform.units import parse_time
from pysmpi.ranks.instruments import Instrument
from pysmpi.reports.result import Result
from pysmpi.shadow.decisions import DataDecision, decisions
from pysmpi.shadow.twin import Twin, TwinGuide
from pysmpi.text import integer
from pysmpi.time.timing import MEASURED

_FULL: dict[str, Any] = {"sample": ("none",), "once": (), "fold": ("none",), "data": "all"}
# A twin is not observed, and measures nothing.
_ALONE = (
    "trace", "trace_format", "view", "explain", "report", "record_compute", "check", "fault",
    "noise", "instrument", "twin", "on_divergence",
)  # fmt: skip
_SHOWN = 3  # decisions in a remark


def takes_shortcuts(options: Options) -> bool:
    """Whether options let a program work with wrong data."""
    fold = [options.fold] if isinstance(options.fold, str) else options.fold
    return bool(options.sample or options.data != "all" or [one for one in fold if one != "none"])


def parse_twin(text: str, nprocs: int) -> tuple[int, float | None]:
    """The ranks of a twin, and the wall seconds after which it ends: `all`, `4` or `4:10s`."""
    ranks, colon, limit = text.partition(":")
    number = nprocs if ranks == "all" else integer(ranks)
    if number is None or not 1 <= number <= nprocs:
        raise UsageError(
            f"--twin {text}: expected all or a number of ranks up to {nprocs}, and a time after a "
            "colon, such as 4:10s"
        )
    if not colon:
        return number, None
    try:
        seconds = parse_time(limit, bare=True)
    except UsageError as error:
        raise UsageError(f"--twin {text}: {error}") from None
    if not seconds > 0.0:
        raise UsageError(f"--twin {text}: expected a time above 0, got {limit}")
    return number, seconds


def run_guided(job: Job, instruments: Callable[[Options], list[Instrument]]) -> Result:
    """Run a job, beside its twin if it has one; `instruments` makes those of its options."""
    options = job.options
    own = list(job.instruments)
    twin = options.twin
    if twin is None or not takes_shortcuts(options):
        if twin is not None:
            raise UsageError("--twin: expected --fold, --data or --sample, whose runs it guides")
        job.instruments = own + instruments(options)
        result = job.run()
        if _without_data(result):
            _remark(result, _decisions(job.program, *_wrong(result)))
        return result
    if len(job.segments) > 1 or isinstance(job.program, StdinProgram):
        raise UsageError("--twin: expected one program, which can run twice")
    guide = TwinGuide(
        options.nprocs, _run_twin(job, twin), _decisions(job.program), options.on_divergence
    )
    again = copy.copy(job.program)
    last, job.last = job.last, job.last and options.on_divergence != "full"
    job.instruments = own + instruments(options) + [guide]
    result = job.run()
    wrong = guide.divergence is not None or result.exit_status != 0
    if not wrong or options.on_divergence != "full":
        if guide.divergence is None and _without_data(result):
            _remark(result, guide.undecided())
        return result
    whole = Job(again, replace(options, **_FULL), instruments=own + instruments(options))
    whole.command, whole.last, whole.signalled = job.command, last, job.signalled
    result = whole.run()
    why = guide.divergence or "the program failed with wrong data"
    result.remarks.append(f"ran once more in full, because {why}")
    return result


def _run_twin(job: Job, text: str) -> Twin:
    options = job.options
    nprocs, limit = parse_twin(text, options.nprocs)
    twin = Twin(nprocs, whole=nprocs == options.nprocs, limit=limit)
    changes = {**{name: DEFAULTS[name] for name in _ALONE}, **_FULL}
    changes |= {"nprocs": nprocs, "compute": "none"}
    with _quiet():
        result = Job(copy.copy(job.program), replace(options, **changes), instruments=[twin]).run()
    if result.error and twin.complete:
        raise UsageError(
            f"--twin {text}: the full run on {nprocs} ranks failed: {result.error.strip()}"
        )
    return twin


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Discard all output."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    kept = [os.dup(fd) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for fd in (1, 2):
            os.dup2(nowhere, fd)
        with open(os.devnull, "w") as stream:
            with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
                yield
    finally:
        for fd, real in zip((1, 2), kept):
            os.dup2(real, fd)
            os.close(real)
        os.close(nowhere)


def _wrong(result: Result) -> tuple[bool, set[str], bool]:
    """The things that the run lacked: own arrays, results of skipped functions, measured times."""
    sampled = [] if result.shadow is None else result.shadow["sampled"]
    names = {
        point["place"].rpartition(":")[2].rpartition(".")[2]
        for point in sampled
        if point["skipped"]
    }
    return result.folding is not None, names, result.compute in MEASURED


def _decisions(
    program: RankProgram,
    arrays: bool = False,
    functions: Collection[str] = (),
    clocks: bool = False,
) -> list[DataDecision]:
    """The lines of a program that decide by data; none if its source is not known."""
    path: str | None = getattr(program, "path", None)
    if isinstance(program, FunctionProgram):
        with contextlib.suppress(TypeError, OSError):
            path = inspect.getsourcefile(program.function)
    return (
        []
        if path is None or not os.path.isfile(path)
        else decisions(path, arrays, functions, clocks)
    )


def _without_data(result: Result) -> bool:
    """Whether a run with several ranks worked with wrong data, and did not fail because of it."""
    skipped = result.shadow is not None and any(
        point["skipped"] for point in result.shadow["sampled"]
    )
    wrong = skipped or result.folding is not None or result.data != "all"
    return wrong and result.nprocs > 1 and not result.exit_status


def _remark(result: Result, lines: Sequence[DataDecision]) -> None:
    """Name the lines that decide by data which the run did not have."""
    if not lines:
        return
    shown = [
        f"{one} (by {', '.join(map(str, one.sources[:2]))}"
        f"{', ...' if len(one.sources) > 2 else ''})"
        for one in lines[:_SHOWN]
    ]
    more = len(lines) - len(shown)
    result.remarks.append(
        "the program decides by its data, which is wrong in this run, at "
        + ", ".join(shown)
        + (f" and {more} more" if more > 0 else "")
        + ": its calls, and so its time, may be others; --twin all compares them with a full run"
    )
