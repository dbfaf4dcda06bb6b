"""The entry point of the command line: finds the subcommand, and prints errors as one line."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

import pysmpi
from pysmpi.cli.echo import echo
from pysmpi.errors import PysmpiError, PysmpiInternalError
from pysmpi.python.extras import missing_requirement
from pysmpi.text import did_you_mean, shortened

# The module of each subcommand; it is imported when it is used.
COMMANDS = {
    "demo": ("pysmpi.cli.demo", "Show a small program and its result: a place to begin."),
    "run": ("pysmpi.cli.run", "Run a program on a simulated machine."),
    "explore": ("pysmpi.cli.explore", "Try other orders of a program's events."),
    "replay": ("pysmpi.cli.replay", "Predict the time of recorded runs on a machine."),
    "map": ("pysmpi.cli.map", "Find a better placement for the ranks of a recorded run."),
    "trace": ("pysmpi.cli.trace", "Convert recorded runs to other formats."),
    "view": ("pysmpi.cli.view", "Write a page that shows a recorded run, or compares two."),
    "animate": ("pysmpi.cli.animate", "Write a page on which the messages of a run move."),
    "analyse": ("pysmpi.cli.analyse", "Explain the time of a recorded run."),
    "extrapolate": (
        "pysmpi.cli.extrapolate",
        "Predict a larger run from records of smaller ones.",
    ),
    "sweep": ("pysmpi.cli.sweep", "Run a program on many machines, under many models."),
    "models": ("pysmpi.cli.models", "List the network models."),
    "collectives": ("pysmpi.cli.collectives", "List collective algorithms and selectors."),
    "platform": ("pysmpi.cli.platform", "Check or show the description of a machine."),
    "coherence": ("pysmpi.cli.coherence", "Study the coherent caches of a node."),
    "study": ("pysmpi.cli.study", "Repeat the figures of papers on the performance of MPI."),
    "validate": ("pysmpi.cli.validate", "Compare predictions with what a real machine measured."),
    "calibrate": ("pysmpi.cli.calibrate", "Measure this computer, to describe it as a machine."),
    "explain": ("pysmpi.cli.explain", "Explain a diagnostic, such as PSM101."),
    "cc": ("pysmpi.cli.cc", "Compile a program in C for a run, as mpicc does."),
    "cxx": ("pysmpi.cli.cxx", "Compile a program in C++ for a run, as mpicxx does."),
    "fc": ("pysmpi.cli.fc", "Compile a program in Fortran for a run, as mpifort does."),
    "doctor": ("pysmpi.cli.doctor", "Check this installation."),
}

# Commands of MPI libraries and of SMPI, and those that do the same here.
LAUNCHERS = {"mpiexec", "mpirun", "smpirun", "srun", "aprun", "jsrun"}
COMPILERS = {
    "mpicc": "cc", "smpicc": "cc", "mpicxx": "cxx", "mpic++": "cxx", "smpicxx": "cxx",
    "mpifort": "fc", "mpif77": "fc", "mpif90": "fc", "smpif90": "fc",
}  # fmt: skip

# The order of --help.
GROUPS = {
    "Begin": ("demo", "doctor"),
    "Run a program": ("run", "sweep", "cc", "cxx", "fc"),
    "Understand its time": ("view", "animate", "analyse", "trace", "replay", "map", "extrapolate"),
    "Find its bugs": ("explore", "explain"),
    "Machines and models": (
        "platform",
        "models",
        "collectives",
        "calibrate",
        "validate",
        "coherence",
        "study",
    ),
}
START = (
    "Start with: pysmpi demo, or pysmpi run -n 4 PROGRAM.py. "
    "pysmpi COMMAND --help explains a command."
)

USAGE, INTERRUPTED = 2, 130
COMPLETE = "_PYSMPI_COMPLETE"  # a variable that shells set for completion


def _begins_a_run(words: Sequence[str]) -> bool:
    """Whether words without a command are those of `pysmpi run`."""
    first = words[0].partition("=")[0]
    if not first.startswith("-") or first in ("-h", "--help", "-V", "--version", "--"):
        return False
    from pysmpi.cli.run_options import SPELLINGS, spellings

    options = {name for option in SPELLINGS for name in spellings(option)}
    more = ("-m", "-c", "-x", "-genv", "-env", "-host", "--host", "-H", "-ppn", "-q", "--quiet")
    return first in options or first in more or first[:2] == "-n" and first[2:].isdigit()


class Commands(click.Group):
    """A group that imports only the subcommand that is run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        home, _ = COMMANDS[cmd_name]
        command: click.Command = import_module(home).command
        if ctx.resilient_parsing:
            from pysmpi.cli.completing import equip

            equip(command, cmd_name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        name = args[0]
        if name == "help":
            # As git and others have it: `help run` is `run --help`.
            args = [*args[1:], "--help"]
            name = args[0]
        if name == "version":
            echo(version())
            ctx.exit()
        if name not in COMMANDS and not name.startswith("-"):
            hint = did_you_mean(name, COMMANDS)
            if name.endswith(".py") or os.path.isfile(name):
                hint = f"; did you mean pysmpi run {shlex.join(args)}?"
            elif name in LAUNCHERS:
                hint = f"; did you mean {shlex.join(['pysmpi', 'run', *args[1:]])}?"
            elif name in COMPILERS:
                words = ["pysmpi", COMPILERS[name], *args[1:]]
                hint = f"; did you mean {shlex.join(words)}?"
            raise click.UsageError(
                f"no such command {name!r}, expected one of {', '.join(COMMANDS)}{hint}", ctx
            )
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args == ["help"]:
            args = ["--help"]
        if args and _begins_a_run(args):
            words = shlex.join(args[:8]) + (" ..." if len(args) > 8 else "")
            raise click.UsageError(
                f"{args[0]}: expected a command before options of a run; did you mean "
                f"pysmpi run {words}?",
                ctx,
            )
        return super().parse_args(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), COMMANDS[name][1]) for name in names])


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        echo(version())
        ctx.exit()


