"""Running programs from Python: `pysmpi.run`."""

from __future__ import annotations

import functools
import inspect
import os
from _thread import allocate_lock, get_ident
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ParamSpec, TypeAlias, TypeVar

from pysmpi.errors import UsageError
from pysmpi.instruments import Instrument, chosen
from pysmpi.isolation import collection
from pysmpi.isolation.loading.loader import FunctionProgram, RankProgram
from pysmpi.job.job import Job
from pysmpi.job.options import (
    FIELDS,
    OnDeadlock,
    OnDivergence,
    OnFailure,
    Options,
    Path,
    ReductionOrder,
    check_arguments,
    check_names,
    shown,
)
from pysmpi.job.options import check as checked
from pysmpi.job.programs import find_program
from pysmpi.job.spawning import Segment
from pysmpi.job.twins import run_guided
from pysmpi.mpi.base import ranks
from pysmpi.reports.result import ProgramError, Result

if TYPE_CHECKING:
    from pysmpi.platform.model import Host, Link, Platform

__all__ = ["Options", "ProgramError", "Result", "run"]

# A program as `run` takes it: a function that each rank calls, or the path of a script.
Program: TypeAlias = Callable[..., object] | Path | RankProgram

_Parameters = ParamSpec("_Parameters")
_Value = TypeVar("_Value")


def _with_options(function: Callable[_Parameters, _Value]) -> Callable[_Parameters, _Value]:
    """Accept an `Options` object instead of the keyword arguments that are not given.

    Wrong names and numbers of arguments are UsageErrors.
    """
    signature = inspect.signature(function)
    known = [name for name in signature.parameters if name not in FIELDS]

    @functools.wraps(function)
    def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Value:
        check_names(name for name in kwargs if name not in known)
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise UsageError(f"pysmpi.run: {error}") from None
        options = given.pop("options", None)
        if options is not None:
            if not isinstance(options, Options):
                raise UsageError(
                    f"pysmpi.run: options: expected pysmpi.Options(...), got {shown(options)}"
                )
            given = {**vars(options), **given}
        return function(**given)  # type: ignore[call-arg]

    return call


@_with_options
def run(
    main: Program | Sequence[tuple[Program, int] | tuple[Program, int, Sequence[object]]],
    nprocs: int = 1,
    *,
    args: Sequence[object] = (),
    check: bool | str | Sequence[str] = True,
    options: Options | None = None,
    platform: Path | Mapping[str, object] | Platform | None = None,
    hostfile: Path | None = None,
    map_by: str | None = None,
    rank_by: str | None = None,
    model: str | None = None,
    memory_model: str | None = None,
    memory_bound: str | float | None = None,
    selector: Path | None = None,
    coll: Mapping[str, str] = {},  # noqa: B006 - it is not changed
    cfg: Mapping[str, str] = {},  # noqa: B006
    compute: Path | float = "native",
    record_compute: Path | None = None,
    host_speed: str | float = "auto",
    reduction_order: ReductionOrder = "rank",
    seed: int = 0,
    schedule: str = "time",
    replay_schedule: str | None = None,
    trace: Path | None = None,
    trace_format: str | None = None,
    view: Path | None = None,
    explain: bool = False,
    report: Path | None = None,
    on_deadlock: OnDeadlock = "report",
    fault: Sequence[str] | str = (),
    noise: Path | Mapping[str, object] | None = None,
    on_failure: OnFailure = "end",
    instrument: Sequence[str] | str = (),
    private: Sequence[str] = (),
    shared: Sequence[str] = (),
    sample: Sequence[str] | str = (),
    once: Sequence[str] | str = (),
    fold: Sequence[str] | str = (),
    data: str = "all",
    twin: str | None = None,
    on_divergence: OnDivergence = "report",
) -> Result:
    """Run a program on a simulated machine.

    `main` is a function that every rank calls with `args`, or the path of a script that gets
    them as its arguments. Several programs in one world are a list of them with their numbers of
    ranks: `[("ocean.py", 2), ("air.py", 6, ["--fast"])]`; all are functions, or all
    scripts.

    `options` is an `Options` object; the other keyword arguments are its fields, which are the
    options of `pysmpi run`, and take precedence over it.

    Returns a `Result`. Raises UsageError for wrong arguments, and ProgramError when the program
    fails, unless `check` is False. `check` may also name checkers ("all", "leaks,races"), which
    look for errors of the program while it runs; `Result.findings` has their findings. One program
    runs at a time: calls in other threads wait.
    """
    given = dict(locals())
    if isinstance(check, bool):
        given["check"] = ()
    chosen = Options(**{name: given[name] for name in FIELDS})
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
        result = _run(main, args, chosen)
        collection.let_go()
    finally:
        _let_next()
    # Not in `_run`: the traceback would keep the job as long as the error lives.
    if check is not False and result.exit_status:
        what = result.error or f"exit status {result.exit_status}"
        if result.repeat is not None:
            what += f"\n  repeat: {result.repeat}"
        raise ProgramError(what, result)
    return result


