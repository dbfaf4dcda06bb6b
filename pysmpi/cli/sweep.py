"""`pysmpi sweep`: run a program on many machines, under many models."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import TYPE_CHECKING

import click

from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import WholeNumber
from pysmpi.errors import UsageError
from pysmpi.own_process import interruption

if TYPE_CHECKING:
    from pysmpi.sweeps.study import SweepStudy
    from pysmpi.sweeps.table import SweepTable

AGAIN = 10.0  # seconds between lines that are not on a terminal


@click.command("sweep")
@click.argument("study", metavar="STUDY.yaml")
@click.option(
    "--output",
    "-o",
    metavar="DIRECTORY",
    help="Directory of the results (default: STUDY.results, beside the study).",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A scheduler of Dask, such as tcp://node1:8786 (default: this computer).",
)
@click.option(
    "--workers",
    type=WholeNumber(1, 100_000),
    metavar="N",
    help="Cases at a time on this computer (default: one for each core).",
)
@click.option("--retry-failed", is_flag=True, help="Run also cases that failed before.")
@click.option("--list", "listed", is_flag=True, help="Print the cases and their state; run none.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no summary.")
def command(
    study: str,
    output: str | None,
    scheduler: str | None,
    workers: int | None,
    retry_failed: bool,
    listed: bool,
    quiet: bool,
) -> int:
    """Run all cases of a study: platforms, models, selectors, placements, numbers of ranks.

    Results are kept as they arrive. The same command goes on after an interruption, and runs each
    case once. It writes results.csv, results.parquet (with pyarrow) and pictures (with
    matplotlib). The exit status is 1 if a case failed.
    """  # fmt: skip
    from pysmpi.sweeps.study_yaml import read_study
    from pysmpi.sweeps.sweep import run_study

    found = read_study(study)
    directory = output or f"{os.path.splitext(study)[0]}.results"
    if listed:
        _list(found, directory)
        return 0
    progress = SweepProgress(quiet)
    try:
        with interruption.ending_by(interruption.at_safe_points):
            table = run_study(
                found, directory=directory, retry_failed=retry_failed, scheduler=scheduler,
                workers=workers, report=progress,
            )  # fmt: skip
    except KeyboardInterrupt:
        progress.close()
        number = interruption.received() or signal.SIGINT
        _note(
            f"{interruption.described(number)} after {progress.done} of {progress.total} cases; "
            "the same command goes on from there"
        )
        return interruption.status_of(number)
    finally:
        progress.close()
    notes = _write(table, directory)
    if not quiet:
        for note in notes:
            _note(note)
    failed = table.failed
    for row in failed[:5]:
        axes = ", ".join(f"{name} {row[name]}" for name in found.columns() if row[name] is not None)
        _note(f"failed: {axes}: {row['error']}")
    if len(failed) > 5:
        _note(f"{len(failed) - 5} more failed; see the column error")
    return 1 if failed else 0


def _list(study: SweepStudy, directory: str) -> None:
    """Print the cases, with the exit statuses of those that have ended."""
    from pysmpi.sweeps.journal import Journal

    with Journal(directory if os.path.isdir(directory) else None) as journal:
        for case in study.cases():
            row = journal.rows.get(case.key)
            state = "-" if row is None else str(row["exit_status"])
            cells = (f"{n}={v}" for n, v in case.columns.items() if v is not None)
            echo(f"{state:>3}  {' '.join(cells)}")


def _write(table: SweepTable, directory: str) -> list[str]:
    """Write the table and its pictures; return a message about them."""
    from dataclasses import replace

    written = ["results.csv"]
    notes = []
    table.write_csv(os.path.join(directory, "results.csv"))
    try:
        table.write_parquet(os.path.join(directory, "results.parquet"))
        written.append("results.parquet")
    except UsageError as error:
        notes.append(str(error))
    for plot in table.plots():
        try:
            table.draw(replace(plot, file=os.path.join(directory, plot.file)))
            written.append(plot.file)
        except UsageError as error:
            notes.append(str(error))
    return [f"{len(table)} cases: {os.path.join(directory, '')}{{{','.join(written)}}}", *notes]


class SweepProgress:
    """Shows how many cases have ended: a line that changes on a terminal, else one now and then."""

    def __init__(self, quiet: bool) -> None:
        self.quiet = quiet
        self.terminal = sys.stderr.isatty()
        self.begun = time.monotonic()
        self.due = 0.0
        self.done = self.total = 0
        self.first = -1
        self.open = False

    def __call__(self, done: int, total: int, failed: int) -> None:
        self.done, self.total = done, total
        now = time.monotonic()
        if self.first < 0:
            self.first = done
        if self.quiet:
            return
        if not self.terminal and done < total and (now < self.due or not done):
            return
        self.due = now + AGAIN
        line = f"pysmpi: {done} of {total} cases"
        if done == self.first and done:
            line += " were done before"
        if failed:
            line += f", {failed} failed"
        if self.first < done < total:
            left = (now - self.begun) / (done - self.first) * (total - done)
            line += f", about {max(1, round(left))} s left"
        if self.terminal:
            sys.stderr.write(f"\r\x1b[K{line}")
            self.open = True
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def close(self) -> None:
        """End the line on the terminal."""
        if self.open:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self.open = False


def _note(message: str) -> None:
    echo(f"pysmpi: {message}", err=True)
