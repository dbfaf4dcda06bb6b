"""Running programs from Python: `pysmpi.run`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.runtime.job import Job, Options, ProgramError, Result
from pysmpi.runtime.loader import FunctionProgram, Program, find_program
from pysmpi.trace import recording

__all__ = ["Options", "ProgramError", "Result", "run"]


def run(
    main: Callable[..., Any] | str | Path,
    nprocs: int = 1,
    *,
    args: Sequence[Any] = (),
    check: bool = True,
    **options: Any,
) -> Result:
    """Run a program on a simulated machine.

    `main` is a function that every rank calls with `args`, or the path of a script that gets
    them as its arguments. The other options are those of the command line: `platform`,
    `hostfile`, `map_by`, `model`, `selector`, `coll`, `cfg`, `compute`, `host_speed`, `seed`,
    `on_deadlock`, `private`, `shared`, `trace`, `sample`, `once`.

    Returns a `Result`. Raises UsageError for wrong options, and ProgramError when the program
    fails, unless `check` is False.
    """
    try:
        chosen = Options(nprocs=nprocs, **options)
    except TypeError as error:
        unknown = str(error).rpartition("argument ")[2]
        raise UsageError(f"pysmpi.run: unknown option {unknown}") from None
    if callable(main):
        program: Program = FunctionProgram(main, args)
    else:
        program = find_program(str(main), [str(arg) for arg in args])
    job = Job(program, chosen)
    if chosen.trace is None:
        result = job.run()
    else:
        with recording(job, chosen.trace):
            result = job.run()
    if check and result.exit_status:
        raise ProgramError(result.error or f"exit status {result.exit_status}", result)
    return result
