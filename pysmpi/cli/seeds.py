"""`pysmpi run --seeds N`: the distribution of the predicted time over runs with different seeds."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from pysmpi import text
from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError

if TYPE_CHECKING:
    from pysmpi.isolation.loading.loader import RankProgram
    from pysmpi.job.options import Options
    from pysmpi.reports.result import Result

PERCENTS = (10, 50, 90)
_FEW = {1: 6.3138, 2: 2.9200}  # 95th percentiles that the series misses


class SeededEnd(NamedTuple):
    """The predicted time of a run (s), and the rank that ends last."""

    seconds: float
    rank: int


def percentile(values: Sequence[float], percent: float) -> float:
    """The percentile of some values, between two of them in proportion."""
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100.0
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def run_seeds(
    program: Callable[[], RankProgram], options: Options, number: int, quiet: bool
) -> int:
    """Run a program with `number` seeds, from that of the options on; the exit status.

    `program` finds the program anew. Only the first run prints. The first run that fails ends it.
    """
    from pysmpi.api import run_job
    from pysmpi.instruments import unused
    from pysmpi.io.output import OutputFile
    from pysmpi.job.job import Job
    from pysmpi.reports.result import write_report

    wrong = unused(options, ("report", "fault", "noise", "check", "schedule"))
    if wrong is None and options.record_compute is not None:
        wrong = "--record-compute"
    if wrong is not None:
        raise UsageError(f"--seeds: runs a program {number} times, expected no {wrong}")
    ends: list[SeededEnd] = []
    for seed in range(options.seed, options.seed + number):
        job = Job(program(), replace(options, seed=seed, report=None))
        with _silent() if ends else _flushed():
            result = run_job(job)
        if result.error or result.exit_status:
            if result.error:
                echo(result.error.rstrip("\n"), err=True)
            echo(f"pysmpi: the run with --seed {seed} ended with {result.exit_status}", err=True)
            return result.exit_status
        ends.append(_end(result))
    figures = report(ends, options.seed)
    if options.report == "-":
        write_report(figures, "-")
    elif options.report is not None:
        with OutputFile("--report", str(options.report)) as target, target.writing():
            write_report(figures, target.path)
            target.keep()
    if not quiet:
        for line in lines(ends):
            echo(f"pysmpi: {line}", err=True)
    return 0


def _end(result: Result) -> SeededEnd:
    ends = [rank["end_seconds"] for rank in result.ranks]
    return SeededEnd(result.seconds, ends.index(max(ends)))


def report(ends: Sequence[SeededEnd], first: int) -> dict[str, object]:
    """The distribution as plain data: seconds, and the rank that ends last, by seed."""
    seconds = [end.seconds for end in ends]
    return {
        "schema": 1,
        "seeds": list(range(first, first + len(ends))),
        "seconds": seconds,
        "last_ranks": [end.rank for end in ends],
        **{f"p{percent}": percentile(seconds, percent) for percent in PERCENTS},
        "interval": interval(seconds),
    }


def interval(seconds: Sequence[float]) -> tuple[float, float] | None:
    """The interval of the time of one more seed, with 90 % probability; None for one seed.

    It is that of a normal distribution of logarithms whose mean and deviation are not known
    (Student's distribution).
    """
    count = len(seconds)
    if count < 2 or min(seconds) <= 0.0:
        return None
    logarithms = [math.log(value) for value in seconds]
    mean = sum(logarithms) / count
    deviation = math.sqrt(sum((one - mean) ** 2 for one in logarithms) / (count - 1))
    reach = _student(count - 1) * deviation * math.sqrt(1.0 + 1.0 / count)
    return math.exp(mean - reach), math.exp(mean + reach)


def _student(freedom: int) -> float:
    """The 95th percentile of Student's distribution (Abramowitz and Stegun, 26.7.5)."""
    if freedom in _FEW:
        return _FEW[freedom]
    x = 1.6448536
    terms = (
        (x**3 + x) / 4.0,
        (5.0 * x**5 + 16.0 * x**3 + 3.0 * x) / 96.0,
        (3.0 * x**7 + 19.0 * x**5 + 17.0 * x**3 - 15.0 * x) / 384.0,
    )
    return x + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1))


def lines(ends: Sequence[SeededEnd]) -> list[str]:
    """The distribution as text."""
    seconds = [end.seconds for end in ends]
    parts = ", ".join(
        f"p{percent} {text.seconds(percentile(seconds, percent))}" for percent in PERCENTS
    )
    found = [
        f"predicted time of {len(ends)} seeds: {parts} "
        f"({text.seconds(min(seconds))} to {text.seconds(max(seconds))})"
    ]
    reach = interval(seconds)
    if reach is not None and max(seconds) > min(seconds):
        found.append(f"90 % interval of one more seed: {text.range_of_seconds(*reach)}")
    limit = percentile(seconds, 90)
    slow = [end for end in ends if end.seconds >= limit]
    if max(seconds) > min(seconds):
        ranks = Counter(end.rank for end in slow).most_common(3)
        tail = ", ".join(f"rank {rank} in {count}" for rank, count in ranks)
        found.append(f"last to end in the slowest {text.count(len(slow), 'run')}: {tail}")
    else:
        found.append(
            "all times are equal: --noise linux-cluster and --fault jitter:time=2us add noise"
        )
    return found


@contextmanager
def _flushed() -> Iterator[None]:
    yield
    sys.stdout.flush()


@contextmanager
def _silent() -> Iterator[None]:
    """The standard output goes nowhere."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
        sys.stdout.flush()
    finally:
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)
