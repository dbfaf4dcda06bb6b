"""`pysmpi run --check-shadow`: a program in full and with shadow options, compared."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pysmpi.cli.echo import echo
from pysmpi.errors import UsageError
from pysmpi.text import real

if TYPE_CHECKING:
    from pysmpi.isolation.loading.loader import RankProgram
    from pysmpi.job.options import Options
    from pysmpi.reports.result import Result
    from pysmpi.trace.comparison import Sequences

# With these options a program runs in full; its annotations of arrays have no effect either.
# `--sample` is kept, but only changes how calls are counted.
_FULL: dict[str, Any] = {"once": (), "fold": ("none",), "data": "all"}


def tolerance(text: str) -> float:
    """Read a relative difference, `5%` or `0.05`."""
    value = real(text.removesuffix("%"))
    if value is None or value < 0.0:
        raise UsageError(f"--check-tolerance {text}: expected a relative difference, such as 5%")
    return value / (100.0 if text.endswith("%") else 1.0)


def check(
    program: Callable[[], RankProgram],
    options: Options,
    limit: float,
    quiet: bool,
) -> int:
    """Run both ways and print the comparison; the exit status.

    `program` finds the program anew.
    """
    from pysmpi.instruments import unused
    from pysmpi.io.output import OutputFile
    from pysmpi.reports.result import write_report
    from pysmpi.time.timing import MEASURED
    from pysmpi.trace.comparison import compare

    wrong = unused(options, ("report",))
    if wrong is None and options.record_compute is not None:
        wrong = "--record-compute"
    if wrong is not None:
        raise UsageError(f"--check-shadow: runs a program twice, expected no {wrong}")
    unsampled = replace(options, **_FULL)
    full, one = _run(program(), unsampled, "in full", dry=True)
    if full.error:
        return full.exit_status
    shadow, other = _run(program(), options, "with shadow options", dry=False)
    comparison = compare(full, shadow, one, other, limit)
    if not comparison.passed and options.compute in MEASURED:
        again, calls = _run(program(), unsampled, "in full once more, because it failed", dry=True)
        comparison.again = compare(full, again, one, calls, limit)
    if options.report is not None:
        figures = {**shadow.report(), "check": comparison.report()}
        if options.report == "-":
            write_report(figures, "-")
        else:
            with OutputFile("--report", str(options.report)) as target, target.writing():
                write_report(figures, target.path)
                target.keep()
    if not quiet:
        from pysmpi.cli.summary import summary

        echo(summary(shadow), err=True)
    for line in comparison.lines():
        echo(f"pysmpi: {line}", err=True)
    return 0 if comparison.passed else 1


def _run(
    program: RankProgram, options: Options, how: str, *, dry: bool
) -> tuple[Result, Sequences]:
    from pysmpi.job.job import Job
    from pysmpi.trace.comparison import SequenceRecorder

    echo(f"pysmpi: check: running {how}", err=True)
    recorder = SequenceRecorder()
    job = Job(program, options, instruments=[recorder])
    if dry:
        job.shadowing.run_dry()
    result = job.run()
    sys.stdout.flush()
    if result.error:
        echo(result.error.rstrip("\n"), err=True)
    return result, recorder.sequences
