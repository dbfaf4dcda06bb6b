"""`pysmpi run`: simulate a program."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pysmpi.cli.arguments import Line, pairs, segments, split, split_later
from pysmpi.errors import UsageError

if TYPE_CHECKING:
    from pysmpi.runtime.job import Job, Options, Result
    from pysmpi.runtime.loader import Program

ERROR, USAGE = 1, 2
MOST_RANKS = 10_000_000  # a rank takes some 20 kB: no computer can hold more


class Run(click.Command):
    """A command whose options end where the program begins, as with `python`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        arity: dict[str, int] = {"-h": 0, "--help": 0}
        for param in self.params:
            if isinstance(param, click.Option):
                for name in [*param.opts, *param.secondary_opts]:
                    arity[name] = 0 if param.is_flag else param.nargs
        ctx.meta["words"] = list(args)
        first, *others = segments(args)
        line = split(first, arity)
        ctx.meta["line"] = line
        ctx.meta["later"] = [split_later(words) for words in others]
        return super().parse_args(ctx, line.options)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        program = "[-m MODULE | -c CODE | PROGRAM] [ARG...]"
        return ["[OPTIONS]", program, f"[: [-n N] {program}]..."]


@click.command("run", cls=Run)
@click.option("-n", "-np", "--np", "nprocs", type=int, default=1, show_default=True,
              metavar="N", help="Number of ranks.")
@click.option("--platform", "-platform", metavar="FILE|NAME",
              help="The machine: a pysmpi YAML file, a SimGrid XML file, or a name from pysmpi "
              "platform list (default: cluster).")
@click.option("--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f", metavar="FILE",
              help="Hosts of the machine to use, and the number of ranks on each.")
@click.option("--map-by", "-map-by", type=click.Choice(["core", "socket", "node"]),
              help="Order in which ranks fill the machine (default: core).")
@click.option("--model", metavar="NAME",
              help="Network model, instead of the machine's model (default: hybrid); see "
              "pysmpi models.")
@click.option("--memory-model", metavar="NAME",
              help="Model of messages inside described nodes; see pysmpi models.")
@click.option("--selector", metavar="NAME|FILE",
              help="Library whose choice of collective algorithms is used, or a selection file "
              "(default: ompi5).")
@click.option("--coll", multiple=True, metavar="OP=ALGORITHM",
              help="Algorithm of one collective; repeatable. See pysmpi collectives.")
@click.option("--cfg", "-cfg", multiple=True, metavar="KEY:VALUE",
              help="A SimGrid option; repeatable. --cfg help lists them.")
@click.option("--help-cfg", is_flag=True, help="List the options that --cfg takes.")
@click.option("--compute", metavar="native|steady|none|SECONDS|FILE", default="native",
              show_default=True, help="Time of the program's own computation.")
@click.option("--record-compute", metavar="FILE",
              help="Record the measured times, for --compute FILE.")
@click.option("--host-speed", metavar="auto|FLOPS", default="auto", show_default=True,
              help="Speed of this computer, e.g. 8Gf.")
@click.option("--reduction-order", type=click.Choice(["rank", "algorithm"]), default="rank",
              show_default=True,
              help="Combine in the order of ranks, or in the order of the collective's algorithm.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="K",
              help="Seed of the ranks' random numbers.")
@click.option("--trace", metavar="FILE",
              help="Write a timeline: .json or .json.gz for ui.perfetto.dev, .csv for pandas.")
@click.option("--report", metavar="FILE.json", help="Write the figures of the run as JSON.")
@click.option("--on-deadlock", type=click.Choice(["report", "raise"]), default="report",
              show_default=True, help="End with a report, or raise MPI.Exception in the ranks.")
@click.option("--private", multiple=True, metavar="NAME",
              help="Load this module or package once for each rank; repeatable.")
@click.option("--shared", multiple=True, metavar="NAME",
              help="Load this module or package once for all ranks; repeatable.")
@click.option("--sample", multiple=True, metavar="MODULE:FUNCTION[:OPTION=VALUE,...]|auto|none",
              help="Measure calls of a function a few times, then skip them; repeatable.")
@click.option("--once", multiple=True, metavar="MODULE:FUNCTION|files",
              help="Run a function once and share its result with all ranks; repeatable.")
@click.option("--check-shadow", is_flag=True,
              help="Run without and with the shadow options, and compare times and MPI calls.")
@click.option("--check-tolerance", metavar="PERCENT", default="5%", show_default=True,
              help="Largest difference of times that --check-shadow allows.")
