"""`pysmpi explore`: try other orders of events."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click

from pysmpi import text
from pysmpi.cli.arguments import pairs
from pysmpi.cli.echo import echo
from pysmpi.cli.numbers import Seconds, WholeNumber
from pysmpi.cli.run import RunCommand, _find, _one_thread_a_rank, _set_variables
from pysmpi.cli.run_options import on_command_line, with_options
from pysmpi.diagnostics import DIAGNOSTICS, OrderDependence
from pysmpi.errors import UsageError
from pysmpi.job.options import FIELDS, Options, check
from pysmpi.own_process import interruption

if TYPE_CHECKING:
    from pysmpi.cli.arguments import CommandLine
    from pysmpi.explore.exploration import FailingOrder, SearchResult
    from pysmpi.job.job import Job

FAILED, INCOMPLETE, RACE = 1, 4, 5
# The search itself shows races and the need of buffers, and leaks are the same in every order.
_NO_ORDER = {"races", "buffering", "leaks", "files"}
_PAIRS = 4  # events of two orders
_SHOWN = 12  # lines of events and predictions
_OWN = (
    "--runs", "--seconds", "--jobs", "-j", "--keep-going", "--reduction", "--sends", "--timeout",
    "--symmetric", "--no-shrink", "--resume", "--database", "--json", "--page", "--schedule",
    "--scheduler",
)  # fmt: skip


@click.command("explore", cls=RunCommand)
@click.option(
    "--runs",
    type=WholeNumber(1, 1 << 53),
    metavar="N",
    help="Largest number of executions (default: no limit; 100 with a strategy).",
)
@click.option(
    "--seconds",
    type=Seconds(),
    metavar="S",
    help="Largest wall time of the search.",
)
@click.option(
    "--jobs",
    "-j",
    type=WholeNumber(1, 100_000),
    metavar="N",
    help="Executions at the same time (default: the cores of this computer; with --scheduler "
    "twice the threads of its workers).",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A scheduler of Dask, such as tcp://node1:8786, whose workers execute the program "
    "(default: this computer).",
)
@click.option("--keep-going", is_flag=True, help="Do not stop at the first failure.")
@click.option(
    "--reduction",
    type=click.Choice(["source", "sleep", "none"]),
    default="source",
    show_default=True,
    help="Method that leaves out orders that only exchange independent events.",
)
@click.option(
    "--sends",
    type=click.Choice(["both", "buffered", "waiting"]),
    default="both",
    show_default=True,
    help="Whether standard sends are buffered or wait for their receives.",
)
@click.option(
    "--timeout",
    type=Seconds(zero=False),
    default=60.0,
    metavar="S",
    show_default=True,
    help="Wall time after which one execution counts as a failure.",
)
@click.option(
    "--symmetric",
    is_flag=True,
    help="Count ranks that differ only by their numbers once; assumes that the program treats them "
    "alike.",
)
@click.option("--no-shrink", is_flag=True, help="Report failures as they were found.")
@click.option("--resume", is_flag=True, help="Continue an exploration that was interrupted.")
@click.option(
    "--database",
    default=".pysmpi",
    metavar="DIR",
    show_default=True,
    help="Directory of known failures, which are tried first; none: keep nothing.",
)
@click.option("--json", "json_file", metavar="FILE", help="Write the outcome as JSON; - is stdout.")
@click.option(
    "--page",
    metavar="FILE",
    help="Draw each failing order beside the one that passes, as a page (.html).",
)
@with_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    runs: int | None,
    seconds: float | None,
    jobs: int | None,
    scheduler: str | None,
    keep_going: bool,
    reduction: str,
    sends: str,
    timeout: float,
    symmetric: bool,
    no_shrink: bool,
    resume: bool,
    database: str,
    json_file: str | None,
    page: str | None,
    nprocs: int,
    help_cfg: bool,
    quiet: bool,
    check_shadow: bool,
    check_tolerance: str,
    cfg: tuple[str, ...],
    coll: tuple[str, ...],
    schedule: str,
    **rest: Any,
) -> int:
    """Run PROGRAM again and again, with all relevantly different orders of its events.

    Without --schedule the search is systematic: it ends when no other order can have another
    outcome. With --schedule, a strategy such as pct:3 decides each execution. An exception, a
    deadlock, a finding of a checker and an exit status other than 0 are failures. Without --check,
    the checkers are those of problems that an order can hide; --check none uses no checker.

    The exit status is 0 if nothing was found, 1 for a failure, 5 if the program computes different
    results in different orders, 4 if nothing was found and --runs or --seconds ended a systematic
    search before all orders were explored, 2 for wrong usage, and 130 if the search was interrupted
    (143: ended by SIGTERM). The outcome so far is printed then.
    """
    from pysmpi.checkers.registry import CHECKERS, names_of
    from pysmpi.cluster.client import connected, cores
    from pysmpi.explore.database import Database
    from pysmpi.explore.exploration import SYSTEMATIC, ExecutorFactory, SearchLimits, here
    from pysmpi.explore.remote import on_workers
    from pysmpi.explore.running import Campaign
    from pysmpi.explore.strategy import TIME, make_strategy
    from pysmpi.instruments import unused
    from pysmpi.platform.config import parse

    line: CommandLine = ctx.meta["line"]
    if not line.target:
        raise UsageError("explore: expected a program: a file, -m MODULE or -c CODE")
    if ctx.meta["later"] or line.directory is not None or line.target == "-":
        raise UsageError("explore: expected one program in the working directory, as a file")
    line.environment.update(line.own)
    _set_variables(line)
    _one_thread_a_rank()
    if rest["seeds"] is not None:
        raise UsageError("explore: expected no --seeds, which is for pysmpi run")
    rest = {name: value for name, value in rest.items() if name in FIELDS} | {"compute": "none"}
    usual = all(name.startswith("-") for name in names_of(rest["check"]))
    if usual:
        orders = [name for name in CHECKERS.names() if name not in _NO_ORDER]
        rest["check"] = [*orders, *rest["check"]]
    algorithms = pairs(coll, "--coll", "bcast=binomial_tree")
    options = check(
        Options(nprocs=nprocs, cfg=parse(cfg), coll=algorithms, **rest), on_command_line
    )
    option = unused(options, ("check", "schedule"))
    if option is None and options.record_compute is not None:
        option = "--record-compute"
    if option is not None:
        raise UsageError(f"explore: {option} is for one run; repeat a failure with pysmpi run")
    if schedule != TIME:
        make_strategy(schedule, options.seed)
    settings = SearchLimits(
        SYSTEMATIC if schedule == TIME else schedule, runs, seconds, jobs or cores(), keep_going,
        reduction, sends, options.seed, timeout, not no_shrink, symmetric,
    )  # fmt: skip
    words: list[str] = ctx.meta["words"]
    make = ProgramJobs(line, options)

    def again(failure: FailingOrder) -> str:
        own = [*_OWN, "-n", "-np", "--np", "--compute", *(["--check"] if usual else ())]
        kept = line.without(words, own)
        if line.arguments:
            kept = kept[: len(kept) - len(line.arguments)]
        first = ["pysmpi", "run", "-n", str(failure.ranks), "--replay-schedule", failure.schedule]
        if usual and _is_finding(failure):
            first += ["--check", ",".join(rest["check"])]
        return shlex.join([*first, *kept, *failure.arguments])

    _find(line)
    progress = _Progress(quiet)
    begun = time.monotonic()
    with ExitStack() as stack:
        executors: ExecutorFactory = here(make)
        if scheduler is not None:
            client = stack.enter_context(connected("explore", scheduler))
            executors = on_workers(client, make, jobs)
        stack.callback(progress.close)
        campaign = Campaign(
            executors, nprocs, line.arguments, settings, os.path.abspath(line.target)
            if line.kind == "script" else line.target, again,
            None if database == "none" else Database(database), resume, progress,
        )  # fmt: skip
        stack.enter_context(interruption.ending_by(interruption.at_safe_points))
        found = campaign.run()
    found.seconds = time.monotonic() - begun
    _show(found, campaign.resumed, quiet)
    if json_file is not None:
        _write(json_file, found)
    if page is not None:
        _draw(page, line.target, found)
    if found.interrupted:
        return interruption.status_of(interruption.received() or signal.SIGINT)
    if found.failures:
        return FAILED
    if found.lost:
        raise UsageError(
            f"--scheduler {scheduler}: lost after {found.executions:,} executions: {found.lost}; "
            "--resume goes on from there"
        )
    if len(found.results) > 1:
        return RACE
    return INCOMPLETE if schedule == TIME and not found.complete else 0


@dataclasses.dataclass(frozen=True)
class ProgramJobs:
    """Makes jobs of the program of a command line, here or on another computer."""

    line: CommandLine
    options: Options

    def __call__(self, ranks: int, arguments: Sequence[str]) -> Job:
        """A job with these ranks and arguments of the program."""
        from pysmpi.job.job import Job

        _set_variables(self.line)
        _one_thread_a_rank()
        program = _find(dataclasses.replace(self.line, arguments=list(arguments)))
        return Job(program, dataclasses.replace(self.options, nprocs=ranks))


def _is_finding(failure: FailingOrder) -> bool:
    """Whether a checker has found the failure, so that a run without it would not."""
    kind = DIAGNOSTICS.get(failure.error.split(maxsplit=1)[0] if failure.error else "")
    return kind is not None and kind.__module__ != OrderDependence.__module__


class _Progress:
    """The progress line on a terminal."""

    def __init__(self, quiet: bool) -> None:
        self.on = not quiet and sys.stderr.isatty()
        self.due = 0.0

    def __call__(self, found: SearchResult) -> None:
        now = time.monotonic()
        if self.on and now >= self.due:
            self.due = now + 0.2
            rate = found.executions / found.seconds if found.seconds else 0.0
            about = f" of about {found.estimate:,.0f}" if found.estimate is not None else ""
            sys.stderr.write(
                f"\r\x1b[K{found.executions:,} executions{about}, {found.left:,} branches left, "
                f"{len(found.failures)} failures, {rate:,.0f} a second"
            )
            sys.stderr.flush()

    def close(self) -> None:
        """Take the line away."""
        if self.on:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _differing(outputs: Sequence[str]) -> list[str]:
    """The first line that is not the same in all outputs, in each of them."""
    rows = zip_longest(*(output.strip().splitlines() for output in outputs), fillvalue="")
    return next((list(row) for row in rows if len(set(row)) > 1), [""] * len(outputs))


def _show(found: SearchResult, resumed: int, quiet: bool) -> None:
    """Print the outcome."""
    for failure in found.failures:
        _show_failure(failure)
    if len(found.results) > 1:
        kind = OrderDependence
        echo(
            f"{kind.code} {kind.title}: {len(found.results)} different results",
            err=True,
        )
        lines = _differing(found.outputs)
        for (schedule, count), line in list(zip(found.results, lines))[:_SHOWN]:
            shown = f": {line[:60]}" if line else ""
            executions = text.count(count, "execution")
            echo(f"  {executions}, --replay-schedule {schedule}{shown}", err=True)
    if found.divergence is not None:
        echo(f"pysmpi: the program is not deterministic: {found.divergence}", err=True)
    if quiet:
        return
    lines = [
        f"{text.count(found.executions, 'execution')} in {found.seconds:.3g} s, "
        f"{found.states:,} states; {found.meetings:,} ended at a state of another one, "
        f"{found.redundant:,} more were given up as redundant"
    ]
    if resumed:
        lines.append(f"continued after {resumed:,} earlier executions")
    if found.complete:
        lines.append("all relevantly different orders were explored")
        if found.alike:
            ranks = ", ".join(map(str, found.alike))
            lines.append(f"assumed (--symmetric): ranks {ranks} differ only by their numbers")
    elif found.left:
        about = "" if found.estimate is None else f", about {found.estimate:,.0f} in all"
        lines.append(f"not complete: {found.left:,} branches left{about}; --resume continues")
    if not found.failures and found.complete:
        lines.append("no order of events fails")
    if found.note is not None:
        lines.append(found.note)
    for one in lines:
        echo(f"pysmpi: {one}", err=True)


def _show_failure(failure: FailingOrder) -> None:
    echo(failure.error.rstrip("\n"), err=True)
    when = "known failure" if failure.known else f"execution {failure.found_after:,}"
    differ = text.count(failure.deviations, "decision")
    differ += " differs" if failure.deviations == 1 else " differ"
    if not failure.command:
        echo(f"  found by {when}, which was killed: its order is not known", err=True)
        return
    echo(f"  found by {when}; {differ} from the default order", err=True)
    number = failure.inevitable
    if number == 0:
        sends = ", if no standard send is buffered" if failure.schedule.startswith("s") else ""
        echo(f"  every tried order fails{sends}", err=True)
    elif number is not None and number <= len(failure.sites):
        echo(f"  inevitable after event {number} of {len(failure.sites)}:", err=True)
        echo(f"    {failure.sites[number - 1]}", err=True)
    _show_orders(failure)
    echo(f"  repeat: {failure.command}", err=True)
    if failure.unordered:
        echo(f"  a smaller job fails in its default order: {failure.unordered}", err=True)


def _show_orders(failure: FailingOrder) -> None:
    """Print the events of a passing and of the failing order, from the first that differs on."""
    begin = failure.parting
    if begin is None:
        return
    which = "the default order"
    if failure.passing_schedule:
        which = f"another order ({failure.passing_schedule})"
    echo(f"  {which} passes; this order parts from it at event {begin + 1}:", err=True)
    pairs = list(zip_longest(failure.passing[begin:], failure.sites[begin:], fillvalue="the end"))
    for passes, fails in pairs[:_PAIRS]:
        if passes == fails:
            echo(f"    both:   {passes}", err=True)
        else:
            echo(f"    passes: {passes}", err=True)
            echo(f"    fails:  {fails}", err=True)
    if len(pairs) > _PAIRS:
        echo(f"    and {text.count(len(pairs) - _PAIRS, 'later event')}", err=True)
    for one in failure.remedies:
        tried = text.count(one.executions, "execution")
        more = "" if one.complete else ", more are left"
        echo(f"  {one.verdict} if {one.text} ({tried}{more})", err=True)


def _write(path: str, found: SearchResult) -> None:
    """Write the outcome as JSON."""
    written = json.dumps({"schema": 1, **dataclasses.asdict(found)}, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(written)
        sys.stdout.flush()
        return
    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(written)
    except OSError as error:
        raise UsageError(f"--json {path}: cannot be written: {error.strerror}") from None


def _draw(path: str, program: str, found: SearchResult) -> None:
    """Write the page of the failures."""
    from pysmpi.explore import picture

    try:
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(picture.page(os.path.basename(program), found.failures))
    except OSError as error:
        raise UsageError(f"--page {path}: cannot be written: {error.strerror}") from None
