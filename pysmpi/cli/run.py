"""`pysmpi run`: simulate a program."""

from __future__ import annotations

import contextlib
import gc
import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from pysmpi.cli.arguments import CommandLine, pairs, segments, split, split_later
from pysmpi.cli.echo import echo
from pysmpi.cli.launchers import file_of, with_config_files
from pysmpi.cli.main import version
from pysmpi.cli.run_options import Sectioned, on_command_line, spellings, with_options
from pysmpi.errors import UsageError
from pysmpi.job.command_lines import on_path
from pysmpi.job.options import OUTPUTS, Options, check
from pysmpi.job.programs import find_program

if TYPE_CHECKING:
    from pysmpi.cli.launchers import LauncherOptions
    from pysmpi.debugging.session import DebugSession
    from pysmpi.isolation.kinds.rank_output import RankOutput
    from pysmpi.isolation.loading.loader import RankProgram
    from pysmpi.job.job import Job
    from pysmpi.job.spawning import Segment
    from pysmpi.reports.result import Result

ERROR, USAGE = 1, 2

# Options that few programs have, by the parameters that they set.
_OFTEN_LATE = {
    "-np": "nprocs", "--np": "nprocs", "-n": "nprocs", "--platform": "platform",
    "-platform": "platform", "--hostfile": "hostfile", "-hostfile": "hostfile",
    "--map-by": "map_by", "--compute": "compute", "--explain": "explain", "--view": "view",
}  # fmt: skip


