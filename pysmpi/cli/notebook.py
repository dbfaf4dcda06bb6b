"""The cell magic `%%pysmpi` of notebooks: a cell as a program on simulated ranks."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from pysmpi.api import Options, ProgramError, run
from pysmpi.cli.arguments import CommandLine, pairs
from pysmpi.cli.launchers import LauncherOptions
from pysmpi.cli.run import command
from pysmpi.errors import UsageError
from pysmpi.isolation.loading.loader import CommandProgram
from pysmpi.job.options import FIELDS
from pysmpi.job.options import check as checked
from pysmpi.platform.config import parse

if TYPE_CHECKING:
    from pysmpi.reports.result import Result


def load(shell: Any) -> None:
    """Give a shell of IPython the magic (`%load_ext pysmpi`)."""

    def magic(line: str, cell: str) -> Result | None:
        return run_cell(shell, line, cell)

    magic.__doc__ = run_cell.__doc__
    shell.register_magic_function(magic, "cell", "pysmpi")


def run_cell(shell: Any, line: str, cell: str) -> Result | None:
    """Run the cell as a program on simulated ranks: `%%pysmpi -n 4 --platform graphene`.

    The options are those of `pysmpi run`; words after them are arguments of the program. Each rank
    has its own variables, which are not those of the notebook. The report of a failure is printed.
    The value of the cell is the result of the run, `_`; with `-q` there is none.
    """
    try:
        context = command.make_context("%%pysmpi", shlex.split(line))
    except click.exceptions.Exit:  # of --help
        return None
    except (click.UsageError, ValueError) as error:
        raise UsageError(f"%%pysmpi: {error}") from None
    options = _options(context)
    words: CommandLine = context.meta["line"]
    arguments = [] if words.target is None else [words.target, *words.arguments]
    # The first line of the cell is that of the magic.
    source = "\n" + cell
    file = shell.compile.cache(source, shell.displayhook.prompt_count)
    program = CommandProgram(source, arguments, file)
    try:
        result = run(program, check=options.check or False, options=options)
    except ProgramError as error:
        result = error.result
    if result.error:
        print(result.error.rstrip("\n"))
    return None if context.params["quiet"] else result


def _options(context: click.Context) -> Options:
    """The options of a run, from the first line of a cell."""
    line: CommandLine = context.meta["line"]
    if line.kind != "script" or context.meta["later"] or line.launcher != LauncherOptions():
        raise UsageError(
            f"%%pysmpi: expected options of pysmpi.run, got {shlex.join(line.options)}"
        )
    given = dict(context.params)
    for name, value in given.items():
        if name not in FIELDS and name not in ("quiet", "check_tolerance") and value:
            raise UsageError(f"%%pysmpi: {name}: expected in pysmpi run only, not in a cell")
    chosen = {name: value for name, value in given.items() if name in FIELDS}
    chosen["cfg"] = parse(given["cfg"])
    chosen["coll"] = pairs(given["coll"], "--coll", "bcast=binomial_tree")
    return checked(Options(**chosen), lambda name: f"%%pysmpi: {name}")