@click.option("--fold", multiple=True, metavar="SIZE|MODULE:FUNCTION|none",
              help="Let ranks share arrays of at least SIZE, or the arrays of a function; "
              "repeatable.")
@click.option("--data", metavar="all|none|SIZE", default="all", show_default=True,
              help="Messages that carry data: all, none, or those of up to SIZE. For programs "
              "that do not depend on the data.")
@click.option("--quiet", "-q", is_flag=True, help="No summary, progress or notes.")
@click.pass_context
def command(
    ctx: click.Context, /, nprocs: int, help_cfg: bool, quiet: bool,
    check_shadow: bool, check_tolerance: str,
    trace: str | None, report: str | None, cfg: tuple[str, ...], coll: tuple[str, ...],
    **rest: Any,
) -> int:
    """Run PROGRAM, an mpi4py script, on a simulated machine. A colon adds another program (MPMD).

    The program's output goes to standard output, the summary and all messages to standard error.
    The exit status is the program's; 1: it failed, 2: wrong usage or input, 3: deadlock or another
    MPI error, 130: interrupted, 143: ended by SIGTERM.
    """
    if help_cfg or "help" in cfg:
        _list_cfg()
        return 0
    from pysmpi.options import parse

    line: Line = ctx.meta["line"]
    settings = parse(cfg)
    algorithms = pairs(coll, "--coll", "bcast=binomial_tree")
    if nprocs > MOST_RANKS:
        raise UsageError(f"-n: expected at most {MOST_RANKS:,} ranks, got {nprocs}")
    if not line.target:
        raise UsageError("run: expected a program: a file, -m MODULE or -c CODE")
    if line.ignored and not quiet:
        _note(f"ignored, because ranks are simulated: {', '.join(line.ignored)}")
    later: list[tuple[int, Line]] = ctx.meta["later"]
    if not later:
        line.environment.update(line.own)
    _set_variables(line)
    _one_thread_a_rank()
    from pysmpi.runtime.job import Job, Options

    find = partial(_find, line)
    program = find()
    options: Options = Options(nprocs=nprocs, cfg=settings, coll=algorithms, **rest)
    if check_shadow and (later or line.directory):
        raise UsageError("--check-shadow: expected one program in the working directory")
    if check_shadow:
        from pysmpi.cli.check_shadow import check, tolerance

        limit = tolerance(check_tolerance)
        if line.target == "-" and line.kind == "script":
            raise UsageError("--check-shadow: runs a program twice, expected a file, found -")
        return check(find, replace(options, trace=trace), limit, report, quiet)
    again = shlex.join(["pysmpi", "run", *ctx.meta["words"]])
    if not later and line.directory is None:
        return _simulate(Job(program, options), again, trace, report, quiet)
    from pysmpi.runtime.spawning import Segment

    options.nprocs += sum(count for count, _ in later)
    if options.nprocs > MOST_RANKS:
        raise UsageError(f"-n: expected at most {MOST_RANKS:,} ranks, got {options.nprocs}")
    parts = [
        Segment(
            program if words is line else _find(words),
            count,
            words.directory,
            _own_variables(words) if later else {},
        )
        for count, words in [(nprocs, line), *later]
    ]
    return _simulate(Job(program, options, parts), again, trace, report, quiet)


def _find(line: Line) -> Program:
    """The program that a command line names."""
    from pysmpi.runtime.loader import find_program

    assert line.target is not None
    target, directory = line.target, line.directory
    if directory is not None:
        if not os.path.isdir(directory):
            raise UsageError(f"-wdir: found no directory {directory}")
        if line.kind == "script" and target != "-":
            target = os.path.join(directory, target)
    program = find_program(
        target,
        line.arguments,
        module=line.kind == "module",
        command=line.kind == "command",
        flags=line.flags,
    )
    if directory is not None:
        if program.arguments and line.kind == "script":
            program.arguments[0] = line.target
        if line.kind == "module":
            program.path_entry = os.path.abspath(directory)
    return program


def _own_variables(line: Line) -> dict[str, str]:
    return {name: value for name, value in line.own.items() if value is not None}