class RunCommand(Sectioned):
    """A command whose options end where the program begins, as with `python`."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        found = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            from pysmpi.cli.completing import word_of_run

            found += word_of_run(ctx, incomplete)
        return found

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # the shell completes an unfinished line
            try:
                return self._parse(ctx, args)
            except UsageError:
                return super().parse_args(ctx, [])
        return self._parse(ctx, args)

    def _parse(self, ctx: click.Context, args: list[str]) -> list[str]:
        arity: dict[str, int] = {"-h": 0, "--help": 0}
        for param in self.params:
            if isinstance(param, click.Option):
                for name in [*param.opts, *param.secondary_opts]:
                    arity[name] = 0 if param.is_flag else param.nargs
        args = with_config_files(args)
        first, *others = segments(args)
        line = split(first, arity)
        ctx.meta["line"] = line
        later = ctx.meta["later"] = [split_later(words) for words in others]
        # The command line for reports.
        shown = line.without_values(first)
        for (_, one), words in zip(later, others):
            shown += [":", *one.without_values(words)]
        ctx.meta["words"] = shown
        found = super().parse_args(ctx, line.options)
        hostfile = ctx.params.get("hostfile")
        usual = ctx.get_parameter_source("nprocs") is click.core.ParameterSource.DEFAULT
        if usual and hostfile is not None and not others:
            from pysmpi.platform.placement import ranks_of_hostfile

            # As with mpiexec and smpirun: all that the host file has room for.
            ctx.params["nprocs"] = ranks_of_hostfile(hostfile, ctx.params.get("map_by"))
        return found

    def make_parser(self, ctx: click.Context) -> Any:
        parser = super().make_parser(ctx)
        # Click takes any option for a long one first, and looks for similar names if it is none.
        for name, option in parser._short_opt.items():
            parser._long_opt.setdefault(name, option)
        return parser

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        program = "[-m MODULE | -c CODE | PROGRAM] [ARG...]"
        return ["[OPTIONS]", program, f"[: [-n N] {program}]..."]


@click.command("run", cls=RunCommand)
@with_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    nprocs: int,
    help_cfg: bool,
    quiet: bool,
    explain_speed: bool,
    debug: bool,
    breaks: tuple[str, ...],
    check_shadow: bool,
    check_tolerance: str,
    seeds: int | None,
    cfg: tuple[str, ...],
    coll: tuple[str, ...],
    **rest: Any,
) -> int:
    """Run PROGRAM, with mpi4py or compiled, on a simulated machine. A colon adds another program
    (MPMD).

    The program's output goes to standard output, the summary and all messages to standard error.
    The exit status is the program's; 1: it failed, 2: wrong usage or input, 3: deadlock or another
    MPI error, 70: a bug in pysmpi, 130: interrupted, 143: ended by SIGTERM.
    """
    if help_cfg or "help" in cfg:
        _list_cfg()
        return 0
    from pysmpi.platform.config import parse

    line: CommandLine = ctx.meta["line"]
    if line.launcher.version:
        echo(version())
        return 0
    settings = parse(cfg)
    algorithms = pairs(coll, "--coll", "bcast=binomial_tree")
    if not line.target:
        raise UsageError("run: expected a program: a file, -m MODULE or -c CODE")
    if line.ignored and not quiet:
        _note(f"ignored, because ranks are simulated: {', '.join(line.ignored)}")
    late = _late_option(ctx, line)
    if late and not quiet:
        _note(f"{late} is behind the program, and so an argument of it, not an option of pysmpi")
    later: list[tuple[int, CommandLine]] = ctx.meta["later"]
    if not later:
        line.environment.update(line.own)
    _set_variables(line)
    _one_thread_a_rank()
    from pysmpi.job.job import Job

    find = partial(_find, line)
    program = find()
    options = check(Options(nprocs=nprocs, cfg=settings, coll=algorithms, **rest), on_command_line)
    if check_shadow and (later or line.directory):
        raise UsageError("--check-shadow: expected one program in the working directory")
    if check_shadow:
        from pysmpi.cli.check_shadow import check as compare
        from pysmpi.cli.check_shadow import tolerance

        limit = tolerance(check_tolerance)
        if line.target == "-" and line.kind == "script":
            raise UsageError("--check-shadow: expected a file, which can run twice, got -")
        return compare(find, options, limit, quiet)
    if seeds is not None:
        from pysmpi.cli.seeds import run_seeds

        stdin = line.target == "-" and line.kind == "script"
        if later or line.directory or stdin or debug or breaks or explain_speed:
            raise UsageError(
                "--seeds: expected one program, a file in the working directory, without --pdb, "
                "--break and --explain-speed"
            )
        return run_seeds(find, options, seeds, quiet)
    programs: list[Segment] = []
    if later or line.directory is not None:
        from pysmpi.job.spawning import Segment

        total = nprocs + sum(count for count, _ in later)
        options = check(replace(options, nprocs=total), on_command_line)
        programs = [
            Segment(
                program if words is line else _find(words),
                count,
                words.directory,
                _own_variables(words) if later else {},
            )
            for count, words in [(nprocs, line), *later]
        ]
    session = None
    if debug or breaks:
        from pysmpi.debugging.breakpoints import parse_breakpoint
        from pysmpi.debugging.session import DebugSession

        session = DebugSession([parse_breakpoint(one) for one in breaks], debug)
    meter = None
    if explain_speed:
        from pysmpi.reports.explain_speed import WallMeter

        meter = WallMeter()
    # The meter is the first one, so that it sees all others.
    instruments = [one for one in (meter, session) if one is not None]
    job = Job(program, options, programs, instruments)
    outputs = [name for one in OUTPUTS for name in spellings(one)]
    words = line.without(ctx.meta["words"], [*outputs, "-q", "--quiet", "--explain-speed"])
    job.command = shlex.join(["pysmpi", "run", *words])
    again = shlex.join(["pysmpi", "run", *ctx.meta["words"]])
    status = _simulate(job, again, quiet, session, line.launcher)
    while session is not None and session.again:
        job = Job(find(), options, programs, [session])
        status = _simulate(job, again, quiet, session, line.launcher)
    for said in meter.lines() if meter is not None else ():
        _note(said)
    return status


def _find(line: CommandLine) -> RankProgram:
    """The program that a command line names."""
    assert line.target is not None
    target, directory = line.target, line.directory
    if line.kind == "script" and os.path.basename(target) == target and target != "-":
        if not os.path.exists(os.path.join(directory or "", target)):
            target = on_path(target) or target
    if directory is not None:
        if not os.path.isdir(directory):
            raise UsageError(f"-wdir: no such directory: {directory}")
        if line.kind == "script" and target != "-":
            target = os.path.join(directory, target)  # which may be absolute
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


def _own_variables(line: CommandLine) -> dict[str, str]:
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
    job: Job,
    again: str,
    quiet: bool,
    session: DebugSession | None,
    launcher: LauncherOptions,
) -> int:
    """Run a job and write the requested files; return its exit status."""
    from pysmpi.api import run_job
    from pysmpi.cli.interrupts import Interrupts
    from pysmpi.cli.progress import OutputOfRanks, Progress
    from pysmpi.isolation.kinds import system
    from pysmpi.isolation.kinds.tools import report_crashes

    system.launched_from = _launched_from()
    interrupts = Interrupts(launcher.seconds)
    interrupts.command = again
    report_crashes()
    if launcher.show_map:
        _show_map(job)
    output = _output(job, launcher)
    job.instruments.append(interrupts)
    if output is not None:
        job.instruments.append(OutputOfRanks(output))
    elif not quiet and sys.stderr.isatty():
        job.instruments.append(Progress())
    # Modules imported by now stay: the search for cycles need not look at it, nor Python's exit.
    gc.freeze()
    job.last = session is None
    job.signalled = interrupts.how
    try:
        with interrupts, output or contextlib.nullcontext():
            result = run_job(job)
    except KeyboardInterrupt:
        _note(interrupts.report)
        return interrupts.status
    if session is not None and session.ended:
        if not session.again:
            _note("ended in the debugger")
        return ERROR
    _conclude(result, quiet)
    job.platform.forget_routes()
    # Cycles with the frozen job cannot be collected: each search at Python's exit would look at all
    # objects of the run.
    vars(job).clear()
    return result.exit_status


def _show_map(job: Job) -> None:
    """Print the places of the ranks (`--display map`, and `-map` of smpirun)."""
    for rank, slot in enumerate(job.slots):
        _note(f"rank {rank} on {slot.host.name}, core {slot.core}")


def _output(job: Job, launcher: LauncherOptions) -> RankOutput | None:
    """The destination of the ranks' output; None for the usual output of all ranks together."""
    if launcher.label is None and not launcher.files:
        return None
    from pysmpi.isolation.kinds.rank_output import RankOutput

    names = [slot.host.name for slot in job.slots]
    label = launcher.label

    def prefix(rank: int, stream: str) -> bytes:
        assert label is not None
        return label.format(rank=rank, stream=stream).encode()

    def file(pattern: str) -> Callable[[int], str]:
        # The ranks may change the working directory.
        whole = os.path.abspath(pattern)
        return lambda rank: file_of(whole, rank, names[rank] if rank < len(names) else "")

    output = RankOutput(
        None if label is None else prefix,
        {fd: file(pattern) for fd, pattern in launcher.files.items()},
    )
    output.make_files(len(names))
    return output