_turn = allocate_lock()
_owner = 0  # the thread that runs a program


def _let_next() -> None:
    global _owner
    _owner = 0
    _turn.release()


def _run(main: object, args: Sequence[object], options: Options) -> Result:
    global _owner
    _owner = get_ident()
    options = checked(options)
    if isinstance(main, (list, tuple)):
        segments = _segments(main)
        total = sum(segment.ranks for segment in segments)
        if options.nprocs not in (1, total):
            raise UsageError(
                f"pysmpi.run: nprocs: expected nothing, since the programs have {total} ranks, got "
                f"{options.nprocs}"
            )
        job = Job(segments[0].program, checked(replace(options, nprocs=total)), segments)
    else:
        job = Job(_program(main, args), options)
    return run_job(job)


def run_job(job: Job) -> Result:
    """Run a job with the instruments that its options choose.

    Raises UsageError before the run if a file cannot be written. A report that cannot be completed
    is an error of the result.
    """
    return run_guided(job, lambda options: instruments_of(options, job.platform))


def instruments_of(options: Options, platform: Platform) -> list[Instrument]:
    """The instruments that the options and the platform of a run choose."""
    found = chosen(options, platform.profiles)
    parts: list[Host | Link] = [*platform.hosts, *platform.links]
    if any(one.properties for one in parts):
        from pysmpi.analysis.energy import energy_of

        found += energy_of(platform)
    return found


def _program(main: object, args: object) -> RankProgram:
    if isinstance(main, RankProgram):  # of a cell
        return main
    given = check_arguments(args)
    if callable(main):
        return FunctionProgram(main, given)
    if not isinstance(main, (str, os.PathLike)):
        raise UsageError(
            "pysmpi.run: expected a function, the path of a script, or a list of (program, "
            f"ranks), got {shown(main)}"
        )
    return find_program(str(main), [str(arg) for arg in given])


def _segments(parts: Sequence[Sequence[object]]) -> list[Segment]:
    found = []
    for part in parts:
        if not isinstance(part, (list, tuple)) or len(part) not in (2, 3):
            raise UsageError(
                "pysmpi.run: expected (program, ranks) or (program, ranks, args), got "
                f"{shown(part)}"
            )
        program, ranks = part[0], part[1]
        if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
            raise UsageError(f"pysmpi.run: {program}: expected at least 1 rank, got {shown(ranks)}")
        found.append(Segment(_program(program, part[2] if len(part) == 3 else ()), ranks))
    if not found:
        raise UsageError("pysmpi.run: expected at least one program, got an empty list")
    if len({isinstance(segment.program, FunctionProgram) for segment in found}) > 1:
        raise UsageError("pysmpi.run: expected functions only or scripts only, got both")
    return found