def version() -> str:
    """The text of `--version`: pysmpi, Python, the form of the kernel, the parts that are off."""
    from pysmpi.kernel import engine
    from pysmpi.python import facts

    kind = "interpreted" if engine.__file__.endswith(".py") else "compiled"
    python = ".".join(str(part) for part in sys.version_info[:3])
    line = f"pysmpi {pysmpi.__version__}, Python {python}, kernel {kind} ({engine.__file__})"
    return "\n".join([line, *facts.lines()])


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
    invoke_without_command=True,
    epilog=START,
)
@click.option(
    "--version", "-V", is_flag=True, is_eager=True, expose_value=False, callback=_show_version,
    help="Show the version, and whether the kernel is compiled.",
)  # fmt: skip
@click.pass_context
def command(ctx: click.Context) -> None:
    """Run unmodified mpi4py programs on a simulated machine."""
    if ctx.invoked_subcommand is None:
        echo(ctx.get_help())


def complain(message: str) -> None:
    """Print an error message to standard error."""
    echo(f"pysmpi: error: {shortened(message)}", err=True)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its exit status."""
    _open_streams()
    sys.exit(status_of(sys.argv[1:] if args is None else args))


def _open_streams() -> None:
    """Open closed standard streams, so that no later file gets their descriptors."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")


def _write_rest() -> None:
    """Write the rest of standard output while an error can still be reported."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        sys.stdout = None  # the reader has what it wanted, and the exit status stays
    except ValueError:
        pass  # the program has closed it


def status_of(args: Sequence[str]) -> int:
    """Run the command line; return its exit status."""
    if COMPLETE in os.environ:
        # An error of a line that is not finished is none of its writer's.
        with suppress(Exception):
            command.main(list(args), prog_name="pysmpi")
        return 0
    try:
        status = command.main(list(args), prog_name="pysmpi", standalone_mode=False)
        _write_rest()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except click.UsageError as error:
        path = error.ctx.command_path if error.ctx is not None else "pysmpi"
        complain(f"{error.format_message()} (see {path} --help)")
        return USAGE
    except click.ClickException as error:
        complain(error.format_message())
        return USAGE
    except PysmpiError as error:
        complain(str(error))
        return error.exit_status
    except (click.Abort, KeyboardInterrupt):
        complain("interrupted")
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Click turns a broken pipe into an exit. The reader has closed the output, as `head` does;
        # do not fail again at the exit.
        sys.stdout = None
        return 0
    except SyntaxError as error:
        # Only the program of the command line: a module that a rank imports fails in that rank.
        from traceback import format_exception_only

        if error.filename is None:
            complain(f"{error.msg}, expected a Python program")
            return USAGE
        echo("".join(format_exception_only(error)), err=True, nl=False)
        return 1
    except MemoryError:
        complain("out of memory: expected less data, or a higher limit (ulimit -v)")
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else "output: "
        complain(f"{where}{error.strerror or error}")
        if not error.filename:
            sys.stdout = None  # its text cannot be written at the exit either
        return USAGE
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and missing_requirement(error):
            complain(missing_requirement(error))
            return USAGE
        from pysmpi.isolation.program_errors import format_internal

        echo(format_internal(error), err=True)
        return PysmpiInternalError.exit_status