def _conclude(result: Result, quiet: bool) -> None:
    """Print the errors and the summary of a run."""
    # Closed by the program, or by the shell; ValueError if the file is closed.
    with contextlib.suppress(BrokenPipeError, AttributeError, ValueError):
        sys.stdout.flush()
    if result.error:
        echo(result.error.rstrip("\n"), err=True)
    if result.repeat is not None:
        echo(f"  repeat: {result.repeat}", err=True)
    if quiet:
        return
    if result.exit_status and not result.error:
        _note(f"the program's exit status is {result.exit_status}")
    from pysmpi.cli.summary import summary

    echo(summary(result), err=True)


def _set_variables(line: CommandLine) -> None:
    """Set the environment variables of the command line."""
    for name, value in line.environment.items():
        if value is not None:
            try:
                os.environ[name] = value
            except (ValueError, OSError):
                raise UsageError(f"expected the name of a variable, got {name!r}") from None


def _list_cfg() -> None:
    from pysmpi.platform.config import OPTIONS
    from pysmpi.platform.simgrid_names import FOREIGN

    width = max(map(len, [*OPTIONS, *FOREIGN]))
    for option in OPTIONS.values():
        default = f" [{option.default}]" if option.default else ""
        echo(f"{option.name.ljust(width)}  {option.help}{default}")
    echo(f"{'smpi/OPERATION'.ljust(width)}  algorithm of a collective, as --coll")
    echo("\nOptions of SimGrid without effect, and why:\n")
    for row in FOREIGN.values():
        echo(f"{row.name.ljust(width)}  {row.line()}")


def _late_option(ctx: click.Context, line: CommandLine) -> str:
    """An option of a run among the arguments of the program that was probably meant for pysmpi."""
    for word in line.arguments:
        name = word.partition("=")[0]
        option = _OFTEN_LATE.get(name)
        if option and ctx.get_parameter_source(option) is click.core.ParameterSource.DEFAULT:
            return name
    return ""


def _note(message: str) -> None:
    echo(f"pysmpi: {message}", err=True)
