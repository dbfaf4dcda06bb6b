"""`pysmpi.sweep`: many runs of a program, as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from pysmpi.collectives.registry import find_selector, is_selector
from pysmpi.errors import UsageError
from pysmpi.job.options import Path, check_value, shown
from pysmpi.memory.transfer.models import find_memory_model
from pysmpi.network.models import find as find_model
from pysmpi.platform import loader
from pysmpi.platform.mappings import EXPECTED, is_mapping
from pysmpi.sweeps.journal import Journal
from pysmpi.sweeps.scheduling import Report, execute
from pysmpi.sweeps.study import OPTIONS, SweepStudy, check_values
from pysmpi.sweeps.table import SweepTable


def sweep(
    main: Callable[..., object] | Path,
    *,
    platforms: Sequence[Path] = (),
    models: Sequence[str] = (),
    memory_models: Sequence[str] = (),
    selectors: Sequence[Path] = (),
    ranks: Sequence[int] = (1,),
    placements: Sequence[Path] = (),
    arguments: Sequence[Sequence[object]] = (),
    seeds: Sequence[int] = (),
    values: dict[str, str] | None = None,
    timeout: float | None = None,
    directory: Path | None = None,
    retry_failed: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    report: Report | None = None,
    **options: object,
) -> SweepTable:
    """Run a program once for each combination of the values of the axes; return the table.

    `main` is a function that each rank calls, or the path of a script, as for `pysmpi.run`. Axes
    that are not given have the default of `pysmpi.run`. `placements` are core, socket, node, or
    paths of hostfiles; `arguments` are lists of arguments. The columns beyond those of the run are
    the return value of rank 0 of a function (a number, or a dictionary of numbers and texts), or
    the groups that `values` finds in a script's output (a regular expression with one group for
    each name).

    `options` are those of `pysmpi.run` for all runs, such as `compute="none"`. Runs that take more
    than `timeout` seconds of wall time are ended, and fail. `directory` keeps the results of cases
    as they arrive: the same call after an interruption runs only the others, and with
    `retry_failed` those that failed.

    Cases run on Dask distributed, in a process each: on `workers` cores of this computer, or on
    the workers of the `scheduler` at this address, which find files under the same paths. `report`
    is called with three numbers after each case: ended, all, failed. Raises UsageError for wrong
    arguments; cases that fail have their exit status and error in the table.
    """
    axes = {
        "platforms": [_platform(one) for one in platforms],
        "models": [find_model(one, "models").name for one in models],
        "memory_models": [find_memory_model(one).name for one in memory_models],
        "selectors": [_selector(one) for one in selectors],
        "ranks": [check_value("nprocs", one, lambda _: "pysmpi.sweep: ranks") for one in ranks],
        "placements": [_placement(one) for one in placements],
        "arguments": [tuple(one) for one in arguments],
        "seeds": [check_value("seed", one, lambda _: "pysmpi.sweep: seeds") for one in seeds],
    }
    for name in options:
        if name not in OPTIONS:
            raise UsageError(
                f"pysmpi.sweep: expected an option among {', '.join(OPTIONS)}, got {name!r}"
            )
    if callable(main):
        program: Any = main
    elif isinstance(main, (str, os.PathLike)):
        program = os.path.abspath(main)
    else:
        raise UsageError(f"pysmpi.sweep: expected a function or a path, got {shown(main)}")
    checked = {
        name: check_value(name, value, lambda name: f"pysmpi.sweep: {name}")
        for name, value in options.items()
    }
    given = {axis: found for axis, found in axes.items() if found}
    for axis, found in given.items():
        check_values(f"pysmpi.sweep: {axis}", found)
    name = getattr(main, "__name__", None) or os.path.basename(str(main))
    study = SweepStudy(name, program, given, checked, dict(values or {}), timeout)
    return run_study(
        study, directory=directory, retry_failed=retry_failed, scheduler=scheduler,
        workers=workers, report=report,
    )  # fmt: skip


def run_study(
    study: SweepStudy,
    *,
    directory: Path | None = None,
    retry_failed: bool = False,
    scheduler: str | None = None,
    workers: int | None = None,
    report: Report | None = None,
) -> SweepTable:
    """Run the cases of a study that the journal in `directory` does not have; return the table."""
    if workers is not None and workers < 1:
        raise UsageError(f"workers: expected at least 1, got {workers}")
    cases = study.cases()
    with ExitStack() as stack:
        place = None if directory is None else os.fspath(directory)
        journal = stack.enter_context(Journal(place))
        if retry_failed:
            for key in [one for one, row in journal.rows.items() if row["exit_status"] != 0]:
                del journal.rows[key]
        execute(cases, journal, scheduler, workers, report or _silent)
        return SweepTable(study, cases, journal.rows)


def _silent(done: int, total: int, failed: int) -> None:
    pass


def _platform(value: Path) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise UsageError(
            f"pysmpi.sweep: platforms: expected names of machines and paths, got {shown(value)}"
        )
    loader.read(value)
    text = os.fspath(value)
    return text if text in loader.shipped() else os.path.abspath(text)


def _selector(value: Path) -> str:
    text = os.fspath(value)
    if is_selector(text):
        return text
    if not os.path.isfile(text):
        find_selector(text)
    return os.path.abspath(text)


def _placement(value: Path) -> str:
    text = os.fspath(value)
    if is_mapping(text):
        return text
    if not os.path.isfile(text):
        raise UsageError(
            f"pysmpi.sweep: placements: expected {', '.join(EXPECTED)} or the path of a "
            f"hostfile, got {text!r}"
        )
    return os.path.abspath(text)
