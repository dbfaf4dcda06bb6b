"""Running programs from Python: `pysmpi.run`."""

from __future__ import annotations

from _thread import allocate_lock, get_ident
from collections.abc import Callable, Sequence
from dataclasses import fields
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from pysmpi.errors import UsageError
from pysmpi.mpi.base import ranks
from pysmpi.runtime.argument_types import check_arguments, check_options, shown
from pysmpi.runtime.job import Job, Options, ProgramError, Result
from pysmpi.runtime.loader import FunctionProgram, Program, find_program
from pysmpi.runtime.spawning import Segment
from pysmpi.trace import recording

__all__ = ["Options", "ProgramError", "Result", "run"]


def run(
    main: Callable[..., Any] | str | Path | Sequence[tuple[Any, ...]],
    nprocs: int = 1,
    *,
    args: Sequence[Any] = (),
    check: bool = True,
    **options: Any,
) -> Result:
    """Run a program on a simulated machine.

    `main` is a function that every rank calls with `args`, or the path of a script that gets
    them as its arguments. Several programs in one world are a list of them with their numbers of
    ranks: `[("ocean.py", 2), ("air.py", 6, ["--fast"])]`; all are functions, or all
    scripts. The other options are those of the command line: `platform`, `hostfile`, `map_by`,
    `model`, `memory_model`, `selector`, `coll`, `cfg`, `compute`, `record_compute`, `host_speed`,
    `reduction_order`, `seed`, `on_deadlock`, `private`, `shared`, `trace`, `sample`, `once`,
    `fold`, `data`.

    Returns a `Result`. Raises UsageError for wrong options, and ProgramError when the program
    fails, unless `check` is False. One program runs at a time: calls in other threads wait.
    """
    if ranks.current().program is not None:
        raise UsageError(
            f"pysmpi.run: called in rank {ranks.current().index} of a program that is being "
            "simulated, expected a call outside of it; MPI.COMM_SELF.Spawn starts more ranks"
        )
    if not _turn.acquire(blocking=_owner != get_ident()):
        raise UsageError(
            "pysmpi.run: called while a program is being simulated in this thread, and one at a "
            "time can run"
        )
    try:
        return _run(main, nprocs, args, check, options)
    finally:
        _let_next()


_turn = allocate_lock()
_owner = 0  # the thread that runs a program


def _let_next() -> None:
    global _owner
    _owner = 0
    _turn.release()


def _run(
    main: Any, nprocs: int, args: Sequence[Any], check: bool, options: dict[str, Any]
) -> Result:
    global _owner
    _owner = get_ident()
    known = [field.name for field in fields(Options)]
    for name in options:
        if name not in known:
            close = get_close_matches(name, known, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(f"pysmpi.run: unknown option {name!r}{hint}")
    chosen = Options(**check_options({"nprocs": nprocs, **options}))
    if isinstance(main, (list, tuple)):
        segments = _segments(main)
        chosen.nprocs = sum(segment.ranks for segment in segments)
        job = Job(segments[0].program, chosen, segments)
    else:
        job = Job(_program(main, args), chosen)
    if chosen.trace is None:
        result = job.run()
    else:
        with recording(job, chosen.trace):
            result = job.run()
    if check and result.exit_status:
        raise ProgramError(result.error or f"exit status {result.exit_status}", result)
    return result


def _program(main: Any, args: Sequence[Any]) -> Program:
    check_arguments(args)
    if callable(main):
        return FunctionProgram(main, args)
    if not isinstance(main, (str, PathLike)):
        raise UsageError(
            f"pysmpi.run: found {shown(main)}, expected a function, the path of a script, or a "
            "list of (program, ranks)"
        )
    return find_program(str(main), [str(arg) for arg in args])


def _segments(parts: Sequence[tuple[Any, ...]]) -> list[Segment]:
    found = []
    for part in parts:
        if not isinstance(part, (list, tuple)) or len(part) not in (2, 3):
            raise UsageError(
                f"pysmpi.run: expected (program, ranks) or (program, ranks, args), found {part!r}"
            )
        program, ranks = part[0], part[1]
        if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
            raise UsageError(f"pysmpi.run: {program}: expected at least 1 rank, found {ranks!r}")
        found.append(Segment(_program(program, part[2] if len(part) == 3 else ()), ranks))
    if not found:
        raise UsageError("pysmpi.run: expected at least one program, found an empty list")
    if len({isinstance(segment.program, FunctionProgram) for segment in found}) > 1:
        raise UsageError("pysmpi.run: expected functions only or scripts only, found both")
    return found