def _one_thread_a_rank() -> None:
    """Make numerical libraries compute in the thread whose clock is read.

    A rank has one core. pysmpi does not measure work in other threads of a library.
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")


def _launched_from() -> str | None:
    """The entry that Python adds to its search path for this command; programs do not see it."""
    if not sys.path or getattr(sys.flags, "safe_path", False):
        return None
    place, script = os.path.split(os.path.realpath(sys.argv[0]))
    if script == "__main__.py" and os.path.basename(place) == "pysmpi":
        place = os.getcwd()
    return sys.path[0] if os.path.realpath(sys.path[0]) == place else None


def _simulate(
    job: Job, again: str, trace: str | None, report: str | None, quiet: bool
) -> int:
    """Run a job and write the requested files; return the exit status."""
    from pysmpi.cli.interrupts import Interrupts
    from pysmpi.cli.progress import Progress
    from pysmpi.runtime import system
    from pysmpi.runtime.tools import report_crashes

    system.launched_from = _launched_from()
    progress: Progress | None = None
    interrupts = Interrupts()
    report_crashes()

    def start(simulation: Any) -> None:
        nonlocal progress
        simulation.command = again
        interrupts.simulation = simulation
        simulation.interrupted = False
        if not quiet and sys.stderr.isatty():
            progress = Progress(simulation)

    job.on_start = start
    try:
        try:
            with interrupts:
                result = _run(job, trace, report)
        finally:
            if progress is not None:
                progress.close()
    except KeyboardInterrupt:
        _note(interrupts.report)
        return interrupts.status
    except SyntaxError as error:
        # Those of modules that ranks import are errors of the ranks; this is the program.
        from pysmpi.runtime.program_errors import format_error

        if error.filename is None:
            _note(f"error: {job.program.name}: {error.msg}, expected a Python program")
            return USAGE
        click.echo(format_error(error), err=True, nl=False)
        return ERROR
    _conclude(result, quiet)
    job.platform.forget_routes()
    return result.exit_status


def _run(job: Job, trace: str | None, report: str | None) -> Result:
    """Run a job and write its files; fail before the run if a file cannot be written."""
    from pysmpi.output import Target

    with ExitStack() as stack:
        target = None if report is None else stack.enter_context(Target("--report", report))
        if trace is not None:
            from pysmpi.trace import recording

            stack.enter_context(recording(job, trace))
        result = job.run()
        if target is not None:
            try:
                _write_report(result, target.path)
            except OSError as error:
                what = f"--report {report}: cannot be written: {error.strerror}"
                click.echo(f"pysmpi: error: {what}", err=True)
                result.exit_status = result.exit_status or USAGE
            else:
                target.keep()
    return result


def _conclude(result: Result, quiet: bool) -> None:
    """Print the errors and the summary of a run."""
    # Closed by the program, or by the shell; ValueError if the file is closed.
    with contextlib.suppress(BrokenPipeError, AttributeError, ValueError):
        sys.stdout.flush()
    if result.error:
        click.echo(result.error.rstrip("\n"), err=True)
    if quiet:
        return
    if result.exit_status and not result.error:
        _note(f"the program's exit status is {result.exit_status}")
    from pysmpi.cli.summary import summary

    click.echo(summary(result), err=True)


def _write_report(result: Result, path: str) -> None:
    """Write the figures; if compute is not measured, leave out those that differ between runs."""
    import json
    from copy import deepcopy

    from pysmpi.runtime.timing import MEASURED

    figures = deepcopy(result.report())
    if result.compute not in MEASURED:
        figures["wall_seconds"] = None
        for part in ("sampled", "once", "not_sampled"):
            for place in (figures["shadow"] or {}).get(part, ()):
                for name in ("saved_seconds", "host_seconds"):
                    if name in place:
                        place[name] = None
        if figures["folding"] is not None:
            figures["folding"]["resident_bytes"] = figures["folding"]["job_bytes"] = None
    with open(path, "w", encoding="utf-8") as stream:
        json.dump(figures, stream, indent=1)
        stream.write("\n")


def _set_variables(line: Line) -> None:
    """Set the environment variables of the command line."""
    for name, value in line.environment.items():
        if value is not None:
            try:
                os.environ[name] = value
            except (ValueError, OSError):
                raise UsageError(f"expected the name of a variable, found {name!r}") from None


def _list_cfg() -> None:
    from pysmpi.options import OPTIONS

    width = max(map(len, OPTIONS))
    for option in OPTIONS.values():
        default = f" [{option.default}]" if option.default else ""
        click.echo(f"{option.name.ljust(width)}  {option.help}{default}")
    click.echo(f"{'smpi/OPERATION'.ljust(width)}  algorithm of a collective, as --coll")


def _note(message: str) -> None:
    click.echo(f"pysmpi: {message}", err=True)
